#include "analyzer/report/timeline/timeline_screen.h"
#include "analyzer/analysis/open.h"
#include "analyzer/analysis/series_lines.h"
#include "analyzer/report/timeline/timeline_plot.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdlib.h>

struct chart {
	const struct selection *selection;
	struct table *table;
	size_t columns, shown, most;
	uint64_t rest; /* what the rest had at the most */
};

static uint64_t highest(const struct model_series *s)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < s->count; i++)
		most = s->buckets[i].high > most ? s->buckets[i].high : most;
	return most;
}

static void chart_line(void *arg, const struct series_line *l)
{
	struct chart *c = arg;
	uint64_t most = highest(l->series);
	if (most == 0)
		return;
	if (c->shown++ >= c->most) {
		c->rest = most > c->rest ? most : c->rest;
		return;
	}
	uint64_t *values = calloc(c->columns, sizeof(*values));
	if (values)
		selection_resample(c->selection, l->series, values, c->columns);
	char *sparks = values ? output_sparkline(values, c->columns, most) : NULL;
	char *what = l->device ? output_format("%s %s", l->what, l->device->name) : NULL;
	char *name = l->process ? output_format("%u %s", l->process->pid, l->process->name)
				: output_format("all on %s", l->host->name);
	table_row(c->table, (const char *[]){ name, what ? what : l->what, sparks,
					      BYTES(l->series->buckets[l->series->count - 1].last), BYTES(most) });
	free(name);
	free(what);
	free(sparks);
	free(values);
}

/* `rows`: as many as there is room for below a plot. */
static void print_chart(struct selection *sel, size_t rows, struct all_sample_series *sampled)
{
	char *title = output_format("%s to %s", DURATION(sel->from_ns), DURATION(model_end_ns(sel->model)));
	const struct column columns[] = {
		{ "PROCESS", LEFT, true }, { "", LEFT, false },      { title, LEFT, false },
		{ "last", RIGHT, false },  { "most", RIGHT, false },
	};
	int room = output_width() - (rows == OPTIONS_ALL_ROWS ? 52 : 54);
	struct chart c = { sel, table_new(columns, 5, 0),  (size_t)(room < 16 ? 16 : room),
			   0,   selection_rows(sel, rows), 0 };
	series_lines_each(sel, sampled, chart_line, &c);
	char *note = c.shown > c.most
			     ? output_format("%zu more, none above %s: -n ROWS", c.shown - c.most, BYTES(c.rest))
			     : NULL;
	if (note)
		table_note(c.table, 2, note);
	free(note);
	table_print(c.table);
	free(title);
}

/* The plot, and below it what fits of the chart: the largest lines first would hide whose they are, so as in a pipe. */
void timeline_print(struct selection *sel, const struct timeline *timeline, struct all_sample_series *sampled)
{
	enum { LEAST = 4, BESIDE = 12 }; /* lines of a plot; of all that stands with it */
	int rows = output_rows() - 1, height = rows - BESIDE;
	selection_print_parts(sel);
	unsigned lines = timeline_plot(sel, timeline, (unsigned)(height < LEAST ? LEAST : height > 20 ? 20 : height));
	int left = rows - (int)lines - 4; /* the empty line, titles, what is left out */
	if (lines)
		print("\n");
	print_chart(sel, !lines ? OPTIONS_ALL_ROWS : left < 2 ? 2 : (size_t)left, sampled);
}

void timeline_print_chart(struct selection *sel, struct all_sample_series *sampled)
{
	selection_print_parts(sel);
	print_chart(sel, OPTIONS_ALL_ROWS, sampled);
}
