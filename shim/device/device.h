/*
 * What the hooks of all device libraries share: which call is the outermost, what the trace calls a device, and what a
 * call that allocates or frees leaves in the trace.
 */
#ifndef MT_DEVICE_DEVICE_H
#define MT_DEVICE_DEVICE_H

#include <stdint.h>

#include "format/format.h"
#include "shim/base/state.h"

#define MT_ORDINALS 64 /* devices of a backend that have a number in the trace */

/* ---- the outermost call ---- */

/* The outermost device call that this thread is in: its frame, and the return address there. Functions of a runtime
 * call those of the driver, which are wrapped too, and only the outermost call is an event. A call that was left by
 * longjmp is recognized: its frame lies further in than the current one, or the return address there was overwritten
 * since. */
struct mt_call {
	const uintptr_t *frame;
	uintptr_t ret;
};

extern __thread struct mt_call mt_device_call __attribute__((visibility("hidden")));

#define MT_CALL_DEPTH ((uintptr_t)1 << 20) /* the most bytes of stack between a call and one nested in it */

/* Nonzero: this call is an event, and mt_call_end() must follow. On x86-64 and aarch64 a frame begins with the caller's
 * frame pointer and the return address. */
static inline __attribute__((always_inline)) int mt_call_begin(void)
{
	const uintptr_t *frame = __builtin_frame_address(0), *outer = mt_device_call.frame;

	if (__builtin_expect(mt_process_state() == MT_STATE_OFF, 0) ||
	    (outer && outer != frame && (uintptr_t)outer - (uintptr_t)frame < MT_CALL_DEPTH &&
	     outer[1] == mt_device_call.ret))
		return 0;
	mt_device_call.frame = frame;
	mt_device_call.ret = frame[1];
	return 1;
}

static inline void mt_call_end(void)
{
	mt_device_call.frame = NULL;
}

/* ---- devices ---- */

struct mt_device_facts {
	char uuid[80]; /* "GPU-..."; empty = unknown */
	char model[128];
	uint64_t total; /* bytes; 0 = unknown */
};

/* Fills in `facts` by asking the driver, which is not initialised. Keeps errno. */
typedef void mt_describe(unsigned ordinal, struct mt_device_facts *facts);

/* The id in the trace (MT_REC_DEVICE.id) of the process's device `ordinal`, which is recorded when it is first used in
 * this process. 0 = there are more devices than the shim keeps, or nothing is recorded now. */
uint32_t mt_device_id(enum mt_backend backend, unsigned ordinal, mt_describe *describe);

/* In a forked child: forgets the devices, which are then recorded again. */
void mt_device_reset(void);

/* ---- what a call did ---- */

struct mt_device_event {
	unsigned hook;
	enum mt_class class;
	uint64_t addr, bytes, stream, other;
	uint64_t error;   /* of a failure: `bytes` are rounded by so many at most */
	uint32_t device;  /* MT_REC_DEVICE.id or 0 */
	uint32_t capture; /* for blocks of a pool: see struct mt_ext_device */
	const void *caller;
	/* no call of this thread's: the stacks of who asked, or `told` alone, of who says that it was there (seen.h) */
	uint32_t native, told;
};

/* Record the event. Both keep errno. */
void mt_device_note(enum mt_kind kind, const struct mt_device_event *event);

/* Records a failed request, with the driver's `status`; before it, unless total is 0, an MT_DEVICE_INFO with the
 * device's free and total bytes. The recorder is told, which then takes samples at once. */
void mt_device_note_failure(const struct mt_device_event *event, uint32_t status, uint64_t free, uint64_t total);

#endif
