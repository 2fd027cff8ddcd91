/*
 * profile.proto (github.com/google/pprof, proto/profile.proto), compressed by gzip: what Go's pprof, speedscope,
 * Pyroscope, Parca and Perfetto read.
 *
 * Stacks become a tree from the outermost frame inwards, and what two stacks show alike is one sample. Memory is
 * bounded by that tree; the file is written when all is known.
 *
 * A frame that was inlined is a line of the location that it was inlined into. Addresses are those of the library's
 * file behind a start that is ours, 1 TiB for each library: processes may have had it anywhere. The kind of memory is
 * the outermost frame, as in folded stacks.
 */
#include "analyzer/report/export/export.h"
#include "analyzer/report/export/protobuf.h"

#include "analyzer/util/error.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/vec.h"
#include "format/fnv.h"

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

enum value { ALLOCATED_BLOCKS, ALLOCATED_BYTES, LIVE_BLOCKS, LIVE_BYTES, VALUES };
static const char *const value_names[VALUES] = { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space" };
static const char *const value_units[VALUES] = { "count", "bytes", "count", "bytes" };

/* Records of one size, found by their first `key` bytes, numbered from 1 on. */
struct set {
	unsigned char *records;
	size_t count, room, size, key;
	struct hash_index index;
};

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
	int64_t values[VALUES];
};
/* What a stack of a process allocated, all in all. */
struct allocated {
	uint32_t process, node, node2, device;
	uint64_t kind;
	/* behind the key */
	uint64_t bytes, blocks;
};

struct profile {
	const struct selection *selection;
	struct set strings, functions, mappings, locations, known, nodes, labels, samples, allocated;
	struct line *lines;
	size_t line_count, line_room;
	/* what was allocated is not known: stacks were sampled, or a filter looks at what is alive */
	bool live_only;
	bool failed; /* no memory */
	uint64_t ns; /* the latest of the moments */
};

/* ---- sets ------------------------------------------------------------------------------------------------ */

static uint64_t hash_bytes(const void *bytes, size_t size)
{
	const uint64_t h = mt_fnv_stir(mt_fnv(MT_FNV_START, bytes, size));
	return h ^ h >> 32;
}

static uint64_t hash_record(const void *set, uint32_t number)
{
	const struct set *s = set;
	return hash_bytes(s->records + (number - 1) * s->size, s->key);
}

/* The record like this one, in place; it is put there if it is new. 0: no memory. */
static uint32_t set_number(struct set *s, const void *record)
{
	if (hash_index_is_full(&s->index, s->count) && hash_index_grow(&s->index, s, s->count, hash_record))
		return 0;
	uint64_t hash = hash_bytes(record, s->key);
	size_t at = hash_index_home(&s->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&s->index, hash, &at)); at = hash_index_after(&s->index, at))
		if (!memcmp(s->records + (n - 1) * s->size, record, s->key))
			return n;
	if (vec_reserve_raw(s->records, s->room, (s->count + 1) * s->size))
		return 0;
	memcpy(s->records + s->count * s->size, record, s->size);
	hash_index_set(&s->index, at, ++s->count, hash);
	return (uint32_t)s->count;
}

static void *set_record(const struct set *s, uint32_t number)
{
	return s->records + (number - 1) * s->size;
}

static void set_fini(struct set *s)
{
	free(s->records);
	hash_index_fini(&s->index);
}

/* Strings are found by what they say, so they have a function of their own. */
static uint64_t hash_string(const void *set, uint32_t number)
{
	const struct string *s = set_record(set, number);
	return hash_bytes(s->text, strlen(s->text));
}

