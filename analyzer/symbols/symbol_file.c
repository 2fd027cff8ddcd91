#include "analyzer/symbols/symbol_file.h"

#include "analyzer/reader/files/file.h"
#include "analyzer/reader/memory_bound.h"
#include "analyzer/util/error.h"
#include "analyzer/util/memory/whole.h"
#include "analyzer/util/vec.h"
#include "format/format.h"
#include "format/varint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>
#include <zlib.h>
#include <zstd.h>

#define ZSTD_LEVEL   3
#define MAX_BUILD_ID 64u
#define PLACE_BYTES  128u /* that an address takes in memory */
#define FRAME_BYTES  (sizeof(struct frame) + 8)

/* ---- reading ------------------------------------------------------------------------------------------- */

struct input {
	struct symbols *symbols; /* NULL: only check */
	const char *path;
	struct memory_bound bound;
	struct varint_in in;
	char *texts;          /* all strings, each with its NUL */
	const char **strings; /* from 1 */
	uint64_t string_count;
};

static int bad(const struct input *i, const char *what)
{
	return error_set(MT_EFORMAT, i->path, sizeof(struct mt_symbol_file), "%s", what);
}

static size_t left(const struct input *i)
{
	return (size_t)(i->in.end - i->in.at);
}

static int claim_memory(struct input *i, uint64_t bytes)
{
	return memory_bound_take(&i->bound, bytes, i->path, sizeof(struct mt_symbol_file));
}

static int read_strings(struct input *i)
{
	i->string_count = varint_get(&i->in);
	if (i->string_count > left(i)) /* each takes a byte at least */
		return bad(i, "has more strings than bytes");
	int e = claim_memory(i, left(i) + i->string_count * (1 + sizeof(*i->strings)));
	if (e)
		return e;
	i->strings = calloc(i->string_count + 1, sizeof(*i->strings));
	char *text = i->texts = malloc(left(i) + i->string_count + 1);
	if (!i->strings || !text)
		return error_set(MT_EMEMORY, i->path, ERROR_NO_OFFSET, NULL);
	for (uint64_t k = 1; k <= i->string_count; k++) {
		uint64_t bytes = varint_get(&i->in);
		if (bytes > left(i) || memchr(i->in.at, 0, bytes))
			return bad(i, "a string is not whole");
		i->strings[k] = text;
		memcpy(text, i->in.at, bytes);
		text += bytes;
		*text++ = '\0';
		i->in.at += bytes;
	}
	return 0;
}

static const char *get_string(struct input *i)
{
	uint64_t k = varint_get(&i->in);
	if (k > i->string_count) {
		i->in.bad = 1;
		return NULL;
	}
	return i->strings[k];
}

static int read_frames(struct input *i, struct frame *frames, uint64_t count)
{
	for (uint64_t k = 0; k < count; k++) {
		struct frame *f = &frames[k];
		*f = (struct frame){ 0 };
		f->function = get_string(i);
		f->file = get_string(i);
		f->language = get_string(i);
		uint64_t line = varint_get(&i->in);
		f->line = (uint32_t)(line >> 1);
		f->inlined = line & 1;
		if (i->in.bad || line >> 33)
			return bad(i, "a frame makes no sense");
	}
	return 0;
}

static int read_places(struct input *i, struct symbol_module *m, uint64_t count)
{
	struct frame frames[MT_SYMBOLS_MAX_FRAMES];
	uint64_t address = 0;
	int e = 0;
	for (uint64_t k = 0; !e && k < count; k++) {
		address += varint_get(&i->in);
		uint64_t frame_count = varint_get(&i->in);
		if (i->in.bad || !frame_count || frame_count > MT_SYMBOLS_MAX_FRAMES)
			return bad(i, "an address makes no sense");
		e = claim_memory(i, PLACE_BYTES + frame_count * FRAME_BYTES);
		if (!e)
			e = read_frames(i, frames, frame_count);
		if (!e && m)
			e = symbols_add_known(i->symbols, m, address, frames, frame_count);
	}
	return e;
}

