/*
 * Python's frames are code objects with a table of lines of our own: each line that is asked for is an instruction of
 * two bytes. Frames of other languages are addresses in modules that stand for the libraries, and the file `symbols`
 * has their names. Where a stack has both, each run of Python's frames has an evaluator's frame in the native stack, so
 * that they are shown in the order in which they were.
 */
#include "analyzer/import/import_trace.h"

#include "analyzer/symbols/symbol_file.h"
#include "analyzer/util/error.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"
#include "format/codec.h"
#include "format/fnv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#define START_TICKS   1000000000ull /* nanoseconds */
#define BLOCK_SLOTS   262144u
#define MODULE_BYTES  (1ull << 32)
#define EVALUATOR     "_PyEval_EvalFrameDefault"
#define LINES_VERSION 0x0308 /* of CPython: pairs of so many bytes and so many lines further */

struct text {
	UT_hash_handle hh;
	uint32_t number; /* of what it names, from 1 on */
	char bytes[];
};

struct code {
	const char *file, *function;
	uint32_t count, line; /* lines so far, the last of them */
	uint32_t version, first_line;
	unsigned char *table;
	size_t bytes, room;
};

struct known_frame {
	uint64_t pc; /* of a node */
	bool python;
};

struct import_trace {
	char *dir;
	const struct import_source *source;
	int fd; /* of the .trace */
	uint64_t end;
	int error;
	struct codec *codec;
	struct codec_buf out;
	struct mt_event *slots;
	uint32_t *rings; /* zeros */
	uint32_t slot_count;
	uint64_t position, last_ns;
	struct text *frame_texts, *code_texts, *module_texts, *hook_texts, *device_texts;
	struct known_frame *frames; /* from 1 on */
	size_t frame_count, frame_room;
	struct code *codes; /* from 1 on */
	size_t code_count, code_room;
	uint32_t *places; /* by module, from 1 on: addresses so far */
	size_t module_count, module_room;
	struct mt_node *nodes; /* by id */
	size_t node_count, node_room;
	struct hash_index node_index;     /* numbers are ids */
	struct import_library *libraries; /* that are mapped; paths are ours */
	size_t library_count, library_room;
	struct symbols *symbols;
	uint32_t evaluator; /* its frame; 0 = not needed yet */
	unsigned char *log;
	size_t log_bytes, log_room;
};

static bool fail(struct import_trace *t, int e)
{
	if (e && !t->error)
		t->error = e;
	return t->error != 0;
}

/* ---- the log --------------------------------------------------------------------------------------------- */

struct piece {
	const void *bytes;
	size_t count;
};

static struct piece text_piece(const char *text)
{
	return (struct piece){ text, strlen(text) + 1 };
}

static void record(struct import_trace *t, enum mt_record_type type, const struct piece *pieces, size_t count)
{
	struct mt_record head = { .type = (uint16_t)type, .ticks = START_TICKS };
	size_t bytes = sizeof(head);
	for (size_t i = 0; i < count; i++)
		bytes += pieces[i].count;
	bytes = (bytes + 7) & ~(size_t)7;
	if (t->log_bytes + bytes > CODEC_MAX_INFO - sizeof(struct mt_info))
		fail(t, error_set(MT_ELARGE, t->source->path, ERROR_NO_OFFSET, "has too many different frames"));
	if (fail(t, 0) || fail(t, vec_reserve(t->log, t->log_room, t->log_bytes + bytes)))
		return;
	head.bytes = (uint32_t)bytes;
	unsigned char *at = t->log + t->log_bytes;
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	for (size_t i = 0; i < count; i++) {
		memcpy(at, pieces[i].bytes, pieces[i].count);
		at += pieces[i].count;
	}
	t->log_bytes += bytes;
}

