/* What memtrace diff says to CI: limits, and the sites that make it more. */
#include "analyzer/report/diff/diff.h"
#include "analyzer/util/error.h"
#include "analyzer/util/options.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "format/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int diff_limits_parse(struct diff_limits *limits, const char *text)
{
	*limits = (struct diff_limits){ INFINITY, INFINITY };
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

int diff_check_limits(const struct diff *d, const struct diff_limits *limits, struct ci *ci)
{
	int failed = 0;
	for (size_t k = 0; k < d->count; k++) {
		const struct item *i = d->sorted[k];
		double change = diff_change(i) + i->doubt[0];
		bool much = change >= DIFF_LEAST_BYTES && change * 100 > limits->percent * (i->value[0] - i->doubt[0]);
		if (!is_checked(i) || (change <= limits->bytes && !much))
			continue;
		char *text = diff_change_text(i), *percent = diff_percent_text(i);
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

void diff_add_sites(struct diff *d, struct ci *ci)
{
	size_t left = selection_rows(&d->side[0].selection, DIFF_ROWS);
	for (size_t k = 0; k < d->count && left; k++) {
		const struct item *i = d->sorted[k];
		if (i->section != SITES || diff_change(i) < DIFF_LEAST_BYTES)
			continue;
		struct selection *sel = &d->side[i->stack_side].selection;
		struct stack_site site = stacks_site(sel->stacks, i->stack, selection_flags(sel->options));
		char *text = diff_change_text(i), *percent = diff_percent_text(i);
		ci_add(ci, false, "more memory",
		       output_format("%s (%s): %s (%s)", i->name, i->figure, text ? text : "", percent ? percent : ""),
		       site.frame ? site.frame->file : NULL, site.frame ? site.frame->line : 0);
		free(text);
		free(percent);
		left--;
	}
}