/* From 1 on; in the file string 0 is empty, as it must be, and so one less. */
static uint32_t string_of(struct profile *p, const char *text)
{
	struct set *s = &p->strings;
	char *clean = export_clean(text ? text : "");
	if (!clean ||
	    (hash_index_is_full(&s->index, s->count) && hash_index_grow(&s->index, s, s->count, hash_string))) {
		free(clean);
		p->failed = true;
		return 1;
	}
	uint64_t hash = hash_bytes(clean, strlen(clean));
	size_t at = hash_index_home(&s->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&s->index, hash, &at)); at = hash_index_after(&s->index, at))
		if (!strcmp(((struct string *)set_record(s, n))->text, clean)) {
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

static uint32_t function_of(struct profile *p, const struct frame *f)
{
	char *name = frame_text(f);
	if (!name)
		return 0;
	struct function new = { string_of(p, name), string_of(p, f->function ? f->function : name),
				string_of(p, f->file) };
	free(name);
	return set_number(&p->functions, &new);
}

static uint32_t mapping_of(struct profile *p, const struct frame *f)
{
	if (!f->library || (f->language && !strcmp(f->language, "python")))
		return 0;
	uint32_t n = set_number(&p->mappings, &(struct mapping){ .path = f->library });
	struct mapping *m = n ? set_record(&p->mappings, n) : NULL;
	if (m && f->offset < LIBRARY_BYTES && f->offset > m->most)
		m->most = f->offset;
	return n;
}

/* The location of `count` frames, innermost first: all but the last are inlined. 0: no memory. */
static uint32_t make_location(struct profile *p, const struct frame *const *frames, size_t count)
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
	l.lines_hash = hash_bytes(lines, count * sizeof(*lines));
	size_t before = p->locations.count;
	uint32_t n = set_number(&p->locations, &l);
	if (p->locations.count > before)
		p->line_count += count;
	return n;
}

static uint32_t location_of(struct profile *p, const struct frame *const *frames, size_t count)
{
	struct known key = { frames[0], frames[count - 1], 0 };
	uint32_t n = set_number(&p->known, &key);
	uint32_t location = n ? ((struct known *)set_record(&p->known, n))->location : 0;
	if (n && !location) {
		location = make_location(p, frames, count);
		((struct known *)set_record(&p->known, n))->location = location;
	}
	return location;
}

/* How many frames from `at` on, outwards, are of one location. */
static size_t location_frames(const struct export_stack *s, size_t at)
{
	size_t n = 1;
	while (at + n < s->count && s->frames[at + n - 1]->inlined)
		n++;
	return n;
}

/* The node of the whole stack. 0: no memory. */
static uint32_t node_of(struct profile *p, const struct export_stack *s)
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
	uint32_t kind = ok ? make_location(p, (const struct frame *[]){ &memory }, 1) : 0;
	node = kind ? set_number(&p->nodes, &(struct node){ 0, kind }) : 0;
	while (count && node)
		node = set_number(&p->nodes, &(struct node){ node, all[--count] });
	if (all != inner)
		free(all);
	return node;
}

/* ---- samples --------------------------------------------------------------------------------------------- */

static uint32_t labels_of(struct profile *p, const struct export_stack *s)
{
	char rank[32];
	struct labels l = { .kind = string_of(p, kind_name(s->at->kind)),
			    .device = string_of(p, s->at->device ? s->at->device->name : "host"),
			    .process = string_of(p, s->process->name),
			    .category = string_of(p, category_name(s->owner->category)),
			    .pid = s->process->pid };
	if (s->process->rank != PROCESS_NO_RANK) {
		snprintf(rank, sizeof(rank), "%" PRId64, s->process->rank);
		l.rank = string_of(p, rank);
	}
	return set_number(&p->labels, &l);
}

/* Of the sites of that stack in that process, once. */
static void take_allocated(struct profile *p, const struct export_stack *s, int64_t values[VALUES])
{
	for (size_t i = 0; i < s->owner->member_count; i++) {
		const struct model_site *site = s->owner->members[i];
		if (site->process != s->process->id)
			continue;
		struct allocated key = { site->process, site->node, site->node2, site->device, site->kind, 0, 0 };
		uint32_t n = set_number(&p->allocated, &key);
		struct allocated *a = n ? set_record(&p->allocated, n) : &key;
		values[ALLOCATED_BYTES] += (int64_t)a->bytes;
		values[ALLOCATED_BLOCKS] += (int64_t)a->blocks;
		a->bytes = a->blocks = 0;
	}
}

