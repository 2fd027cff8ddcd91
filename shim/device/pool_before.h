/*
 * What PyTorch's caching allocator had before recording began, as its own snapshot says: in a program that was attached
 * to, or that recording was switched on in later. Each block in use becomes an event as of its allocation, and so does
 * each segment. Their stack is one frame that says where they are from.
 *
 * The allocator is asked by the interpreter's main thread, between two instructions of the program's, where a Python
 * signal handler would run: by Py_AddPendingCall(). That is called when the pool is first used, so a program that
 * doesn't use it is left alone. Nothing is imported or initialised, and no error stays.
 */
#ifndef MT_DEVICE_POOL_BEFORE_H
#define MT_DEVICE_POOL_BEFORE_H

#include "shim/device/seen.h"

/* In a hook of the pool. */
void mt_pool_before_want(void);

static inline void mt_pool_before_look(void)
{
	if (__builtin_expect(mt_seen_on, 0))
		mt_pool_before_want();
}

#endif
