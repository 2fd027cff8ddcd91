#include "analyzer/report/screen/frag.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 12, PINS = 6, HEAPS = 8, MAP = 40, BESIDE_MAP = 60, NARROW_MAP = 10, NAME_COLUMNS = 40 };

/* "model.py:12 forward  < train.py:3 main" */
static char *site_text(const struct selection *sel, uint32_t process, uint32_t site)
{
	const struct process *p = reader_process(sel->reader, process);
	const struct model_site *s = model_site(sel->model, process, site);
	const struct frame *frames[2];
	unsigned count = s ? selection_telling_frames(sel, stacks_of(sel->stacks, p, s->node, s->node2), frames, 2) : 0;
	char *inner = count ? frame_place(frames[0]) : strdup(s ? "(no stack)" : "(unknown)");
	char *outer = count > 1 ? frame_place(frames[1]) : NULL;
	char *line = output_format("%s%s%s", inner ? inner : "", outer ? "  < " : "", outer ? outer : "");
	free(inner);
	free(outer);
	return line;
}

/* ---- devices --------------------------------------------------------------------------------------------- */

static void print_head(const struct frag *f, const struct frag_device *d)
{
	const struct pool_layout *l = d->layout;
	const struct model_pools private = pool_layout_pools(l, POOL_LAYOUT_PRIVATE);
	char *when = d->oom ? output_format("out of memory, %u of %s", d->number, COUNT(d->device->ooms))
			    : strdup(d->moment);
	char *name = d->process ? output_fit(d->process->name, NAME_COLUMNS) : NULL;
	char *who = name ? output_format("   pid %u %s", d->process->pid, name) : NULL;
	print("%s%s  %.14s%s   %s   %s%s\n", output_begin(STYLE_HEAD), d->device->name, d->device->uuid, who,
	      DURATION(d->ns), when, output_end(STYLE_HEAD));
	output_whole_line(STYLE_NONE,
			  output_format("  reserved %s   in use %s   fragmentation %.1f %%   %s segments, %s blocks",
					BYTES(l->reserved), BYTES(l->allocated),
					100 * frag_share(l->allocated, l->reserved), COUNT(l->segment_count),
					COUNT(l->block_count)));
	if (l->partly_seen)
		print("  XLA's pool: where no buffer lies are temporaries, code or free room, and which is not known\n");
	print("  largest hole %s   wholly free segments or pages %s", BYTES(l->largest_hole), BYTES(l->idle));
	if (l->stray)
		print("   %s: %s", l->partly_seen ? "not known where" : "in no segment that was seen", BYTES(l->stray));
	print("\n");
	if (private.reserved)
		output_whole_line(
			STYLE_NONE,
			output_format("  %u graph%s, %u pool%s: reserved %s, in use %s, largest hole %s, idle %s",
				      private.captures, private.captures == 1 ? "" : "s", private.pools,
				      private.pools == 1 ? "" : "s", BYTES(private.reserved), BYTES(private.allocated),
				      BYTES(private.largest_hole), BYTES(private.idle)));
	free(when);
	free(who);
	free(name);
	(void)f;
}

static void print_request(const struct frag_device *d)
{
	const struct model_oom *o = d->oom;
	uint64_t asked = frag_asked(o), unused = o->usable.reserved - o->usable.allocated, idle = frag_idle(d);
	char *block = o->block_bytes && o->block_bytes != o->requested_bytes
			      ? output_format(" (of the driver %s)", BYTES(o->block_bytes))
			      : NULL;
	char *had = o->at.free_bytes != MODEL_UNKNOWN
			    ? output_format("   the driver had %s free", BYTES(o->at.free_bytes))
			    : NULL;
	char *why = d->layout->partly_seen ? output_format("%s of its pool were in no buffer",
							   BYTES(o->reserved_bytes - o->allocated_bytes))
		    : frag_hole(d) >= o->requested_bytes
			    ? strdup("the largest hole would have done (another stream's, or another size class's)")
		    : unused >= o->requested_bytes
			    ? output_format("%s are unused, but no hole is large enough", BYTES(unused))
			    : output_format("all holes together%s are smaller",
					    o->graphs.reserved ? " that it could use" : "");
	output_whole_line(STYLE_NONE, output_format("  asked %s%s%s%s: %s", BYTES(o->requested_bytes),
						    o->capturing ? " in a capture" : "", block ? block : "",
						    had ? had : "", why ? why : ""));
	free(block);
	free(had);
	free(why);
	if (idle && o->at.free_bytes != MODEL_UNKNOWN)
		print("  with the wholly free ones returned the driver had %s, %s\n", BYTES(o->at.free_bytes + idle),
		      frag_fits(d)                      ? "enough"
		      : o->at.free_bytes + idle < asked ? "too little"
							: "");
}

