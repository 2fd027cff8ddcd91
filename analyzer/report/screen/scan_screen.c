#include "analyzer/report/screen/scan_report.h"
#include "analyzer/report/screen/holders_report.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 10, INDENT = 31 };

#define LITTLE 1000 /* owners of less than this part of the heap have a row only with -n */

/* A row of the screen: rows whose sites are of one line are one. */
struct line {
	struct scan_row row;
	char *first; /* where those are made that the owner refers to; NULL = not known */
};

static int by_text(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	const char *const texts[][2] = { { x->row.name, y->row.name },
					 { x->row.at, y->row.at },
					 { x->row.also, y->row.also },
					 { x->first, y->first } };
	if (x->row.what != y->row.what)
		return x->row.what < y->row.what ? -1 : 1;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *s = texts[i][0], *t = texts[i][1];
		int order = !s || !t ? !t - !s : strcmp(s, t);
		if (order)
			return order;
	}
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	return x->row.bytes != y->row.bytes ? (x->row.bytes > y->row.bytes ? -1 : 1) : by_text(a, b);
}

/* What is lost, or what is not. NULL = none, or no memory. */
static struct line *list_lines(const struct scan_report *r, bool lost, size_t *count)
{
	const struct scan *s = r->scan;
	struct line *lines = vec_calloc(s->count + 1, sizeof(*lines));
	size_t n = 0;
	for (size_t i = 0; lines && i < s->count; i++)
		if ((s->rows[i].what == SCAN_LOST) == lost)
			lines[n++] = (struct line){ s->rows[i],
						    holder_site_text(r->selection, r->process, s->rows[i].first) };
	if (n)
		qsort(lines, n, sizeof(*lines), by_text);
	*count = 0;
	for (size_t i = 0; i < n; i++) {
		struct line *last = *count ? &lines[*count - 1] : NULL;
		if (!last || by_text(last, &lines[i])) {
			lines[(*count)++] = lines[i];
			continue;
		}
		const struct scan_row *row = &lines[i].row;
		if (row->site_bytes > last->row.site_bytes) {
			last->row.site = row->site;
			last->row.site_bytes = row->site_bytes;
		}
		last->row.bytes += row->bytes;
		last->row.blocks += row->blocks;
		last->row.firsts += row->firsts;
		free(lines[i].first);
	}
	if (*count)
		qsort(lines, *count, sizeof(*lines), by_bytes);
	return lines;
}

static void print_where(const char *how, const char *text)
{
	char *line = text ? output_format("%*s%s %s", INDENT, "", how, text) : NULL;
	if (line)
		output_line(STYLE_FAINT, output_cut(line, output_width()));
	free(line);
}

/* Most of it, if that is not what the line says anyway. */
static void print_most(const struct scan_report *r, const struct line *l)
{
	char *text = holder_site_text(r->selection, r->process, l->row.site);
	if (text && l->first && strcmp(text, l->first) != 0)
		print_where("most of it made by", text);
	free(text);
}

static void print_line(const struct scan_report *r, const struct line *l)
{
	const struct scan_row *row = &l->row;
	const bool lost = row->what == SCAN_LOST, more = row->firsts < row->blocks;
	char *line = lost ? output_format("made by %s", l->first ? l->first : "(no stack)")
			  : output_format("%s%s%s%s", row->name, row->at ? " (" : "", row->at ? base_name(row->at) : "",
					  row->at ? ")" : "");
	char *fitted = line ? output_cut(line, output_width() - INDENT) : NULL;
	print("%12s %6s %%  %7s  %s%s%s\n", BYTES(row->bytes), PERCENT(row->bytes, r->scan->bytes), COUNT(row->blocks),
	      output_begin(lost ? STYLE_NONE : STYLE_HEAD), fitted ? fitted : "",
	      output_end(lost ? STYLE_NONE : STYLE_HEAD));
	if (row->also)
		output_fit_line(STYLE_NONE, output_format("%*salso held by %s", INDENT, "", row->also));
	if (lost && more)
		output_line(STYLE_FAINT, output_format("%*s%s of them, the rest is what only these lead to", INDENT, "",
						       COUNT(row->firsts)));
	if (!lost)
		print_where(more ? "through what was made by" : "made by", l->first);
	if (more)
		print_most(r, l);
	free(fitted);
	free(line);
}

static void print_lines(const struct scan_report *r, bool lost)
{
	const struct scan *s = r->scan;
	const size_t most = selection_rows(r->selection, ROWS);
	uint64_t rest = lost ? s->lost_bytes : s->bytes - s->lost_bytes;
	size_t count, shown = 0;
	struct line *lines = list_lines(r, lost, &count);
	for (size_t i = 0; lines && i < count; i++) {
		const bool little = !lost && !r->selection->options->rows && lines[i].row.bytes < s->bytes / LITTLE;
		if (shown < most && !little) {
			print_line(r, &lines[i]);
			rest -= lines[i].row.bytes;
			shown++;
		}
		free(lines[i].first);
	}
	if (lines && count > shown)
		print("%12s %6s %%           by %s more: -n ROWS\n", BYTES(rest), PERCENT(rest, s->bytes),
		      COUNT(count - shown));
	free(lines);
}

void scan_print(const struct scan_report *r)
{
	const struct scan *s = r->scan;
	const struct process *p = r->process;
	output_fit_line(STYLE_HEAD,
			output_format("%s   pid %u   at %s", p->name, p->pid, DURATION(process_ns(p, r->copy->ticks))));
	output_line(STYLE_FAINT, output_format("its threads stood still for %s, in which %s were copied",
					       DURATION(r->copy->stopped_ns), BYTES(r->copy->bytes)));
	if (!r->whole)
		output_wrapped(
			"Not all blocks are known (the recording began late, was stopped or is incomplete), so "
			"malloc's memory was looked through as a whole: what is called lost is, but more may be.",
			0, 4, output_width(), NULL);
	print("%sLOST %s%s in %s of %s blocks (%s %%): nothing in the program points to them\n",
	      output_begin(s->lost_bytes ? STYLE_BAD : STYLE_HEAD), BYTES(s->lost_bytes), output_end(STYLE_HEAD),
	      COUNT(s->lost_blocks), COUNT(s->blocks), PERCENT(s->lost_bytes, s->bytes));
	print_lines(r, true);
	print("%sHELD %s%s in %s blocks\n", output_begin(STYLE_HEAD), BYTES(s->bytes - s->lost_bytes),
	      output_end(STYLE_HEAD), COUNT(s->blocks - s->lost_blocks));
	print_lines(r, false);
}