static int read_module(struct input *i)
{
	struct symbol_module *m = NULL;
	struct module_id id = { .path = get_string(i) };
	id.build_id_bytes = varint_get(&i->in);
	id.build_id = i->in.at;
	if (i->in.bad || !id.path || id.build_id_bytes > MAX_BUILD_ID || id.build_id_bytes > left(i))
		return bad(i, "a module makes no sense");
	i->in.at += id.build_id_bytes;
	if (i->symbols) {
		m = symbols_module(i->symbols, &id);
		if (!m)
			return error_set(MT_EMEMORY, i->path, ERROR_NO_OFFSET, NULL);
	}
	return read_places(i, m, varint_get(&i->in));
}

static int read_plain(struct input *i)
{
	int e = read_strings(i);
	uint64_t modules = e ? 0 : varint_get(&i->in);
	for (uint64_t k = 0; !e && k < modules; k++)
		e = read_module(i);
	if (!e && (i->in.bad || left(i)))
		e = bad(i, "has more or less in it than it says");
	free(i->texts);
	free(i->strings);
	return e;
}

static int check_header(const struct file *f, struct mt_symbol_file *h)
{
	int e = file_read(f, 0, h, sizeof(*h));
	if (e)
		return e;
	if (memcmp(h->magic, MT_SYMBOLS_MAGIC, sizeof(h->magic)) != 0)
		return error_set(MT_EMAGIC, f->path, 0, NULL);
	if (h->version != MT_VERSION)
		return error_set(MT_EVERSION, f->path, offsetof(struct mt_symbol_file, version),
				 "was written by format version %" PRIu32 ", this reads %d", h->version, MT_VERSION);
	if (h->stored_bytes != f->size - sizeof(*h))
		return error_set(MT_ECUT, f->path, (int64_t)f->size,
				 "%" PRIu64 " bytes should follow the header, not %" PRIu64, h->stored_bytes,
				 f->size - sizeof(*h));
	if (h->plain_bytes > MT_SYMBOLS_MAX_BYTES)
		return error_set(MT_EFORMAT, f->path, offsetof(struct mt_symbol_file, plain_bytes),
				 "is larger than any may be");
	return 0;
}

static uint32_t checksum(struct mt_symbol_file h, const void *stored)
{
	h.crc = 0;
	uLong crc = crc32_z(0, (const Bytef *)&h, sizeof(h));
	return (uint32_t)crc32_z(crc, stored, h.stored_bytes);
}

static int read_stored(struct input *i, const struct file *f, const struct mt_symbol_file *h, void *stored)
{
	int e = file_read(f, sizeof(*h), stored, h->stored_bytes);
	if (e)
		return e;
	if (checksum(*h, stored) != h->crc)
		return error_set(MT_ECHECKSUM, f->path, offsetof(struct mt_symbol_file, crc), "the checksum is wrong");
	e = claim_memory(i, h->plain_bytes);
	if (e)
		return e;
	uint8_t *plain = malloc(h->plain_bytes + 1);
	if (!plain)
		return error_set(MT_EMEMORY, f->path, ERROR_NO_OFFSET, NULL);
	size_t n = ZSTD_decompress(plain, h->plain_bytes, stored, h->stored_bytes);
	i->in = (struct varint_in){ plain, plain + h->plain_bytes, 0 };
	e = n == h->plain_bytes ? read_plain(i) : bad(i, "can't be decompressed");
	free(plain);
	return e;
}

static int read_file(struct symbols *s, const struct file *f)
{
	struct input i = { .symbols = s, .path = f->path };
	struct mt_symbol_file h;
	int e = check_header(f, &h);
	if (e)
		return e;
	e = memory_bound_make(&i.bound);
	memory_bound_widen(&i.bound, f->disk, 0);
	if (!e)
		e = claim_memory(&i, h.stored_bytes);
	if (e)
		return e;
	void *stored = malloc(h.stored_bytes + 1);
	if (!stored)
		return error_set(MT_EMEMORY, f->path, ERROR_NO_OFFSET, NULL);
	e = read_stored(&i, f, &h, stored);
	free(stored);
	return e;
}

