/*
 * Stacks become a tree from the outermost frame inwards, and what two stacks show alike is one sample. Memory is
 * bounded by that tree; the file is written when all is known.
 *
 * A frame that was inlined is a line of the location that it was inlined into. Addresses are those of the library's
 * file behind a start that is ours, 1 TiB for each library: processes may have had it anywhere. The kind of memory is
 * the outermost frame, as in folded stacks.
 */
#include "analyzer/report/export/pprof.h"

#include "analyzer/report/export/export.h"
#include "analyzer/report/export/protobuf.h"
#include "analyzer/report/export/record_set.h"

#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "analyzer/util/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LIBRARY_BYTES (1ull << 40)

/* Numbers of fields in profile.proto. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_STRING };
enum { PROFILE_TIME = 9, PROFILE_DURATION, PROFILE_PERIOD_TYPE, PROFILE_PERIOD, PROFILE_COMMENT, PROFILE_DEFAULT_TYPE };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STRING, LABEL_NUMBER };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD_ID };
enum { MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_INLINED = 10 }; /* ... files and lines between them */
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

static const char *const value_names[PPROF_VALUES] = { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space" };
static const char *const value_units[PPROF_VALUES] = { "count", "bytes", "count", "bytes" };

struct string {
	char *text;
};
struct function {
	uint32_t name, system_name, file; /* strings */
};
/* A line of a location; those of one follow each other, innermost first. */
struct line {
	uint32_t function, number;
};
struct mapping {
	const char *path; /* by its address: one string a library */
	uint64_t most;    /* offset in it */
};
struct location {
	uint32_t mapping, line_count; /* mapping 0: none */
	uint64_t offset;
	uint64_t lines_hash;
	/* behind the key */
	size_t first_line;
};
/* Frames are looked up once: those that a location was made of lie side by side or are left out alike. */
struct known {
	const struct frame *first, *last;
	/* behind the key */
	uint32_t location;
};
struct node {
	uint32_t outer, location;
};
struct labels {
	uint32_t kind, device, process, category; /* strings */
	uint32_t rank;                            /* likewise; 0 = none is known */
	uint32_t pid;
};
struct profile_sample {
	uint32_t node, labels;
	/* behind the key */
	int64_t values[PPROF_VALUES];
};

struct pprof {
	struct stacks *stacks;
	struct record_set strings, functions, mappings, locations, known, nodes, labels, samples;
	struct line *lines;
	size_t line_count, line_room;
	bool failed; /* no memory */
};

/* ---- strings --------------------------------------------------------------------------------------------- */

/* Strings are found by what they say, so they have a function of their own. */
static uint64_t hash_string(const void *set, uint32_t number)
{
	const struct string *s = record_set_at(set, number);
	return record_hash(s->text, strlen(s->text));
}

/* From 1 on; in the file string 0 is empty, as it must be, and so one less. */
static uint32_t string_of(struct pprof *p, const char *text)
{
	struct record_set *s = &p->strings;
	char *clean = export_clean(text ? text : "");
	if (!clean ||
	    (hash_index_is_full(&s->index, s->count) && hash_index_grow(&s->index, s, s->count, hash_string))) {
		free(clean);
		p->failed = true;
		return 1;
	}
	uint64_t hash = record_hash(clean, strlen(clean));
	size_t at = hash_index_home(&s->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&s->index, hash, &at)); at = hash_index_after(&s->index, at))
		if (!strcmp(((struct string *)record_set_at(s, n))->text, clean)) {
			free(clean);
			return n;
		}
	if (vec_reserve_raw(s->records, s->room, (s->count + 1) * s->size)) {
		free(clean);
		p->failed = true;
		return 1;
	}
	memcpy(s->records + s->count * s->size, &(struct string){ clean }, s->size);
	hash_index_set(&s->index, at, ++s->count, hash);
	return (uint32_t)s->count;
}

/* ---- frames ---------------------------------------------------------------------------------------------- */

