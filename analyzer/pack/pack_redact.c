/* The files of a trace with other names in them: session, PID-N.info and the info in PID-N.trace, samples. What is
 * left, events and call trees, are numbers. What is not understood is left out: it may be names. */
#include "analyzer/pack/pack.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"
#include "format/codec.h"
#include "format/samples.h"
#include "format/varint.h"

#include <inttypes.h>
#include <zlib.h>
#include <zstd.h>

struct bytes {
	char *base;
	size_t count, room;
};

static int put(struct bytes *to, const void *from, size_t n)
{
	int e = vec_reserve_raw(to->base, to->room, to->count + n + 1);
	if (!e && n) {
		memcpy(to->base + to->count, from, n);
		to->count += n;
	}
	return e;
}

static int put_text(struct bytes *to, const char *text)
{
	return text ? put(to, text, strlen(text) + 1) : error_memory();
}

static int write_out(FILE *to, const void *from, size_t n)
{
	return n && fwrite(from, 1, n, to) != n ? error_errno(MT_EOUTPUT, "TMPDIR", ERROR_NO_OFFSET) : 0;
}

static int damaged(const struct file *f)
{
	return error_set(MT_EFORMAT, f->path, ERROR_NO_OFFSET, "is damaged: its names can't be redacted");
}

/* ---- records of the log --------------------------------------------------------------------------------------- */

struct record {
	struct mt_record head;
	const char *payload;
	size_t bytes;
};

/* The string there, NULL if it does not end within the payload. */
static const char *text_at(const struct record *rec, size_t offset)
{
	if (offset >= rec->bytes || !memchr(rec->payload + offset, 0, rec->bytes - offset))
		return NULL;
	return rec->payload + offset;
}

/* As the reader's: zeros behind the last string are no more strings. */
static int put_strings(struct redact *r, const struct record *rec, bool program, struct bytes *to)
{
	int e = 0;
	size_t offset = 0;
	const char *s;
	for (unsigned i = 0; !e && (s = text_at(rec, offset)) != NULL && (*s || rec->bytes - offset >= 8); i++) {
		e = put_text(to,
			     !program ? redact_variable(r, s) : redact(r, i < 2 ? REDACT_PATH : REDACT_ARGUMENT, s));
		offset += strlen(s) + 1;
	}
	return e;
}

static int put_module(struct redact *r, const struct record *rec, struct bytes *to)
{
	struct mt_rec_module m;
	if (rec->bytes < sizeof(m))
		return 1;
	memcpy(&m, rec->payload, sizeof(m));
	const char *path = m.build_id_bytes > 64 ? NULL : text_at(rec, sizeof(m) + m.build_id_bytes);
	if (!path)
		return 1;
	size_t at = to->count;
	int e = put(to, rec->payload, sizeof(m) + m.build_id_bytes);
	if (!e)
		redact_build_id(r, path, to->base + at + sizeof(m), m.build_id_bytes);
	return e ? e : put_text(to, redact(r, REDACT_PATH, path));
}

static int put_code(struct redact *r, const struct record *rec, struct bytes *to)
{
	struct mt_rec_code c;
	if (rec->bytes < sizeof(c))
		return 1;
	memcpy(&c, rec->payload, sizeof(c));
	const char *file = c.table_bytes > rec->bytes - sizeof(c) ? NULL : text_at(rec, sizeof(c) + c.table_bytes);
	const char *name = file ? text_at(rec, sizeof(c) + c.table_bytes + strlen(file) + 1) : NULL;
	if (!name)
		return 1;
	int e = put(to, rec->payload, sizeof(c) + c.table_bytes);
	if (!e)
		e = put_text(to, redact(r, REDACT_PATH, file));
	return e ? e : put_text(to, redact_function(r, name, file));
}

