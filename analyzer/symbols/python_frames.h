/*
 * Python frames: what a node of the Python tree is, and what is needed to make one stack of it and the native stack.
 *
 * The interpreter runs Python code in its evaluator, a C function. C enters an evaluator for one Python frame, marked
 * MT_PY_ENTRY; calls from Python to Python are then run by the same evaluator. So each evaluator frame of the native
 * stack stands for a run of Python frames, whose outermost is the marked one. The two are matched from the innermost
 * end, which also works where a stack was cut at its outer end.
 */
#ifndef MT_SYMBOLS_PYTHON_FRAMES_H
#define MT_SYMBOLS_PYTHON_FRAMES_H

#include "analyzer/reader/reader.h"
#include "analyzer/symbols/module/symbols.h"

struct python;

struct python *python_new(void);
void python_free(struct python *);

/* The frame for the pc of a node of this process; the same pointer for the same place in all processes. For a thread
 * without Python it is a frame in the language "thread": its function is the thread's name, its line the one at which
 * the first thread was then. NULL = the pc only marks that an evaluator was entered, or there is no memory. */
const struct frame *python_frame(struct python *, const struct process *p, uint64_t pc);

bool python_is_frame(const struct frame *f);

/* The name of the thread that a frame in the language "thread" stands for; NULL = it is another frame. */
const char *python_thread(const struct frame *f);

/* For a thread that was given no name: a frame that is named after `start`, its outermost native function (NULL =
 * unknown). Else `thread` itself. */
const struct frame *python_thread_role(struct python *, const struct frame *thread, const struct frame *start);

/* Whether one of these frames, the innermost at an address and those that it is inlined into, is an evaluator. */
bool python_is_evaluator(const struct frame *frames, size_t count);

/* Whether the frame is plumbing: it only leads from one place to another, as in importing or starting a thread. */
bool python_is_plumbing(const struct frame *f);

/* Whether the file belongs to Python itself or to an installed package rather than to the program. */
bool python_is_library(const char *file);

#endif
