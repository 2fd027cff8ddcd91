/* Is a slot possible at all? Used where slots come from a file. */
#ifndef MT_UTIL_EVENT_CHECK_H
#define MT_UTIL_EVENT_CHECK_H

#include "format/format.h"

#define EVENT_MAX_THREADS (1u << 22) /* of one process, ever: bounds tables that are indexed by thread */

/* Ticks behind this are no time that can have been: a day from now. Per image, see stream_new(). */
struct slot_limits {
	uint64_t ticks;
};

/* NULL, or what is wrong with s. `next` is the slot behind it or NULL. */
static inline const char *slot_problem(const struct mt_event *s, const struct mt_event *next,
				       const struct slot_limits *l)
{
	if (s->ticks > l->ticks)
		return "a time in the future";
	if (mt_has_ext(s->kind) && (!next || next->kind != MT_EXT))
		return "no second slot";
	switch (s->kind) {
	case MT_ALLOC:
	case MT_FREE:
	case MT_DEVICE_ALLOC:
	case MT_DEVICE_FREE:
		return s->addr ? NULL : "no address";
	case MT_UNMAP: /* before the call, with what the program asked for: munmap(NULL, 0), cuMemUnmap(-1, n) */
	case MT_DEVICE_UNMAP:
	case MT_UNDO: /* of such a one */
	case MT_DEVICE_UNDO:
	case MT_FAIL:
	case MT_LOST:
	case MT_DEVICE_FAIL:
	case MT_DEVICE_RESET:
	case MT_DEVICE_INFO:
	case MT_MARK:
		return NULL;
	case MT_FOLD:
		return next->node < EVENT_MAX_THREADS ? NULL : "an impossible thread";
	case MT_MAP:
	case MT_DEVICE_MAP:
		return s->addr + s->size < s->addr ? "a range beyond the end of memory" : NULL;
	case MT_EXT:
		return "a second slot without a first";
	case MT_THREAD:
		return s->addr < EVENT_MAX_THREADS ? NULL : "an impossible thread";
	default:
		return "an unknown kind";
	}
}

#endif