static int put_device(struct redact *r, const struct record *rec, struct bytes *to)
{
	const char *uuid = text_at(rec, sizeof(struct mt_rec_device));
	const char *name = uuid ? text_at(rec, sizeof(struct mt_rec_device) + strlen(uuid) + 1) : NULL;
	if (!name)
		return 1;
	int e = put(to, rec->payload, sizeof(struct mt_rec_device));
	if (!e)
		e = put_text(to, redact(r, REDACT_WHOLE, uuid));
	return e ? e : put_text(to, name);
}

/* What it was imported from and what that lacks are our own words. */
static int put_import(struct redact *r, const struct record *rec, struct bytes *to)
{
	const size_t fixed = sizeof(struct mt_rec_import);
	const char *what = text_at(rec, fixed);
	const char *path = what ? text_at(rec, fixed + strlen(what) + 1) : NULL;
	const char *lacks = path ? text_at(rec, fixed + strlen(what) + strlen(path) + 2) : NULL;
	if (!lacks)
		return 1;
	int e = put(to, rec->payload, fixed);
	if (!e)
		e = put_text(to, what);
	if (!e)
		e = put_text(to, redact(r, REDACT_PATH, path));
	return e ? e : put_text(to, lacks);
}

/* Of a fixed part that many bytes, then one string. */
static int put_named(struct redact *r, const struct record *rec, size_t fixed, enum redact_kind kind, struct bytes *to)
{
	const char *name = text_at(rec, fixed);
	int e = name ? put(to, rec->payload, fixed) : 1;
	return e ? e : put_text(to, redact(r, kind, name));
}

/* 1 = it makes no sense. */
static int put_payload(struct redact *r, const struct record *rec, struct bytes *to)
{
	switch (rec->head.type) {
	case MT_REC_PROGRAM:
		return put_strings(r, rec, true, to);
	case MT_REC_ENV:
	case MT_REC_LATE:
		return put_strings(r, rec, false, to);
	case MT_REC_MODULE:
		return put_module(r, rec, to);
	case MT_REC_THREAD:
		return put_named(r, rec, sizeof(struct mt_rec_thread), REDACT_TEXT, to);
	case MT_REC_FILE:
		return put_named(r, rec, sizeof(struct mt_rec_file), REDACT_PATH, to);
	case MT_REC_CODE:
		return put_code(r, rec, to);
	case MT_REC_DEVICE:
		return put_device(r, rec, to);
	case MT_REC_NAME:
		return put_named(r, rec, sizeof(struct mt_rec_name), REDACT_TEXT, to);
	case MT_REC_IMPORT:
		return put_import(r, rec, to);
	case MT_REC_HOOK: /* our own names */
	case MT_REC_UNMODULE:
	case MT_REC_CHILD:
	case MT_REC_MODE:
	case MT_REC_NEVER:
		return put(to, rec->payload, rec->bytes);
	default:
		return 1;
	}
}

static int put_record(struct redact *r, const struct record *rec, struct bytes *to)
{
	static const char zeros[8];
	size_t at = to->count;
	int e = put(to, &rec->head, sizeof(rec->head));
	if (!e)
		e = put_payload(r, rec, to);
	if (!e)
		e = put(to, zeros, (8 - (to->count - at) % 8) % 8);
	if (e > 0)
		to->count = at;
	if (e)
		return e < 0 ? e : 0;
	uint32_t bytes = (uint32_t)(to->count - at);
	memcpy(to->base + at + offsetof(struct mt_record, bytes), &bytes, sizeof(bytes));
	return 0;
}

static int put_log(struct redact *r, const char *log, size_t bytes, struct bytes *to)
{
	int e = 0;
	for (size_t at = 0; !e && bytes - at >= sizeof(struct mt_record);) {
		struct record rec = { .payload = log + at + sizeof(rec.head) };
		memcpy(&rec.head, log + at, sizeof(rec.head));
		if (rec.head.bytes < sizeof(rec.head) || rec.head.bytes % 8 || rec.head.bytes > bytes - at)
			return 0;
		rec.bytes = rec.head.bytes - sizeof(rec.head);
		e = put_record(r, &rec, to);
		at += rec.head.bytes;
	}
	return e;
}