static int add_sample(struct profile *p, const struct export_stack *s, const int64_t values[VALUES])
{
	struct profile_sample new = { node_of(p, s), labels_of(p, s), { 0 } };
	uint32_t n = new.node &&new.labels && !p->failed ? set_number(&p->samples, &new) : 0;
	if (!n)
		return error_memory();
	struct profile_sample *sample = set_record(&p->samples, n);
	for (int i = 0; i < VALUES; i++)
		sample->values[i] += values[i];
	return 0;
}

static int add_stack(struct export *x, const struct export_stack *s)
{
	struct profile *p = x->state;
	int64_t values[VALUES] = { [LIVE_BYTES] = (int64_t)s->bytes, [LIVE_BLOCKS] = (int64_t)s->blocks };
	take_allocated(p, s, values);
	p->ns = s->at->ns > p->ns ? s->at->ns : p->ns;
	return add_sample(p, s, values);
}

static void note_allocation(void *arg, const struct model_change *c)
{
	struct profile *p = arg;
	if (c->bytes < 0 || c->blocks <= 0 || c->ns < p->selection->from_ns || !selection_has(p->selection, c->process))
		return;
	struct allocated key = { c->process->id, c->node, c->node2, c->device, c->kind, 0, 0 };
	uint32_t n = set_number(&p->allocated, &key);
	if (!n) {
		p->failed = true;
		return;
	}
	struct allocated *a = set_record(&p->allocated, n);
	a->bytes += (uint64_t)c->bytes;
	a->blocks += (uint64_t)c->blocks;
}

static bool stacks_are_sampled(const struct selection *sel)
{
	for (unsigned id = 0; id < reader_processes(sel->reader); id++)
		if (selection_has(sel, reader_process(sel->reader, id)) &&
		    reader_process(sel->reader, id)->stacks != MT_STACKS_ALL)
			return true;
	return false;
}

static struct set set_of(size_t size, size_t key)
{
	return (struct set){ .size = size, .key = key };
}

static int ask(struct export *x, struct model_query *q)
{
	struct profile *p = x->state = calloc(1, sizeof(*p));
	if (!p)
		return error_memory();
	p->selection = x->selection;
	p->strings = set_of(sizeof(struct string), 0);
	p->functions = set_of(sizeof(struct function), sizeof(struct function));
	p->mappings = set_of(sizeof(struct mapping), offsetof(struct mapping, most));
	p->locations = set_of(sizeof(struct location), offsetof(struct location, first_line));
	p->known = set_of(sizeof(struct known), offsetof(struct known, location));
	p->nodes = set_of(sizeof(struct node), sizeof(struct node));
	p->labels = set_of(sizeof(struct labels), sizeof(struct labels));
	p->samples = set_of(sizeof(struct profile_sample), offsetof(struct profile_sample, values));
	p->allocated = set_of(sizeof(struct allocated), offsetof(struct allocated, bytes));
	p->live_only = x->selection->options->filter || stacks_are_sampled(x->selection);
	string_of(p, "");
	if (!p->live_only) {
		q->on_change = note_allocation;
		q->arg = p;
	}
	return p->failed ? error_memory() : 0;
}

/* ---- stacks that have nothing at the moment -------------------------------------------------------------- */

static bool is_wanted(const struct export *x, const struct allocated *a)
{
	const struct selection *sel = x->selection;
	if (!x->all && !sel->options->device &&
	    (!x->main || a->kind != x->main->kind ||
	     a->device != (x->main->device ? x->main->device->index : MODEL_NO_DEVICE)))
		return false;
	return a->blocks && sel->kinds & 1u << a->kind &&
	       (a->device == MODEL_NO_DEVICE || selection_has_device(sel, a->device));
}