/* How full each of `columns` stretches is: one character each, from empty to full. */
static char *map_of(const struct pool_layout_segment *s, int columns)
{
	static const char *const full[] = { "·", "░", "▒", "▓", "█" };
	double used[MAP] = { 0 }, width = (double)s->size / columns;
	for (uint32_t i = 0; i < s->block_count; i++) {
		double from = (double)(s->blocks[i].addr - s->addr) / width,
		       to = from + (double)s->blocks[i].size / width;
		for (int k = (int)from; k < columns && k < to; k++)
			used[k] += (to < k + 1 ? to : k + 1) - (from > k ? from : k);
	}
	char *text = malloc((size_t)columns * 4), *at = text;
	for (int k = 0; k < columns && text; k++) {
		const char *c = full[used[k] < 1e-6 ? 0 : used[k] > 0.999 ? 4 : 1 + (int)(used[k] * 3)];
		memcpy(at, c, strlen(c) + 1);
		at += strlen(c);
	}
	return text;
}

static int emptier(const void *a, const void *b)
{
	const struct pool_layout_segment *x = *(const struct pool_layout_segment *const *)a,
					 *y = *(const struct pool_layout_segment *const *)b;
	uint64_t p = x->size - x->used, q = y->size - y->used;
	return p != q ? (p < q ? 1 : -1) : (x->addr > y->addr) - (x->addr < y->addr);
}

static void print_segments(const struct frag *f, const struct pool_layout *l)
{
	static const struct column columns[] = {
		{ "SEGMENT", LEFT, false }, { "size", RIGHT, false },   { "in use", RIGHT, false },
		{ "hole", RIGHT, false },   { "blocks", RIGHT, false }, { "low to high address", LEFT, false },
	};
	size_t most = selection_rows(f->selection, SEGMENTS);
	const int room = output_width() - BESIDE_MAP, wide = room > MAP ? MAP : room < NARROW_MAP ? NARROW_MAP : room;
	uint64_t rest = 0;
	const struct pool_layout_segment **order = calloc(l->segment_count + 1, sizeof(*order));
	for (size_t i = 0; i < l->segment_count && order; i++)
		order[i] = &l->segments[i];
	if (!order || !l->segment_count) {
		free(order);
		return;
	}
	qsort(order, l->segment_count, sizeof(*order), emptier);
	struct table *t = table_new(columns, 6, 2);
	for (size_t i = 0; i < l->segment_count && i < most; i++) {
		const struct pool_layout_segment *s = order[i];
		char *name = output_format("0x%" PRIx64 "%s%s", s->addr, s->expandable ? " grows" : "",
					   s->private    ? " graph"
					   : s->withheld ? " own pool"
							 : ""),
		     *map = map_of(s, wide);
		table_row(t, (const char *[]){ name, BYTES(s->size), BYTES(s->used), BYTES(s->hole),
					       COUNT(s->block_count), map });
		free(name);
		free(map);
	}
	table_print(t);
	for (size_t i = most; i < l->segment_count; i++)
		rest += order[i]->size - order[i]->used;
	if (l->segment_count > most)
		print("  %s more, with less unused, together %s: -n ROWS\n", COUNT(l->segment_count - most),
		      BYTES(rest));
	free(order);
}

static void print_pins(const struct frag *f, const struct frag_device *d)
{
	static const struct column columns[] = {
		{ "PINNED BY", LEFT, true },  { "holds", RIGHT, false },      { "blocks", RIGHT, false },
		{ "segments", RIGHT, false }, { "keeps back", RIGHT, false }, { "alone", RIGHT, false },
	};
	size_t most = selection_rows(f->selection, PINS);
	uint64_t rest = 0;
	if (!d->pin_count)
		return;
	struct table *t = table_new(columns, 6, 2);
	for (size_t i = 0; i < d->pin_count && i < most; i++) {
		const struct pin *p = &d->pins[i];
		char *text = site_text(f->selection, p->process, p->site);
		table_row(t, (const char *[]){ text, BYTES(p->held), COUNT(p->blocks), COUNT(p->segments),
					       BYTES(p->pinned), BYTES(p->alone) });
		free(text);
	}
	table_print(t);
	for (size_t i = most; i < d->pin_count; i++)
		rest += d->pins[i].held;
	if (d->pin_count > most)
		print("  %s more sites, which hold %s: -n ROWS\n", COUNT(d->pin_count - most), BYTES(rest));
}

