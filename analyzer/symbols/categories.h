/*
 * Categories: what memory is for. Rules over stacks tell (categories.def, and a file of the user's), and labels that
 * the program gave. Where neither says, the category is "unknown", which is shown like the others.
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

/* In which part of the run a block was allocated, seen from the moment that is looked at. */
enum lifetime { LIFETIME_UNKNOWN = 0, LIFETIME_SETUP, LIFETIME_FIRST_STEP, LIFETIME_STEP, LIFETIMES };

struct categories;

/* `rules_file` may be NULL. 0, or -MT_EUSAGE with file, line and reason if a rule can't be read. `s` is borrowed. */
int categories_new(struct categories **out, struct stacks *s, const char *rules_file);
void categories_free(struct categories *);

/* The category of blocks of a stack (an id of `s`) that were allocated in that part of the run. */
enum category categories_of(struct categories *, uint32_t stack, enum lifetime lifetime);

/* The category that a label names: of "gradients:layer1.weight" and of "gradients" it is gradients. CATEGORIES =
 * none. */
enum category category_of_label(const char *label);

const char *category_name(enum category c);

#endif
