/*
 * The Python frames of the calling thread as a node of the call tree. Nothing of the interpreter is called but
 * what returns the thread's own state; neither the GIL nor any lock is taken, and nothing is allocated from the
 * heap. Async-signal-safe.
 */
#ifndef MT_PYFRAMES_H
#define MT_PYFRAMES_H

#include <stdint.h>

#include "format/format.h"

struct mt_python; /* one ring's memory of its previous capture; lives in pages the ring owns */

/* Bytes of one struct mt_python for the configured depth. */
uint64_t mt_python_bytes(void);

/* Before a capture of the thread with this index: may it be one of autograd's engine? Then mt_python_meet() is to be
 * told its native stack's node. */
int mt_python_is_new(struct mt_python *python, uint32_t thread);
void mt_python_meet(struct mt_python *python, uint32_t native);

/* 0 if there is no Python, or no frame of it in the first thread; in others without frames a node that names `thread`
 * and where the first thread is (`e`: what is recorded, or NULL). In threads of autograd's engine that node, without
 * the latter, is the outermost frame's caller in any case, and its own caller is the Python stack that began the pass.
 * Sets *truncated if frames are missing. */
uint32_t mt_python_capture(struct mt_python *python, uint32_t thread, const struct mt_event *e, int *truncated);

#endif