static uint32_t function_of(struct pprof *p, const struct frame *f)
{
	char *name = frame_text(f);
	if (!name)
		return 0;
	struct function new = { string_of(p, name), string_of(p, f->function ? f->function : name),
				string_of(p, f->file) };
	free(name);
	return record_set_number(&p->functions, &new);
}

static uint32_t mapping_of(struct pprof *p, const struct frame *f)
{
	if (!f->library || (f->language && !strcmp(f->language, "python")))
		return 0;
	uint32_t n = record_set_number(&p->mappings, &(struct mapping){ .path = f->library });
	struct mapping *m = n ? record_set_at(&p->mappings, n) : NULL;
	if (m && f->offset < LIBRARY_BYTES && f->offset > m->most)
		m->most = f->offset;
	return n;
}

/* The location of `count` frames, innermost first: all but the last are inlined. 0: no memory. */
static uint32_t make_location(struct pprof *p, const struct frame *const *frames, size_t count)
{
	const struct frame *own = frames[count - 1];
	bool python = own->language && !strcmp(own->language, "python");
	struct location l = { .mapping = mapping_of(p, own), .line_count = (uint32_t)count };
	l.offset = python ? 0 : l.mapping ? own->offset & (LIBRARY_BYTES - 1) : own->offset;
	l.first_line = p->line_count;
	if (vec_reserve_raw(p->lines, p->line_room, p->line_count + count))
		return 0;
	struct line *lines = p->lines + p->line_count;
	for (size_t i = 0; i < count; i++) {
		lines[i] = (struct line){ function_of(p, frames[i]), frames[i]->line };
		if (!lines[i].function)
			return 0;
	}
	l.lines_hash = record_hash(lines, count * sizeof(*lines));
	size_t before = p->locations.count;
	uint32_t n = record_set_number(&p->locations, &l);
	if (p->locations.count > before)
		p->line_count += count;
	return n;
}

static uint32_t location_of(struct pprof *p, const struct frame *const *frames, size_t count)
{
	struct known key = { frames[0], frames[count - 1], 0 };
	uint32_t n = record_set_number(&p->known, &key);
	uint32_t location = n ? ((struct known *)record_set_at(&p->known, n))->location : 0;
	if (n && !location) {
		location = make_location(p, frames, count);
		((struct known *)record_set_at(&p->known, n))->location = location;
	}
	return location;
}

/* How many frames from `at` on, outwards, are of one location. */
static size_t location_frames(const struct pprof_stack *s, size_t at)
{
	size_t n = 1;
	while (at + n < s->count && s->frames[at + n - 1]->inlined)
		n++;
	return n;
}

/* The node of the whole stack. 0: no memory. */
static uint32_t node_of(struct pprof *p, const struct pprof_stack *s)
{
	uint32_t inner[512], *all = inner, count = 0, node = 0;
	if (s->count > sizeof(inner) / sizeof(*inner) && !(all = malloc(s->count * sizeof(*all))))
		return 0;
	bool ok = true;
	for (size_t i = 0, n; i < s->count && ok; i += n) {
		n = location_frames(s, i);
		ok = (all[count++] = location_of(p, s->frames + i, n)) != 0;
	}
	const struct frame memory = { .name = s->memory };
	if (ok && s->memory) {
		uint32_t kind = make_location(p, (const struct frame *[]){ &memory }, 1);
		node = kind ? record_set_number(&p->nodes, &(struct node){ 0, kind }) : 0;
		ok = node != 0;
	}
	while (count && ok)
		ok = (node = record_set_number(&p->nodes, &(struct node){ node, all[--count] })) != 0;
	if (all != inner)
		free(all);
	return ok ? node : 0;
}

/* ---- samples --------------------------------------------------------------------------------------------- */

