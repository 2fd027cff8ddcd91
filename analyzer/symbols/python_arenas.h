/* Python's arenas: mappings of 1 MiB (256 KiB before 3.10) that its object allocator, pymalloc, makes and fills with
 * objects of any code. So the stack that mapped an arena does not say whose objects are in it. */
#ifndef MT_SYMBOLS_PYTHON_ARENAS_H
#define MT_SYMBOLS_PYTHON_ARENAS_H

#include "analyzer/symbols/stacks.h"

#define PYTHON_ARENAS_LABEL "Python objects (pymalloc arenas)"
#define PYTHON_ARENAS_HINT  "MEMTRACE_PYTHON_ALLOCATORS=1 shows whose"

/* Whether mappings of this stack, `blocks` of `bytes` in all, are arenas. An interpreter without symbols is known by
 * what it maps: blocks of just that size, from two functions of its own that no call of Python code leads to. */
bool python_arenas_is(struct stacks *s, uint32_t stack, uint64_t bytes, uint64_t blocks);

/* The name for such mappings: PYTHON_ARENAS_LABEL or, if the interpreter was importing or starting, a longer string
 * that begins with it. NULL = they are no arenas. */
const char *python_arenas_label(struct stacks *s, uint32_t stack, uint64_t bytes, uint64_t blocks);
bool python_arenas_is_label(const char *label); /* one of these two strings */

#endif
