/*
 * DIR/samples as the recorder writes it. A block every ten seconds, of a zstd stream over many of them, is small (110
 * bytes a second of a process were 35), and beginning a new one now and then lets a reader begin there. Until then its
 * items are in DIR/samples.open: the moments before everything was killed, the recorder too, as a container is that
 * needs too much (memory.oom.group), are those that matter most.
 */
#include "analyzer/recorder/sampler/sampler_sources.h"

#include "analyzer/recorder/rings/file_io.h"
#include "analyzer/util/vec.h"
#include "format/varint.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define ZSTD_LEVEL   9 /* of a few KiB every ten seconds */
#define ZSTD_WINDOW  18
#define FLUSH_NS     (10ull * 1000000000)
#define FLUSH_BYTES  (256u << 10)
#define STREAM_PARTS 120
#define STREAM_BYTES (4u << 20)
#define MAX_TEXT     1000u
#define MAX_SHARE    16 /* of the disk limit that samples may take */

struct subject {
	struct subject_key key; /* texts are owned */
	uint64_t seen_ns;
	uint32_t number; /* in this stream + 1; 0 = not in it */
	bool gone;
	uint64_t sent[MT_SAMPLES_MAX_FIELDS]; /* values as last written in this stream */
};

struct samples_file {
	struct mt_session *session;
	int dir; /* not its path, at which there may be another trace by now */
	int fd;  /* -1 = not open */
	uint64_t end;
	int open_fd; /* of samples.open; -1 = not open */
	uint64_t open_size;
	size_t kept; /* bytes of `plain` that are in it, and their CRC */
	uint32_t kept_crc;
	ZSTD_CCtx *zstd;
	struct subject **subjects;
	size_t count, room;
	uint8_t *plain;
	size_t bytes, plain_room;
	uint64_t now;               /* of what is added */
	uint64_t first_ns, last_ns; /* of the block; first 0 = it is empty */
	uint64_t time;              /* of the stream so far; 0 = it is new */
	uint32_t stream_subjects, part;
	size_t stream_bytes;
	uint64_t dropped; /* blocks that did not fit */
};

struct samples_file *samples_file_new(const char *dir, struct mt_session *session)
{
	struct samples_file *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->fd = f->open_fd = -1;
	f->session = session;
	f->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	f->zstd = ZSTD_createCCtx();
	if (f->dir < 0 || !f->zstd) {
		samples_file_free(f);
		return NULL;
	}
	ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_windowLog, ZSTD_WINDOW);
	return f;
}

static void free_subject(struct subject *s)
{
	free((char *)(uintptr_t)s->key.text);
	free((char *)(uintptr_t)s->key.text2);
	free(s);
}

static void end_open(struct samples_file *f)
{
	if (f->open_fd < 0)
		return;
	close(f->open_fd);
	unlinkat(f->dir, "samples.open", 0);
	__atomic_fetch_sub(&f->session->used_bytes, f->open_size, __ATOMIC_RELAXED);
}

void samples_file_free(struct samples_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++)
		free_subject(f->subjects[i]);
	ZSTD_freeCCtx(f->zstd);
	if (f->fd >= 0)
		close(f->fd);
	end_open(f);
	if (f->dir >= 0)
		close(f->dir);
	free(f->subjects);
	free(f->plain);
	free(f);
}

/* ---- subjects -------------------------------------------------------------------------------------------- */

static const char *text_of(const char *text)
{
	return text ? text : "";
}

static bool is_same(const struct subject_key *a, const struct subject_key *b)
{
	return a->kind == b->kind && !memcmp(a->key, b->key, sizeof(a->key)) &&
	       !strcmp(text_of(a->text), text_of(b->text)) && !strcmp(text_of(a->text2), text_of(b->text2));
}

static struct subject *find(struct samples_file *f, const struct subject_key *key)
{
	for (size_t i = 0; i < f->count; i++)
		if (is_same(&f->subjects[i]->key, key))
			return f->subjects[i];
	return NULL;
}

