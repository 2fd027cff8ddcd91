/*
 * Python code objects by address: each is recorded once in the log, and known by an id from then on.
 *
 * A loop of compile and exec gets the same address for its code, its names and everything it consists of again and
 * again, so nothing short of comparing contents on every capture could tell one code object from the next. Instead
 * their deaths are watched: the type's tp_dealloc leads through this library, which forgets the address.
 */
#ifndef MT_PYTHON_PYCODE_H
#define MT_PYTHON_PYCODE_H

#include <stdint.h>

#include "format/format.h"
#include "shim/python/pyfind.h"

/* Begins to watch, once the interpreter runs. 0 = it can't be watched, so that ids can't be relied upon. */
int mt_pycode_watch(struct mt_pyruntime *rt);

/* The code of a frame that no program has: CPython 3.13 and later put one between a class and its __init__() once they
 * have specialized the call (_Py_InitCleanup). One static object of an interpreter, of no line of any file. */
#define MT_PYCODE_PLUMBING (MT_PY_MAX_CODE + 1)

/* Id of the code object at `code`; 0 if it is none or no more can be recorded. Async-signal-safe. */
uint32_t mt_pycode_id(const struct mt_pyruntime *rt, uintptr_t code);

/* Id of code that there is none of: a name for what has no line. 0 = no more can be recorded. */
uint32_t mt_pycode_named(const char *name);

/* The text of a str, as UTF-8, cut; "" if it is none. Uses memory that one caller at a time may use: whoever holds
 * mt_process.lock, or runs alone. `to` has room for MT_PYCODE_TEXT bytes. */
#define MT_PYCODE_TEXT 2049u
void mt_pycode_text(const struct mt_pyruntime *rt, uintptr_t text, char *to);

/* Changes whenever a code object that had an id has died: whatever was worked out from addresses of code is then
 * void. */
extern uint32_t mt_pycode_deaths;

struct mt_tables;
void mt_pycode_tables(struct mt_tables *t);

#endif
