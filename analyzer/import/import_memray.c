/*
 * memray's files of the versions 12 and 13 (memray 1.19 and 1.20), little-endian. A head, then records that each begin
 * with a byte; in it are the record's type and, in some, flags:
 *
 *   1pppp aaa   an allocation or free: function aaa (0 = it follows), address p of the last 15, or 15 = it follows
 *   01      e   a Python function begins; e: so does its evaluator
 *   001ppppc    an object (memray --track-object-lifetimes), which is none of our business
 *   0001nnnn    n + 1 of them end
 *   others      functions and their tables of lines, frames of native stacks, libraries, threads, the time
 *
 * Numbers are varints, 7 bits to a byte, most of them less the one before of the same kind. In a file that was added up
 * (memray run --aggregate) are instead all Python stacks, and what each had at the peak and at the end.
 */
#include "analyzer/import/import.h"
#include "analyzer/import/import_trace.h"
#include "analyzer/import/input.h"

#include "analyzer/util/blocks.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <uthash.h>

#define WHAT "a recording of memray's"
#define LACKS \
	"what was allocated before it began, pinned memory, devices, what mappings are of, threads, and how it ended"
#define LACKS_SUMS "all but the peak and the end, sizes of single blocks, pinned memory, devices, and how it ended"

#define MOST_TEXT   (1u << 20)
#define MOST_FRAMES 100000u
#define MOST_BLOCKS (1ull << 28)
#define RECENT      15
#define PAGE        4096u
#define FIRST_ADDR  (1ull << 32)
#define ADDR_END    (1ull << 46)

enum { TRAILER = 1, TIME = 2, NATIVE_FRAME = 5, LIBRARIES = 6, LIBRARY = 7, SEGMENT = 8, THREAD = 10 };
enum { SWITCH = 12, CODE = 14, POP = 16, OBJECT = 32, PUSH = 64, ALLOCATION = 128 };
/* Of a file that was added up, where they are others. */
enum { SUM_OF_ALL = 1, SUM = 2, STACK = 3, FRAME = 4, SURVIVOR = 13, SUMS_TRAILER = 15 };

enum { FREE_OF_PYTHON = 1, FREE = 5, MMAP = 14, MUNMAP = 15, FUNCTIONS };
static const char *const functions[FUNCTIONS] = {
	"malloc",  "pymalloc_free", "pymalloc_malloc", "pymalloc_calloc", "pymalloc_realloc", "free",   "malloc",
	"realloc", "calloc",        "posix_memalign",  "aligned_alloc",   "memalign",         "valloc", "pvalloc",
	"mmap",    "munmap"
};

struct code {
	UT_hash_handle hh;
	uint64_t id;
	uint32_t number;
};

struct thread {
	UT_hash_handle hh;
	uint64_t id;
	uint32_t *nodes; /* of Python's stack */
	size_t depth, room;
};

struct frame {
	uint32_t code, offset;
	bool entry;
};

struct stack {
	uint32_t frame, parent; /* from 1 on; 0 = there is none */
};

/* What a stack had. */
struct sum {
	uint32_t node, node2;
	uint32_t function;
	uint64_t peak_count, peak_bytes, end_count, end_bytes;
	uint64_t addr; /* of the first block of the peak; the others follow */
};

struct memray {
	struct input in;
	struct imported *out;
	struct import_trace *trace;
	struct import_source source;
	uint32_t version, python;
	bool native, sums, headed;
	uint64_t start_ms, end_ms, main_thread, skipped, ns;
	uint64_t recent[RECENT], last_pointer, last_native, last_ip;
	int64_t last_line;
	char *text, *program;
	size_t text_room;
	struct code *codes;
	struct thread *threads, *thread;
	uint32_t *natives; /* nodes, from 1 on */
	size_t native_count, native_room;
	struct blocks live;
	uint32_t hooks[FUNCTIONS];
	struct frame *frames;
	size_t frame_count, frame_room;
	struct stack *stacks;
	size_t stack_count, stack_room;
	struct sum *sum;
	size_t sum_count, sum_room;
	uint64_t peak_ns, highest, blocks, addr;
};

