/*
 * heaptrack's files (heaptrack.NAME.PID.zst or .gz), as its interpreter writes them, versions 1 to 3: a line of text
 * for each thing, all numbers in hexadecimal.
 *
 *   v HEAPTRACK FILE                         versions
 *   X COMMAND                                what was run
 *   s [LENGTH] TEXT                          a string; numbered from 1 on, as are
 *   i ADDRESS MODULE [FUNCTION [FILE LINE]]...   a place, innermost inlined function first
 *   t PLACE PARENT                           a stack: 0 = there is no parent
 *   a SIZE STACK                             an allocation of that size there; numbered from 0 on
 *   + ALLOCATION, - ALLOCATION               one more, one less of them
 *   c MILLISECONDS                           how late it is
 *
 * Addresses of blocks are not in it. Blocks of one number are alike, so each gets one that another of them had, or a
 * new one.
 */
#include "analyzer/import/import.h"
#include "analyzer/import/import_trace.h"
#include "analyzer/import/input.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WHAT  "a recording of heaptrack's"
#define LACKS "mappings, devices, addresses and threads of blocks, and how it ended"

#define MOST_LINE   (1u << 20)
#define MOST_FRAMES 1024
#define FIRST_ADDR  (1ull << 32)
#define ADDR_END    (1ull << 46)

struct place {
	size_t first; /* in `frames` */
	uint32_t count;
};
struct stack {
	uint32_t place, parent;
};
struct allocation {
	uint64_t size;
	struct import_stack stack;
	uint64_t *blocks; /* addresses: of those that are alive, then of others that can be used again */
	uint32_t live, count;
	size_t room;
};

struct heaptrack {
	struct input in;
	struct imported *out;
	struct import_trace *trace;
	struct import_source source;
	uint64_t version;
	char *line;
	size_t length, line_room;
	char **strings; /* from 0 on, number 1 is the first; as are the next two */
	size_t string_count, string_room;
	struct place *places;
	size_t place_count, place_room;
	struct stack *stacks;
	size_t stack_count, stack_room;
	uint32_t *frames;
	size_t frame_count, frame_room;
	struct allocation *allocations;
	size_t allocation_count, allocation_room;
	uint64_t addr, ns;
	uint32_t alloc_hook, free_hook;
	char *command;
};

/* ---- lines ------------------------------------------------------------------------------------------------ */

/* 1, or 0 at the end of the file. `line` ends with 0, which is not in `length`. */
static int read_line(struct heaptrack *h)
{
	h->length = 0;
	for (;;) {
		if (h->in.at == h->in.count) {
			int e = input_fill(&h->in);
			if (e < 0 || (!e && !h->length))
				return e;
			if (!e)
				return input_bad(&h->in, "ends within a line");
		}
		const unsigned char *from = h->in.bytes + h->in.at;
		const size_t there = h->in.count - h->in.at;
		const unsigned char *end = memchr(from, '\n', there);
		const size_t part = end ? (size_t)(end - from) : there;
		if (h->length + part > MOST_LINE)
			return input_bad(&h->in, "has a line of more than 1 MiB");
		if (vec_reserve_raw(h->line, h->line_room, h->length + part + 1))
			return error_memory();
		memcpy(h->line + h->length, from, part);
		h->length += part;
		h->line[h->length] = '\0';
		h->in.at += part + (end != NULL);
		if (end)
			return 1;
	}
}

/* The next number of the line. */
static bool take(char **at, uint64_t *number)
{
	char *end;
	while (**at == ' ')
		++*at;
	if (!isxdigit((unsigned char)**at))
		return false;
	*number = strtoull(*at, &end, 16);
	*at = end;
	return true;
}

static int bad_line(const struct heaptrack *h)
{
	return input_bad(&h->in, "has a line that is none of heaptrack's");
}

/* ---- what a line says -------------------------------------------------------------------------------------- */

static int take_version(struct heaptrack *h, char *at)
{
	uint64_t heaptrack;
	if (!take(&at, &heaptrack))
		return bad_line(h);
	if (!take(&at, &h->version))
		h->version = heaptrack == 0x10200; /* before 1.0 */
	return h->version >= 1 && h->version <= 3
		       ? 0
		       : input_bad(&h->in, "is of a version of heaptrack's files that is not known");
}

