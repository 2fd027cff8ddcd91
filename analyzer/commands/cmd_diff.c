/* memtrace diff: two traces of the same program, before and after a change, side by side. */
#include "analyzer/commands/commands.h"
#include "analyzer/report/ci/ci.h"
#include "analyzer/report/screen/diff.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/report/page/page.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "format/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ROWS      10
#define DEFAULT_JSON_ROWS 1000
#define MANY_TIMES        10        /* as much is not told in per cent */
#define LEAST_BYTES       1048576.0 /* smaller sums are not worth a percentage */

struct diff_options {
	struct options common;
	const char *fail_over, *html, *format;
};

static const struct option_row rows[] = {
	{ "fail-over", 0, "LIMITS", OPTION_STRING, offsetof(struct diff_options, fail_over),
	  "exit 1 if memory grew by more than that: 5%, 100M, or both", 0 },
	{ "html", 0, "FILE", OPTION_STRING, offsetof(struct diff_options, html),
	  "write it there as a page of AFTER, with what changed", 0 },
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_BY(OPTIONS_BY_OWNERS),
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_FILTER,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_JSON,
	{ "format", 0, "FORMAT", OPTION_STRING, offsetof(struct diff_options, format), "for CI: github, sarif or junit",
	  0 },
	OPTIONS_ROW_RULES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_diff_spec = {
	"memtrace diff [--fail-over 5%,100M] [options] BEFORE AFTER",
	"What a change did: totals, devices, processes, categories, phases, steps,\n"
	"resident memory and swap, and the sites that make the difference. Sites are\n"
	"matched by the functions of their stacks, so lines may have moved.",
	rows,
	0,
	"  memtrace diff before/ after/\n"
	"  memtrace diff --fail-over 5%,100M before/ after/      # for CI\n",
	"Read: docs/diff.md",
};

static const struct {
	const char *key, *title;
} sections[] = {
#define X(section, key, title) { key, title },
	DIFF_SECTIONS(X)
#undef X
};

/* ---- showing ------------------------------------------------------------------------------------------- */

static double change_of(const struct item *i)
{
	return i->value[1] - i->value[0];
}

static bool is_ranked(enum section section)
{
	return section == SITES || section == CATEGORIES_OF;
}

/* Sites and categories by what they changed, everything else as it came. */
static int by_section(const void *a, const void *b)
{
	const struct item *const *x = a, *const *y = b;
	if ((*x)->section != (*y)->section)
		return (*x)->section < (*y)->section ? -1 : 1;
	double p = fabs(change_of(*x)), q = fabs(change_of(*y));
	if (is_ranked((*x)->section) && p != q)
		return p > q ? -1 : 1;
	return ((*x)->order > (*y)->order) - ((*x)->order < (*y)->order);
}

static int sort_items(struct diff *d)
{
	size_t n = 0;
	d->sorted = calloc(d->count + 1, sizeof(*d->sorted));
	if (!d->sorted)
		return error_memory();
	for (struct item *i = d->items; i; i = i->hh.next)
		d->sorted[n++] = i;
	qsort(d->sorted, n, sizeof(*d->sorted), by_section);
	return 0;
}

static char *value_text(const struct item *i, double value)
{
	if (i->seconds)
		return output_format("%.4g s", value);
	return output_format("%s%s", value < 0 ? "-" : "", BYTES((uint64_t)fabs(value)));
}

static char *change_text(const struct item *i)
{
	double change = change_of(i);
	char *text = value_text(i, fabs(change)), *out = output_format("%s%s",
								       change < 0   ? "-"
								       : change > 0 ? "+"
										    : "",
								       text ? text : "");
	free(text);
	return out;
}

static char *percent_text(const struct item *i)
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

static bool is_end(const struct item *i)
{
	return i->section == TOTALS && !strcmp(i->figure, "at end");
}

static void print_item(struct table *t, const struct item *i, const char *end)
{
	char *before = side_text(i, 0), *after = side_text(i, 1);
	char *change = change_text(i), *percent = percent_text(i);
	table_row(t, (const char *[]){ i->name, is_end(i) ? end : i->figure, before, after, change, percent });
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
	if (is_said_already(d, i) || (both && i->section == PROCESSES && change_of(i) == 0))
		return false;
	if (both && i->section == STEPS && i->value[0] == 0 && i->value[1] == 0)
		return false;
	if (i->section == CATEGORIES_OF)
		return fabs(change_of(i)) >= LEAST_BYTES;
	if (i->section == PHASES)
		return i->seconds ? fmax(i->value[0], i->value[1]) >= 0.1 : fabs(change_of(i)) >= LEAST_BYTES;
	return i->section != SITES || change_of(i) != 0;
}

static void print_section(const struct diff *d, enum section section)
{
	struct column columns[] = {
		{ sections[section].title, LEFT, true },
		{ "", LEFT, false },
		{ "before", RIGHT, false },
		{ "after", RIGHT, false },
		{ "change", RIGHT, false },
		{ "", RIGHT, false },
	};
	size_t shown = 0, most = selection_rows(&d->side[0].selection, DEFAULT_ROWS), more = 0;
	double rest = 0;
	struct table *t = NULL;
	const char *ends[] = { selection_end_title(&d->side[0].selection), selection_end_title(&d->side[1].selection) };
	const char *end = strlen(ends[1]) > strlen(ends[0]) ? ends[1] : ends[0];
	for (size_t k = 0; k < d->count; k++) {
		const struct item *i = d->sorted[k];
		if (i->section != section || !is_worth_a_row(d, i))
			continue;
		if ((is_ranked(section) || section == PROCESSES || section == PHASES) && shown >= most) {
			more++;
			rest += i->seconds ? 0 : change_of(i);
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

static json_t *json_item(const struct diff *d, const struct item *i)
{
	json_t *o = json_object();
	const char *unit = i->seconds ? "s" : "bytes";
	for (int side = 0; side < 2; side++) {
		char key[24];
		snprintf(key, sizeof(key), "%s_%s", side ? "after" : "before", unit);
		json_object_set_new(o, key,
				    !i->has[side] ? json_null()
				    : i->seconds  ? json_real(i->value[side])
						  : json_integer((json_int_t)i->value[side]));
	}
	json_object_set_new(o, i->section == SITES ? "site" : "name", json_text(i->name));
	json_object_set_new(o, i->section == SITES ? "kind" : "figure", json_text(i->figure));
	json_object_set_new(o, i->seconds ? "change_s" : "change_bytes",
			    i->seconds ? json_real(change_of(i)) : json_integer((json_int_t)change_of(i)));
	for (int side = 0; side < 2 && is_end(i); side++)
		json_object_set_new(o, side ? "after_min_bytes" : "before_min_bytes",
				    i->has[side] ? json_integer((json_int_t)(i->value[side] - i->doubt[side]))
						 : json_null());
	json_object_set_new(o, "change_percent",
			    i->has[0] && i->has[1] && i->value[0] > 0 ? json_real(100 * change_of(i) / i->value[0])
								      : json_null());
	if (i->section == SITES) {
		const struct selection *v = &d->side[i->stack_side].selection;
		json_object_set_new(o, "stack", json_stack(v->stacks, i->stack, selection_flags(v->options)));
	}
	return o;
}

static json_t *diff_json(const struct diff *d)
{
	json_t *root = json_object();
	size_t most = selection_rows(&d->side[0].selection, DEFAULT_JSON_ROWS), sites = 0, left_out = 0;
	double rest = 0;
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "before", json_text(d->side[0].dir));
	json_object_set_new(root, "after", json_text(d->side[1].dir));
	json_object_set_new(root, "complete",
			    json_boolean(reader_complete(d->side[0].selection.reader) &&
					 reader_complete(d->side[1].selection.reader)));
	for (int section = 0; section < SECTIONS; section++) {
		json_t *list = json_array();
		for (size_t k = 0; k < d->count; k++) {
			if (d->sorted[k]->section != (enum section)section)
				continue;
			sites += section == SITES;
			if (section != SITES || json_array_size(list) < most) {
				json_array_append_new(list, json_item(d, d->sorted[k]));
				continue;
			}
			left_out++;
			rest += change_of(d->sorted[k]);
		}
		json_object_set_new(root, sections[section].key, list);
	}
	json_t *left = json_object();
	json_object_set_new(left, "count", json_bytes(left_out));
	json_object_set_new(left, "change_bytes", json_integer((json_int_t)rest));
	json_object_set_new(root, "by", json_string(selection_by_name(&d->side[0].selection)));
	json_object_set_new(root, "sites_total", json_bytes(sites));
	json_object_set_new(root, "sites_left_out", left);
	json_t *unread = json_unread(d->side[0].selection.stacks), *after = json_unread(d->side[1].selection.stacks);
	json_array_extend(unread, after);
	json_decref(after);
	json_object_set_new(root, "unread_files", unread);
	return root;
}

/* ---- page ---------------------------------------------------------------------------------------------- */

/* AFTER is read once more, as its report needs it. */
static int write_page(const struct diff *d, const char *path)
{
	struct page_changes changes = { diff_json(d), &d->side[0].selection };
	struct options after = d->side[1].options;
	struct report r = { .brief = true };
	struct selection v;
	uint64_t bytes;
	after.json = false;
	int e = selection_open(&v, &after);
	if (e == 0) {
		e = report_make(&r, &v, ANALYSIS_WINDOWS);
		if (e == 0)
			e = page_write(&r, path, &(struct page_content){ .changes = &changes }, &bytes);
		report_fini(&r);
		selection_close(&v);
	}
	json_decref(changes.changes);
	return e;
}

/* ---- limits -------------------------------------------------------------------------------------------- */

struct limits {
	double percent, bytes;
};

static int parse_limits(struct limits *limits, const char *text)
{
	*limits = (struct limits){ INFINITY, INFINITY };
	char *copy = strdup(text ? text : ""), *rest = copy;
	int e = copy ? 0 : error_memory();
	for (char *word; e == 0 && text && (word = strsep(&rest, ","));) {
		uint64_t bytes;
		double percent;
		word += strspn(word, " ");
		if (strchr(word, '%') && options_percent(word, &percent) == 0)
			limits->percent = percent;
		else if (mt_read_bytes(word, &bytes) == 0)
			limits->bytes = (double)bytes;
		else
			e = error_set(MT_EUSAGE, "--fail-over", ERROR_NO_OFFSET, "%s: a limit is like 5%% or 100M",
				      word);
	}
	free(copy);
	return e;
}

/* Peaks of kinds, devices and resident memory. Times differ from run to run and are not checked. */
static bool is_checked(const struct item *i)
{
	return !i->seconds && (i->section == TOTALS || i->section == DEVICES || i->section == SYSTEM);
}

/* What may be more than allowed is no success: of BEFORE's live bytes those count that lost frees can't have made. */
static int check_limits(const struct diff *d, const struct limits *limits, struct ci *ci)
{
	int failed = 0;
	for (size_t k = 0; k < d->count; k++) {
		const struct item *i = d->sorted[k];
		double change = change_of(i) + i->doubt[0];
		bool much = change >= LEAST_BYTES && change * 100 > limits->percent * (i->value[0] - i->doubt[0]);
		if (!is_checked(i) || (change <= limits->bytes && !much))
			continue;
		char *text = change_text(i), *percent = percent_text(i);
		char *line =
			output_format("%s, %s: %s (%s)%s", i->name, i->figure, text ? text : "", percent ? percent : "",
				      i->doubt[0] > 0 ? ", or more: BEFORE lost events" : "");
		print_error("memtrace: diff: %s\n", line);
		ci_add(ci, true, "memory over the limit", line, NULL, 0);
		free(text);
		free(percent);
		failed = 1;
	}
	return failed;
}

/* The sites that make it more, at their lines. */
static void add_sites(struct diff *d, struct ci *ci)
{
	size_t left = selection_rows(&d->side[0].selection, DEFAULT_ROWS);
	for (size_t k = 0; k < d->count && left; k++) {
		const struct item *i = d->sorted[k];
		if (i->section != SITES || change_of(i) < LEAST_BYTES)
			continue;
		struct selection *v = &d->side[i->stack_side].selection;
		struct stack_site site = stacks_site(v->stacks, i->stack, selection_flags(v->options));
		char *text = change_text(i), *percent = percent_text(i);
		ci_add(ci, false, "more memory",
		       output_format("%s (%s): %s (%s)", i->name, i->figure, text ? text : "", percent ? percent : ""),
		       site.frame ? site.frame->file : NULL, site.frame ? site.frame->line : 0);
		free(text);
		free(percent);
		left--;
	}
}

/* ---- command ------------------------------------------------------------------------------------------- */

static uint64_t lost_of(const struct selection *v)
{
	uint64_t lost = 0;
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const uint64_t more = selection_has(v, reader_process(v->reader, id)) ? model_lost(v->model, id) : 0;
		lost = more > UINT64_MAX - lost ? UINT64_MAX : lost + more;
	}
	return lost;
}

static void print_missing(const struct diff *d)
{
	for (int side = 0; side < 2; side++) {
		const struct selection *v = &d->side[side].selection;
		uint64_t lost = lost_of(v);
		if (lost)
			output_line(STYLE_BAD,
				    output_format("INCOMPLETE: %s lost %s%sevents, which may be what differs",
						  side ? "AFTER" : "BEFORE", lost == UINT64_MAX ? "" : COUNT(lost),
						  lost == UINT64_MAX ? "" : " "));
		else if (!reader_complete(v->reader))
			output_line(STYLE_BAD,
				    output_format("INCOMPLETE: %s, see memtrace check", side ? "AFTER" : "BEFORE"));
	}
}

static int diff(const struct diff_options *o)
{
	struct diff d = { 0 };
	struct limits limits = { 0 };
	struct ci ci;
	if (o->common.ndirs != 2)
		return error_set(MT_EUSAGE, "diff", ERROR_NO_OFFSET, "name two trace directories, before and after");
	int e = ci_init(&ci, "diff", o->format, o->common.json);
	if (e == 0)
		e = parse_limits(&limits, o->fail_over);
	for (int side = 0; side < 2 && e == 0; side++)
		e = diff_take(&d, side, &o->common);
	if (e == 0)
		e = sort_items(&d);
	if (e == 0)
		e = selection_check_filter(&d.side[0].selection, d.count && d.sorted[d.count - 1]->section == SITES);
	if (e == 0 && o->common.json)
		e = json_print(diff_json(&d));
	if (e == 0 && ci.format)
		add_sites(&d, &ci);
	const bool screen = e == 0 && !o->common.json && !ci.format;
	if (screen)
		print_missing(&d);
	for (int section = 0; section < SECTIONS && screen; section++)
		print_section(&d, (enum section)section);
	if (e == 0 && o->html)
		e = write_page(&d, o->html);
	if (e == 0)
		e = check_limits(&d, &limits, &ci);
	if (e >= 0)
		ci_finish(&ci);
	ci_fini(&ci);
	diff_fini(&d);
	return e;
}

int cmd_diff(int argc, char **argv)
{
	struct diff_options o = { 0 };
	int e = open_options(&cmd_diff_spec, &o, argc, argv);
	if (e == 0)
		e = diff(&o);
	else if (e > 0)
		return 0;
	options_free(&o.common);
	return e;
}