/* The number of a text in a table, which is made if it is new: *made. */
static struct text *number_of(struct import_trace *t, struct text **table, const char *bytes, size_t count, bool *made)
{
	struct text *x;
	HASH_FIND(hh, *table, bytes, count, x);
	*made = !x;
	if (x)
		return x;
	x = malloc(sizeof(*x) + count + 1);
	if (!x) {
		fail(t, error_memory());
		return NULL;
	}
	memcpy(x->bytes, bytes, count);
	x->bytes[count] = '\0';
	x->number = HASH_COUNT(*table) + 1;
	HASH_ADD_KEYPTR(hh, *table, x->bytes, count, x);
	return x;
}

static void free_texts(struct text **table)
{
	struct text *x, *next;
	HASH_ITER(hh, *table, x, next)
	{
		HASH_DEL(*table, x);
		free(x);
	}
}

uint32_t import_hook(struct import_trace *t, const char *name)
{
	bool made;
	struct text *x = number_of(t, &t->hook_texts, name, strlen(name), &made);
	if (!x)
		return 0;
	const struct mt_rec_hook hook = { .id = x->number };
	if (made)
		record(t, MT_REC_HOOK, (struct piece[]){ { &hook, sizeof(hook) }, text_piece(name) }, 2);
	return x->number;
}

uint32_t import_device(struct import_trace *t, enum mt_backend backend, uint32_t ordinal)
{
	char *name = output_format("unknown %u", ordinal);
	bool made = false;
	struct text *x = name ? number_of(t, &t->device_texts, name, strlen(name), &made) : NULL;
	if (!x) {
		fail(t, error_memory());
		return 0;
	}
	const struct mt_rec_device device = { .id = x->number, .backend = backend, .ordinal = ordinal };
	if (made)
		record(t, MT_REC_DEVICE,
		       (struct piece[]){ { &device, sizeof(device) }, text_piece(name), text_piece("") }, 3);
	free(name);
	return x->number;
}

/* ---- frames ---------------------------------------------------------------------------------------------- */

static void put_line(struct import_trace *t, struct code *c, unsigned char bytes, int lines)
{
	if (fail(t, vec_reserve_raw(c->table, c->room, c->bytes + 2)))
		return;
	c->table[c->bytes++] = bytes;
	c->table[c->bytes++] = (unsigned char)(signed char)lines;
}

/* The place of another line in the function's code. */
static uint64_t add_line(struct import_trace *t, struct code *c, uint32_t line)
{
	int64_t further = (int64_t)line - (int64_t)c->line;
	unsigned char bytes = 2;
	do {
		int part = further > 127 ? 127 : further < -127 ? -127 : (int)further;
		put_line(t, c, bytes, part);
		further -= part;
		bytes = 0;
	} while (further);
	c->line = line;
	return 2ull * ++c->count;
}

static uint64_t python_place(struct import_trace *t, const char *file, const char *function, uint32_t line)
{
	char *key = output_format("%s\n%s", file, function);
	bool made = false;
	struct text *x = key ? number_of(t, &t->code_texts, key, strlen(key), &made) : NULL;
	free(key);
	if (!x || fail(t, vec_reserve(t->codes, t->code_room, x->number + 1u)) || x->number > MT_PY_MAX_CODE) {
		fail(t, error_memory());
		return 0;
	}
	struct code *c = &t->codes[x->number];
	if (made) {
		c->version = LINES_VERSION;
		c->file = strdup(file);
		c->function = strdup(function);
		t->code_count = x->number;
		if (!c->file || !c->function)
			fail(t, error_memory());
	}
	if (line > 1u << 20) /* no such line, and its table would be long */
		line = 0;
	return MT_PY_FRAME | (uint64_t)x->number << 32 | add_line(t, c, line);
}

static uint64_t native_place(struct import_trace *t, const char *library, const char *function, const char *file,
			     uint32_t line)
{
	bool made;
	struct text *x = number_of(t, &t->module_texts, library, strlen(library), &made);
	if (!x || fail(t, vec_reserve(t->places, t->module_room, x->number + 1u)))
		return 0;
	uint64_t start = x->number * MODULE_BYTES;
	const struct mt_rec_module module = { .bias = start, .start = start, .end = start + MODULE_BYTES };
	if (made)
		record(t, MT_REC_MODULE, (struct piece[]){ { &module, sizeof(module) }, text_piece(library) }, 2);
	uint64_t address = 16ull * ++t->places[x->number];
	struct symbol_module *m = symbols_module(t->symbols, &(struct module_id){ .path = library });
	const struct frame frame = { .function = function, .file = file, .line = line };
	if (!m)
		fail(t, error_memory());
	else /* also without a name: at this address of the library itself there is something else */
		fail(t, symbols_add_known(t->symbols, m, address, &frame, 1));
	return start + address + 1; /* a return address */
}

