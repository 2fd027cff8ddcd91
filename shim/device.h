/*
 * What the hooks of all device libraries share: which call is the outermost, what the trace calls a device, and what a
 * call that allocates or frees leaves in the trace.
 */
#ifndef MT_DEVICE_H
#define MT_DEVICE_H

#include <stdint.h>

#include "format/format.h"
#include "shim/process.h"

/* ---- the outermost call ---- */

/* The outermost device call this thread is in: its frame, and the return address in it. A runtime's function enters the
 * driver's, which are wrapped too: only the outermost is an event. One that was left by longjmp is known by lying
 * further in than we are, or by its memory having been used for something else since. */
struct mt_call {
	const uintptr_t *frame;
	uintptr_t ret;
};

extern __thread struct mt_call mt_device_call __attribute__((visibility("hidden")));

#define MT_CALL_DEPTH ((uintptr_t)1 << 20) /* bytes of stack between two that nest */

/* Nonzero: this call is an event, mt_call_end() must follow. On both machines a frame begins with the caller's frame
 * pointer and the return address. */
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

/* Asks the driver, without initialising it. Keeps errno. */
typedef void mt_describe(unsigned ordinal, struct mt_device_facts *facts);

/* MT_REC_DEVICE.id of the process's device `ordinal`; recorded when it is first used in this process. 0 = more devices
 * than we keep, or nothing is recorded now. */
uint32_t mt_device_id(enum mt_backend backend, unsigned ordinal, mt_describe *describe);

/* A forked child records its devices anew. */
void mt_device_reset(void);

/* ---- what a call did ---- */

struct mt_device_event {
	unsigned hook;
	enum mt_class class;
	uint64_t addr, bytes, stream, other;
	uint32_t device;  /* MT_REC_DEVICE.id or 0 */
	uint32_t capture; /* of blocks of a pool, see mt_ext_device */
	const void *caller;
};

/* These keep errno. */
void mt_device_note(enum mt_kind kind, const struct mt_device_event *event);

/* After MT_DEVICE_INFO where free and total are known (total != 0); tells the recorder. */
void mt_device_note_failure(const struct mt_device_event *event, uint32_t status, uint64_t free, uint64_t total);

#endif
