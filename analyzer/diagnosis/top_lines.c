#include "analyzer/diagnosis/top_lines.h"

#include "analyzer/util/vec.h"

#include <stdlib.h>

int top_lines_add(struct top_lines *h, uint32_t stack, uint64_t bytes)
{
	int e = vec_reserve_raw(h->list, h->room, h->count + 1);
	if (e == 0)
		h->list[h->count++] = (struct top_line){ stack, bytes, 1, bytes, bytes };
	return e;
}

/* Names are interned. */
struct line {
	const void *function, *file;
	uint64_t line;
	struct top_line sum;
};

static struct line line_of(struct stacks *s, const struct top_line *h, unsigned flags)
{
	const struct frame *f = stacks_site_frame(s, h->stack, flags);
	if (!f)
		return (struct line){ .sum = *h };
	return (struct line){ f->function, f->file ? f->file : f->library, f->function ? f->line : f->offset, *h };
}

static int by_stack(const void *a, const void *b)
{
	const struct top_line *x = a, *y = b;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static int by_line(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return by_stack(&x->sum, &y->sum);
}

static int by_bytes(const void *a, const void *b)
{
	const struct top_line *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return by_stack(a, b);
}

static void join(struct top_line *to, const struct top_line *from)
{
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	to->least = from->least < to->least ? from->least : to->least;
	to->most = from->most > to->most ? from->most : to->most;
}

/* Neighbours of one stack become one. */
static void join_stacks(struct top_lines *h)
{
	size_t n = 0;
	qsort(h->list, h->count, sizeof(*h->list), by_stack);
	for (size_t i = 1; i < h->count; i++) {
		if (h->list[i].stack == h->list[n].stack)
			join(&h->list[n], &h->list[i]);
		else
			h->list[++n] = h->list[i];
	}
	h->count = n + 1;
}

static void join_lines(struct top_lines *h, struct line *lines)
{
	size_t n = 0;
	qsort(lines, h->count, sizeof(*lines), by_line);
	h->list[0] = lines[0].sum;
	uint64_t most = lines[0].sum.bytes; /* of one stack */
	for (size_t i = 1; i < h->count; i++) {
		const struct line *a = &lines[i - 1], *b = &lines[i];
		const bool same = a->function == b->function && a->file == b->file && a->line == b->line;
		if (same)
			join(&h->list[n], &b->sum);
		else
			h->list[++n] = b->sum;
		if (same && b->sum.bytes > most)
			h->list[n].stack = b->sum.stack;
		most = same && b->sum.bytes <= most ? most : b->sum.bytes;
	}
	h->count = n + 1;
}

unsigned top_lines_most(struct top_lines *h, struct stacks *s, unsigned flags, struct top_line out[TOP_LINES_MOST])
{
	if (!h->count)
		return 0;
	join_stacks(h);
	struct line *lines = calloc(h->count, sizeof(*lines));
	for (size_t i = 0; lines && i < h->count; i++)
		lines[i] = line_of(s, &h->list[i], flags);
	if (lines)
		join_lines(h, lines);
	free(lines);
	qsort(h->list, h->count, sizeof(*h->list), by_bytes);
	unsigned n = h->count < TOP_LINES_MOST ? (unsigned)h->count : TOP_LINES_MOST;
	for (unsigned i = 0; i < n; i++)
		out[i] = h->list[i];
	return n;
}

void top_lines_fini(struct top_lines *h)
{
	free(h->list);
	*h = (struct top_lines){ 0 };
}
