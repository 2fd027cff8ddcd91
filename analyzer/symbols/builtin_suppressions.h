/* What programs usually keep until the end: caches of loader, libraries and interpreter. The table is
 * builtin_suppressions.def. */
#ifndef MT_SYMBOLS_BUILTIN_SUPPRESSIONS_H
#define MT_SYMBOLS_BUILTIN_SUPPRESSIONS_H

#include "analyzer/symbols/stacks.h"

/* Why blocks of this stack are no leak; NULL = they may be one. One string a reason, so that pointers compare. Fits
 * owners_query.fold. */
const char *builtin_suppressed_stack(struct stacks *s, uint32_t stack);

/* The same without what the program's own Python code does while it is imported: a program may do all its work there.
 * */
const char *builtin_suppressed_library(struct stacks *s, uint32_t stack);

#endif
