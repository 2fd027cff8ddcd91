/*
 * Profiles in pprof's format (profile.proto), as JAX's save_device_memory_profile() and Go's, tcmalloc's and jemalloc's
 * heap profiles have it: what was alive at one moment, by stack. A message is a row of fields, each a number with its
 * type in the lowest 3 bits, then a varint (0), 8 bytes (1), a length and as many bytes (2), or 4 bytes (5):
 *
 *   1 sample type { 1 type, 2 unit }     2 sample { 1 locations, innermost first; 2 values; 3 label { 1 key, 2 text } }
 *   3 mapping { 1 id, 5 file }           4 location { 1 id, 2 mapping, 3 address, 4 line { 1 function, 2 line } }
 *   5 function { 1 id, 2 name, 4 file }  6 text      9 when, in ns
 *
 * Texts are numbers of a text in the order of the file.
 */
#include "analyzer/import/import.h"
#include "analyzer/import/import_trace.h"
#include "analyzer/import/input.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"
#include "format/varint.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <uthash.h>

#define WHAT "a profile in pprof's format"
#define LACKS \
	"all but this moment, sizes of single blocks, what allocators keep beside, mappings, pinned memory, and how it " \
	"ended"

#define MOST_FILE   (1u << 30)
#define MOST_FRAMES 4096
#define MOST_BLOCKS (1ull << 26)
#define FIRST_ADDR  (1ull << 32)
#define ADDR_END    (1ull << 46)

struct text {
	const char *bytes;
	size_t count;
};

struct field {
	uint64_t number;
	uint64_t value;       /* of a varint */
	struct varint_in sub; /* of bytes */
};

/* A mapping (`text` its file), a function (`text`, `file`) or a location (`frames`), by id. */
struct thing {
	UT_hash_handle hh;
	uint64_t id;
	char *text, *file;
	uint32_t *frames;
	size_t count, room;
};

struct sum {
	uint64_t count, bytes;
	bool counted; /* the file says how many there are */
	int device;   /* -1: the host */
	bool cuda;
	bool unplaced; /* of a program of JAX's: where it lies is not said */
};

struct pprof {
	struct input in;
	struct imported *out;
	struct import_trace *trace;
	struct import_source source;
	unsigned char *bytes;
	size_t size, room;
	struct text *texts;
	size_t text_count, text_room;
	struct thing *mappings, *functions, *locations;
	size_t types;
	int space, objects; /* which of the values; -1 = there is none */
	uint64_t addr, when_ns, unplaced;
	uint32_t alloc_hook;
};