static uint32_t labels_of(struct pprof *p, const struct pprof_stack *s)
{
	char rank[32];
	if (!s->kind)
		return record_set_number(&p->labels, &(struct labels){ 0 });
	struct labels l = { .kind = string_of(p, s->kind),
			    .device = string_of(p, s->device),
			    .process = string_of(p, s->process->name),
			    .category = string_of(p, s->category),
			    .pid = s->process->pid };
	if (s->process->rank != PROCESS_NO_RANK) {
		snprintf(rank, sizeof(rank), "%" PRId64, s->process->rank);
		l.rank = string_of(p, rank);
	}
	return record_set_number(&p->labels, &l);
}

int pprof_add(struct pprof *p, const struct pprof_stack *s)
{
	struct profile_sample new = { node_of(p, s), labels_of(p, s), { 0 } };
	uint32_t n = new.node &&new.labels && !p->failed ? record_set_number(&p->samples, &new) : 0;
	if (!n)
		return error_memory();
	struct profile_sample *sample = record_set_at(&p->samples, n);
	for (int i = 0; i < PPROF_VALUES; i++)
		sample->values[i] += s->values[i];
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------------------- */

struct gzip {
	z_stream stream;
	int error;
};

static int gzip_open(struct gzip *z)
{
	*z = (struct gzip){ 0 };
	return deflateInit2(&z->stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK ? 0 : error_memory();
}

static void gzip_write(struct gzip *z, unsigned char *data, size_t size, int flush)
{
	unsigned char out[16384];
	z->stream.next_in = data;
	z->stream.avail_in = (uInt)size;
	do {
		z->stream.next_out = out;
		z->stream.avail_out = sizeof(out);
		deflate(&z->stream, flush);
		print_as_is((char *)out, sizeof(out) - z->stream.avail_out);
	} while (z->stream.avail_out == 0);
}

struct writing {
	struct pprof *profile;
	const struct pprof_head *head;
	struct gzip gzip;
	struct protobuf message, inner, part;
	uint64_t *ids;
	size_t id_room;
	int error;
};

enum { PIECE = 1 << 16 };

/* Messages of the profile are compressed when there are some. */
static void flush(struct writing *w, bool all)
{
	if (w->message.failed)
		w->error = error_memory();
	if (w->message.size < PIECE && !all)
		return;
	gzip_write(&w->gzip, w->message.data, w->message.size, Z_NO_FLUSH);
	w->message.size = 0;
}

static void add(struct writing *w, unsigned field)
{
	protobuf_message(&w->message, field, &w->inner);
	flush(w, false);
}

static uint64_t string_id(uint32_t string)
{
	return string - 1;
}

static void write_types(struct writing *w)
{
	struct pprof *p = w->profile;
	for (int i = w->head->first; i <= (int)w->head->last; i++) {
		protobuf_uint(&w->inner, 1, string_id(string_of(p, value_names[i])));
		protobuf_uint(&w->inner, 2, string_id(string_of(p, value_units[i])));
		add(w, PROFILE_SAMPLE_TYPE);
	}
	protobuf_uint(&w->message, PROFILE_DEFAULT_TYPE, string_id(string_of(p, value_names[w->head->last])));
}

static void write_period(struct writing *w)
{
	protobuf_uint(&w->inner, 1, string_id(string_of(w->profile, "space")));
	protobuf_uint(&w->inner, 2, string_id(string_of(w->profile, "bytes")));
	add(w, PROFILE_PERIOD_TYPE);
	protobuf_uint(&w->message, PROFILE_PERIOD, w->head->period);
}

static void write_label(struct writing *w, const char *key, uint32_t string, uint64_t number)
{
	protobuf_uint(&w->part, LABEL_KEY, string_id(string_of(w->profile, key)));
	if (string)
		protobuf_uint(&w->part, LABEL_STRING, string_id(string));
	else
		protobuf_uint(&w->part, LABEL_NUMBER, number);
	protobuf_message(&w->inner, SAMPLE_LABEL, &w->part);
}

static int write_sample(struct writing *w, const struct profile_sample *s)
{
	const struct pprof *p = w->profile;
	const struct labels *l = record_set_at(&p->labels, s->labels);
	const struct node *at;
	size_t count = 0;
	for (uint32_t n = s->node; n; n = at->outer) {
		at = record_set_at(&p->nodes, n);
		if (vec_reserve_raw(w->ids, w->id_room, count + 1))
			return -MT_EMEMORY;
		w->ids[count++] = at->location;
	}
	protobuf_packed(&w->inner, SAMPLE_LOCATION, w->ids, count);
	const unsigned first = w->head->first, last = w->head->last;
	uint64_t values[PPROF_VALUES];
	for (unsigned i = first; i <= last; i++)
		values[i] = (uint64_t)s->values[i];
	protobuf_packed(&w->inner, SAMPLE_VALUE, values + first, last - first + 1);
	if (l->kind) {
		write_label(w, "kind", l->kind, 0);
		write_label(w, "device", l->device, 0);
		write_label(w, "process", l->process, 0);
		write_label(w, "pid", 0, l->pid);
		write_label(w, "category", l->category, 0);
	}
	if (l->rank) /* a text, for as a number pprof takes 0 for none */
		write_label(w, "rank", l->rank, 0);
	add(w, PROFILE_SAMPLE);
	return 0;
}

static void write_build_id(struct writing *w, const char *library)
{
	const struct symbols *all = stacks_symbols(w->profile->stacks);
	char text[2 * 64 + 1] = "";
	for (struct symbol_module *m = symbols_next(all, NULL); m; m = symbols_next(all, m)) {
		struct module_id id = symbols_id(m);
		if (symbols_shown(m) != library || id.build_id_bytes > 64)
			continue;
		for (size_t i = 0; i < id.build_id_bytes; i++)
			snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)id.build_id)[i]);
	}
	if (*text)
		protobuf_uint(&w->inner, MAPPING_BUILD_ID, string_id(string_of(w->profile, text)));
}