static const char *known(const char *text, const char *else_)
{
	return text && *text ? text : else_;
}

uint32_t import_frame(struct import_trace *t, const struct import_frame *f)
{
	const char *file = known(f->file, "?"), *function = known(f->function, "?");
	const char *library = known(f->library, "?");
	char *key = output_format("%s\n%s\n%s\n%u%c", file, function, library, f->line, f->python ? 'p' : 'n');
	bool made = false;
	struct text *x = key ? number_of(t, &t->frame_texts, key, strlen(key), &made) : NULL;
	free(key);
	if (!x || fail(t, vec_reserve(t->frames, t->frame_room, x->number + 1u))) {
		fail(t, error_memory());
		return 0;
	}
	struct known_frame *k = &t->frames[x->number];
	if (made) {
		k->python = f->python;
		k->pc = f->python ? python_place(t, file, function, f->line)
				  : native_place(t, library, f->function, f->file, f->line);
		t->frame_count = x->number;
	}
	return x->number;
}

/* ---- stacks ---------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct mt_node *n)
{
	return mt_fnv_stir(mt_fnv(MT_FNV_START, n, sizeof(*n)));
}

static uint64_t node_hash(const void *nodes, uint32_t id)
{
	return hash_of(&((const struct mt_node *)nodes)[id]);
}

static uint32_t node_of(struct import_trace *t, uint32_t parent, uint64_t pc, uint32_t flags)
{
	const struct mt_node n = { pc, parent, flags };
	uint64_t hash = hash_of(&n);
	size_t made = t->node_count - 1;
	if (hash_index_is_full(&t->node_index, made) &&
	    fail(t, hash_index_grow(&t->node_index, t->nodes, made, node_hash)))
		return 0;
	size_t at = hash_index_home(&t->node_index, hash);
	for (uint32_t id; (id = hash_index_candidate(&t->node_index, hash, &at)) != 0;
	     at = hash_index_after(&t->node_index, at))
		if (!memcmp(&t->nodes[id], &n, sizeof(n)))
			return id;
	if (t->node_count + 1 >= MT_MAX_NODES)
		fail(t, error_set(MT_ELARGE, t->source->path, ERROR_NO_OFFSET, "has more than 16 million stacks"));
	if (fail(t, vec_reserve_raw(t->nodes, t->node_room, t->node_count + 1)))
		return 0;
	t->nodes[t->node_count] = n;
	hash_index_set(&t->node_index, at, t->node_count, hash);
	return (uint32_t)t->node_count++;
}

/* Making it may move the list of frames. */
static uint64_t evaluator_pc(struct import_trace *t)
{
	if (!t->evaluator)
		t->evaluator = import_frame(t, &(struct import_frame){ .function = EVALUATOR, .library = "python" });
	return t->evaluator ? t->frames[t->evaluator].pc : 0;
}

struct import_stack import_stack(struct import_trace *t, const uint32_t *frames, size_t count)
{
	struct import_stack s = { 0, 0 };
	bool native = false, inside = false; /* a run of Python's frames */
	for (size_t i = 0; i < count; i++)
		native = native || (frames[i] && !t->frames[frames[i]].python);
	for (size_t i = count; i-- > 0 && !t->error;) {
		const struct known_frame f = t->frames[frames[i]];
		if (!frames[i])
			continue;
		if (f.python && !inside && native)
			s.node = node_of(t, s.node, evaluator_pc(t), 0);
		if (f.python)
			s.node2 = node_of(t, s.node2, f.pc | (native && !inside ? MT_PY_ENTRY : 0), MT_NODE_PYTHON);
		else
			s.node = node_of(t, s.node, f.pc, 0);
		inside = f.python;
	}
	return s;
}

