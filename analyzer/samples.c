/* Reads DIR/samples: an index of blocks, the subjects with their extremes, and passes over them. A part of the reader. */
#include "analyzer/samples.h"

#include "analyzer/error.h"
#include "analyzer/file.h"
#include "analyzer/reader_own.h"
#include "analyzer/vec.h"
#include "format/varint.h"

#include <inttypes.h>
#include <stdio.h>
#include <uthash.h>
#include <zlib.h>
#include <zstd.h>

#define BACK_NS (300ull * 1000000000)
#define MAX_RAW (1ull << 53) /* of a figure: what is more makes no sense in any unit */

struct block_place {
	uint64_t offset;
	uint32_t part;
	uint64_t last_ns; /* of the merged trace */
};

struct samples_source {
	struct file file;
	const struct reader_host *host;
	const struct clock *clock;
	struct block_place *blocks;
	size_t count, room;
	uint64_t next;            /* blocks behind it are not indexed yet */
	struct cursor *scan;      /* where take_blocks() stopped */
	const struct session *session;
};

/* struct sample_subject and what it is known by. Every directory of a host speaks of the same ones. */
struct entry {
	struct sample_subject subject;
	uint64_t start;  /* PROCESS, MAPPING: boot_start */
	char *key;
	char *text, *text2;
	UT_hash_handle hh;
};

struct samples {
	struct reader *reader;
	struct samples_source *sources;
	size_t source_count;
	struct entry **entries;
	size_t count, room;
	struct entry *by_key;
};

/* ---- fields ---------------------------------------------------------------------------------------------- */

struct field { const char *name; uint64_t unit; };

enum { UNIT_K = 1024, UNIT_B = 1, UNIT_N = 1, UNIT_U = 1000 };

#define X(name, unit) { #name, UNIT_##unit },
static const struct field machine_fields[] = { MT_MACHINE_FIELDS(X) }, cgroup_fields[] = { MT_CGROUP_FIELDS(X) },
	process_fields[] = { MT_PROCESS_FIELDS(X) }, mapping_fields[] = { MT_MAPPING_FIELDS(X) },
	device_fields[] = { MT_DEVICE_FIELDS(X) }, device_process_fields[] = { MT_DEVICE_PROCESS_FIELDS(X) };
#undef X

static const struct { const struct field *field; unsigned count; } kinds[MT_SUBJECTS] = {
	[MT_SUBJECT_MACHINE] = { machine_fields, MT_MACHINE_COUNT },
	[MT_SUBJECT_CGROUP] = { cgroup_fields, MT_CGROUP_COUNT },
	[MT_SUBJECT_PROCESS] = { process_fields, MT_PROCESS_COUNT },
	[MT_SUBJECT_MAPPING] = { mapping_fields, MT_MAPPING_COUNT },
	[MT_SUBJECT_DEVICE] = { device_fields, MT_DEVICE_COUNT },
	[MT_SUBJECT_DEVICE_PROCESS] = { device_process_fields, MT_DEVICE_PROCESS_COUNT },
};

const char *samples_field_name(enum mt_subject kind, unsigned field)
{
	return kind < MT_SUBJECTS && field < kinds[kind].count ? kinds[kind].field[field].name : NULL;
}

/* ---- subjects -------------------------------------------------------------------------------------------- */

static bool is_traced(const struct samples *s, const struct reader_host *host, uint32_t pid)
{
	for (size_t i = 0; i < s->reader->image_count; i++)
		if (s->reader->images[i]->process.host == host && s->reader->images[i]->process.pid == pid)
			return true;
	return false;
}

