/*
 * From a hook to the ring. Every function here keeps errno, never allocates, and may be called in a signal
 * handler, at any depth, before the constructors and after the destructors.
 *
 * Order: a free (unmap) is recorded before the real call and an allocation after it. So whoever gets the
 * address next is stamped later, and what has returned to the program is in the ring.
 */
#ifndef MT_TRACE_RECORD_H
#define MT_TRACE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "shim/base/state.h"
#include "shim/stack/stack.h"
#include "shim/trace/young.h"

/* Nonzero if nothing is to be recorded, nor done before it is known: the hooks of the heap then call the real function
 * and are done. Tested before any clock is read, too: a strict sandbox has none. */
static inline int mt_record_is_off(void)
{
	uint32_t state = mt_process_state();

	return __builtin_expect(state == MT_STATE_OFF || (state == MT_STATE_PAUSED && !mt_process_is_asked()), 0);
}

/* `caller` is the hook's return address, for stacks that can't be captured; `frame` is MT_FRAME in the hook, which is
 * still there (no tail call), or NULL. `kind`: what failed, with MT_TRIAL maybe. */
void mt_record_alloc(unsigned hook, const void *p, size_t bytes, const void *caller, const struct mt_frame *frame);
void mt_record_free(unsigned hook, const void *p);
void mt_record_undo(unsigned hook, const void *p);

/* The same where only picked blocks leave events (sampled.h), of a block that the hook has not counted itself. */
void mt_record_sampled(unsigned hook, const void *p, size_t bytes, const void *caller, const struct mt_frame *frame);
void mt_record_sampled_free(unsigned hook, const void *p);

/* What a realloc did with the old block before the real call. */
struct mt_record_taken {
	struct mt_young_taken young;
	int picked; /* it was a picked one */
};

/* Of a realloc, before the real call, in the place of mt_record_free(): a young block is only taken out. Nonzero: after
 * the call mt_record_freed() is due. If the block was not freed, mt_record_kept() is due, whatever this returned. */
int mt_record_take(unsigned hook, const void *p, struct mt_record_taken *taken);
void mt_record_freed(struct mt_record_taken *taken);
void mt_record_kept(unsigned hook, const void *p, struct mt_record_taken *taken);

void mt_record_map(unsigned hook, const void *p, size_t bytes, const struct mt_ext_map *ext, const void *caller);
void mt_record_unmap(unsigned hook, const void *p, size_t bytes);
/* A device event or a mark: `kind` is one of MT_DEVICE_* or MT_MARK, `ext` is copied. `caller` NULL = without a stack.
 * */
void mt_record_device(enum mt_kind kind, unsigned hook, uint64_t addr, uint64_t size, const struct mt_ext_device *ext,
		      const void *caller);
/* The same of what is no call of the thread's, with stacks that were taken or made for it. */
void mt_record_told(enum mt_kind kind, unsigned hook, uint64_t addr, uint64_t size, const struct mt_ext_device *ext,
		    uint32_t native, uint32_t python);
void mt_record_fail(unsigned hook, unsigned kind, size_t bytes, const void *caller);

/* Nonzero if an event would be recorded now. In a process that is new it first does mt_process_enter(). */
int mt_record_enter(void);

/* The nodes of the calling thread's stacks, as an event would have them. 0 = nothing is recorded, or no stacks are. */
int mt_record_stacks(uint32_t *native, uint32_t *python);

/* The block of the heap at `p` was asked for by these stacks, though another thread has made the call. */
void mt_record_owner(const void *p, uint32_t native, uint32_t python);

/* Between on and off the calling thread's allocations are ours (dlopen of the unwinder), not the program's. */
void mt_record_mute(int on);

/* The calling thread is about to have a child that runs in its memory at the same time, and with its thread-local
 * storage. What that child does is not recorded, but counted as lost. */
void mt_record_share(void);

/* The calling thread is about to fork: what the child inherits is published. */
void mt_record_before_fork(void);

/* Forgets the calling thread's rings: they belonged to the parent of a fork. */
void mt_record_reset(void);

#endif
