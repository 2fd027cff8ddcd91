/*
 * Python frames: what a node of the Python tree is, and how its stack and the native one become one.
 *
 * The interpreter runs Python code in its evaluator, a C function. Each evaluator frame of the native stack stands for
 * a run of Python frames: an evaluator is entered from C for the outermost of them (MT_PY_ENTRY) and runs calls from
 * Python to Python itself. Counting both from the innermost end gives the native evaluator frame of each run, also when
 * a stack was cut at its outer end.
 */
#ifndef MT_SYMBOLS_PYTHON_FRAMES_H
#define MT_SYMBOLS_PYTHON_FRAMES_H

#include "analyzer/reader/reader.h"
#include "analyzer/symbols/symbols.h"

struct python;

struct python *python_new(void);
void python_free(struct python *);

/* The frame for a node's pc of this process. One and the same for the same place in all processes; of a thread without
 * Python a frame in the language "thread", with its name as function, and with the line at which the first thread was
 * then. NULL for a pc that only says that an evaluator was entered, or when there is no memory. */
const struct frame *python_frame(struct python *, const struct process *p, uint64_t pc);

bool python_is_frame(const struct frame *f);

/* The name of the thread that it stands for; NULL: it is another frame. */
const char *python_thread(const struct frame *f);

/* The same frame, but if nobody gave that thread a name it is called after its outermost native function (NULL =
 * unknown). */
const struct frame *python_thread_role(struct python *, const struct frame *thread, const struct frame *start);

/* Whether the innermost of these frames, or what it is inlined into, is an evaluator. */
bool python_is_evaluator(const struct frame *frames, size_t count);

/* Whether the frame only leads from one place to another: importing, starting a thread or a module. */
bool python_is_plumbing(const struct frame *f);

/* Whether the file belongs to Python itself or to an installed package rather than to the program. */
bool python_is_library(const char *file);

#endif