/* ---- session, info --------------------------------------------------------------------------------------------- */

static int redact_session(struct redact *r, const struct file *from, FILE *to)
{
	struct mt_session s;
	char page[MT_SESSION_PAGE] = { 0 };
	int e = file_read(from, 0, &s, sizeof(s));
	if (e)
		return e;
	if (!memchr(s.boot_id, 0, sizeof(s.boot_id)) || !memchr(s.host, 0, sizeof(s.host)))
		return damaged(from);
	const char *boot_id = redact(r, REDACT_WHOLE, s.boot_id), *host = redact(r, REDACT_WHOLE, s.host);
	if (!boot_id || !host)
		return error_memory();
	memset(s.boot_id, 0, sizeof(s.boot_id));
	memset(s.host, 0, sizeof(s.host));
	memset(s.ring_dir, 0, sizeof(s.ring_dir));
	for (size_t i = 0; i < sizeof(s.unseen) / sizeof(*s.unseen); i++)
		memset(s.unseen[i].path, 0, sizeof(s.unseen[i].path));
	snprintf(s.boot_id, sizeof(s.boot_id), "%s", boot_id);
	snprintf(s.host, sizeof(s.host), "%s", host);
	s.bytes = s.bytes < sizeof(s) ? s.bytes : sizeof(s);
	memcpy(page, &s, s.bytes);
	return write_out(to, page, sizeof(page));
}