static void describe(const struct samples *s, struct entry *e, const uint64_t key[3])
{
	struct sample_subject *d = &e->subject;
	switch (d->kind) {
	case MT_SUBJECT_CGROUP:
		d->number = (uint32_t)key[0];
		break;
	case MT_SUBJECT_PROCESS:
		d->pid = (uint32_t)key[0];
		e->start = key[1];
		break;
	case MT_SUBJECT_MAPPING:
		d->pid = (uint32_t)key[0];
		e->start = key[1];
		d->address = key[2];
		break;
	case MT_SUBJECT_DEVICE:
		d->backend = (uint32_t)key[0];
		d->number = (uint32_t)key[1];
		break;
	case MT_SUBJECT_DEVICE_PROCESS:
		d->backend = (uint32_t)key[0];
		d->pid = (uint32_t)key[1];
		d->other_pid = (uint32_t)key[2];
		d->traced = d->pid && is_traced(s, d->host, d->pid);
		break;
	default:
		break;
	}
}

static int set_texts(struct entry *e, const char *text, const char *text2)
{
	if (e->text && !strcmp(e->text, text) && !strcmp(e->text2, text2))
		return 0;
	free(e->text);
	free(e->text2);
	e->text = strdup(text);
	e->text2 = strdup(text2);
	e->subject.text = e->text;
	e->subject.text2 = e->text2;
	return e->text && e->text2 ? 0 : error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
}

/* A process may change its name and is seen by several recorders, of whom one traces it: pid and start are enough. */
static void make_key(char *out, size_t size, const struct reader_host *host, uint64_t kind, const uint64_t key[3], const char *text,
		     const char *text2)
{
	if (kind == MT_SUBJECT_PROCESS)
		snprintf(out, size, "%u %" PRIu64 " %" PRIx64 " %" PRIx64, host->index, kind, key[0], key[1]);
	else
		snprintf(out, size, "%u %" PRIu64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %s %s", host->index, kind, key[0], key[1], key[2],
			 kind == MT_SUBJECT_MACHINE ? "" : text, kind == MT_SUBJECT_CGROUP ? text2 : "");
}

static int add_entry(struct samples *s, const char *key, struct entry **out)
{
	struct entry *e = calloc(1, sizeof(*e));
	if (!e || !(e->key = strdup(key)) || vec_reserve(s->entries, s->room, s->count + 1)) {
		free(e ? e->key : NULL);
		free(e);
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	}
	e->subject.index = (unsigned)s->count;
	e->subject.gone_ns = UINT64_MAX;
	e->subject.text = e->subject.text2 = "";
	s->entries[s->count++] = e;
	HASH_ADD_KEYPTR(hh, s->by_key, e->key, strlen(e->key), e);
	*out = e;
	return 0;
}