/* All names are in it, so that nobody looks for more at addresses that no process had. */
static void write_mappings(struct writing *w)
{
	struct pprof *p = w->profile;
	for (uint32_t n = 1; n <= p->mappings.count; n++) {
		const struct mapping *m = record_set_at(&p->mappings, n);
		protobuf_uint(&w->inner, MAPPING_ID, n);
		protobuf_uint(&w->inner, MAPPING_START, n * LIBRARY_BYTES);
		protobuf_uint(&w->inner, MAPPING_LIMIT, n * LIBRARY_BYTES + (m->most | 0xfff) + 1);
		protobuf_uint(&w->inner, MAPPING_FILE, string_id(string_of(p, m->path)));
		write_build_id(w, m->path);
		for (unsigned has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINED; has++)
			protobuf_uint(&w->inner, has, 1);
		add(w, PROFILE_MAPPING);
	}
}

static void write_locations(struct writing *w)
{
	const struct pprof *p = w->profile;
	for (uint32_t n = 1; n <= p->locations.count; n++) {
		const struct location *l = record_set_at(&p->locations, n);
		protobuf_uint(&w->inner, LOCATION_ID, n);
		if (l->mapping)
			protobuf_uint(&w->inner, LOCATION_MAPPING, l->mapping);
		if (l->mapping || l->offset)
			protobuf_uint(&w->inner, LOCATION_ADDRESS, l->mapping * LIBRARY_BYTES + l->offset);
		for (size_t i = 0; i < l->line_count; i++) {
			protobuf_uint(&w->part, LINE_FUNCTION, p->lines[l->first_line + i].function);
			protobuf_uint(&w->part, LINE_NUMBER, p->lines[l->first_line + i].number);
			protobuf_message(&w->inner, LOCATION_LINE, &w->part);
		}
		add(w, PROFILE_LOCATION);
	}
}