static void print_device(const struct frag *f, const struct frag_device *d)
{
	print_head(f, d);
	if (d->oom)
		print_request(d);
	print_segments(f, d->layout);
	print_pins(f, d);
}

/* ---- heaps ----------------------------------------------------------------------------------------------- */

static void arena_row(struct table *t, const struct arena *a)
{
	static const char *const kinds[] = { [ARENA_MAIN] = "main heap",
					     [ARENA_THREAD] = "arena",
					     [ARENA_MAPPED] = "own pages",
					     [ARENA_POOL] = "pool" };
	bool mapped = a->kind == ARENA_MAPPED;
	uint64_t span = a->end - a->start;
	char *name = mapped ? strdup(kinds[a->kind]) : output_format("%s 0x%" PRIx64, kinds[a->kind], a->start);
	table_row(t, (const char *[]){ name, mapped ? "" : BYTES(span), BYTES(a->live), COUNT(a->blocks),
				       mapped ? "" : PERCENT(span > a->live ? span - a->live : 0, span),
				       mapped ? "" : BYTES(a->largest_hole) });
	free(name);
}

static void print_tops(const struct frag *f, const struct frag_heap *h, const struct arena *a)
{
	for (unsigned i = 0; i < a->tops; i++) {
		const struct model_block *b = &a->top[i];
		char *site = site_text(f->selection, h->process->process->id, b->site);
		output_line(STYLE_FAINT,
			    output_format("    top %u: %s from %s, %s empty below it, by %s", i + 1, BYTES(b->size),
					  DURATION(b->ns), BYTES(a->below[i]), site ? site : ""));
		free(site);
	}
}

static void print_heap(const struct frag *f, const struct frag_heap *h)
{
	static const struct column columns[] = {
		{ "HEAP", LEFT, true },     { "span", RIGHT, false },    { "live", RIGHT, false },
		{ "blocks", RIGHT, false }, { "empty %", RIGHT, false }, { "largest hole", RIGHT, false },
	};
	const struct process *p = h->process->process;
	size_t most = selection_rows(f->selection, HEAPS);
	uint64_t rest = 0;
	char *name = output_fit(p->name, NAME_COLUMNS);
	char *whose = output_format("%u %s", p->pid, name ? name : "");
	char *resident = h->resident == MODEL_UNKNOWN ? NULL : output_format("   resident %s", BYTES(h->resident));
	char *line = output_format("   live %s in %s blocks, over %s%s", BYTES(h->arenas.live), COUNT(h->arenas.blocks),
				   BYTES(h->arenas.span), resident ? resident : "");
	print("%s%s%s", output_begin(STYLE_HEAD), whose ? whose : "", output_end(STYLE_HEAD));
	output_wrapped(line ? line : "", 4, 2, output_width() - (whose ? output_columns(whose) : 0), NULL);
	free(name);
	free(whose);
	free(resident);
	free(line);
	struct table *t = table_new(columns, 6, 2);
	for (size_t i = 0; i < h->arenas.count && i < most; i++)
		arena_row(t, &h->arenas.list[i]);
	table_print(t);
	for (size_t i = most; i < h->arenas.count; i++)
		rest += h->arenas.list[i].live;
	if (h->arenas.count > most)
		print("  %s more, with %s live: -n ROWS\n", COUNT(h->arenas.count - most), BYTES(rest));
	if (h->arenas.count && h->arenas.list[0].kind == ARENA_MAIN)
		print_tops(f, h, &h->arenas.list[0]);
}

void frag_print(const struct frag *f)
{
	size_t most = selection_rows(f->selection, HEAPS);
	uint64_t rest = 0;
	selection_print_parts(f->selection);
	for (size_t i = 0; i < f->device_count; i++) {
		print(i ? "\n" : "");
		print_device(f, &f->devices[i]);
	}
	for (size_t i = 0; i < f->heap_count && i < most; i++) {
		print(i || f->device_count ? "\n" : "");
		print_heap(f, &f->heaps[i]);
	}
	for (size_t i = most; i < f->heap_count; i++)
		rest += f->heaps[i].arenas.live;
	if (f->heap_count > most)
		print("%s more processes, with %s live: --process PID, -n ROWS\n", COUNT(f->heap_count - most),
		      BYTES(rest));
	if (f->heap_count && model_fold(f->selection->model).young_blocks)
		output_whole_line(
			STYLE_FAINT,
			strdup("small blocks were recorded as totals: of a moment before the end some are missing; record "
			       "with MEMTRACE_RECORD=all"));
	if (!f->device_count && !f->heap_count)
		print("nothing to show: no pool on a device, no heap\n");
}