int symbol_file_read(struct symbols *s, const char *dir)
{
	struct file f;
	int e = file_open(&f, dir, "symbols");
	if (!e && file_is_open(&f))
		e = read_file(s, &f);
	file_close(&f);
	return e;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

struct string {
	UT_hash_handle hh;
	uint64_t id;
	char text[];
};

struct bytes {
	uint8_t *base;
	size_t count, room;
};

struct output {
	struct redact *redact; /* NULL: names as they are */
	struct string *strings;
	struct bytes head, body; /* strings, modules */
	int error;               /* the first one */
};

static void put_bytes(struct output *o, struct bytes *to, const void *from, size_t n)
{
	int e = vec_reserve_raw(to->base, to->room, to->count + n);
	if (e)
		o->error = e;
	if (o->error || !n)
		return;
	memcpy(to->base + to->count, from, n);
	to->count += n;
}

static void put_number(struct output *o, struct bytes *to, uint64_t value)
{
	uint8_t varint[VARINT_MAX];
	put_bytes(o, to, varint, (size_t)(varint_put(varint, value) - varint));
}

static uint64_t string_id(struct output *o, const char *text)
{
	struct string *s;
	size_t n = text ? strlen(text) : 0;
	if (!text)
		return 0;
	HASH_FIND(hh, o->strings, text, n, s);
	if (s)
		return s->id;
	s = malloc(sizeof(*s) + n + 1);
	if (!s) {
		o->error = error_memory();
		return 0;
	}
	memcpy(s->text, text, n + 1);
	s->id = HASH_COUNT(o->strings) + 1;
	HASH_ADD_KEYPTR(hh, o->strings, s->text, n, s);
	put_number(o, &o->head, n);
	put_bytes(o, &o->head, text, n);
	return s->id;
}

static void put_frame(struct output *o, const struct frame *f, const char *library)
{
	struct redact *r = o->redact;
	put_number(o, &o->body, string_id(o, r ? redact_function(r, f->function, library) : f->function));
	put_number(o, &o->body, string_id(o, r ? redact_source(r, f->file, library) : f->file));
	put_number(o, &o->body, string_id(o, f->language));
	put_number(o, &o->body, (uint64_t)f->line << 1 | f->inlined);
}

static void put_place(struct output *o, const struct symbol_place *p, uint64_t address)
{
	put_number(o, &o->body, p->address - address);
	put_number(o, &o->body, p->count);
	for (size_t i = 0; i < p->count; i++)
		put_frame(o, &p->frames[i], symbols_path(p->module));
}

static void put_id(struct output *o, const struct module_id *id)
{
	unsigned char build_id[MAX_BUILD_ID];
	size_t n = id->build_id_bytes < sizeof(build_id) ? id->build_id_bytes : sizeof(build_id);
	if (n)
		memcpy(build_id, id->build_id, n);
	if (o->redact)
		redact_build_id(o->redact, id->path, build_id, n);
	put_number(o, &o->body, string_id(o, o->redact ? redact(o->redact, REDACT_PATH, id->path) : id->path));
	put_number(o, &o->body, n);
	put_bytes(o, &o->body, build_id, n);
}

/* Returns how many of the places are of the first one's module. */
static size_t put_module(struct output *o, const struct symbol_place *places, size_t count)
{
	struct module_id id = symbols_id(places->module);
	size_t n = 0;
	while (n < count && places[n].module == places->module)
		n++;
	put_id(o, &id);
	put_number(o, &o->body, n);
	for (size_t i = 0; i < n; i++)
		put_place(o, &places[i], i ? places[i - 1].address : 0);
	return n;
}

static size_t count_modules(const struct symbol_place *places, size_t count)
{
	size_t modules = 0;
	for (size_t i = 0; i < count; i++)
		modules += !i || places[i].module != places[i - 1].module;
	return modules;
}

/* All that is compressed: in *plain, to be freed. */
static int encode(const struct symbols *s, struct redact *redact, struct bytes *plain)
{
	struct output o = { .redact = redact };
	struct symbol_place *places;
	size_t count;
	int e = symbols_places(s, &places, &count);
	if (e)
		return e;
	put_number(&o, &o.body, count_modules(places, count));
	for (size_t i = 0; i < count && !o.error;)
		i += put_module(&o, places + i, count - i);
	put_number(&o, plain, HASH_COUNT(o.strings));
	put_bytes(&o, plain, o.head.base, o.head.count);
	put_bytes(&o, plain, o.body.base, o.body.count);
	struct string *string, *next;
	HASH_ITER(hh, o.strings, string, next)
	{
		HASH_DEL(o.strings, string);
		free(string);
	}
	free(o.head.base);
	free(o.body.base);
	free(places);
	return o.error;
}

static int replace(const char *dir, const struct bytes *whole)
{
	char path[4096], temporary[4096 + 16];
	if (snprintf(path, sizeof(path), "%s/symbols", dir) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return error_errno(MT_EOUTPUT, dir, ERROR_NO_OFFSET);
	}
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	int fd = mkstemp(temporary); /* 0600 */
	if (fd < 0)
		return error_errno(MT_EOUTPUT, path, ERROR_NO_OFFSET);
	int e = whole_write(fd, whole->base, whole->count) ? 0 : error_errno(MT_EOUTPUT, path, ERROR_NO_OFFSET);
	if (close(fd) && !e)
		e = error_errno(MT_EOUTPUT, path, ERROR_NO_OFFSET);
	if (!e && rename(temporary, path))
		e = error_errno(MT_EOUTPUT, path, ERROR_NO_OFFSET);
	if (e)
		unlink(temporary);
	return e;
}

/* Header and what follows it, in *whole, to be freed. */
static int wrap(const struct bytes *plain, struct bytes *whole)
{
	struct mt_symbol_file h = { .magic = MT_SYMBOLS_MAGIC, .version = MT_VERSION, .plain_bytes = plain->count };
	if (plain->count > MT_SYMBOLS_MAX_BYTES)
		return error_set(MT_EOUTPUT, "symbols", ERROR_NO_OFFSET, "would take %zu bytes", plain->count);
	size_t bound = ZSTD_compressBound(plain->count);
	int e = vec_reserve_raw(whole->base, whole->room, sizeof(h) + bound);
	if (e)
		return e;
	uint8_t *stored = whole->base + sizeof(h);
	h.stored_bytes = ZSTD_compress(stored, bound, plain->base, plain->count, ZSTD_LEVEL);
	if (ZSTD_isError(h.stored_bytes))
		return error_memory();
	h.crc = checksum(h, stored);
	memcpy(whole->base, &h, sizeof(h));
	whole->count = sizeof(h) + h.stored_bytes;
	return 0;
}

static int make(const struct symbols *s, struct redact *redact, struct bytes *whole)
{
	struct bytes plain = { 0 };
	int e = encode(s, redact, &plain);
	if (!e)
		e = wrap(&plain, whole);
	free(plain.base);
	return e;
}

int symbol_file_make(const struct symbols *s, struct redact *redact, void **bytes, size_t *count)
{
	struct bytes whole = { 0 };
	int e = make(s, redact, &whole);
	if (e)
		free(whole.base);
	*bytes = e ? NULL : whole.base;
	*count = e ? 0 : whole.count;
	return e;
}

int symbol_file_write(const struct symbols *s, const char *dir)
{
	struct bytes whole = { 0 };
	int e = make(s, NULL, &whole);
	if (!e)
		e = replace(dir, &whole);
	free(whole.base);
	return e;
}