uint32_t import_code(struct import_trace *t, const struct import_code *code)
{
	const size_t number = t->code_count + 1;
	if (number > MT_PY_MAX_CODE)
		fail(t, error_set(MT_ELARGE, t->source->path, ERROR_NO_OFFSET, "has too many functions"));
	if (fail(t, 0) || fail(t, vec_reserve(t->codes, t->code_room, number + 1)))
		return 0;
	struct code *c = &t->codes[number];
	*c = (struct code){ .file = strdup(code->file),
			    .function = strdup(code->function),
			    .version = code->version,
			    .first_line = code->first_line,
			    .table = malloc(code->bytes + 1),
			    .bytes = code->bytes };
	t->code_count = number;
	if (!c->file || !c->function || !c->table)
		return fail(t, error_memory()), 0;
	memcpy(c->table, code->table, code->bytes);
	return (uint32_t)number;
}

uint32_t import_python_node(struct import_trace *t, uint32_t parent, uint32_t code, uint32_t offset, bool entry)
{
	const uint64_t pc = MT_PY_FRAME | (uint64_t)code << 32 | MT_PY_OFFSET(offset) | (entry ? MT_PY_ENTRY : 0);
	return t->error ? 0 : node_of(t, parent, pc, MT_NODE_PYTHON);
}

uint32_t import_native_node(struct import_trace *t, uint32_t parent, uint64_t return_address)
{
	return t->error ? 0 : node_of(t, parent, return_address & ~MT_PY_FRAME, 0);
}

static bool is_there(const struct import_library *a, const struct import_library *b)
{
	return a->bias == b->bias && a->start == b->start && a->end == b->end && !strcmp(a->path, b->path);
}

/* What was where it lies is no longer there. */
static void unload(struct import_trace *t, const struct import_library *by)
{
	size_t left = 0;
	for (size_t i = 0; i < t->library_count; i++) {
		const struct import_library l = t->libraries[i];
		const struct mt_rec_unmodule gone = { .start = l.start, .node_until = (uint32_t)t->node_count };
		if (l.start >= by->end || l.end <= by->start) {
			t->libraries[left++] = l;
			continue;
		}
		record(t, MT_REC_UNMODULE, (struct piece[]){ { &gone, sizeof(gone) } }, 1);
		free((char *)l.path);
	}
	t->library_count = left;
}