/* A process that has got another name, or is traced from now on, goes on under a new number. */
static void replace_process(struct samples_file *f, const struct subject_key *key)
{
	for (size_t i = 0; i < f->count && key->kind == MT_SUBJECT_PROCESS; i++)
		if (f->subjects[i]->key.kind == key->kind && f->subjects[i]->key.key[0] == key->key[0] &&
		    f->subjects[i]->key.key[1] == key->key[1])
			f->subjects[i]->gone = true;
}

static struct subject *make(struct samples_file *f, const struct subject_key *key)
{
	struct subject *s = calloc(1, sizeof(*s));
	char *text = strndup(text_of(key->text), MAX_TEXT), *text2 = strndup(text_of(key->text2), MAX_TEXT);
	if (!s || !text || !text2 || vec_reserve(f->subjects, f->room, f->count + 1)) {
		free(s);
		free(text);
		free(text2);
		return NULL;
	}
	replace_process(f, key);
	s->key = *key;
	s->key.text = text;
	s->key.text2 = text2;
	f->subjects[f->count++] = s;
	return s;
}

/* ---- items ----------------------------------------------------------------------------------------------- */

static bool reserve(struct samples_file *f, size_t more)
{
	return !vec_reserve_raw(f->plain, f->plain_room, f->bytes + more);
}

static void put_number(struct samples_file *f, uint64_t value)
{
	f->bytes = (size_t)(varint_put(f->plain + f->bytes, value) - f->plain);
}

static void put_text(struct samples_file *f, const char *text)
{
	size_t n = strlen(text);
	put_number(f, n);
	memcpy(f->plain + f->bytes, text, n);
	f->bytes += n;
}

static bool put_time(struct samples_file *f)
{
	if (!reserve(f, 2 * VARINT_MAX))
		return false;
	if (!f->time)
		f->time = f->now;
	uint64_t us = (f->now - f->time) / 1000;
	if (us) {
		put_number(f, MT_SAMPLES_TIME);
		put_number(f, us);
		f->time += us * 1000;
	}
	if (!f->first_ns)
		f->first_ns = f->time;
	f->last_ns = f->time;
	return true;
}

static bool put_subject(struct samples_file *f, struct subject *s)
{
	if (s->number)
		return true;
	if (f->stream_subjects == MT_SAMPLES_MAX_SUBJECTS || !reserve(f, 8 * VARINT_MAX + 2 * MAX_TEXT))
		return false;
	put_number(f, MT_SAMPLES_SUBJECT);
	put_number(f, s->key.kind);
	for (int i = 0; i < 3; i++)
		put_number(f, s->key.key[i]);
	put_text(f, s->key.text);
	put_text(f, s->key.text2);
	s->number = ++f->stream_subjects;
	memset(s->sent, 0, sizeof(s->sent));
	return true;
}

void samples_file_time(struct samples_file *f, uint64_t mono_ns)
{
	f->now = mono_ns > f->now ? mono_ns : f->now;
}

void samples_file_add(struct samples_file *f, const struct subject_key *key, const struct figures *figures)
{
	struct subject *s = find(f, key);
	if (!figures->fields || (!s && !(s = make(f, key))))
		return;
	if (!put_subject(f, s) || !put_time(f) || !reserve(f, (3 + MT_SAMPLES_MAX_FIELDS) * VARINT_MAX))
		return;
	put_number(f, MT_SAMPLES_FIGURES);
	put_number(f, s->number - 1);
	put_number(f, figures->fields);
	for (unsigned i = 0; i < MT_SAMPLES_MAX_FIELDS; i++)
		if (figures->fields >> i & 1) {
			put_number(f, zigzag(figures->value[i] - s->sent[i]));
			s->sent[i] = figures->value[i];
		}
	s->seen_ns = f->now;
	s->gone = false;
}

static void end_subject(struct samples_file *f, struct subject *s)
{
	if (s->gone || !put_subject(f, s) || !put_time(f) || !reserve(f, 2 * VARINT_MAX))
		return;
	put_number(f, MT_SAMPLES_GONE);
	put_number(f, s->number - 1);
	s->gone = true;
}