static int bad(const struct memray *m)
{
	return input_bad(&m->in, "is none of memray's files, or damaged");
}

/* ---- numbers and texts ------------------------------------------------------------------------------------- */

static int take_varint(struct memray *m, uint64_t *number)
{
	unsigned char byte = 0x80;
	*number = 0;
	for (unsigned shift = 0; byte & 0x80; shift += 7) {
		int e = shift < 64 ? input_read(&m->in, &byte, 1) : bad(m);
		if (e)
			return e;
		*number |= (uint64_t)(byte & 0x7f) << shift;
	}
	return 0;
}

static int take_signed(struct memray *m, int64_t *number)
{
	uint64_t zigzag;
	int e = take_varint(m, &zigzag);
	*number = (int64_t)(zigzag >> 1 ^ (0 - (zigzag & 1)));
	return e;
}

/* What is more than the last one. */
static int take_delta(struct memray *m, uint64_t *last)
{
	int64_t further = 0;
	int e = take_signed(m, &further);
	*last += (uint64_t)further;
	return e;
}

/* Into `text` from `at` on; it ends with 0. */
static int take_text(struct memray *m, size_t at)
{
	for (;; at++) {
		if (at >= MOST_TEXT)
			return bad(m);
		if (vec_reserve_raw(m->text, m->text_room, at + 1))
			return error_memory();
		int e = input_read(&m->in, m->text + at, 1);
		if (e || !m->text[at])
			return e;
	}
}

/* ---- the head ---------------------------------------------------------------------------------------------- */