/* `sum`: of all that have nothing. */
static int add_gone_stack(struct export *x, const struct allocated *a, uint64_t sum, struct frame_list *list)
{
	const struct selection *sel = x->selection;
	const struct process *process = reader_process(sel->reader, a->process);
	const uint32_t pair = stacks_of(sel->stacks, process, a->node, a->node2),
		       stack = stacks_merged(sel->stacks, pair);
	const struct moment at = { .kind = (enum model_kind)a->kind,
				   .device =
					   a->device == MODEL_NO_DEVICE ? NULL : model_device(sel->model, a->device) };
	const struct owner owner = { .category = categories_of(sel->categories, stack, LIFETIME_UNKNOWN) };
	char *memory = export_memory(at.kind, at.device);
	int e = memory ? stacks_list_shown(sel->stacks, stack, selection_flags(sel->options), list) : error_memory();
	const char *label = export_label(x, at.kind, pair, a->bytes, sum, 0);
	const struct frame *only = label ? export_label_frame(x, label) : NULL;
	if (e == 0)
		e = add_sample(
			x->state,
			&(struct export_stack){ .at = &at,
						.memory = memory,
						.process = process,
						.owner = &owner,
						.frames = only ? &only : list->frames,
						.count = only ? 1 : list->count },
			(const int64_t[VALUES]){
				[ALLOCATED_BYTES] = (int64_t)a->bytes, [ALLOCATED_BLOCKS] = (int64_t)a->blocks });
	free(memory);
	return e;
}

static int add_gone(struct export *x)
{
	const struct selection *sel = x->selection;
	const struct profile *p = x->state;
	struct frame_list list = { 0 };
	uint64_t sum = 0;
	int e = 0;
	for (uint32_t n = 1; n <= p->allocated.count; n++) {
		const struct allocated *a = set_record(&p->allocated, n);
		if (!is_wanted(x, a))
			continue;
		sum += a->bytes;
		stacks_prepare(sel->stacks, reader_process(sel->reader, a->process), a->node);
		stacks_prepare(sel->stacks, reader_process(sel->reader, a->process), a->node2);
	}
	stacks_look_ahead(sel->stacks, NULL);
	for (uint32_t n = 1; n <= p->allocated.count && e == 0; n++)
		if (is_wanted(x, set_record(&p->allocated, n)))
			e = add_gone_stack(x, set_record(&p->allocated, n), sum, &list);
	free(list.frames);
	return e;
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
	struct profile *profile;
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
	struct profile *p = w->profile;
	for (int i = p->live_only ? LIVE_BLOCKS : 0; i < VALUES; i++) {
		protobuf_uint(&w->inner, 1, string_id(string_of(p, value_names[i])));
		protobuf_uint(&w->inner, 2, string_id(string_of(p, value_units[i])));
		add(w, PROFILE_SAMPLE_TYPE);
	}
	protobuf_uint(&w->message, PROFILE_DEFAULT_TYPE, string_id(string_of(p, value_names[LIVE_BYTES])));
}

/* The mean bytes between sampled stacks, the largest where processes differ; 1 where all stacks were taken. */
static uint64_t period_of(const struct reader *r)
{
	uint64_t period = 1;
	for (unsigned id = 0; id < reader_processes(r); id++)
		if (reader_process(r, id)->stacks == MT_STACKS_SAMPLE && reader_process(r, id)->sample_bytes > period)
			period = reader_process(r, id)->sample_bytes;
	return period;
}

static void write_period(struct writing *w)
{
	protobuf_uint(&w->inner, 1, string_id(string_of(w->profile, "space")));
	protobuf_uint(&w->inner, 2, string_id(string_of(w->profile, "bytes")));
	add(w, PROFILE_PERIOD_TYPE);
	protobuf_uint(&w->message, PROFILE_PERIOD, period_of(w->profile->selection->reader));
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
	const struct profile *p = w->profile;
	const struct labels *l = set_record(&p->labels, s->labels);
	const struct node *at;
	size_t count = 0;
	for (uint32_t n = s->node; n; n = at->outer) {
		at = set_record(&p->nodes, n);
		if (vec_reserve_raw(w->ids, w->id_room, count + 1))
			return -MT_EMEMORY;
		w->ids[count++] = at->location;
	}
	protobuf_packed(&w->inner, SAMPLE_LOCATION, w->ids, count);
	int first = p->live_only ? LIVE_BLOCKS : 0;
	uint64_t values[VALUES];
	for (int i = first; i < VALUES; i++)
		values[i] = (uint64_t)s->values[i];
	protobuf_packed(&w->inner, SAMPLE_VALUE, values + first, (size_t)(VALUES - first));
	write_label(w, "kind", l->kind, 0);
	write_label(w, "device", l->device, 0);
	write_label(w, "process", l->process, 0);
	write_label(w, "pid", 0, l->pid);
	write_label(w, "category", l->category, 0);
	if (l->rank) /* a text, for as a number pprof takes 0 for none */
		write_label(w, "rank", l->rank, 0);
	add(w, PROFILE_SAMPLE);
	return 0;
}