/* Opening makes entries; later passes over the same blocks find them. */
static int find_entry(struct samples *s, const struct reader_host *host, uint64_t kind, const uint64_t key[3], const char *text,
		      const char *text2, bool make, struct entry **out)
{
	char name[2200];
	make_key(name, sizeof(name), host, kind, key, text, text2);
	HASH_FIND_STR(s->by_key, name, *out);
	if (!make)
		return *out ? 0 : error_set(MT_ECHANGED, "samples", ERROR_NO_OFFSET, NULL);
	int e = 0;
	if (!*out) {
		e = add_entry(s, name, out);
		if (e)
			return e;
		(*out)->subject.kind = (enum mt_subject)kind;
		(*out)->subject.host = host;
		describe(s, *out, key);
	}
	(*out)->subject.traced |= kind == MT_SUBJECT_PROCESS && key[2];
	return set_texts(*out, text, text2);
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

static uint64_t merged_ns(const struct samples_source *src, uint64_t mono_ns)
{
	return clock_ns(src->clock, clock_ticks_at(src->clock, mono_ns));
}

/* The whole block with its header, checked; allocated. */
static int read_block(const struct samples_source *src, uint64_t offset, struct mt_samples_block *head, uint8_t **out)
{
	const char *path = src->file.path;
	int e = file_read(&src->file, offset, head, sizeof(*head));
	if (e)
		return e;
	if (head->magic != MT_SAMPLES_BLOCK_MAGIC)
		return error_set(MT_EFORMAT, path, (int64_t)offset, "no block begins here");
	if (head->plain_bytes > MT_SAMPLES_MAX_PLAIN || head->first_ns > head->last_ns)
		return error_set(MT_EFORMAT, path, (int64_t)offset, "a block's header makes no sense");
	if (head->stored_bytes > src->file.size - offset - sizeof(*head))
		return error_set(MT_ECUT, path, (int64_t)offset, NULL);
	uint8_t *block = malloc(sizeof(*head) + head->stored_bytes + 1);
	if (!block)
		return error_set(MT_EMEMORY, path, ERROR_NO_OFFSET, NULL);
	struct mt_samples_block zero = *head;
	zero.crc = 0;
	memcpy(block, &zero, sizeof(zero));
	e = file_read(&src->file, offset + sizeof(*head), block + sizeof(*head), head->stored_bytes);
	if (!e && (uint32_t)crc32(0, block, (uInt)(sizeof(*head) + head->stored_bytes)) != head->crc)
		e = error_set(MT_ECHECKSUM, path, (int64_t)offset, NULL);
	if (e)
		free(block);
	else
		*out = block;
	return e;
}

/* ---- items ----------------------------------------------------------------------------------------------- */

struct local { struct entry *entry; uint64_t raw[MT_SAMPLES_MAX_FIELDS]; };

/* Where a pass stands in one file. */
struct cursor {
	struct samples *samples;
	const struct samples_source *source;
	size_t next_block;
	bool make;             /* subjects */
	uint64_t offset;       /* of the block */
	ZSTD_DCtx *zstd;
	uint32_t part;         /* that must come next; UINT32_MAX = none but 0 */
	uint8_t *plain;
	struct varint_in in;
	uint64_t mono, last_mono;
	struct local *locals;
	size_t local_count, local_room;
	char *text;            /* two strings */
	/* the item it stands at; entry NULL = the end */
	struct entry *entry;
	uint64_t ns, fields;
	bool gone;
	const uint64_t *raw;
};

static int bad(const struct cursor *c, const char *what)
{
	return error_set(MT_EFORMAT, c->source->file.path, (int64_t)c->offset, "%s", what);
}

static void cursor_fini(struct cursor *c)
{
	ZSTD_freeDCtx(c->zstd);
	free(c->plain);
	free(c->locals);
	free(c->text);
}

static int begin_stream(struct cursor *c, const struct mt_samples_block *head)
{
	if (!c->zstd && !(c->zstd = ZSTD_createDCtx()))
		return error_set(MT_EMEMORY, c->source->file.path, ERROR_NO_OFFSET, NULL);
	ZSTD_DCtx_reset(c->zstd, ZSTD_reset_session_and_parameters);
	ZSTD_DCtx_setParameter(c->zstd, ZSTD_d_windowLogMax, MT_SAMPLES_MAX_WINDOW);
	c->mono = head->first_ns;
	c->local_count = 0;
	c->part = 0;
	return 0;
}

static int unpack(struct cursor *c, const uint8_t *block, const struct mt_samples_block *head)
{
	free(c->plain);
	c->plain = malloc(head->plain_bytes + 1ul);
	if (!c->plain)
		return error_set(MT_EMEMORY, c->source->file.path, ERROR_NO_OFFSET, NULL);
	ZSTD_inBuffer in = { block + sizeof(*head), head->stored_bytes, 0 };
	ZSTD_outBuffer out = { c->plain, head->plain_bytes, 0 };
	while (in.pos < in.size || out.pos < out.size) {
		size_t before = in.pos + out.pos, e = ZSTD_decompressStream(c->zstd, &out, &in);
		if (ZSTD_isError(e) || in.pos + out.pos == before)
			return bad(c, "a block can't be decompressed");
	}
	c->in = (struct varint_in){ c->plain, c->plain + head->plain_bytes, 0 };
	return 0;
}

static int next_block(struct cursor *c)
{
	const struct block_place *b = &c->source->blocks[c->next_block++];
	struct mt_samples_block head;
	uint8_t *block = NULL;
	c->offset = b->offset;
	int e = read_block(c->source, b->offset, &head, &block);
	if (e)
		return e;
	if (!head.part)
		e = begin_stream(c, &head);
	else if (head.part != c->part)
		e = bad(c, "its stream has no such part");
	if (!e && head.last_ns < c->mono)
		e = bad(c, "time runs backwards");
	if (!e)
		e = unpack(c, block, &head);
	free(block);
	c->part++;
	c->last_mono = head.last_ns;
	return e;
}

static const char *take_text(struct cursor *c, char *to)
{
	uint64_t n = varint_get(&c->in);
	if (c->in.bad || n > 1000 || n > (uint64_t)(c->in.end - c->in.at) || memchr(c->in.at, 0, n)) {
		c->in.bad = 1;
		return "";
	}
	memcpy(to, c->in.at, n);
	to[n] = '\0';
	c->in.at += n;
	return to;
}

static int take_subject(struct cursor *c)
{
	uint64_t kind = varint_get(&c->in), key[3];
	if (!c->text && !(c->text = malloc(2048)))
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (int i = 0; i < 3; i++)
		key[i] = varint_get(&c->in);
	const char *text = take_text(c, c->text), *text2 = take_text(c, c->text + 1024);
	if (c->in.bad || kind < MT_SUBJECT_MACHINE || kind >= MT_SUBJECTS || c->local_count == MT_SAMPLES_MAX_SUBJECTS)
		return bad(c, "a subject makes no sense");
	int e = vec_reserve_raw(c->locals, c->local_room, c->local_count + 1);
	if (e)
		return e;
	struct local *l = &c->locals[c->local_count++];
	memset(l, 0, sizeof(*l));
	return find_entry(c->samples, c->source->host, kind, key, text, text2, c->make, &l->entry);
}

static int take_time(struct cursor *c)
{
	uint64_t us = varint_get(&c->in);
	if (c->in.bad || us > (c->last_mono - c->mono) / 1000)
		return bad(c, "a time makes no sense");
	c->mono += us * 1000;
	return 0;
}

static int take_figures(struct cursor *c)
{
	uint64_t number = varint_get(&c->in), fields = varint_get(&c->in);
	if (c->in.bad || number >= c->local_count)
		return bad(c, "figures of no subject");
	struct local *l = &c->locals[number];
	unsigned count = kinds[l->entry->subject.kind].count;
	if (!fields || (count < 64 && fields >> count))
		return bad(c, "fields that don't exist");
	for (unsigned i = 0; i < count; i++)
		if (fields >> i & 1) {
			l->raw[i] += unzigzag(varint_get(&c->in));
			if (l->raw[i] >= MAX_RAW * (kinds[l->entry->subject.kind].field[i].unit == 1 ? 512 : 1))
				return bad(c, "a figure makes no sense");
		}
	if (c->in.bad)
		return bad(c, "figures are not whole");
	c->entry = l->entry;
	c->fields = fields;
	c->raw = l->raw;
	c->gone = false;
	return 0;
}

static int take_gone(struct cursor *c)
{
	uint64_t number = varint_get(&c->in);
	if (c->in.bad || number >= c->local_count)
		return bad(c, "the end of no subject");
	c->entry = c->locals[number].entry;
	c->fields = 0;
	c->raw = c->locals[number].raw;
	c->gone = true;
	return 0;
}

static int take_item(struct cursor *c)
{
	switch (varint_get(&c->in)) {
	case MT_SAMPLES_SUBJECT: return take_subject(c);
	case MT_SAMPLES_TIME:    return take_time(c);
	case MT_SAMPLES_FIGURES: return take_figures(c);
	case MT_SAMPLES_GONE:    return take_gone(c);
	default:                 return bad(c, "an item of no known kind");
	}
}

/* To the next FIGURES or GONE. */
static int cursor_next(struct cursor *c)
{
	int e = 0;
	c->entry = NULL;
	while (!e && !c->entry) {
		if (c->in.at < c->in.end)
			e = take_item(c);
		else if (c->next_block < c->source->count)
			e = next_block(c);
		else
			return 0;
	}
	if (!e)
		c->ns = merged_ns(c->source, c->mono);
	return e;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static void note_extreme(struct sample_extreme *x, uint64_t value, uint64_t ns)
{
	x->value = value;
	x->ns = ns;
}

static void note(struct sample_subject *d, const struct cursor *c)
{
	if (c->gone) {
		d->gone_ns = c->ns;
		return;
	}
	d->gone_ns = UINT64_MAX;
	d->first_ns = d->samples && d->first_ns <= c->ns ? d->first_ns : c->ns;
	d->last_ns = d->last_ns > c->ns ? d->last_ns : c->ns;
	d->samples++;
	for (unsigned i = 0; i < kinds[d->kind].count; i++) {
		if (!(c->fields >> i & 1))
			continue;
		uint64_t value = c->raw[i] * kinds[d->kind].field[i].unit;
		bool known = d->known >> i & 1;
		if (!known)
			note_extreme(&d->first[i], value, c->ns);
		if (!known || value < d->least[i].value)
			note_extreme(&d->least[i], value, c->ns);
		if (!known || value > d->most[i].value)
			note_extreme(&d->most[i], value, c->ns);
		if (!known || c->ns >= d->last[i].ns)
			note_extreme(&d->last[i], value, c->ns);
	}
	d->known |= c->fields;
}

static int index_block(struct samples_source *src, uint64_t offset, uint64_t *next)
{
	struct mt_samples_block head;
	int e = file_read(&src->file, offset, &head, sizeof(head));
	if (!e && head.magic != MT_SAMPLES_BLOCK_MAGIC)
		e = error_set(MT_EFORMAT, src->file.path, (int64_t)offset, "no block begins here");
	if (!e)
		e = vec_reserve(src->blocks, src->room, src->count + 1);
	if (!e)
		src->blocks[src->count++] = (struct block_place){ .offset = offset, .part = head.part,
								  .last_ns = merged_ns(src, head.last_ns) };
	*next = offset + sizeof(head) + head.stored_bytes;
	return e;
}

/* Reads all blocks for their subjects and extremes. At damage the index ends. */
static int take_blocks(struct samples *s, struct samples_source *src)
{
	struct cursor *c = src->scan;
	if (!c && !(c = src->scan = calloc(1, sizeof(*c))))
		return error_set(MT_EMEMORY, src->file.path, ERROR_NO_OFFSET, NULL);
	if (!c->samples)
		*c = (struct cursor){ .samples = s, .source = src, .make = true, .part = UINT32_MAX };
	int e = cursor_next(c);
	while (!e && c->entry) {
		note(&c->entry->subject, c);
		e = cursor_next(c);
	}
	if (e)
		src->count = c->next_block ? c->next_block - 1 : 0;
	return e;
}

/* The recorder may be writing its last block, or was killed in the middle of it. */
static bool is_unfinished(const struct samples_source *src, uint64_t offset)
{
	struct mt_samples_block head;
	uint64_t left = src->file.size - offset;
	return left < sizeof(head) || (!file_read(&src->file, offset, &head, sizeof(head)) && head.magic == MT_SAMPLES_BLOCK_MAGIC &&
				       head.stored_bytes > left - sizeof(head));
}

static int check_head(const struct samples_source *src)
{
	struct mt_samples_header head;
	int e = file_read(&src->file, 0, &head, sizeof(head));
	if (e)
		return e;
	if (memcmp(head.magic, MT_SAMPLES_MAGIC, sizeof(head.magic)) != 0)
		return error_set(MT_EMAGIC, src->file.path, 0, NULL);
	if (head.version != MT_VERSION)
		return error_set(MT_EVERSION, src->file.path, 8, NULL);
	if (head.bytes != sizeof(head))
		return error_set(MT_EFORMAT, src->file.path, 12, "header is %" PRIu32 " bytes long", head.bytes);
	return 0;
}

static int read_source(struct samples *s, struct samples_source *src)
{
	int e = src->next ? 0 : check_head(src);
	src->next = src->next ? src->next : sizeof(struct mt_samples_header);
	while (!e && src->next < src->file.size) {
		if (is_unfinished(src, src->next)) {
			reader_remark(s->reader, MT_OK, src->file.path, (int64_t)src->next, "ends in the middle of a block");
			break;
		}
		e = index_block(src, src->next, &src->next);
	}
	if (e && (e = reader_damage(s->reader)) != 0)
		return e;
	e = take_blocks(s, src);
	return e ? reader_damage(s->reader) : 0;
}

/* The clock of any process of the session. */
static const struct image *some_image(const struct reader *r, const struct session *session)
{
	for (size_t i = 0; i < r->image_count; i++)
		if (r->images[i]->session == session)
			return r->images[i];
	return NULL;
}

static int open_source(struct samples *s, struct samples_source *src, const struct session *session)
{
	const struct image *im = some_image(s->reader, session);
	src->file = FILE_CLOSED;
	src->session = session;
	if (!im)
		return 0;
	src->host = im->process.host;
	src->clock = im->clock;
	int e = file_open(&src->file, session->dir, "samples");
	if (e)
		return reader_damage(s->reader);
	return file_is_open(&src->file) && src->file.size ? read_source(s, src) : 0;
}

int samples_open(struct samples **out, struct reader *r)
{
	struct samples *s = calloc(1, sizeof(*s));
	int e = 0;
	*out = NULL;
	if (s)
		s->sources = calloc(r->session_count + 1, sizeof(*s->sources));
	if (!s || !s->sources) {
		free(s);
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	}
	s->reader = r;
	for (size_t i = 0; !e && i < r->session_count; i++) {
		s->source_count++;
		e = open_source(s, &s->sources[i], &r->sessions[i]);
	}
	if (e)
		samples_close(s);
	else
		*out = s;
	return e;
}

int samples_refresh(struct samples *s)
{
	int e = 0;
	for (size_t i = 0; !e && i < s->source_count; i++) {
		struct samples_source *src = &s->sources[i];
		if (!file_is_open(&src->file)) {
			file_close(&src->file);
			e = open_source(s, src, src->session);
		} else if ((e = file_refresh(&src->file)) == 0 && src->file.size) {
			e = read_source(s, src);
		}
	}
	return e;
}

void samples_close(struct samples *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->source_count; i++) {
		if (s->sources[i].scan)
			cursor_fini(s->sources[i].scan);
		free(s->sources[i].scan);
		file_close(&s->sources[i].file);
		free(s->sources[i].blocks);
	}
	HASH_CLEAR(hh, s->by_key);
	for (size_t i = 0; i < s->count; i++) {
		free(s->entries[i]->key);
		free(s->entries[i]->text);
		free(s->entries[i]->text2);
		free(s->entries[i]);
	}
	free(s->entries);
	free(s->sources);
	free(s);
}

/* ---- facts ----------------------------------------------------------------------------------------------- */

unsigned samples_subjects(const struct samples *s) { return (unsigned)s->count; }
const struct sample_subject *samples_subject(const struct samples *s, unsigned i) { return &s->entries[i]->subject; }

unsigned samples_find(const struct samples *s, enum mt_subject kind, const struct reader_host *host, unsigned i)
{
	while (i < s->count && (s->entries[i]->subject.kind != kind || (host && s->entries[i]->subject.host != host)))
		i++;
	return i;
}

const struct sample_subject *samples_of_process(const struct samples *s, const struct process *p)
{
	char name[128];
	struct entry *e;
	uint64_t key[3] = { p->pid, image_of(p)->info.boot_start, 0 };
	make_key(name, sizeof(name), p->host, MT_SUBJECT_PROCESS, key, "", "");
	HASH_FIND_STR(s->by_key, name, e);
	return e ? &e->subject : NULL;
}

static bool is_of(const struct entry *e, const struct image *im)
{
	const struct sample_subject *d = &e->subject;
	return im->process.host == d->host && im->process.pid == d->pid && (!e->start || e->start == im->info.boot_start);
}

const struct process *samples_process(const struct samples *s, const struct sample_subject *d, uint64_t ns)
{
	const struct process *found = NULL;
	if (!d->pid)
		return NULL;
	for (size_t i = 0; i < s->reader->image_count; i++) {
		const struct process *p = &s->reader->images[i]->process;
		if (is_of(s->entries[d->index], s->reader->images[i]) && (!found || p->start_ns <= ns))
			found = p;
	}
	return found;
}

/* ---- passes ---------------------------------------------------------------------------------------------- */

struct pass_state { uint64_t known; uint64_t value[MT_SAMPLES_MAX_FIELDS]; };

static struct cursor *earliest(struct cursor *cursors, size_t count)
{
	struct cursor *first = NULL;
	for (size_t i = 0; i < count; i++)
		if (cursors[i].entry && (!first || cursors[i].ns < first->ns))
			first = &cursors[i];
	return first;
}

static int deliver(struct cursor *c, struct pass_state *states, int (*f)(void *arg, const struct sample *), void *arg)
{
	const struct sample_subject *d = &c->entry->subject;
	struct pass_state *p = &states[d->index];
	for (unsigned i = 0; i < kinds[d->kind].count; i++)
		if (c->fields >> i & 1)
			p->value[i] = c->raw[i] * kinds[d->kind].field[i].unit;
	p->known |= c->fields;
	struct sample sample = {
		.subject = d, .ns = c->ns, .mono_ns = c->mono, .fields = c->fields, .known = p->known, .value = p->value,
		.gone = c->gone,
	};
	return f(arg, &sample);
}

static int run(struct cursor *cursors, size_t count, struct pass_state *states, uint64_t from_ns, uint64_t to_ns,
	       int (*f)(void *arg, const struct sample *), void *arg)
{
	int e = 0;
	for (size_t i = 0; !e && i < count; i++)
		e = cursor_next(&cursors[i]);
	for (struct cursor *c; !e && (c = earliest(cursors, count)) && c->ns <= to_ns;) {
		if (c->ns >= from_ns)
			e = deliver(c, states, f, arg);
		if (!e)
			e = cursor_next(c);
	}
	return e;
}

/* The stream that holds the first block which ends at or after `ns`. */
static size_t first_block(const struct samples_source *src, uint64_t ns)
{
	size_t i = 0;
	while (i < src->count && src->blocks[i].last_ns < ns)
		i++;
	while (i > 0 && i < src->count && src->blocks[i].part)
		i--;
	return i;
}

int samples_each(const struct samples *s, uint64_t from_ns, uint64_t to_ns, int (*f)(void *arg, const struct sample *), void *arg)
{
	struct cursor *cursors = calloc(s->source_count + 1, sizeof(*cursors));
	struct pass_state *states = calloc(s->count + 1, sizeof(*states));
	int e = cursors && states ? 0 : error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (size_t i = 0; !e && i < s->source_count; i++) {
		const struct samples_source *src = &s->sources[i];
		cursors[i] = (struct cursor){ .samples = (struct samples *)(uintptr_t)s, .source = src, .part = UINT32_MAX,
					      .next_block = first_block(src, from_ns) };
	}
	if (!e)
		e = run(cursors, s->source_count, states, from_ns, to_ns, f, arg);
	for (size_t i = 0; cursors && i < s->source_count; i++)
		cursor_fini(&cursors[i]);
	free(cursors);
	free(states);
	return e;
}

/* ---- at a moment ----------------------------------------------------------------------------------------- */

static int take_state(void *arg, const struct sample *sample)
{
	struct sample_state *state = (struct sample_state *)arg + sample->subject->index;
	for (unsigned i = 0; i < MT_SAMPLES_MAX_FIELDS; i++)
		if (sample->fields >> i & 1) {
			state->value[i] = sample->value[i];
			state->ns[i] = sample->ns;
		}
	state->known |= sample->fields;
	state->gone = sample->gone;
	if (!sample->gone)
		state->last_ns = sample->ns;
	return 0;
}

/* All of it lies before the moment, so its latest figures are known without looking. */
static void take_latest(struct sample_state *state, const struct sample_subject *d, uint64_t ns)
{
	state->known = d->known;
	state->last_ns = d->last_ns;
	state->gone = d->gone_ns <= ns;
	for (unsigned i = 0; i < MT_SAMPLES_MAX_FIELDS; i++) {
		state->value[i] = d->last[i].value;
		state->ns[i] = d->last[i].ns;
	}
}

int samples_states(const struct samples *s, uint64_t ns, uint64_t back_ns, struct sample_state *state)
{
	uint64_t back = back_ns ? back_ns : BACK_NS;
	memset(state, 0, s->count * sizeof(*state));
	int e = samples_each(s, ns > back ? ns - back : 0, ns, take_state, state);
	for (size_t i = 0; !e && i < s->count; i++)
		if (s->entries[i]->subject.samples && s->entries[i]->subject.last_ns <= ns)
			take_latest(&state[i], &s->entries[i]->subject, ns);
	return e;
}

int samples_at(const struct samples *s, uint64_t ns, unsigned subject, struct sample_state *state)
{
	struct sample_state *all = calloc(s->count + 1, sizeof(*all));
	int e = all ? samples_states(s, ns, 0, all) : error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	if (!e)
		*state = all[subject];
	free(all);
	return e;
}

/* ---- over time ------------------------------------------------------------------------------------------- */

struct series {
	unsigned subject, field;
	uint64_t from_ns, to_ns;
	uint64_t *values;
	size_t count, filled; /* values below are known: the one at filled - 1 may still grow */
	uint64_t last;        /* 0 before the first and after the end */
};

static void fill(struct series *r, size_t upto)
{
	for (; r->filled < upto && r->filled < r->count; r->filled++)
		r->values[r->filled] = r->last;
}

static int take_point(void *arg, const struct sample *sample)
{
	struct series *r = arg;
	if (sample->subject->index != r->subject || (!sample->gone && !(sample->fields >> r->field & 1)))
		return 0;
	uint64_t value = sample->gone ? 0 : sample->value[r->field], span = r->to_ns - r->from_ns;
	if (sample->ns < r->from_ns) {
		r->last = value;
		return 0;
	}
	uint64_t ns = sample->ns - r->from_ns;
	size_t at = span ? (size_t)((double)ns / (double)span * (double)r->count) : 0;
	at = at < r->count ? at : r->count - 1;
	fill(r, at + (r->filled <= at)); /* the stretch that it is in begins with the value before */
	r->last = value;
	if (r->values[at] < r->last)
		r->values[at] = r->last;
	return 0;
}

int samples_series(const struct samples *s, unsigned subject, unsigned field, uint64_t from_ns, uint64_t to_ns, uint64_t *values,
		   size_t count)
{
	struct series r = { .subject = subject, .field = field, .from_ns = from_ns, .to_ns = to_ns, .values = values, .count = count };
	if (!count || from_ns > to_ns)
		return 0;
	int e = samples_each(s, from_ns > BACK_NS ? from_ns - BACK_NS : 0, to_ns, take_point, &r);
	fill(&r, count);
	return e;
}