static void write_functions(struct writing *w)
{
	const struct pprof *p = w->profile;
	for (uint32_t n = 1; n <= p->functions.count; n++) {
		const struct function *f = record_set_at(&p->functions, n);
		protobuf_uint(&w->inner, FUNCTION_ID, n);
		protobuf_uint(&w->inner, FUNCTION_NAME, string_id(f->name));
		protobuf_uint(&w->inner, FUNCTION_SYSTEM_NAME, string_id(f->system_name));
		protobuf_uint(&w->inner, FUNCTION_FILE, string_id(f->file));
		add(w, PROFILE_FUNCTION);
	}
}

static void write_comment(struct writing *w, const char *text)
{
	protobuf_uint(&w->message, PROFILE_COMMENT, string_id(string_of(w->profile, text)));
}

/* Strings last: the others made some. */
static void write_rest(struct writing *w)
{
	struct pprof *p = w->profile;
	protobuf_int(&w->message, PROFILE_TIME, (int64_t)w->head->real_ns);
	protobuf_int(&w->message, PROFILE_DURATION, (int64_t)w->head->duration_ns);
	for (size_t i = 0; i < PPROF_COMMENTS && w->head->comments[i]; i++)
		write_comment(w, w->head->comments[i]);
	for (uint32_t n = 1; n <= p->strings.count; n++) {
		protobuf_text(&w->message, PROFILE_STRING, ((struct string *)record_set_at(&p->strings, n))->text);
		flush(w, false);
	}
}

int pprof_write(struct pprof *p, const struct pprof_head *head)
{
	struct writing w = { .profile = p, .head = head };
	int e = gzip_open(&w.gzip);
	if (e < 0)
		return e;
	write_types(&w);
	write_period(&w);
	for (uint32_t n = 1; e == 0 && n <= p->samples.count; n++)
		e = write_sample(&w, record_set_at(&p->samples, n));
	write_mappings(&w);
	write_locations(&w);
	write_functions(&w);
	write_rest(&w);
	flush(&w, true);
	gzip_write(&w.gzip, NULL, 0, Z_FINISH);
	deflateEnd(&w.gzip.stream);
	protobuf_fini(&w.message);
	protobuf_fini(&w.inner);
	protobuf_fini(&w.part);
	free(w.ids);
	return e < 0 ? e : p->failed ? error_memory() : w.error;
}

static struct record_set set_of(size_t size, size_t key)
{
	return (struct record_set){ .size = size, .key = key };
}

struct pprof *pprof_new(struct stacks *stacks)
{
	struct pprof *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->stacks = stacks;
	p->strings = set_of(sizeof(struct string), 0);
	p->functions = set_of(sizeof(struct function), sizeof(struct function));
	p->mappings = set_of(sizeof(struct mapping), offsetof(struct mapping, most));
	p->locations = set_of(sizeof(struct location), offsetof(struct location, first_line));
	p->known = set_of(sizeof(struct known), offsetof(struct known, location));
	p->nodes = set_of(sizeof(struct node), sizeof(struct node));
	p->labels = set_of(sizeof(struct labels), sizeof(struct labels));
	p->samples = set_of(sizeof(struct profile_sample), offsetof(struct profile_sample, values));
	string_of(p, "");
	return p;
}

void pprof_free(struct pprof *p)
{
	if (!p)
		return;
	for (uint32_t n = 1; n <= p->strings.count; n++)
		free(((struct string *)record_set_at(&p->strings, n))->text);
	record_set_fini(&p->strings);
	record_set_fini(&p->functions);
	record_set_fini(&p->mappings);
	record_set_fini(&p->locations);
	record_set_fini(&p->known);
	record_set_fini(&p->nodes);
	record_set_fini(&p->labels);
	record_set_fini(&p->samples);
	free(p->lines);
	free(p);
}

uint64_t pprof_period(const struct reader *r)
{
	uint64_t period = 1;
	for (unsigned id = 0; id < reader_processes(r); id++)
		if ((reader_process(r, id)->stacks == MT_STACKS_SAMPLE || process_is_picked(reader_process(r, id))) &&
		    reader_process(r, id)->sample_bytes > period)
			period = reader_process(r, id)->sample_bytes;
	return period;
}
