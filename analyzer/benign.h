/* What programs usually keep until the end: caches of loader, libraries and interpreter. The table is benign.def. */
#ifndef MT_ANALYZER_BENIGN_H
#define MT_ANALYZER_BENIGN_H

#include "analyzer/stacks.h"

/* Why blocks of this stack are no leak; NULL = they may be one. One string a reason, so that pointers compare. Fits
 * sites_query.fold. */
const char *benign_stack(struct stacks *s, uint32_t stack);

/* The same without what the program's own Python code does while it is imported: a program may do all its work there. */
const char *benign_library(struct stacks *s, uint32_t stack);

#endif
