/* What memtrace leaks says to CI: limits, and what grows. */
#include "analyzer/report/screen/leaks_screen.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "format/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int parse_limit(struct leaks_limits *limits, char *text)
{
	char *slash = strchr(text, '/');
	uint64_t bytes;
	if (slash)
		*slash++ = '\0';
	if (mt_read_bytes(text, &bytes) < 0 || (slash && strcmp(slash, "s") && strcmp(slash, "step")))
		return error_set(MT_EUSAGE, "--fail-over", ERROR_NO_OFFSET,
				 "%s%s%s: a limit is like 100M, 1M/s or 1M/step", text, slash ? "/" : "",
				 slash ? slash : "");
	if (!slash)
		limits->bytes = bytes;
	else if (strcmp(slash, "s") == 0)
		limits->bytes_per_s = bytes;
	else
		limits->bytes_per_step = bytes;
	return 0;
}

int leaks_limits_parse(struct leaks_limits *limits, const char *text)
{
	*limits = (struct leaks_limits){ UINT64_MAX, UINT64_MAX, UINT64_MAX };
	char *copy = strdup(text ? text : ""), *rest = copy;
	int e = copy ? 0 : error_memory();
	for (char *word; e == 0 && text && (word = strsep(&rest, ","));)
		e = parse_limit(limits, word);
	free(copy);
	return e;
}

/* Says it, and keeps it for a CI system. Takes `text`. */
static int fails(struct ci *ci, const char *rule, char *text, const struct frame *at)
{
	print_error("memtrace: leaks: %s\n", text);
	ci_add(ci, true, rule, text, at ? at->file : NULL, at ? at->line : 0);
	return 1;
}

/* "3.0 MiB/step", or "3.0 MiB in 0.07 s" */
static char *rate_text(const struct leak_group *g, double rate, const char *unit)
{
	const struct growth *most = &g->most->owner_growth->growth;
	return growth_is_brief(most) ? growth_brief_text(most, g->bytes)
				     : output_format("%s/%s", BYTES((uint64_t)fabs(rate)), unit);
}

/* UINT64_MAX = no limit. */
static bool is_over(double rate, uint64_t limit)
{
	return limit != UINT64_MAX && rate > (double)limit;
}

static int too_fast(const struct leaks *l, const struct leak_group *g, double rate, uint64_t limit, const char *unit,
		    struct ci *ci)
{
	if (!is_over(rate, limit))
		return 0;
	char *name = leaks_group_name(l, g), *grows = rate_text(g, rate, unit),
	     *text = output_format("%s: grows by %s, more than %s/%s", name ? name : "", grows ? grows : "",
				   BYTES(limit), unit);
	free(name);
	free(grows);
	return fails(ci, "growth over the limit", text, g->most->owner->frame);
}

/* Processes that pile up grow, too. */
static int check_pile(const struct leaks *l, const struct leaks_limits *limits, struct ci *ci)
{
	if (!is_over(l->pile.per_second, limits->bytes_per_s))
		return 0;
	return fails(ci, "processes over the limit",
		     output_format("%u processes pile up: %s/s, more than %s/s", l->pile.count,
				   BYTES((uint64_t)l->pile.per_second), BYTES(limits->bytes_per_s)),
		     NULL);
}

static int check_shm(const struct leaks *l, const struct leaks_limits *limits, struct ci *ci)
{
	if (!is_over(l->shm.per_second, limits->bytes_per_s))
		return 0;
	return fails(ci, "files over the limit",
		     output_format("%s makes files in /dev/shm: %s/s, more than %s/s", l->shm.site,
				   BYTES((uint64_t)l->shm.per_second), BYTES(limits->bytes_per_s)),
		     NULL);
}

/* The fastest group. */
static int check_rates(const struct leaks *l, const struct leaks_limits *limits, struct ci *ci)
{
	struct leak_group second = { 0 }, step = { 0 };
	size_t count;
	struct leak_group *list = leaks_groups(l, &count);
	for (size_t i = 0; i < count; i++) {
		second = list[i].per_second > second.per_second ? list[i] : second;
		step = list[i].most->owner_growth->growth.stepped && list[i].rate > step.rate ? list[i] : step;
	}
	free(list);
	return too_fast(l, &second, second.per_second, limits->bytes_per_s, "s", ci) |
	       too_fast(l, &step, step.rate, limits->bytes_per_step, "step", ci);
}

int leaks_check_limits(const struct leaks *l, const struct leaks_limits *limits, struct ci *ci)
{
	bool stepped = timeline_main(l->timeline, l->selection) != NULL;
	int failed = check_rates(l, limits, ci) | check_pile(l, limits, ci) | check_shm(l, limits, ci);
	if (l->bytes > limits->bytes)
		failed = fails(ci, "alive over the limit",
			       output_format("%s%s are alive at the end, more than %s%s",
					     l->bytes_min < l->bytes ? "up to " : "", BYTES(l->bytes),
					     BYTES(limits->bytes),
					     l->bytes_min > limits->bytes ? ""
					     : l->lost                    ? ", or less: events were lost"
									  : ""),
			       NULL);
	if (l->unproven && (limits->bytes_per_s != UINT64_MAX || limits->bytes_per_step != UINT64_MAX))
		failed = fails(
			ci, "growth not known",
			output_format(
				"events were lost, so whether %s grew can't be told and a limit on growth can't be checked",
				BYTES(l->unproven)),
			NULL);
	if (limits->bytes_per_step != UINT64_MAX && !stepped)
		failed = fails(ci, "no steps",
			       output_format("no steps were found in this trace, so a limit per step can't be checked"),
			       NULL);
	return failed;
}

void leaks_add_growing(const struct leaks *l, struct ci *ci)
{
	size_t count;
	struct leak_group *list = leaks_groups(l, &count);
	for (size_t i = 0; i < count && i < selection_rows(l->selection, LEAKS_ROWS); i++) {
		const struct owner_growth *t = list[i].most->owner_growth;
		char *name = leaks_group_name(l, &list[i]),
		     *grows = rate_text(&list[i], list[i].rate, t->growth.stepped ? "step" : "s");
		ci_add(ci, false, "growth",
		       output_format("%s: grows by %s, certainty %s", name ? name : "", grows ? grows : "",
				     certainty_name(list[i].certainty)),
		       list[i].most->owner->frame ? list[i].most->owner->frame->file : NULL,
		       list[i].most->owner->frame ? list[i].most->owner->frame->line : 0);
		free(name);
		free(grows);
	}
	free(list);
}