static void write_build_id(struct writing *w, const char *path)
{
	const struct symbols *all = stacks_symbols(w->profile->selection->stacks);
	char text[2 * 64 + 1] = "";
	for (struct symbol_module *m = symbols_next(all, NULL); m; m = symbols_next(all, m)) {
		struct module_id id = symbols_id(m);
		if (symbols_path(m) != path || id.build_id_bytes > 64)
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
	struct profile *p = w->profile;
	for (uint32_t n = 1; n <= p->mappings.count; n++) {
		const struct mapping *m = set_record(&p->mappings, n);
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
	const struct profile *p = w->profile;
	for (uint32_t n = 1; n <= p->locations.count; n++) {
		const struct location *l = set_record(&p->locations, n);
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
	const struct profile *p = w->profile;
	for (uint32_t n = 1; n <= p->functions.count; n++) {
		const struct function *f = set_record(&p->functions, n);
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
	struct profile *p = w->profile;
	protobuf_int(&w->message, PROFILE_TIME, (int64_t)(reader_origin_real_ns(p->selection->reader) + p->ns));
	protobuf_int(&w->message, PROFILE_DURATION, (int64_t)reader_duration_ns(p->selection->reader));
	write_comment(w,
		      "memtrace: kinds of memory overlap (a pool lies in device memory) and may each be at their own "
		      "peak: look at one, as -tagfocus=kind=heap does");
	if (!reader_complete(p->selection->reader))
		write_comment(w, "memtrace: the trace is incomplete");
	if (stacks_are_sampled(p->selection))
		write_comment(w, "memtrace: stacks were sampled or not kept: bytes may be estimates");
	for (uint32_t n = 1; n <= p->strings.count; n++) {
		protobuf_text(&w->message, PROFILE_STRING, ((struct string *)set_record(&p->strings, n))->text);
		flush(w, false);
	}
}

static int write_profile(struct profile *p)
{
	struct writing w = { .profile = p };
	int e = gzip_open(&w.gzip);
	if (e < 0)
		return e;
	write_types(&w);
	write_period(&w);
	for (uint32_t n = 1; e == 0 && n <= p->samples.count; n++)
		e = write_sample(&w, set_record(&p->samples, n));
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

static void profile_fini(struct profile *p)
{
	for (uint32_t n = 1; n <= p->strings.count; n++)
		free(((struct string *)set_record(&p->strings, n))->text);
	set_fini(&p->strings);
	set_fini(&p->functions);
	set_fini(&p->mappings);
	set_fini(&p->locations);
	set_fini(&p->known);
	set_fini(&p->nodes);
	set_fini(&p->labels);
	set_fini(&p->samples);
	set_fini(&p->allocated);
	free(p->lines);
	free(p);
}

static int close_profile(struct export *x)
{
	struct profile *p = x->state;
	int e = 0;
	if (!p)
		return 0;
	if (!x->failed)
		e = add_gone(x);
	if (!x->failed && e == 0)
		e = write_profile(p);
	profile_fini(p);
	return e;
}

const struct export_ops export_pprof = { .name = "pprof",
					 .binary = true,
					 .by_process = true,
					 .one_kind = true,
					 .ask = ask,
					 .stack = add_stack,
					 .close = close_profile };
