/*
 * What memory is for, told from a table of rules over stacks (categories.def, and a file of the user's) and from
 * labels. What neither says is "unknown", which is shown like the others.
 */
#ifndef MT_SYMBOLS_CATEGORIES_H
#define MT_SYMBOLS_CATEGORIES_H

#include "analyzer/symbols/stacks.h"

/* clang-format off */
#define CATEGORY_NAMES(NAME)                                                                                       \
	NAME(parameters) NAME(gradients) NAME(optimizer) NAME(activations) NAME(kv_cache) NAME(workspace) NAME(comm) \
	NAME(input_pipeline) NAME(checkpoint) NAME(caches) NAME(context) NAME(unknown)
/* clang-format on */

enum category {
#define NAME(name) CATEGORY_##name,
	CATEGORY_NAMES(NAME)
#undef NAME
		CATEGORIES
};

/* When a block was made, seen from the moment that is looked at. */
enum lifetime { LIFETIME_UNKNOWN = 0, LIFETIME_SETUP, LIFETIME_FIRST_STEP, LIFETIME_STEP, LIFETIMES };

struct categories;

/* `rules_file` may be NULL. -MT_EUSAGE with file, line and reason where it can't be read. */
int categories_new(struct categories **out, struct stacks *s, const char *rules_file);
void categories_free(struct categories *);

enum category categories_of(struct categories *, uint32_t stack, enum lifetime lifetime);

/* "gradients:layer1.weight" and "gradients" are gradients; CATEGORIES if the label says nothing about it. */
enum category category_of_label(const char *label);

const char *category_name(enum category c);

#endif
