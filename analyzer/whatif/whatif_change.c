#include "analyzer/whatif/whatif_change.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define BATCH       "batch="
#define MOST_FACTOR 1e6

enum answer { UNASKED = 0, NO, YES };

struct whatif_change {
	struct selection *sel;
	double factor;
	char *place; /* FILE:LINE; NULL: regex, or batch */
	regex_t regex;
	bool has_regex, batch, least, calls;
	uint32_t *stacks; /* in order; NULL: not asked by stack */
	size_t stack_count;
	unsigned char *answers; /* by index_of() the stack: enum answer */
	size_t room;
};

void whatif_change_free(struct whatif_change *c)
{
	if (!c)
		return;
	if (c->has_regex)
		regfree(&c->regex);
	free(c->place);
	free(c->stacks);
	free(c->answers);
	free(c);
}

bool whatif_is_batch(const char *text)
{
	return !strncmp(text, BATCH, strlen(BATCH));
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static bool is_place(const char *pattern)
{
	const char *colon = strrchr(pattern, ':');
	return colon && colon > pattern && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")] &&
	       !strpbrk(pattern, " *|()[]^$\\+?");
}

static int compile(struct whatif_change *c, const char *option, const char *pattern)
{
	char why[256];
	if (is_place(pattern)) {
		c->place = strdup(pattern);
		return c->place ? 0 : error_memory();
	}
	int code = *pattern ? regcomp(&c->regex, pattern, REG_EXTENDED | REG_NOSUB) : REG_BADPAT;
	c->has_regex = !code;
	if (!code)
		return 0;
	regerror(code, &c->regex, why, sizeof(why));
	return error_set(MT_EUSAGE, option, ERROR_NO_OFFSET, "%s: %s", pattern, why);
}

int whatif_without(struct whatif_change **out, struct selection *sel, const char *text)
{
	struct whatif_change *c = *out = calloc(1, sizeof(*c));
	if (!c)
		return error_memory();
	c->sel = sel;
	return compile(c, "--without", text);
}

int whatif_without_stacks(struct whatif_change **out, struct selection *sel, uint32_t *stacks, size_t count, bool calls)
{
	struct whatif_change *c = *out = calloc(1, sizeof(*c));
	if (!c) {
		free(stacks);
		return error_memory();
	}
	*c = (struct whatif_change){ .sel = sel, .stacks = stacks, .stack_count = count, .calls = calls };
	if (count)
		qsort(stacks, count, sizeof(*stacks), by_number);
	return 0;
}

int whatif_scale(struct whatif_change **out, struct selection *sel, const char *text, bool least)
{
	struct whatif_change *c = *out = calloc(1, sizeof(*c));
	const char *equals = strrchr(text, '=');
	char *pattern = NULL, *end = NULL;
	if (!c)
		return error_memory();
	c->sel = sel;
	c->batch = whatif_is_batch(text);
	c->least = least;
	c->factor = equals ? strtod(equals + 1, &end) : 0;
	if (!equals || end == equals + 1 || *end || !(c->factor > 0 && c->factor <= MOST_FACTOR))
		return error_set(MT_EUSAGE, "--scale", ERROR_NO_OFFSET, "%s: it is like train.py:73=2, or batch=2",
				 text);
	if (c->batch)
		return 0;
	pattern = strndup(text, (size_t)(equals - text));
	int e = pattern ? compile(c, "--scale", pattern) : error_memory();
	free(pattern);
	return e;
}

double whatif_change_factor(const struct whatif_change *c)
{
	return c->factor > 0 ? c->factor : 1;
}

/* ---- which stacks ------------------------------------------------------------------------------------------ */

static bool is_at(const struct whatif_change *c, const struct frame *f)
{
	const char *base = f->file ? strrchr(f->file, '/') : NULL, *colon = strrchr(c->place, ':');
	const size_t length = (size_t)(colon - c->place);
	const char *files[] = { f->file, base ? base + 1 : NULL };
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (files[i] && strlen(files[i]) == length && !memcmp(files[i], c->place, length))
			return f->line == strtoul(colon + 1, NULL, 10);
	return false;
}

static bool frame_matches(const struct whatif_change *c, const struct frame *f)
{
	if (c->place)
		return is_at(c, f);
	char *shown = frame_where(f);
	const char *texts[] = { f->function, f->name, f->file, f->library, shown };
	bool found = false;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts) && !found; i++)
		found = texts[i] && regexec(&c->regex, texts[i], 0, NULL, 0) == 0;
	free(shown);
	return found;
}

/* What has a row for each sample surely is larger; what a model is made of is not. Of the rest nobody knows: gradients
 * are those of activations, too, and libraries' workspaces are as large as they choose. */
static bool is_of_batch(const struct whatif_change *c, uint32_t stack)
{
	switch (categories_of(c->sel->categories, stack, LIFETIME_UNKNOWN)) {
	case CATEGORY_activations:
	case CATEGORY_input_pipeline:
		return true;
	case CATEGORY_parameters:
	case CATEGORY_optimizer:
	case CATEGORY_checkpoint:
	case CATEGORY_comm:
	case CATEGORY_context:
		return false;
	default:
		return !c->least;
	}
}

static bool is_listed(const struct whatif_change *c, uint32_t whole)
{
	struct stack_walk w = { .next = whole };
	do
		if (bsearch(&w.next, c->stacks, c->stack_count, sizeof(w.next), by_number))
			return true;
	while (c->calls && stack_step(c->sel->stacks, &w));
	return false;
}

static bool stack_matches(const struct whatif_change *c, uint32_t stack)
{
	struct stack_walk w = { .next = stack };
	if (c->batch)
		return is_of_batch(c, stack);
	if (c->stacks)
		return is_listed(c, stacks_merged(c->sel->stacks, stack));
	while (stack_step(c->sel->stacks, &w))
		if (frame_matches(c, w.frame))
			return true;
	return false;
}

/* Dense: nodes, and pairs of them with the highest bit set, are both numbered from 0 on. */
static uint32_t index_of(uint32_t stack)
{
	return stack << 1 | stack >> 31;
}

double whatif_factor(void *arg, const struct process *p, uint32_t node, uint32_t node2)
{
	struct whatif_change *c = arg;
	const uint32_t stack = stacks_of(c->sel->stacks, p, node, node2), at = index_of(stack);
	if (vec_reserve(c->answers, c->room, at + 1ul))
		return 1;
	if (c->answers[at] == UNASKED)
		c->answers[at] = stack_matches(c, stack) ? YES : NO;
	return c->answers[at] == YES ? c->factor : 1;
}