void samples_file_end_stale(struct samples_file *f, enum mt_subject kind, uint64_t key, uint64_t mono_ns)
{
	for (size_t i = 0; i < f->count; i++) {
		struct subject *s = f->subjects[i];
		if (s->key.kind == kind && (!key || s->key.key[0] == key) && s->seen_ns < mono_ns)
			end_subject(f, s);
	}
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

static bool begin(struct samples_file *f)
{
	struct mt_samples_header head = { .magic = MT_SAMPLES_MAGIC, .version = MT_VERSION, .bytes = sizeof(head) };
	f->end = sizeof(head);
	return !ftruncate(f->fd, 0) && write_at(f->fd, 0, &head, sizeof(head));
}

static bool is_intact(const struct samples_file *f, uint64_t offset, uint64_t bytes)
{
	uint32_t crc = 0;
	uint8_t *block = malloc(bytes);
	bool intact = block && read_at(f->fd, offset, block, bytes);
	if (intact) {
		memcpy(&crc, block + offsetof(struct mt_samples_block, crc), sizeof(crc));
		memset(block + offsetof(struct mt_samples_block, crc), 0, sizeof(crc));
		intact = crc == (uint32_t)crc32(0, block, (uInt)bytes);
	}
	free(block);
	return intact;
}

/* An earlier recorder's whole blocks; what it left unfinished is overwritten. Only the last one can be torn. */
static bool go_on(struct samples_file *f, uint64_t size)
{
	struct mt_samples_header head;
	struct mt_samples_block b;
	uint64_t last = 0;
	if (size < sizeof(head))
		return begin(f);
	if (!read_at(f->fd, 0, &head, sizeof(head)) || memcmp(head.magic, MT_SAMPLES_MAGIC, sizeof(head.magic)))
		return false;
	f->end = sizeof(head);
	while (size - f->end >= sizeof(b) && read_at(f->fd, f->end, &b, sizeof(b)) &&
	       b.magic == MT_SAMPLES_BLOCK_MAGIC && b.stored_bytes <= size - f->end - sizeof(b)) {
		last = f->end;
		f->end += sizeof(b) + b.stored_bytes;
	}
	if (last && !is_intact(f, last, f->end - last))
		f->end = last;
	return !ftruncate(f->fd, (off_t)f->end);
}

/* Its descriptor and size, or -1. */
static int open_regular(const struct samples_file *f, const char *name, uint64_t *size)
{
	struct stat st;
	int fd = openat(f->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
		*size = (uint64_t)st.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool open_file(struct samples_file *f)
{
	uint64_t size;
	if (f->fd >= 0)
		return true;
	f->fd = open_regular(f, "samples", &size);
	if (f->fd < 0 || (size ? go_on(f, size) : begin(f)))
		return f->fd >= 0;
	close(f->fd);
	f->fd = -1;
	return false;
}

static bool may_grow(const struct samples_file *f, uint64_t bytes)
{
	const struct mt_session *s = f->session;
	struct statfs fs;
	if (s->limit_bytes && __atomic_load_n(&s->used_bytes, __ATOMIC_RELAXED) + bytes > s->limit_bytes)
		return false;
	return fstatfs(f->fd, &fs) || (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize >= s->keep_free_bytes + bytes;
}

static bool append(struct samples_file *f, const uint8_t *block, size_t bytes)
{
	if (!may_grow(f, bytes))
		return false;
	if (!write_at(f->fd, f->end, block, bytes))
		return ftruncate(f->fd, (off_t)f->end) && false;
	f->end += bytes;
	__atomic_fetch_add(&f->session->used_bytes, bytes, __ATOMIC_RELAXED);
	return true;
}

/* All of the block, so that the stream can be decoded up to here. */
static size_t pack(struct samples_file *f, uint8_t *to, size_t room)
{
	ZSTD_inBuffer in = { f->plain, f->bytes, 0 };
	ZSTD_outBuffer out = { to, room, 0 };
	size_t left = ZSTD_compressStream2(f->zstd, &out, &in, ZSTD_e_flush);
	return ZSTD_isError(left) || left ? 0 : out.pos;
}

static bool write_block(struct samples_file *f)
{
	struct mt_samples_block head = { .magic = MT_SAMPLES_BLOCK_MAGIC,
					 .plain_bytes = (uint32_t)f->bytes,
					 .first_ns = f->first_ns,
					 .last_ns = f->last_ns,
					 .part = f->part };
	size_t room = ZSTD_compressBound(f->bytes) + 256;
	uint8_t *block = malloc(sizeof(head) + room);
	size_t n = block ? pack(f, block + sizeof(head), room) : 0;
	bool ok = n && open_file(f);
	if (ok) {
		head.stored_bytes = (uint32_t)n;
		memcpy(block, &head, sizeof(head));
		head.crc = (uint32_t)crc32(0, block, (uInt)(sizeof(head) + n));
		memcpy(block, &head, sizeof(head));
		ok = append(f, block, sizeof(head) + n);
	}
	free(block);
	return ok;
}

/* What the block has more than before. The items first: until the header follows they are behind those that it speaks
 * of. */
static void keep_open(struct samples_file *f)
{
	if (!open_file(f) || (f->open_fd < 0 && (f->open_fd = open_regular(f, "samples.open", &f->open_size)) < 0))
		return; /* an earlier recorder's is taken over, which counted it */
	struct mt_samples_open head = { .magic = MT_SAMPLES_OPEN_MAGIC,
					.plain_bytes = (uint32_t)f->bytes,
					.offset = f->end,
					.first_ns = f->first_ns,
					.last_ns = f->last_ns,
					.part = f->part };
	uint64_t size = sizeof(head) + f->bytes, more = size > f->open_size ? size - f->open_size : 0;
	if (f->kept == f->bytes || (more && !may_grow(f, more)))
		return;
	if (!write_at(f->open_fd, sizeof(head) + f->kept, f->plain + f->kept, f->bytes - f->kept))
		return;
	__atomic_fetch_add(&f->session->used_bytes, more, __ATOMIC_RELAXED);
	f->open_size += more;
	f->kept_crc = (uint32_t)crc32(f->kept ? f->kept_crc : 0, f->plain + f->kept, (uInt)(f->bytes - f->kept));
	f->kept = f->bytes;
	head.crc = (uint32_t)crc32(f->kept_crc, (const uint8_t *)&head, sizeof(head));
	write_at(f->open_fd, 0, &head, sizeof(head));
}

/* The gone are forgotten with the stream that says so. */
static void begin_stream(struct samples_file *f)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->count; i++) {
		if (f->subjects[i]->gone) {
			free_subject(f->subjects[i]);
		} else {
			f->subjects[i]->number = 0;
			f->subjects[kept++] = f->subjects[i];
		}
	}
	f->count = kept;
	f->time = 0;
	f->stream_subjects = f->part = 0;
	f->stream_bytes = 0;
	ZSTD_CCtx_reset(f->zstd, ZSTD_reset_session_only);
}

/* A stream of which a block could not be written ends there. */
void samples_file_flush(struct samples_file *f, bool now)
{
	if (!f->bytes)
		return;
	if (!now && f->now - f->first_ns < FLUSH_NS * samples_file_slowdown(f) && f->bytes < FLUSH_BYTES) {
		keep_open(f);
		return;
	}
	bool ok = write_block(f);
	f->dropped += !ok;
	f->stream_bytes += f->bytes;
	f->part++;
	f->bytes = f->kept = 0;
	f->first_ns = 0;
	if (!ok || f->part == STREAM_PARTS || f->stream_bytes > STREAM_BYTES)
		begin_stream(f);
}

/* A trace may well be larger than its limit in the end, when its processes' raw files turn into blocks; what counts is
 * what is used now. */
unsigned samples_file_slowdown(const struct samples_file *f)
{
	const struct mt_session *s = f->session;
	uint64_t used = __atomic_load_n(&s->used_bytes, __ATOMIC_RELAXED), limit = s->limit_bytes;
	if (!limit)
		return 1;
	if (used > limit / 16 * 15 || f->end > limit / MAX_SHARE)
		return 16;
	return used > limit / 4 * 3 || f->end > limit / MAX_SHARE / 2 ? 4 : 1;
}