static int take_string(struct heaptrack *h, char *at)
{
	uint64_t length;
	if (h->version >= 3 && (!take(&at, &length) || *at++ != ' ' || length != h->length - (size_t)(at - h->line)))
		return input_bad(&h->in, "has a string of another length than it says");
	if (vec_reserve(h->strings, h->string_room, h->string_count + 1))
		return error_memory();
	char *copy = strdup(at);
	h->strings[h->string_count++] = copy;
	return copy ? 0 : error_memory();
}

static const char *string_of(const struct heaptrack *h, uint64_t number)
{
	return number && number <= h->string_count ? h->strings[number - 1] : NULL;
}

static int add_frame(struct heaptrack *h, struct place *place, const struct import_frame *frame)
{
	if (vec_reserve_raw(h->frames, h->frame_room, h->frame_count + 1))
		return error_memory();
	h->frames[h->frame_count++] = import_frame(h->trace, frame);
	place->count++;
	return 0;
}

static int take_place(struct heaptrack *h, char *at)
{
	uint64_t address, module, function, file, line;
	struct place place = { .first = h->frame_count };
	if (!take(&at, &address) || !take(&at, &module))
		return bad_line(h);
	const char *library = string_of(h, module);
	int e = vec_reserve_raw(h->places, h->place_room, h->place_count + 1);
	while (e == 0 && take(&at, &function)) {
		const bool placed = take(&at, &file) && take(&at, &line);
		e = add_frame(h, &place,
			      &(struct import_frame){ .function = string_of(h, function),
						      .file = placed ? string_of(h, file) : NULL,
						      .library = library,
						      .line = placed ? (uint32_t)line : 0 });
	}
	if (e == 0 && !place.count)
		e = add_frame(h, &place, &(struct import_frame){ .library = library });
	if (e == 0)
		h->places[h->place_count++] = place;
	return e;
}

static int take_stack(struct heaptrack *h, char *at)
{
	uint64_t place, parent;
	if (!take(&at, &place) || !take(&at, &parent) || !place || place > h->place_count || parent > h->stack_count)
		return bad_line(h);
	if (vec_reserve_raw(h->stacks, h->stack_room, h->stack_count + 1))
		return error_memory();
	h->stacks[h->stack_count++] = (struct stack){ (uint32_t)place, (uint32_t)parent };
	return 0;
}

static struct import_stack stack_of(struct heaptrack *h, uint64_t number)
{
	uint32_t frames[MOST_FRAMES];
	size_t count = 0;
	for (; number; number = h->stacks[number - 1].parent) {
		const struct place p = h->places[h->stacks[number - 1].place - 1];
		for (uint32_t i = 0; i < p.count && count < MOST_FRAMES; i++)
			frames[count++] = h->frames[p.first + i];
		if (count == MOST_FRAMES)
			break;
	}
	return import_stack(h->trace, frames, count);
}

static int take_allocation(struct heaptrack *h, char *at)
{
	uint64_t size, stack;
	if (!take(&at, &size) || !take(&at, &stack) || stack > h->stack_count || size > MT_MAX_SIZE)
		return bad_line(h);
	if (vec_reserve(h->allocations, h->allocation_room, h->allocation_count + 1))
		return error_memory();
	h->allocations[h->allocation_count++] = (struct allocation){ .size = size, .stack = stack_of(h, stack) };
	return 0;
}

static struct allocation *allocation_of(struct heaptrack *h, char *at)
{
	uint64_t number;
	return take(&at, &number) && number < h->allocation_count ? &h->allocations[number] : NULL;
}

static int new_address(struct heaptrack *h, struct allocation *a)
{
	const uint64_t bytes = (a->size + 31) & ~15ull;
	if (vec_reserve_raw(a->blocks, a->room, a->count + 1ul))
		return error_memory();
	if (a->count == UINT32_MAX || h->addr + bytes > ADDR_END)
		return error_set(MT_ELARGE, h->in.path, ERROR_NO_OFFSET,
				 "has more alive at once than there are addresses");
	a->blocks[a->count++] = h->addr;
	h->addr += bytes;
	return 0;
}

