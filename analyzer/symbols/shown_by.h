/* Whose memory it is that no line of the program asked for: what shows it where a library allocates on threads of its
 * own, or with an allocator that is linked in, and which tool made it. The table is shown_by.def. */
#ifndef MT_SYMBOLS_SHOWN_BY_H
#define MT_SYMBOLS_SHOWN_BY_H

#include "analyzer/symbols/stacks.h"

/* The setting, as a program writes it, with which blocks of this stack would have a line of the program. NULL = they
 * have one, or no library in the table made them. */
const char *worker_setting(struct stacks *s, uint32_t stack);

/* The environment variable with which the allocator of this library would call malloc. NULL = none is known; so may
 * `library` be. */
const char *allocator_setting(const char *library);

/* A profiler of the program's own, which keeps what it has seen. */
struct tool {
	const char *name, *native, *python; /* the patterns by which it is known */
	const char *advice;                 /* what makes it keep less, as "keeps all: stop it" */
};

/* Whose blocks of this stack are; NULL = the program's. */
const struct tool *tool_of(struct stacks *s, uint32_t stack);

#endif