/* The script, of `python -m memray run ... script.py`; else what comes first. */
static char *program_of(char *command)
{
	char *rest, *first = NULL;
	for (char *word = strtok_r(command, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		const size_t n = strlen(word);
		first = first ? first : word;
		if (n > 3 && !strcmp(word + n - 3, ".py") &&
		    (n < 18 || strcmp(word + n - 18, "memray/__main__.py") != 0))
			return strdup(word);
	}
	return strdup(first ? first : "");
}

/* Where modules were looked for, since version 13: a folder, and two lists, each with an empty text at its end. */
static int pass_paths(struct memray *m)
{
	int e = take_text(m, 0);
	for (unsigned list = 0; list < 2 && e == 0; list++) {
		do
			e = take_text(m, 0);
		while (e == 0 && *m->text);
	}
	return e;
}

static int take_head(struct memray *m)
{
	unsigned char magic[7], kind[2], last[3];
	uint64_t stats[4];
	uint32_t pid;
	int e = input_read(&m->in, magic, sizeof(magic));
	if (e == 0)
		e = input_read(&m->in, &m->version, 4);
	if (e == 0 && (m->version < 12 || m->version > 13))
		return input_bad(&m->in,
				 "is of a version of memray's files that is not known: memray 1.19 and 1.20 are");
	if (e == 0)
		e = input_read(&m->in, &m->python, 4);
	if (e == 0)
		e = input_read(&m->in, kind, 2);
	if (e == 0)
		e = input_read(&m->in, stats, sizeof(stats));
	if (e == 0)
		e = take_text(m, 0);
	if (e == 0 && !(m->program = program_of(m->text)))
		e = error_memory();
	if (e == 0)
		e = input_read(&m->in, &pid, 4);
	if (e == 0)
		e = input_read(&m->in, &m->main_thread, 8);
	if (e == 0)
		e = input_read(&m->in, &m->skipped, 8);
	if (e == 0)
		e = input_read(&m->in, last, 3);
	if (e == 0 && m->version > 12)
		e = pass_paths(m);
	if (e < 0)
		return e;
	m->native = kind[0];
	m->sums = kind[1] == 1;
	m->start_ms = stats[2];
	m->end_ms = stats[3];
	if (kind[1] > 1 || m->start_ms > UINT64_MAX / 2000000 || m->end_ms > UINT64_MAX / 2000000)
		return bad(m);
	m->source.program = m->program;
	m->source.pid = pid > INT32_MAX ? 0 : pid;
	m->source.start_real_ns = m->start_ms * 1000000;
	m->source.lacks = m->sums ? LACKS_SUMS : LACKS;
	m->source.has |= m->sums ? 0 : MT_IMPORT_HISTORY;
	return 0;
}

/* ---- what both kinds have ----------------------------------------------------------------------------------- */

static int take_code(struct memray *m)
{
	uint64_t id, bytes;
	int64_t further = 0;
	int e = take_varint(m, &id);
	if (e == 0)
		e = take_text(m, 0);
	const size_t file = e == 0 ? strlen(m->text) + 1 : 0;
	if (e == 0)
		e = take_text(m, file);
	const size_t table = e == 0 ? file + strlen(m->text + file) + 1 : 0;
	if (e == 0)
		e = take_signed(m, &further);
	if (e == 0)
		e = take_varint(m, &bytes);
	if (e == 0 && bytes > MOST_TEXT)
		e = bad(m);
	if (e == 0 && vec_reserve_raw(m->text, m->text_room, table + bytes))
		e = error_memory();
	if (e == 0)
		e = input_read(&m->in, m->text + table, bytes);
	if (e < 0)
		return e;
	m->last_line = (int64_t)((uint64_t)m->last_line + (uint64_t)further);
	struct code *c;
	HASH_FIND(hh, m->codes, &id, sizeof(id), c);
	if (!c) {
		if (!(c = calloc(1, sizeof(*c))))
			return error_memory();
		c->id = id;
		HASH_ADD(hh, m->codes, id, sizeof(c->id), c);
	}
	c->number = import_code(m->trace, &(struct import_code){ .function = m->text,
								 .file = m->text + file,
								 .version = m->python >> 16,
								 .first_line = (uint32_t)m->last_line,
								 .table = (const unsigned char *)m->text + table,
								 .bytes = bytes });
	return 0;
}

/* A function and the place in it. CPython 3.10 counts instructions, not bytes. */
static int take_frame(struct memray *m, struct frame *f)
{
	uint64_t id;
	int64_t offset;
	int e = take_varint(m, &id);
	if (e == 0)
		e = take_signed(m, &offset);
	struct code *c = NULL;
	if (e == 0)
		HASH_FIND(hh, m->codes, &id, sizeof(id), c);
	if (e == 0 && !c)
		e = bad(m);
	if (e == 0)
		*f = (struct frame){ .code = c->number,
				     .offset = offset < 0 || offset > INT32_MAX / 2 ? INT32_MAX
					       : m->python >> 16 == 0x030a          ? 2 * (uint32_t)offset
										    : (uint32_t)offset };
	return e;
}

static int take_native_frame(struct memray *m)
{
	int e = take_delta(m, &m->last_ip);
	if (e == 0)
		e = take_delta(m, &m->last_native);
	if (e == 0 && m->last_native > m->native_count)
		e = bad(m);
	if (e == 0 && vec_reserve(m->natives, m->native_room, m->native_count + 2))
		e = error_memory();
	if (e == 0)
		m->natives[++m->native_count] = import_native_node(m->trace, m->natives[m->last_native], m->last_ip);
	return e;
}

static int take_segment(struct memray *m, struct import_library *l)
{
	unsigned char type;
	uint64_t at, bytes;
	int e = input_read(&m->in, &type, 1);
	if (e == 0)
		e = input_read(&m->in, &at, 8);
	if (e == 0)
		e = take_varint(m, &bytes);
	if (e == 0 && type != SEGMENT)
		e = bad(m);
	if (e == 0 && bytes && at + bytes > at && l->bias + at + bytes > l->bias) {
		l->start = l->bias + at < l->start ? l->bias + at : l->start;
		l->end = l->bias + at + bytes > l->end ? l->bias + at + bytes : l->end;
	}
	return e;
}

static int take_library(struct memray *m)
{
	struct import_library l = { .start = UINT64_MAX };
	uint64_t count;
	int e = take_text(m, 0);
	if (e == 0)
		e = take_varint(m, &count);
	if (e == 0)
		e = input_read(&m->in, &l.bias, 8);
	for (uint64_t i = 0; e == 0 && i < count; i++)
		e = take_segment(m, &l);
	l.path = m->text;
	if (e == 0 && l.start < l.end)
		import_library(m->trace, &l);
	return e;
}

static int take_switch(struct memray *m)
{
	uint64_t id;
	int e = input_read(&m->in, &id, 8);
	if (e < 0)
		return e;
	HASH_FIND(hh, m->threads, &id, sizeof(id), m->thread);
	if (m->thread)
		return 0;
	if (!(m->thread = calloc(1, sizeof(*m->thread))))
		return error_memory();
	m->thread->id = id;
	HASH_ADD(hh, m->threads, id, sizeof(id), m->thread);
	return 0;
}

static uint32_t hook_of(struct memray *m, unsigned function)
{
	if (!m->hooks[function])
		m->hooks[function] = import_hook(m->trace, functions[function]);
	return m->hooks[function];
}

static void put_map(struct memray *m, enum mt_kind kind, const struct mt_event *e)
{
	const struct mt_ext_map ext = { .prot = PROT_READ | PROT_WRITE,
					.flags = MT_MAP_ANON | MT_MAP_FIXED,
					.kind_ext = (uint32_t)MT_EXT << 26 };
	struct mt_event slot = *e;
	slot.kind = kind;
	slot.size = (slot.size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	import_event(m->trace, m->ns, slot, kind == MT_MAP ? &ext : NULL);
}

/* ---- each allocation ----------------------------------------------------------------------------------------- */

static int take_address(struct memray *m, unsigned cached, uint64_t *addr)
{
	if (cached < RECENT) {
		*addr = m->recent[cached];
		return 0;
	}
	int e = take_delta(m, &m->last_pointer);
	memmove(m->recent + 1, m->recent, sizeof(m->recent) - sizeof(*m->recent));
	*addr = m->recent[0] = m->last_pointer << 3;
	return e;
}

static void put_free(struct memray *m, unsigned function, struct block *b)
{
	import_event(m->trace, m->ns,
		     (struct mt_event){ .addr = b->addr, .hook = hook_of(m, function), .kind = MT_FREE }, NULL);
	blocks_remove(&m->live, b);
}

/* Of a block that was there before the recording nobody has heard. */
static int put_event(struct memray *m, unsigned function, struct mt_event *slot)
{
	struct block *b = blocks_find(&m->live, slot->addr);
	const bool frees = function == FREE || function == FREE_OF_PYTHON;
	slot->hook = hook_of(m, function);
	slot->kind = MT_ALLOC;
	if (function == MMAP || function == MUNMAP)
		return put_map(m, function == MMAP ? MT_MAP : MT_UNMAP, slot), 0;
	m->out->odd += b && !frees;
	if (b)
		put_free(m, frees ? function : FREE, b);
	if (frees)
		return 0;
	if (blocks_put(&m->live, &(struct block){ .addr = slot->addr }))
		return error_memory();
	import_event(m->trace, m->ns, *slot, NULL);
	return 0;
}

static int take_allocation(struct memray *m, unsigned flags)
{
	uint64_t addr, size = 0;
	unsigned char function = flags & 7;
	int e = take_address(m, flags >> 3 & 15, &addr);
	if (e == 0 && !function)
		e = input_read(&m->in, &function, 1);
	if (e == 0 && (!function || function >= FUNCTIONS || !m->thread))
		e = bad(m);
	const bool frees = function == FREE || function == FREE_OF_PYTHON;
	if (e == 0 && m->native && !frees)
		e = take_delta(m, &m->last_native);
	if (e == 0 && !frees)
		e = take_varint(m, &size);
	if (e == 0 && (size > MT_MAX_SIZE - PAGE || (m->native && !frees && m->last_native > m->native_count)))
		e = bad(m);
	if (e < 0)
		return e;
	m->out->events++;
	if (!addr)
		return m->out->odd++, 0;
	const struct thread *t = m->thread;
	struct mt_event slot = { .addr = addr, .size = size };
	if (!frees && function != MUNMAP) {
		slot.node = m->native && m->natives ? m->natives[m->last_native] : 0;
		slot.node2 = t->depth ? t->nodes[t->depth - 1] : 0;
	}
	return put_event(m, function, &slot);
}

/* Those of memray itself are the outermost of the first thread. */
static int take_push(struct memray *m, unsigned flags)
{
	struct thread *t = m->thread;
	struct frame f;
	int e = take_frame(m, &f);
	if (e == 0 && (!t || t->depth >= MOST_FRAMES))
		e = bad(m);
	if (e == 0 && vec_reserve_raw(t->nodes, t->room, t->depth + 1))
		e = error_memory();
	if (e < 0)
		return e;
	const bool left_out = t->id == m->main_thread && t->depth < m->skipped;
	const uint32_t parent = t->depth ? t->nodes[t->depth - 1] : 0;
	t->nodes[t->depth++] = left_out ? 0 : import_python_node(m->trace, parent, f.code, f.offset, flags & 1);
	return 0;
}

static int take_pop(struct memray *m, unsigned count)
{
	if (!m->thread || m->thread->depth < count)
		return bad(m);
	m->thread->depth -= count;
	return 0;
}

static int take_object(struct memray *m, unsigned flags)
{
	uint64_t addr;
	int e = take_address(m, flags >> 1 & 15, &addr);
	return e == 0 && m->native && flags & 1 ? take_delta(m, &m->last_native) : e;
}

static int take_time(struct memray *m)
{
	uint64_t resident, ms;
	int e = take_varint(m, &resident);
	if (e == 0)
		e = take_varint(m, &ms);
	if (e == 0 && ms > UINT64_MAX / 2000000)
		e = bad(m);
	m->ns = e == 0 ? ms * 1000000 : m->ns;
	return e;
}

enum { END = 1 };

static int take_record(struct memray *m, unsigned type)
{
	if (type & ALLOCATION)
		return take_allocation(m, type & 127);
	if (type & PUSH)
		return take_push(m, type & 63);
	if (type & OBJECT)
		return take_object(m, type & 31);
	if (type & POP)
		return take_pop(m, (type & 15) + 1);
	switch (type) {
	case TRAILER:
		return END;
	case TIME:
		return take_time(m);
	case NATIVE_FRAME:
		return take_native_frame(m);
	case LIBRARIES:
		return 0;
	case LIBRARY:
		return take_library(m);
	case THREAD:
		return take_text(m, 0);
	case SWITCH:
		return take_switch(m);
	case CODE:
		return take_code(m);
	default:
		return bad(m);
	}
}

/* ---- sums ---------------------------------------------------------------------------------------------------- */

/* What there was in all, at that time. */
static int take_sum_of_all(struct memray *m)
{
	uint64_t all[3];
	int e = input_read(&m->in, all, sizeof(all));
	if (e == 0 && all[2] >= m->highest && all[0] >= m->start_ms && all[0] <= m->end_ms) {
		m->highest = all[2];
		m->peak_ns = (all[0] - m->start_ms) * 1000000;
	}
	return e;
}

static int take_numbered_frame(struct memray *m)
{
	uint64_t number;
	unsigned char entry;
	struct frame f;
	int e = take_varint(m, &number);
	if (e == 0)
		e = take_frame(m, &f);
	if (e == 0)
		e = input_read(&m->in, &entry, 1);
	if (e == 0 && number != m->frame_count)
		e = bad(m);
	if (e == 0 && vec_reserve_raw(m->frames, m->frame_room, m->frame_count + 1))
		e = error_memory();
	if (e < 0)
		return e;
	f.entry = entry;
	m->frames[m->frame_count++] = f;
	return 0;
}

static int take_stack(struct memray *m)
{
	uint64_t frame, parent;
	int e = take_varint(m, &frame);
	if (e == 0)
		e = take_varint(m, &parent);
	if (e == 0 && (frame >= m->frame_count || parent > m->stack_count || m->stack_count > MT_MAX_NODES))
		e = bad(m);
	if (e == 0 && vec_reserve(m->stacks, m->stack_room, m->stack_count + 2))
		e = error_memory();
	if (e == 0)
		m->stacks[++m->stack_count] = (struct stack){ (uint32_t)frame, (uint32_t)parent };
	return e;
}

static uint32_t node_of(struct memray *m, uint32_t stack, uint64_t left_out)
{
	static uint32_t frames[MOST_FRAMES];
	size_t count = 0;
	for (; stack && count < MOST_FRAMES; stack = m->stacks[stack].parent)
		frames[count++] = m->stacks[stack].frame;
	uint32_t node = 0;
	for (size_t i = left_out < count ? count - left_out : 0; i-- > 0;) {
		const struct frame f = m->frames[frames[i]];
		node = import_python_node(m->trace, node, f.code, f.offset, f.entry);
	}
	return node;
}

static int take_sum(struct memray *m)
{
	struct {
		uint64_t thread, function, native, stack, generation, peak_count, end_count, peak_bytes, end_bytes;
	} r;
	int e = input_read(&m->in, &r, sizeof(r));
	const unsigned function = r.function & 255;
	if (e < 0)
		return e;
	m->blocks += r.peak_count + r.end_count;
	if (!function || function >= FUNCTIONS || function == FREE || function == FREE_OF_PYTHON ||
	    function == MUNMAP || r.native > m->native_count || r.stack > m->stack_count ||
	    r.peak_bytes > MT_MAX_SIZE / 2 || r.end_bytes > MT_MAX_SIZE / 2 || r.peak_count > MOST_BLOCKS ||
	    r.end_count > MOST_BLOCKS || m->blocks > MOST_BLOCKS ||
	    vec_reserve_raw(m->sum, m->sum_room, m->sum_count + 1))
		return bad(m);
	m->sum[m->sum_count++] = (struct sum){
		.node = m->natives ? m->natives[r.native] : 0,
		.node2 = node_of(m, (uint32_t)r.stack, r.thread == m->main_thread ? m->skipped : 0),
		.function = function,
		.peak_count = r.peak_count,
		.peak_bytes = r.peak_bytes,
		.end_count = r.end_count,
		.end_bytes = r.end_bytes,
	};
	return 0;
}

static int take_summed_record(struct memray *m, unsigned type)
{
	uint64_t skipped;
	int e;
	switch (type) {
	case SUMS_TRAILER:
		return END;
	case SUM_OF_ALL:
		return take_sum_of_all(m);
	case SUM:
		return take_sum(m);
	case STACK:
		return take_stack(m);
	case FRAME:
		return take_numbered_frame(m);
	case SURVIVOR:
		e = take_varint(m, &skipped);
		return e == 0 && m->native ? take_varint(m, &skipped) : e;
	case NATIVE_FRAME:
	case LIBRARIES:
	case LIBRARY:
	case THREAD:
	case SWITCH:
	case CODE:
		return take_record(m, type);
	default:
		return bad(m);
	}
}

/* Blocks of a stack, which are alike, as only their sum is known; the first has what is left of it. */
static uint64_t size_of(uint64_t count, uint64_t bytes, uint64_t i)
{
	return bytes / count + (i ? 0 : bytes % count);
}

static int put_blocks(struct memray *m, struct sum *s, uint64_t count, uint64_t bytes)
{
	const uint64_t step = count ? (size_of(count, bytes, 0) + 2ull * PAGE) & ~(uint64_t)(PAGE - 1) : 0;
	s->addr = m->addr;
	if (count && step > (ADDR_END - m->addr) / count)
		return error_set(MT_ELARGE, m->in.path, ERROR_NO_OFFSET,
				 "has more alive at once than there are addresses");
	for (uint64_t i = 0; i < count; i++, m->addr += step) {
		const struct mt_event slot = { .addr = m->addr,
					       .size = size_of(count, bytes, i),
					       .hook = hook_of(m, s->function),
					       .kind = MT_ALLOC,
					       .node = s->node,
					       .node2 = s->node2 };
		if (s->function != MMAP)
			import_event(m->trace, m->ns, slot, NULL);
		else if (slot.size)
			put_map(m, MT_MAP, &slot);
	}
	return 0;
}

static void take_back(struct memray *m, const struct sum *s)
{
	const uint64_t count = s->peak_count, size = count ? size_of(count, s->peak_bytes, 0) : 0;
	const uint64_t step = (size + 2ull * PAGE) & ~(uint64_t)(PAGE - 1);
	for (uint64_t i = 0; i < count; i++) {
		const struct mt_event slot = { .addr = s->addr + i * step,
					       .size = s->function == MMAP ? size_of(count, s->peak_bytes, i) : 0,
					       .hook = hook_of(m, s->function == MMAP ? MUNMAP : FREE),
					       .kind = MT_FREE };
		if (s->function != MMAP)
			import_event(m->trace, m->ns, slot, NULL);
		else if (slot.size)
			put_map(m, MT_UNMAP, &slot);
	}
}

static bool stays(const struct sum *s)
{
	return s->peak_count == s->end_count && s->peak_bytes == s->end_bytes;
}

/* What there was at the peak, and then what is left at the end: frees first, so that this is no new peak. */
static int put_sums(struct memray *m)
{
	int e = 0;
	m->addr = FIRST_ADDR;
	m->ns = m->peak_ns;
	for (size_t i = 0; i < m->sum_count && e == 0; i++)
		e = put_blocks(m, &m->sum[i], m->sum[i].peak_count, m->sum[i].peak_bytes);
	m->ns = m->end_ms > m->start_ms ? (m->end_ms - m->start_ms) * 1000000 : m->ns;
	for (size_t i = 0; i < m->sum_count && e == 0; i++)
		if (!stays(&m->sum[i]))
			take_back(m, &m->sum[i]);
	for (size_t i = 0; i < m->sum_count && e == 0; i++)
		if (!stays(&m->sum[i]))
			e = put_blocks(m, &m->sum[i], m->sum[i].end_count, m->sum[i].end_bytes);
	m->out->events = m->blocks;
	return e;
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

/* memray makes its file longer than what is in it: where the program was killed, zeros are behind the last record. */
static int find_end(struct memray *m)
{
	char part[4096];
	uint64_t end = 0;
	FILE *file = fopen(m->in.path, "rb");
	if (!file)
		return error_errno(MT_EIO, m->in.path, ERROR_NO_OFFSET);
	fseek(file, 0, SEEK_END);
	for (long at = ftell(file); at > 0 && !end;) {
		const size_t count = at % (long)sizeof(part) ? (size_t)(at % (long)sizeof(part)) : sizeof(part);
		size_t n = fseek(file, at -= (long)count, SEEK_SET) == 0 ? fread(part, 1, count, file) : 0;
		while (n && !part[n - 1])
			n--;
		end = n ? (uint64_t)at + n : 0;
	}
	fclose(file);
	m->in.limit = end;
	return 0;
}

/* Of what is cut off up to the last whole record counts. */
static int read_all(struct memray *m)
{
	unsigned char type;
	int e = 0;
	while (e == 0) {
		e = input_read(&m->in, &type, 1);
		if (e == 0)
			e = m->sums ? take_summed_record(m, type) : take_record(m, type);
	}
	if (e == -MT_ECUT && !m->sums && m->in.limit) {
		snprintf(m->out->remark, sizeof(m->out->remark), "is cut off: what came later is not in it");
		e = 0;
	}
	return e < 0 ? e : m->sums ? put_sums(m) : 0;
}

static void memray_fini(struct memray *m)
{
	struct code *c, *next_code;
	HASH_ITER(hh, m->codes, c, next_code)
	{
		HASH_DEL(m->codes, c);
		free(c);
	}
	struct thread *t, *next;
	HASH_ITER(hh, m->threads, t, next)
	{
		HASH_DEL(m->threads, t);
		free(t->nodes);
		free(t);
	}
	blocks_fini(&m->live);
	free(m->natives);
	free(m->frames);
	free(m->stacks);
	free(m->sum);
	free(m->text);
	free(m->program);
	input_close(&m->in);
}

int import_memray(const char *path, const char *dir, struct imported *out)
{
	struct memray m = { .out = out,
			    .source = { .what = WHAT, .path = path, .has = MT_IMPORT_HEAP | MT_IMPORT_MAPPINGS } };
	out->what = WHAT;
	int e = input_open(&m.in, path);
	if (!e && !m.in.lz4 && !m.in.gzip && !m.in.zstd)
		e = find_end(&m);
	if (!e)
		e = take_head(&m);
	if (!e)
		e = import_trace_open(&m.trace, dir, &m.source);
	if (!e)
		e = read_all(&m);
	int closed = import_trace_close(m.trace, e == 0);
	memray_fini(&m);
	return e < 0 ? e : closed;
}