/* Header and states as they are, then the log. */
static int redact_info(struct redact *r, const struct file *from, FILE *to)
{
	struct mt_info info;
	struct bytes log = { 0 };
	char *head = malloc(MT_INFO_LOG), *old = NULL;
	int e = head ? file_read(from, 0, head, MT_INFO_LOG) : error_memory();
	if (!e) {
		memcpy(&info, head, sizeof(info));
		uint64_t there = from->size - MT_INFO_LOG;
		info.log_bytes = info.log_bytes < there ? info.log_bytes : there;
		if (info.bytes > sizeof(info) || memcmp(info.magic, MT_INFO_MAGIC, sizeof(info.magic)))
			e = damaged(from);
	}
	if (!e && !(old = malloc(info.log_bytes + 1)))
		e = error_memory();
	if (!e)
		e = file_read(from, MT_INFO_LOG, old, info.log_bytes);
	if (!e)
		e = put_log(r, old, info.log_bytes, &log);
	if (!e) {
		info.log_bytes = log.count;
		memset(head, 0, MT_INFO_STATES);
		memcpy(head, &info, info.bytes);
		e = write_out(to, head, MT_INFO_LOG);
	}
	if (!e)
		e = write_out(to, log.base, log.count);
	free(log.base);
	free(head);
	free(old);
	return e;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

struct blocks {
	struct redact *redact;
	const struct file *from;
	struct codec *codec;
	struct codec_buf in, out;
};

static int redact_info_block(struct blocks *b, const struct mt_block *head)
{
	struct mt_info info = { 0 };
	struct bytes log = { 0 };
	char *plain = head->count < MT_INFO_LEAST ? NULL : malloc(head->count);
	if (!plain)
		return head->count < MT_INFO_LEAST ? damaged(b->from) : error_memory();
	int e = codec_decode_info(b->codec, b->in.data, b->in.size, plain) ? damaged(b->from) : 0;
	if (!e) {
		memcpy(&info, plain, MT_INFO_LEAST);
		size_t bytes = info.bytes;
		if (bytes < MT_INFO_LEAST || bytes > head->count || bytes > sizeof(info))
			e = damaged(b->from);
		else
			memcpy(&info, plain, bytes);
		if (!e)
			e = put_log(b->redact, plain + bytes, head->count - bytes, &log);
	}
	if (!e) {
		info.bytes = sizeof(info);
		info.log_bytes = log.count;
		e = codec_encode_info(b->codec, &info, log.base, log.count, &b->out) ? error_memory() : 0;
	}
	free(log.base);
	free(plain);
	return e;
}

/* Blocks up to the first that is not whole: what it would have held is still in the raw files, if it is anywhere. */
static int redact_blocks(struct blocks *b, FILE *to)
{
	struct mt_block head;
	size_t bytes;
	int e = 0;
	for (uint64_t at = sizeof(struct mt_trace_header); !e && b->from->size - at >= sizeof(head); at += bytes) {
		e = file_read(b->from, at, &head, sizeof(head));
		if (e || head.magic != MT_BLOCK_MAGIC || head.covers > CODEC_MAX_COVERS ||
		    head.payload_bytes > b->from->size)
			return e;
		uint64_t whole = sizeof(head) + head.covers * sizeof(struct mt_cover) + head.payload_bytes;
		if (whole > b->from->size - at)
			return 0;
		if (codec_buf_reserve(&b->in, whole))
			return error_memory();
		b->in.size = whole;
		e = file_read(b->from, at, b->in.data, whole);
		if (!e && codec_check(b->in.data, whole, &head, &bytes))
			return damaged(b->from);
		bool named = head.type == MT_BLOCK_INFO;
		if (!e && named)
			e = redact_info_block(b, &head);
		if (!e)
			e = write_out(to, named ? b->out.data : b->in.data, named ? b->out.size : bytes);
	}
	return e;
}

static int redact_trace(struct redact *r, const struct file *from, FILE *to)
{
	struct mt_trace_header head;
	struct blocks b = { .redact = r, .from = from, .codec = codec_new() };
	int e = b.codec ? file_read(from, 0, &head, sizeof(head)) : error_memory();
	head.reserved = 0;
	if (!e)
		e = write_out(to, &head, sizeof(head));
	if (!e)
		e = redact_blocks(&b, to);
	codec_buf_fini(&b.in);
	codec_buf_fini(&b.out);
	codec_free(b.codec);
	return e;
}

/* ---- samples --------------------------------------------------------------------------------------------------- */

/* What the two texts of a subject are; -1: of a model, as it is. */
static const struct {
	int text, text2;
} subjects[MT_SUBJECTS] = {
	[MT_SUBJECT_CGROUP] = { REDACT_PATH, REDACT_PATH },
	[MT_SUBJECT_PROCESS] = { REDACT_TEXT, REDACT_PATH },
	[MT_SUBJECT_MAPPING] = { REDACT_PATH, REDACT_TEXT },
	[MT_SUBJECT_DEVICE] = { REDACT_WHOLE, -1 },
	[MT_SUBJECT_DEVICE_PROCESS] = { REDACT_WHOLE, REDACT_TEXT },
};

static int put_varint(struct bytes *to, uint64_t value)
{
	uint8_t varint[VARINT_MAX];
	return put(to, varint, (size_t)(varint_put(varint, value) - varint));
}

static int put_name(struct redact *r, struct varint_in *in, int kind, struct bytes *to)
{
	uint64_t n = varint_get(in);
	if (in->bad || n > (uint64_t)(in->end - in->at))
		return 1;
	char *old = strndup((const char *)in->at, n);
	const char *name = !old || kind < 0 ? old : redact(r, (enum redact_kind)kind, old);
	in->at += n;
	size_t bytes = name ? strlen(name) : 0;
	bytes = bytes < 1000 ? bytes : 1000; /* what a reader takes */
	int e = name ? put_varint(to, bytes) : error_memory();
	if (!e)
		e = put(to, name, bytes);
	free(old);
	return e;
}

static int put_subject(struct redact *r, struct varint_in *in, struct bytes *to)
{
	uint64_t kind = varint_get(in);
	if (kind >= MT_SUBJECTS)
		return 1;
	int e = put_varint(to, MT_SAMPLES_SUBJECT);
	if (!e)
		e = put_varint(to, kind);
	for (int i = 0; !e && i < 3; i++)
		e = put_varint(to, varint_get(in));
	if (!e)
		e = put_name(r, in, subjects[kind].text, to);
	return e ? e : put_name(r, in, subjects[kind].text2, to);
}

/* Numbers, that many, and as many as the second has bits. */
static void skip_item(struct varint_in *in, uint64_t item)
{
	varint_get(in);
	if (item != MT_SAMPLES_FIGURES)
		return;
	for (int left = __builtin_popcountll(varint_get(in)); left; left--)
		varint_get(in);
}

static int put_items(struct redact *r, const void *plain, size_t n, struct bytes *to)
{
	struct varint_in in = { plain, (const uint8_t *)plain + n, 0 };
	int e = 0;
	to->count = 0;
	while (!e && in.at < in.end && !in.bad) {
		const uint8_t *from = in.at;
		uint64_t item = varint_get(&in);
		if (item == MT_SAMPLES_SUBJECT) {
			e = put_subject(r, &in, to);
			continue;
		}
		if (item < MT_SAMPLES_TIME || item > MT_SAMPLES_GONE)
			return 1;
		skip_item(&in, item);
		e = put(to, from, (size_t)(in.at - from));
	}
	return e ? e : in.bad || to->count > MT_SAMPLES_MAX_PLAIN;
}

struct samples {
	struct redact *redact;
	const struct file *from;
	ZSTD_DCtx *in;
	ZSTD_CCtx *out;
	struct bytes stored, plain, items;
};

static int begin_stream(struct samples *s)
{
	ZSTD_DCtx_reset(s->in, ZSTD_reset_session_and_parameters);
	ZSTD_DCtx_setParameter(s->in, ZSTD_d_windowLogMax, MT_SAMPLES_MAX_WINDOW);
	ZSTD_CCtx_reset(s->out, ZSTD_reset_session_and_parameters);
	ZSTD_CCtx_setParameter(s->out, ZSTD_c_windowLog, MT_SAMPLES_MAX_WINDOW);
	return 0;
}

static int decompress(struct samples *s, const struct mt_samples_block *head)
{
	int e = vec_reserve_raw(s->plain.base, s->plain.room, head->plain_bytes + 1ul);
	ZSTD_inBuffer in = { s->stored.base, head->stored_bytes, 0 };
	ZSTD_outBuffer out = { s->plain.base, head->plain_bytes, 0 };
	while (!e && (in.pos < in.size || out.pos < out.size)) {
		size_t before = in.pos + out.pos, n = ZSTD_decompressStream(s->in, &out, &in);
		if (ZSTD_isError(n) || in.pos + out.pos == before)
			return damaged(s->from);
	}
	return e;
}

static int compress_items(struct samples *s)
{
	size_t bound = ZSTD_compressBound(s->items.count) + 64;
	int e = vec_reserve_raw(s->stored.base, s->stored.room, bound);
	ZSTD_inBuffer in = { s->items.base, s->items.count, 0 };
	ZSTD_outBuffer out = { s->stored.base, bound, 0 };
	if (e)
		return e;
	size_t left = ZSTD_compressStream2(s->out, &out, &in, ZSTD_e_flush);
	s->stored.count = out.pos;
	return left ? error_memory() : 0;
}

static int write_block(struct samples *s, struct mt_samples_block *head, FILE *to)
{
	head->plain_bytes = (uint32_t)s->items.count;
	head->stored_bytes = (uint32_t)s->stored.count;
	head->reserved = 0;
	head->crc = 0;
	uLong crc = crc32_z(0, (const Bytef *)head, sizeof(*head));
	head->crc = (uint32_t)crc32_z(crc, (const Bytef *)s->stored.base, s->stored.count);
	int e = write_out(to, head, sizeof(*head));
	return e ? e : write_out(to, s->stored.base, s->stored.count);
}

static int redact_block(struct samples *s, struct mt_samples_block *head, uint64_t at, FILE *to)
{
	int e = vec_reserve_raw(s->stored.base, s->stored.room, head->stored_bytes + 1ul);
	if (!e)
		e = file_read(s->from, at + sizeof(*head), s->stored.base, head->stored_bytes);
	if (!e && !head->part)
		e = begin_stream(s);
	if (!e)
		e = decompress(s, head);
	if (!e && (e = put_items(s->redact, s->plain.base, head->plain_bytes, &s->items)) > 0)
		e = damaged(s->from);
	if (!e)
		e = compress_items(s);
	return e ? e : write_block(s, head, to);
}

/* The last block may be cut off. */
static int redact_sample_blocks(struct samples *s, FILE *to)
{
	struct mt_samples_block head;
	int e = s->in && s->out ? begin_stream(s) : error_memory();
	for (uint64_t at = sizeof(struct mt_samples_header); !e && s->from->size - at >= sizeof(head);) {
		e = file_read(s->from, at, &head, sizeof(head));
		if (!e && (head.magic != MT_SAMPLES_BLOCK_MAGIC || head.plain_bytes > MT_SAMPLES_MAX_PLAIN))
			e = damaged(s->from);
		if (e || head.stored_bytes > s->from->size - at - sizeof(head))
			break;
		at += sizeof(head) + head.stored_bytes;
		e = redact_block(s, &head, at - sizeof(head) - head.stored_bytes, to);
	}
	return e;
}

static int redact_samples(struct redact *r, const struct file *from, FILE *to, uint64_t *end)
{
	struct mt_samples_header head;
	struct samples s = { .redact = r, .from = from, .in = ZSTD_createDCtx(), .out = ZSTD_createCCtx() };
	int e = file_read(from, 0, &head, sizeof(head));
	if (!e)
		e = write_out(to, &head, sizeof(head));
	if (!e)
		e = redact_sample_blocks(&s, to);
	*end = (uint64_t)ftello(to);
	ZSTD_freeDCtx(s.in);
	ZSTD_freeCCtx(s.out);
	free(s.stored.base);
	free(s.plain.base);
	free(s.items.base);
	return e;
}

/* It belongs behind the last block of the other file. One that is not whole says nothing. */
static int redact_open_samples(struct redact *r, const struct file *from, FILE *to, uint64_t end)
{
	struct mt_samples_open head;
	struct bytes items = { 0 };
	if (from->size < sizeof(head))
		return 0;
	int e = file_read(from, 0, &head, sizeof(head));
	if (e || head.plain_bytes > from->size - sizeof(head) || head.plain_bytes > MT_SAMPLES_MAX_PLAIN)
		return e;
	char *plain = malloc(head.plain_bytes + 1ul);
	e = plain ? file_read(from, sizeof(head), plain, head.plain_bytes) : error_memory();
	if (!e)
		e = put_items(r, plain, head.plain_bytes, &items);
	if (!e) {
		head.plain_bytes = (uint32_t)items.count;
		head.offset = end;
		head.crc = head.reserved = 0;
		uLong crc = crc32_z(0, (const Bytef *)items.base, items.count);
		head.crc = (uint32_t)crc32_z(crc, (const Bytef *)&head, sizeof(head));
		e = write_out(to, &head, sizeof(head));
	}
	if (!e)
		e = write_out(to, items.base, items.count);
	free(items.base);
	free(plain);
	return e < 0 ? e : 0;
}

/* ---- interface ------------------------------------------------------------------------------------------------- */

int pack_redact_file(struct redact *r, const char *name, const struct file *from, FILE *to, uint64_t *samples_end)
{
	const char *extension = strrchr(name, '.');
	if (!strcmp(name, "session"))
		return redact_session(r, from, to);
	if (!strcmp(name, "samples"))
		return redact_samples(r, from, to, samples_end);
	if (!strcmp(name, "samples.open"))
		return redact_open_samples(r, from, to, *samples_end);
	if (extension && !strcmp(extension, ".info"))
		return redact_info(r, from, to);
	if (extension && !strcmp(extension, ".trace"))
		return redact_trace(r, from, to);
	return 1;
}
