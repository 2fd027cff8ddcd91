/* Memory that programs usually keep until the end, and that is no leak: caches of loader, libraries and interpreter.
 * The table is builtin_suppressions.def. */
#ifndef MT_SYMBOLS_BUILTIN_SUPPRESSIONS_H
#define MT_SYMBOLS_BUILTIN_SUPPRESSIONS_H

#include "analyzer/symbols/stacks.h"

/* Why blocks of this stack are no leak; NULL = they may be one: a program's own Python code works wherever it runs,
 * also while it is imported. Equal reasons are one string, so pointers can be compared. Can be used as
 * owners_query.fold. */
const char *builtin_suppressed_stack(struct stacks *s, uint32_t stack);

/* The same, as far as Python's frames tell: no library's symbols are read for that. */
const char *builtin_suppressed_import(struct stacks *s, uint32_t stack);

#endif