static int bad(const struct pprof *p)
{
	return error_set(MT_EFORMAT, p->in.path, ERROR_NO_OFFSET, "is no profile in pprof's format, or damaged");
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

/* False: that was the last, or it is damaged (in->bad). */
static bool next(struct varint_in *in, struct field *f)
{
	if (in->bad || in->at == in->end)
		return false;
	const uint64_t key = varint_get(in), type = key & 7;
	*f = (struct field){ .number = key >> 3 };
	uint64_t bytes = type == 1 ? 8 : type == 5 ? 4 : 0;
	if (type == 0)
		f->value = varint_get(in);
	else if (type == 2)
		bytes = varint_get(in);
	if (type == 3 || type == 4 || type > 5 || bytes > (uint64_t)(in->end - in->at))
		in->bad = 1;
	if (in->bad)
		return false;
	f->sub = (struct varint_in){ .at = in->at, .end = in->at + bytes };
	in->at += bytes;
	return true;
}

/* A list of numbers may be one field of bytes or a field for each. */
static bool next_number(struct field *f, uint64_t *number)
{
	if (f->sub.at == f->sub.end) {
		*number = f->value;
		return false;
	}
	*number = varint_get(&f->sub);
	return true;
}

static struct varint_in whole(const struct pprof *p)
{
	return (struct varint_in){ .at = p->bytes, .end = p->bytes + p->size };
}

static struct text text_of(const struct pprof *p, uint64_t number)
{
	return number < p->text_count ? p->texts[number] : (struct text){ "", 0 };
}

static bool is(struct text t, const char *word)
{
	return t.count == strlen(word) && !memcmp(t.bytes, word, t.count);
}

static char *copy_of(struct text t)
{
	return strndup(t.bytes, t.count);
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static struct thing *find(struct thing *table, uint64_t id)
{
	struct thing *t;
	HASH_FIND(hh, table, &id, sizeof(id), t);
	return t;
}

static int add(struct thing **table, struct thing *t)
{
	struct thing *there = find(*table, t->id), *copy = there ? there : calloc(1, sizeof(*copy));
	if (!copy)
		return error_memory();
	if (there) { /* ids are given once */
		free(t->text);
		free(t->file);
		free(t->frames);
		return 0;
	}
	*copy = *t;
	HASH_ADD(hh, *table, id, sizeof(copy->id), copy);
	return 0;
}

static void free_table(struct thing **table)
{
	struct thing *t, *other;
	HASH_ITER(hh, *table, t, other)
	{
		HASH_DEL(*table, t);
		free(t->text);
		free(t->file);
		free(t->frames);
		free(t);
	}
}

/* Of a mapping or a function: two fields, which are texts. */
static int take_named(struct pprof *p, struct thing **table, struct varint_in in, uint64_t text, uint64_t file)
{
	struct thing t = { 0 };
	struct text words[2] = { { "", 0 }, { "", 0 } };
	for (struct field f; next(&in, &f);) {
		t.id = f.number == 1 ? f.value : t.id;
		if (f.number == text)
			words[0] = text_of(p, f.value);
		if (f.number == file)
			words[1] = text_of(p, f.value);
	}
	if (in.bad)
		return bad(p);
	t.text = copy_of(words[0]);
	t.file = copy_of(words[1]);
	if (t.text && t.file)
		return add(table, &t);
	free(t.text);
	free(t.file);
	return error_memory();
}

static bool is_python(const char *file)
{
	const size_t n = strlen(file);
	return (n > 3 && !strcmp(file + n - 3, ".py")) || *file == '<';
}

static int add_frame(struct pprof *p, struct thing *location, const struct import_frame *frame)
{
	if (vec_reserve_raw(location->frames, location->room, location->count + 1))
		return error_memory();
	location->frames[location->count++] = import_frame(p->trace, frame);
	return 0;
}

static int take_line(struct pprof *p, struct thing *location, struct varint_in in, const char *library)
{
	uint64_t function = 0, line = 0;
	for (struct field f; next(&in, &f);) {
		function = f.number == 1 ? f.value : function;
		line = f.number == 2 ? f.value : line;
	}
	const struct thing *known = find(p->functions, function);
	return in.bad ? bad(p)
		      : add_frame(p, location,
				  &(struct import_frame){ .function = known ? known->text : NULL,
							  .file = known ? known->file : NULL,
							  .library = library,
							  .line = line > UINT32_MAX ? 0 : (uint32_t)line,
							  .python = known && is_python(known->file) });
}

/* Without a line it is an address in a library. */
static int take_location(struct pprof *p, struct varint_in in)
{
	struct thing t = { 0 };
	uint64_t mapping = 0, address = 0;
	int e = 0;
	struct field f;
	for (struct varint_in i = in; next(&i, &f);) {
		t.id = f.number == 1 ? f.value : t.id;
		mapping = f.number == 2 ? f.value : mapping;
		address = f.number == 3 ? f.value : address;
	}
	const struct thing *known = find(p->mappings, mapping);
	const char *library = known ? known->text : NULL;
	while (e == 0 && next(&in, &f))
		e = f.number == 4 ? take_line(p, &t, f.sub, library) : 0;
	if (e == 0 && in.bad)
		e = bad(p);
	if (e == 0 && !t.count) {
		char *name = output_format("0x%" PRIx64, address);
		e = name ? add_frame(p, &t, &(struct import_frame){ .function = name, .library = library })
			 : error_memory();
		free(name);
	}
	if (e == 0)
		return add(&p->locations, &t);
	free(t.frames);
	return e;
}

static int take_type(struct pprof *p, struct varint_in in)
{
	struct text type = { "", 0 }, unit = type;
	for (struct field f; next(&in, &f);) {
		if (f.number == 1)
			type = text_of(p, f.value);
		if (f.number == 2)
			unit = text_of(p, f.value);
	}
	if (is(type, "inuse_space") || (p->space < 0 && is(type, "space") && is(unit, "bytes")))
		p->space = (int)p->types;
	if (is(type, "inuse_objects") ||
	    (p->objects < 0 && is(unit, "count") && (is(type, "allocations") || is(type, "objects"))))
		p->objects = (int)p->types;
	p->types++;
	return in.bad || p->types > 64 ? bad(p) : 0;
}

/* ---- samples --------------------------------------------------------------------------------------------------- */

/* As JAX calls them: "cpu:0" is the host (memtrace: "host"), "cuda:0", "TPU_0(process=0,...)". */
static void place(struct sum *s, struct text device)
{
	char word[64];
	snprintf(word, sizeof(word), "%.*s", (int)(device.count < 60 ? device.count : 60), device.bytes);
	const char *number = word + strcspn(word, "0123456789");
	if (!*number || !strncasecmp(word, "cpu", 3) || strstr(word, "CPU"))
		return;
	s->device = (int)strtoul(number, NULL, 10) & 1023;
	s->cuda = !strncasecmp(word, "cuda", 4) || !strncasecmp(word, "gpu", 3);
}

static void take_label(struct pprof *p, struct varint_in in, struct sum *s)
{
	struct text key = { "", 0 }, text = key;
	for (struct field f; next(&in, &f);) {
		if (f.number == 1)
			key = text_of(p, f.value);
		if (f.number == 2)
			text = text_of(p, f.value);
	}
	if (is(key, "device"))
		place(s, text);
	if (is(key, "kind") && is(text, "executable"))
		s->unplaced = true;
}

/* Alike, as only their sum is known; the first has what is left of it. */
static int put_blocks(struct pprof *p, const struct sum *s, struct import_stack stack)
{
	const uint64_t each = s->bytes / s->count, rest = s->bytes % s->count, step = (each + rest + 255) & ~255ull;
	if (step > (ADDR_END - p->addr) / s->count || each + rest > MT_MAX_SIZE)
		return error_set(MT_ELARGE, p->in.path, ERROR_NO_OFFSET,
				 "has more alive at once than there are addresses");
	struct mt_ext_device ext = { .class = MT_CLASS_DEVICE, .kind_ext = (uint32_t)MT_EXT << 26 };
	if (s->device >= 0)
		ext.device = import_device(p->trace, s->cuda ? MT_BACKEND_CUDA : MT_BACKEND_OTHER, (uint32_t)s->device);
	for (uint64_t i = 0; i < s->count; i++, p->addr += step + 256)
		import_event(p->trace, 0,
			     (struct mt_event){ .addr = p->addr,
						.size = each + (i ? 0 : rest),
						.hook = p->alloc_hook,
						.kind = s->device >= 0 ? MT_DEVICE_ALLOC : MT_ALLOC,
						.node = stack.node,
						.node2 = stack.node2 },
			     s->device >= 0 ? &ext : NULL);
	p->source.has |= s->device >= 0 ? MT_IMPORT_DEVICES : MT_IMPORT_HEAP;
	p->out->events += s->count;
	return 0;
}

static int put_sum(struct pprof *p, struct sum *s, struct import_stack stack)
{
	if ((int64_t)s->bytes < 0 || (int64_t)s->count < 0)
		return error_set(MT_EFORMAT, p->in.path, ERROR_NO_OFFSET, "is a difference of two profiles");
	s->count = s->counted || !s->bytes ? s->count : 1;
	if (s->unplaced && s->device < 0) {
		p->unplaced += s->bytes;
		return 0;
	}
	if (s->bytes && !s->count)
		s->count = 1;
	if (s->count > MOST_BLOCKS - p->out->events)
		return error_set(MT_ELARGE, p->in.path, ERROR_NO_OFFSET, "has more than 67 million blocks");
	return s->count ? put_blocks(p, s, stack) : 0;
}

static int take_sample(struct pprof *p, struct varint_in in)
{
	uint32_t frames[MOST_FRAMES];
	size_t count = 0;
	int value = 0;
	struct sum s = { .device = -1, .counted = p->objects >= 0 };
	for (struct field f; next(&in, &f);) {
		uint64_t number;
		for (bool more = f.number < 3; more;) {
			more = next_number(&f, &number) && f.sub.at < f.sub.end && !f.sub.bad;
			const struct thing *l = f.number == 1 ? find(p->locations, number) : NULL;
			for (size_t i = 0; l && i < l->count && count < MOST_FRAMES; i++)
				frames[count++] = l->frames[i];
			if (f.number == 2) {
				s.bytes = value == p->space ? number : s.bytes;
				s.count = value == p->objects ? number : s.count;
				value++;
			}
		}
		if (f.number == 3)
			take_label(p, f.sub, &s);
		in.bad |= f.sub.bad;
	}
	return in.bad ? bad(p) : put_sum(p, &s, import_stack(p->trace, frames, count));
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

static int read_bytes(struct pprof *p)
{
	for (;;) {
		int e = input_fill(&p->in);
		if (e <= 0)
			return e;
		if (p->size + p->in.count > MOST_FILE)
			return error_set(MT_ELARGE, p->in.path, ERROR_NO_OFFSET, "has more than 1 GiB");
		if (vec_reserve_raw(p->bytes, p->room, p->size + p->in.count))
			return error_memory();
		memcpy(p->bytes + p->size, p->in.bytes, p->in.count);
		p->size += p->in.count;
		p->in.at = p->in.count;
	}
}

/* Of a kind at a time, as each is known by what the ones before are called. */
static int take_field(struct pprof *p, unsigned pass, const struct field *f)
{
	static const unsigned char passes[] = { 6, 1, 3, 5, 4, 2 };
	if (f->number == 9)
		p->when_ns = f->value;
	if (f->number != passes[pass])
		return 0;
	switch (f->number) {
	case 1:
		return take_type(p, f->sub);
	case 2:
		return take_sample(p, f->sub);
	case 3:
		return take_named(p, &p->mappings, f->sub, 5, 5);
	case 4:
		return take_location(p, f->sub);
	case 5:
		return take_named(p, &p->functions, f->sub, 2, 4);
	default:
		if (vec_reserve_raw(p->texts, p->text_room, p->text_count + 1))
			return error_memory();
		p->texts[p->text_count++] = (struct text){ (const char *)f->sub.at, (size_t)(f->sub.end - f->sub.at) };
		return 0;
	}
}

static int read_all(struct pprof *p)
{
	int e = read_bytes(p);
	p->alloc_hook = import_hook(p->trace, "pprof");
	p->addr = FIRST_ADDR;
	for (unsigned pass = 0; pass < 6 && e == 0; pass++) {
		struct varint_in in = whole(p);
		for (struct field f; e == 0 && next(&in, &f);)
			e = take_field(p, pass, &f);
		if (e == 0 && in.bad)
			e = bad(p);
		if (e == 0 && pass == 1 && p->space < 0)
			e = error_set(MT_EFORMAT, p->in.path, ERROR_NO_OFFSET,
				      "has nothing that is alive (inuse_space, or space in bytes)");
	}
	struct stat st;
	const uint64_t file_ns =
		stat(p->in.path, &st) == 0 && st.st_mtime > 0 ? (uint64_t)st.st_mtime * 1000000000u : 0;
	p->source.start_real_ns = p->when_ns && p->when_ns < UINT64_MAX / 2 ? p->when_ns : file_ns;
	if (!p->source.has)
		p->source.has = MT_IMPORT_HEAP;
	if (p->unplaced)
		snprintf(p->out->remark, sizeof(p->out->remark),
			 "%" PRIu64 " bytes of compiled programs are left out: where they lie is not in it",
			 p->unplaced);
	return e;
}

int import_pprof(const char *path, const char *dir, struct imported *out)
{
	struct pprof p = {
		.out = out, .space = -1, .objects = -1, .source = { .what = WHAT, .path = path, .lacks = LACKS }
	};
	out->what = WHAT;
	int e = input_open(&p.in, path);
	if (!e)
		e = import_trace_open(&p.trace, dir, &p.source);
	if (!e)
		e = read_all(&p);
	int closed = import_trace_close(p.trace, e == 0);
	free_table(&p.mappings);
	free_table(&p.functions);
	free_table(&p.locations);
	free(p.texts);
	free(p.bytes);
	input_close(&p.in);
	return e < 0 ? e : closed;
}