void import_library(struct import_trace *t, const struct import_library *l)
{
	for (size_t i = 0; i < t->library_count; i++)
		if (is_there(&t->libraries[i], l))
			return;
	unload(t, l);
	char *path = strdup(l->path);
	if (!path || vec_reserve_raw(t->libraries, t->library_room, t->library_count + 1)) {
		free(path);
		fail(t, error_memory());
		return;
	}
	t->libraries[t->library_count++] = (struct import_library){ path, l->bias, l->start, l->end };
	const struct mt_rec_module module = {
		.bias = l->bias, .start = l->start, .end = l->end, .node_from = (uint32_t)t->node_count
	};
	record(t, MT_REC_MODULE, (struct piece[]){ { &module, sizeof(module) }, text_piece(path) }, 2);
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

static void write_bytes(struct import_trace *t, const void *bytes, size_t count)
{
	const char *at = bytes;
	while (count && !t->error) {
		ssize_t n = write(t->fd, at, count);
		if (n < 0 && errno != EINTR)
			fail(t, error_errno(MT_EOUTPUT, t->dir, (int64_t)t->end));
		if (n > 0) {
			at += n;
			count -= (size_t)n;
			t->end += (uint64_t)n;
		}
	}
}

static void write_block(struct import_trace *t, int encoded)
{
	if (encoded)
		fail(t, error_set(MT_EMEMORY, t->dir, ERROR_NO_OFFSET, "%s", codec_strerror(encoded)));
	if (!t->error)
		write_bytes(t, t->out.data, t->out.size);
}

static void write_events(struct import_trace *t)
{
	const struct mt_cover cover = { .from = t->position, .to = t->position + t->slot_count };
	if (t->slot_count && !t->error)
		write_block(t, codec_encode_events(t->codec, t->slots, t->rings, t->slot_count, &cover, 1, 0, &t->out));
	t->position = cover.to;
	t->slot_count = 0;
}

void import_event(struct import_trace *t, uint64_t ns, struct mt_event slot, const void *ext)
{
	if (t->slot_count + 2 > BLOCK_SLOTS)
		write_events(t);
	t->last_ns = ns > t->last_ns ? ns : t->last_ns;
	slot.ticks = START_TICKS + t->last_ns;
	t->slots[t->slot_count++] = slot;
	if (ext)
		memcpy(&t->slots[t->slot_count++], ext, sizeof(slot));
}

static void write_codes(struct import_trace *t)
{
	for (size_t i = 1; i <= t->code_count && !t->error; i++) {
		const struct code *c = &t->codes[i];
		const struct mt_rec_code code = { (uint32_t)i, c->version, c->first_line, (uint32_t)c->bytes };
		record(t, MT_REC_CODE,
		       (struct piece[]){ { &code, sizeof(code) },
					 { c->table, c->bytes },
					 text_piece(c->file),
					 text_piece(c->function) },
		       4);
	}
}

static void write_info(struct import_trace *t)
{
	const uint64_t end = START_TICKS + t->last_ns;
	const struct mt_info info = {
		.magic = MT_INFO_MAGIC,
		.version = MT_VERSION,
		.bytes = sizeof(info),
		.pid = t->source->pid ? t->source->pid : 1,
		.parent_image = MT_NO_PARENT,
		.origin = MT_ORIGIN_EXEC,
		.clock = MT_CLOCK_MONOTONIC,
		.start_ticks = START_TICKS,
		.start_mono_ns = START_TICKS,
		.start_real_ns = t->source->start_real_ns,
		.depth = UINT16_MAX,
		.end_ticks = end,
		.pair_ticks = end,
		.pair_mono_ns = end,
		.log_bytes = t->log_bytes,
		.node_end = (uint32_t)t->node_count,
		.rings = 1,
		.threads = 1,
	};
	write_block(t, codec_encode_info(t->codec, &info, t->log, t->log_bytes, &t->out));
}

static void write_session(struct import_trace *t)
{
	struct mt_session head = {
		.magic = MT_SESSION_MAGIC,
		.version = MT_VERSION,
		.bytes = sizeof(head),
		.start_ticks = START_TICKS,
		.start_mono_ns = START_TICKS,
		.start_real_ns = t->source->start_real_ns,
		.clock = MT_CLOCK_MONOTONIC,
		.page_bytes = 4096,
		.flags = MT_SESSION_NO_RECORDER,
		.boot_id = "00000000-0000-0000-0000-000000000000",
		.host = "unknown",
	};
	char *path = output_format("%s/session", t->dir), page[MT_SESSION_PAGE] = { 0 };
	FILE *file = path ? fopen(path, "wb") : NULL;
	memcpy(page, &head, sizeof(head));
	bool written = file && fwrite(page, 1, sizeof(page), file) == sizeof(page);
	if ((file && fclose(file)) || !written)
		fail(t, error_errno(MT_EOUTPUT, path ? path : t->dir, ERROR_NO_OFFSET));
	free(path);
}

/* ---- from the beginning to the end ----------------------------------------------------------------------- */

static void write_facts(struct import_trace *t)
{
	const struct import_source *s = t->source;
	const struct mt_rec_thread thread = { 0, s->pid ? s->pid : 1 };
	const struct mt_rec_import has = { .has = s->has };
	const char *program = known(s->program, s->path);
	record(t, MT_REC_PROGRAM, (struct piece[]){ text_piece(program), text_piece(program) }, 2);
	record(t, MT_REC_IMPORT,
	       (struct piece[]){
		       { &has, sizeof(has) }, text_piece(s->what), text_piece(s->path), text_piece(s->lacks) },
	       4);
	record(t, MT_REC_THREAD, (struct piece[]){ { &thread, sizeof(thread) }, text_piece("") }, 2);
	if (s->settings && *s->settings)
		record(t, MT_REC_ENV, (struct piece[]){ text_piece(s->settings) }, 1);
}

static char *trace_path(const struct import_trace *t)
{
	return output_format("%s/%u-0.trace", t->dir, t->source->pid ? t->source->pid : 1);
}

static int begin(struct import_trace *t)
{
	t->codec = codec_new();
	t->symbols = symbols_new();
	t->slots = malloc(BLOCK_SLOTS * sizeof(*t->slots));
	t->rings = calloc(BLOCK_SLOTS, sizeof(*t->rings));
	char *path = trace_path(t);
	if (!t->codec || !t->symbols || !t->slots || !t->rings || !path || vec_reserve(t->nodes, t->node_room, 1))
		return free(path), error_memory();
	t->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (t->fd < 0)
		fail(t, error_errno(MT_EOUTPUT, path, ERROR_NO_OFFSET));
	free(path);
	const struct mt_trace_header header = { .magic = MT_TRACE_MAGIC,
						.version = MT_VERSION,
						.bytes = sizeof(header),
						.pid = t->source->pid ? t->source->pid : 1 };
	t->node_count = 1;
	write_bytes(t, &header, sizeof(header));
	return t->error;
}

int import_trace_open(struct import_trace **out, const char *dir, const struct import_source *source)
{
	struct import_trace *t = calloc(1, sizeof(*t));
	*out = NULL;
	if (!t || !(t->dir = strdup(dir)))
		return free(t), error_memory();
	t->fd = -1;
	t->source = source;
	if (mkdir(dir, 0700)) {
		int e = errno == EEXIST ? error_set(MT_EUSAGE, dir, ERROR_NO_OFFSET, "is there already")
					: error_errno(MT_EOUTPUT, dir, ERROR_NO_OFFSET);
		free(t->dir);
		free(t);
		return e;
	}
	int e = begin(t);
	if (e)
		return import_trace_close(t, false), e;
	*out = t;
	return 0;
}

static void finish(struct import_trace *t)
{
	write_events(t);
	write_facts(t);
	write_codes(t);
	if (t->node_count > 1 && !t->error)
		write_block(t, codec_encode_nodes(t->codec, t->nodes, (uint32_t)t->node_count, 0, &t->out));
	if (!t->error)
		write_info(t);
	if (!t->error)
		write_block(t, codec_encode_end(&t->out));
	if (!t->error && t->module_texts)
		fail(t, symbol_file_write(t->symbols, t->dir));
	if (!t->error)
		write_session(t);
}

static void take_away(struct import_trace *t)
{
	char *paths[] = { trace_path(t), output_format("%s/symbols", t->dir), output_format("%s/session", t->dir) };
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (paths[i])
			unlink(paths[i]);
		free(paths[i]);
	}
	rmdir(t->dir);
}

int import_trace_close(struct import_trace *t, bool whole)
{
	if (!t)
		return 0;
	if (whole && !t->error)
		finish(t);
	if (t->fd >= 0 && close(t->fd))
		fail(t, error_errno(MT_EOUTPUT, t->dir, ERROR_NO_OFFSET));
	int e = t->error;
	if (e || !whole)
		take_away(t);
	for (size_t i = 1; i <= t->code_count; i++) {
		free((char *)t->codes[i].file);
		free((char *)t->codes[i].function);
		free(t->codes[i].table);
	}
	while (t->library_count)
		free((char *)t->libraries[--t->library_count].path);
	free(t->libraries);
	free_texts(&t->frame_texts);
	free_texts(&t->code_texts);
	free_texts(&t->module_texts);
	free_texts(&t->hook_texts);
	free_texts(&t->device_texts);
	hash_index_fini(&t->node_index);
	symbols_free(t->symbols);
	codec_free(t->codec);
	codec_buf_fini(&t->out);
	free(t->frames);
	free(t->codes);
	free(t->places);
	free(t->nodes);
	free(t->slots);
	free(t->rings);
	free(t->log);
	free(t->dir);
	free(t);
	return e;
}
