/* What somebody may have meant who typed a word that is not in a list. */
#ifndef MT_UTIL_SUGGEST_H
#define MT_UTIL_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* The nearest word so far; all zero, but `text`, to begin with. */
struct suggestion {
	const char *text; /* what was typed; borrowed */
	const char *best; /* borrowed; NULL = nothing comes near */
	size_t distance;
};

/* Looks at one word of the list. Its beginning counts as near, and up to a third of its letters, rounded up, wrong,
 * missing, too many or swapped with a neighbour. */
void suggest(struct suggestion *s, const char *word);

#endif
