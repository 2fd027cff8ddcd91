#include "analyzer/report/diff/diff.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MANY_TIMES 10 /* as much is not told in per cent */

static const char *const titles[] = {
#define X(section, key, title) title,
	DIFF_SECTIONS(X)
#undef X
};

static char *value_text(const struct item *i, double value)
{
	if (i->seconds)
		return output_format("%.4g s", value);
	return output_format("%s%s", value < 0 ? "-" : "", BYTES((uint64_t)fabs(value)));
}

char *diff_change_text(const struct item *i)
{
	double change = diff_change(i);
	char *text = value_text(i, fabs(change)), *out = output_format("%s%s",
								       change < 0   ? "-"
								       : change > 0 ? "+"
										    : "",
								       text ? text : "");
	free(text);
	return out;
}

char *diff_percent_text(const struct item *i)
{
	if (!i->has[0])
		return strdup("new");
	if (!i->has[1])
		return strdup("gone");
	if (i->value[0] <= 0)
		return strdup("");
	double times = i->value[1] / i->value[0];
	return times >= MANY_TIMES ? output_format("x %.0f", times) : output_format("%+.1f %%", 100 * (times - 1));
}

/* What may be less for lost frees is a range. */
static char *side_text(const struct item *i, int side)
{
	char *value = i->has[side] ? value_text(i, i->value[side]) : NULL;
	if (!value || !(i->doubt[side] > 0))
		return value;
	char *least = value_text(i, i->value[side] - i->doubt[side]),
	     *range = output_format("%s to %s", least ? least : "", value);
	free(least);
	free(value);
	return range;
}

static void print_item(struct table *t, const struct item *i, const char *end)
{
	char *before = side_text(i, 0), *after = side_text(i, 1);
	char *change = diff_change_text(i), *percent = diff_percent_text(i);
	table_row(t, (const char *[]){ i->name, diff_is_end(i) ? end : i->figure, before, after, change, percent });
	free(before);
	free(after);
	free(change);
	free(percent);
}

/* The sum of one device is that device's. */
static bool is_said_already(const struct diff *d, const struct item *i)
{
	return i->section == DEVICES && !strcmp(i->name, "all devices") &&
	       model_devices(d->side[0].selection.model) < 2 && model_devices(d->side[1].selection.model) < 2;
}

static bool is_worth_a_row(const struct diff *d, const struct item *i)
{
	bool both = i->has[0] && i->has[1];
	if (is_said_already(d, i) || (both && i->section == PROCESSES && diff_change(i) == 0))
		return false;
	if (both && i->section == STEPS && i->value[0] == 0 && i->value[1] == 0)
		return false;
	if (i->section == CATEGORIES_OF || i->section == HOLDERS)
		return fabs(diff_change(i)) >= DIFF_LEAST_BYTES;
	if (i->section == PHASES)
		return i->seconds ? fmax(i->value[0], i->value[1]) >= 0.1 : fabs(diff_change(i)) >= DIFF_LEAST_BYTES;
	return i->section != SITES || diff_change(i) != 0;
}

static void print_section(const struct diff *d, enum section section)
{
	struct column columns[] = {
		{ titles[section], LEFT, true }, { "", LEFT, false },        { "before", RIGHT, false },
		{ "after", RIGHT, false },       { "change", RIGHT, false }, { "", RIGHT, false },
	};
	size_t shown = 0, most = selection_rows(&d->side[0].selection, DIFF_ROWS), more = 0;
	double rest = 0;
	struct table *t = NULL;
	const char *ends[] = { selection_end_title(&d->side[0].selection), selection_end_title(&d->side[1].selection) };
	const char *end = strlen(ends[1]) > strlen(ends[0]) ? ends[1] : ends[0];
	for (size_t k = 0; k < d->count; k++) {
		const struct item *i = d->sorted[k];
		if (i->section != section || !is_worth_a_row(d, i))
			continue;
		if ((diff_is_ranked(section) || section == PROCESSES || section == PHASES) && shown >= most) {
			more++;
			rest += i->seconds ? 0 : diff_change(i);
			continue;
		}
		if (!t)
			t = table_new(columns, 6, 0);
		print_item(t, i, end);
		shown++;
	}
	if (!t)
		return;
	char *note = more ? output_format("%zu more, together %s%s: -n ROWS", more, rest < 0 ? "-" : "+",
					  BYTES((uint64_t)fabs(rest)))
			  : NULL;
	if (note)
		table_note(t, 2, note);
	free(note);
	table_print(t);
	print("\n");
}

static uint64_t lost_of(const struct selection *sel)
{
	uint64_t lost = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const uint64_t more =
			selection_has(sel, reader_process(sel->reader, id)) ? model_lost(sel->model, id) : 0;
		lost = more > UINT64_MAX - lost ? UINT64_MAX : lost + more;
	}
	return lost;
}

static void print_missing(const struct diff *d)
{
	for (int side = 0; side < 2; side++) {
		const struct selection *sel = &d->side[side].selection;
		uint64_t lost = lost_of(sel);
		selection_print_parts(sel);
		if (lost)
			output_line(STYLE_BAD,
				    output_format("INCOMPLETE: %s lost %s%sevents, which may be what differs",
						  side ? "AFTER" : "BEFORE", lost == UINT64_MAX ? "" : COUNT(lost),
						  lost == UINT64_MAX ? "" : " "));
		else if (!reader_complete(sel->reader))
			output_line(STYLE_BAD,
				    output_format("INCOMPLETE: %s, see memtrace check", side ? "AFTER" : "BEFORE"));
	}
}

void diff_print(const struct diff *d)
{
	print_missing(d);
	for (int section = 0; section < SECTIONS; section++)
		print_section(d, (enum section)section);
}
