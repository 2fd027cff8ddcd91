#include "analyzer/report/screen/holders_report.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 10, SMALL_ROWS = 5, INDENT = 31 };

#define LITTLE 50 /* rows of less than this part of the largest table are no rows, unless -n asks for them */

static void print_head(const struct holders_report *r)
{
	const struct mt_hold_head *head = &r->held.snapshot.head;
	const struct process *p = r->held.process;
	char *number =
		r->held.count > 1 ? output_format("   snapshot %d of %d", r->held.number + 1, r->held.count) : NULL;
	output_fit_line(STYLE_HEAD,
			output_format("%s   pid %u   Python %u.%u   at %s, %s%s%s%s", p->name, p->pid,
				      head->python >> 8, head->python & 255, DURATION(r->held.ns), held_why(head),
				      *head->name ? " " : "", head->name, number ? number : ""));
	free(number);
	output_line(STYLE_FAINT,
		    output_format("%s objects and blocks of C++, looked at for %s", COUNT(r->held.snapshot.count),
				  DURATION(process_ns(p, head->end_ticks) - r->held.ns)));
	if (head->flags & MT_HOLD_CUT)
		print("%sINCOMPLETE: it ended before all objects were seen (disk limit, memory)%s\n",
		      output_begin(STYLE_BAD), output_end(STYLE_BAD));
	for (size_t i = 0; i < r->held.snapshot.fault_count; i++)
		print("%sLEFT OUT: what objects of type %s refer to; their tp_traverse broke off%s\n",
		      output_begin(STYLE_BAD), r->held.snapshot.faults[i], output_end(STYLE_BAD));
}

static const char *part_name(const struct held_part *part)
{
	switch (part->kind) {
	case MODEL_HEAP:
		return "HEAP";
	case MODEL_MAP:
		return "MAPPED";
	case MODEL_PINNED:
		return "PINNED";
	case HOLDERS_SMALL:
		return "SMALL OBJECTS in Python's own arenas";
	}
	return part->kind == MODEL_POOL ? "POOL" : "DRIVER'S ALLOCATIONS";
}

static void print_row(const struct holders_report *r, const struct held_part *part, const struct holder *h)
{
	char *site = holder_site_text(r->selection, r->held.process, h->site), *line = holder_text(h, true);
	char *fitted = line ? output_fit(line, output_width() - INDENT) : NULL;
	print("%12s %6s %%  %7s  %s%s%s\n", BYTES(h->bytes), PERCENT(h->bytes, part->holders->bytes), COUNT(h->blocks),
	      output_begin(STYLE_HEAD), fitted ? fitted : "", output_end(STYLE_HEAD));
	if (h->also) {
		char *more = h->also_more ? output_format(" and %u more", h->also_more) : NULL;
		output_fit_line(STYLE_NONE, output_format("%*s%s %s%s", INDENT, "",
							  h->what == HOLDER_SHARED ? "together with" : "also held by",
							  h->also, more ? more : ""));
		free(more);
	}
	if (site) {
		char *made = output_format("%*smade by %s", INDENT, "", site);
		output_line(STYLE_FAINT, made ? output_cut(made, output_width()) : NULL);
		free(made);
	}
	free(fitted);
	free(line);
	free(site);
}

/* From how many bytes on a holder has a row. */
static uint64_t least_of(const struct holders_report *r)
{
	uint64_t most = 0;
	for (size_t i = 0; i < r->parts.count; i++)
		most = r->parts.list[i].holders->bytes > most ? r->parts.list[i].holders->bytes : most;
	return r->selection->options->rows ? 0 : most / LITTLE;
}

static void print_part(const struct holders_report *r, const struct held_part *part)
{
	const struct holders *h = part->holders;
	size_t most = selection_rows(r->selection, part->kind == HOLDERS_SMALL ? SMALL_ROWS : ROWS), rows = 0;
	uint64_t shown = 0, least = least_of(r), rest;
	print("%s%s%s%s %s%s   held by objects of Python: %s (%s %%)\n", output_begin(STYLE_HEAD),
	      part->device ? part->device->name : "", part->device ? " " : "", part_name(part), BYTES(h->bytes),
	      output_end(STYLE_HEAD), BYTES(h->held), PERCENT(h->held, h->bytes));
	for (; rows < h->count && rows < most && h->list[rows].bytes >= least; rows++) {
		print_row(r, part, &h->list[rows]);
		shown += h->list[rows].bytes;
	}
	rest = h->held - shown;
	if (rest)
		print("%12s %6s %%           by smaller holders%s\n", BYTES(rest), PERCENT(rest, h->bytes),
		      h->count > rows ? ": -n ROWS" : "");
	if (h->bytes > h->held)
		print("%12s %6s %%           by no object of Python: C and C++ alone have it\n",
		      BYTES(h->bytes - h->held), PERCENT(h->bytes - h->held, h->bytes));
}

static void print_cycles(const struct holders_report *r)
{
	const struct mt_hold_head *head = &r->held.snapshot.head;
	for (size_t i = 0; i < r->parts.count; i++) {
		const struct held_part *part = &r->parts.list[i];
		uint64_t bytes = part->holders->cycles;
		if (bytes >= (1u << 20) || (bytes && bytes >= part->holders->bytes / 20))
			print("CYCLES  gc.collect() would free %s of %s%s\n", BYTES(bytes),
			      part->device ? part->device->name : "the host",
			      part->kind == HOLDERS_SMALL ? " (small objects)" : "");
	}
	if (head->flags & MT_HOLD_GC_OFF)
		print("the garbage collector is off (gc.disable)\n");
	if (head->frozen)
		print("%s objects are frozen (gc.freeze): the collector never looks at them\n", COUNT(head->frozen));
}

void holders_print(const struct holders_report *r)
{
	print_head(r);
	for (size_t i = 0; i < r->parts.count; i++)
		print_part(r, &r->parts.list[i]);
	print_cycles(r);
	for (unsigned i = 0; i < r->other_count; i++)
		print("%salso pid %u %s: --process %u%s\n", output_begin(STYLE_FAINT), r->others[i]->pid,
		      r->others[i]->name, r->others[i]->pid, output_end(STYLE_FAINT));
}