static int take_more(struct heaptrack *h, char *at)
{
	struct allocation *a = allocation_of(h, at);
	int e = !a ? bad_line(h) : a->live == a->count ? new_address(h, a) : 0;
	if (e < 0)
		return e;
	import_event(h->trace, h->ns,
		     (struct mt_event){ .addr = a->blocks[a->live++],
					.size = a->size,
					.hook = h->alloc_hook,
					.kind = MT_ALLOC,
					.node = a->stack.node,
					.node2 = a->stack.node2 },
		     NULL);
	h->out->events++;
	return 0;
}

static int take_less(struct heaptrack *h, char *at)
{
	struct allocation *a = allocation_of(h, at);
	if (!a)
		return bad_line(h);
	h->out->events++;
	h->out->odd += !a->live;
	if (a->live)
		import_event(h->trace, h->ns,
			     (struct mt_event){ .addr = a->blocks[--a->live], .hook = h->free_hook, .kind = MT_FREE },
			     NULL);
	return 0;
}

static int take_time(struct heaptrack *h, char *at)
{
	uint64_t ms;
	if (!take(&at, &ms) || ms > UINT64_MAX / 10000000)
		return bad_line(h);
	h->ns = ms * 1000000;
	return 0;
}

static int take_command(struct heaptrack *h, const char *at)
{
	if (h->command)
		return bad_line(h);
	h->command = strndup(at, strcspn(at, " "));
	h->source.program = h->command;
	return h->command ? 0 : error_memory();
}

static int take_line(struct heaptrack *h)
{
	char *at = h->line + 2;
	if (!h->length || *h->line == '#')
		return 0;
	if ((h->line[1] && h->line[1] != ' ') || strlen(h->line) != h->length)
		return bad_line(h);
	if (!h->version && *h->line != 'v')
		return input_bad(&h->in, "does not begin with a version of heaptrack");
	switch (*h->line) {
	case 'v':
		return take_version(h, at);
	case 'X':
		return take_command(h, at);
	case 's':
		return take_string(h, at);
	case 'i':
		return take_place(h, at);
	case 't':
		return take_stack(h, at);
	case 'a':
		return take_allocation(h, at);
	case '+':
		return take_more(h, at);
	case '-':
		return take_less(h, at);
	case 'c':
		return take_time(h, at);
	case 'R': /* resident memory */
	case 'I': /* of the machine */
	case 'A': /* it was attached to */
	case 'S': /* suppressions */
		return 0;
	case 'm':
	case 'x':
		return input_bad(&h->in, "is raw: heaptrack --interpret makes what can be read");
	default:
		return bad_line(h);
	}
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

/* When it began nobody noted: the file was written to last when it ended. */
static void set_start(struct heaptrack *h)
{
	struct stat st;
	if (stat(h->in.path, &st) == 0 && st.st_mtime > 0) {
		const uint64_t end = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
		h->source.start_real_ns = end > h->ns ? end - h->ns : 0;
	}
}

static int read_all(struct heaptrack *h)
{
	int e = 0;
	h->alloc_hook = import_hook(h->trace, "malloc");
	h->free_hook = import_hook(h->trace, "free");
	h->addr = FIRST_ADDR;
	for (int more = 1; more > 0 && e == 0;) {
		more = read_line(h);
		e = more > 0 ? take_line(h) : more;
	}
	if (e == 0 && !h->version)
		e = input_bad(&h->in, "is empty");
	set_start(h);
	return e;
}

static void heaptrack_fini(struct heaptrack *h)
{
	while (h->string_count)
		free(h->strings[--h->string_count]);
	while (h->allocation_count)
		free(h->allocations[--h->allocation_count].blocks);
	free(h->strings);
	free(h->places);
	free(h->stacks);
	free(h->frames);
	free(h->allocations);
	free(h->line);
	free(h->command);
	input_close(&h->in);
}

int import_heaptrack(const char *path, const char *dir, struct imported *out)
{
	struct heaptrack h = {
		.out = out,
		.source = { .what = WHAT, .path = path, .lacks = LACKS, .has = MT_IMPORT_HEAP | MT_IMPORT_HISTORY }
	};
	out->what = WHAT;
	int e = input_open(&h.in, path);
	if (!e)
		e = import_trace_open(&h.trace, dir, &h.source);
	if (!e)
		e = read_all(&h);
	int closed = import_trace_close(h.trace, e == 0);
	heaptrack_fini(&h);
	return e < 0 ? e : closed;
}
