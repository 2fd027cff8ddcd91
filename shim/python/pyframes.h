/*
 * The Python frames of the calling thread as a node of the call tree. Nothing of the interpreter is called but
 * what returns the thread's own state; neither the GIL nor any lock is taken, and nothing is allocated from the
 * heap. Async-signal-safe.
 */
#ifndef MT_PYTHON_PYFRAMES_H
#define MT_PYTHON_PYFRAMES_H

#include <stdint.h>

#include "format/format.h"

struct mt_python; /* one ring's memory of its previous capture; lives in pages the ring owns */

/* Bytes of one struct mt_python for the configured depth. */
uint64_t mt_python_bytes(void);

/* Another thread will use it: forgets what it knows of the last one. */
void mt_python_reset(struct mt_python *python);

/* Before a capture of the thread with this index: may it be one of autograd's engine? Then mt_python_meet() is to be
 * told its native stack's node. */
int mt_python_is_new(struct mt_python *python, uint32_t thread);
void mt_python_meet(struct mt_python *python, uint32_t native);

/* The node of the calling thread's Python stack; `thread` is its index, `e` the event that is recorded, or NULL.
 *
 *   no Python, or the first thread       0 if it has no frames
 *   another thread without frames        a node that names the thread, and where the first thread is
 *   a thread of autograd's engine        frames, if any, have as outermost caller a node that names the thread, and
 *                                        that has as its caller the Python stack that started the backward pass
 *
 * Sets *truncated if frames are missing. */
uint32_t mt_python_capture(struct mt_python *python, uint32_t thread, const struct mt_event *e, int *truncated);

#endif
