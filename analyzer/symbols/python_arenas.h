/* Python's arenas: what its object allocator (pymalloc) maps, 1 MiB at a time (256 KiB before 3.10), for objects of
 * whoever comes next. Who happened to need a new one says nothing about whose objects are in it. */
#ifndef MT_SYMBOLS_PYTHON_ARENAS_H
#define MT_SYMBOLS_PYTHON_ARENAS_H

#include "analyzer/symbols/stacks.h"

#define PYTHON_ARENAS_LABEL "Python objects (pymalloc arenas)"
#define PYTHON_ARENAS_HINT  "MEMTRACE_PYTHON_ALLOCATORS=1 shows whose"

/* Whether mappings of this stack, so many of so many bytes together, are arenas. An interpreter without symbols is
 * known by what it maps: blocks of just that size, from two functions of its own that no call of Python code leads to.
 * */
bool python_arenas_is(struct stacks *s, uint32_t stack, uint64_t bytes, uint64_t blocks);

/* PYTHON_ARENAS_LABEL, or another string that begins so where the interpreter was importing or starting; NULL: no
 * arena. */
const char *python_arenas_label(struct stacks *s, uint32_t stack, uint64_t bytes, uint64_t blocks);
bool python_arenas_is_label(const char *label); /* one of these two */

#endif
