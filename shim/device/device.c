#include <errno.h>
#include <string.h>

#include "shim/base/holders.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/device/device.h"
#include "shim/device/seen.h"
#include "shim/host/heap.h"
#include "shim/trace/record.h"
#include "shim/trace/recorder.h"

#define BACKENDS 6u

__thread struct mt_call mt_device_call;

static uint16_t ids[BACKENDS][MT_ORDINALS]; /* written under mt_process.lock */
static uint16_t count;

void mt_device_reset(void)
{
	memset(ids, 0, sizeof(ids));
	count = 0;
	mt_seen_end();
}

/* Under the lock. */
static void write_device(enum mt_backend backend, unsigned ordinal, const struct mt_device_facts *facts)
{
	struct mt_rec_device rec = {
		.id = ++count, .backend = backend, .ordinal = ordinal, .total_bytes = facts->total
	};

	mt_log_write(MT_REC_DEVICE,
		     (struct mt_part[]){ { &rec, sizeof(rec) },
					 { facts->uuid, strlen(facts->uuid) + 1 },
					 { facts->model, strlen(facts->model) + 1 } },
		     3);
	/* release: who names the device finds its record complete */
	__atomic_store_n(&ids[backend][ordinal], (uint16_t)rec.id, __ATOMIC_RELEASE);
}

static uint32_t add(enum mt_backend backend, unsigned ordinal, mt_describe *describe)
{
	struct mt_device_facts facts = { .total = 0 };
	uint64_t signals;

	if (!mt_record_enter() || mt_process_sandboxed())
		return 0;
	describe(ordinal, &facts);
	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		if (!ids[backend][ordinal]) /* nobody was faster */
			write_device(backend, ordinal, &facts);
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
	return ids[backend][ordinal];
}

uint32_t mt_device_id(enum mt_backend backend, unsigned ordinal, mt_describe *describe)
{
	uint32_t id;

	if (backend >= BACKENDS || ordinal >= MT_ORDINALS)
		return 0;
	/* a child that has not recorded anything yet still has its parent's: entering resets them */
	if (mt_process_state() != MT_STATE_ACTIVE && !mt_record_enter())
		return 0;
	id = __atomic_load_n(&ids[backend][ordinal], __ATOMIC_ACQUIRE);
	return id ? id : add(backend, ordinal, describe);
}

static void record(enum mt_kind kind, const struct mt_device_event *event, uint64_t addr, uint64_t size,
		   const struct mt_ext_device *ext)
{
	if (event->native || event->told)
		mt_record_told(kind, event->hook, addr, size, ext, event->native, event->told);
	else
		mt_record_device(kind, event->hook, addr, size, ext, event->caller);
}

void mt_device_note(enum mt_kind kind, const struct mt_device_event *event)
{
	struct mt_ext_device ext = { .stream = event->stream,
				     .other = event->other,
				     .class = (uint8_t)event->class,
				     .device = (uint16_t)event->device,
				     .source = event->told && kind == MT_DEVICE_ALLOC ? MT_ALLOC_BEFORE : 0,
				     .capture = event->capture };
	int kept = errno;

	if (kind == MT_DEVICE_ALLOC && event->device && event->class <= MT_CLASS_PHYSICAL &&
	    mt_heap_is_pool(__builtin_frame_address(0)))
		mt_heap_pool.device = event->device; /* a pool has got it */
	if (__builtin_expect(mt_seen_on, 0) && !event->told)
		mt_seen_note(kind, event->class, event->addr);
	record(kind, event, event->addr, event->bytes, &ext);
	errno = kept;
}

void mt_device_note_failure(const struct mt_device_event *event, uint32_t status, uint64_t free, uint64_t total)
{
	struct mt_ext_device ext = { .class = (uint8_t)event->class, .device = (uint16_t)event->device };
	int kept = errno;

	mt_recorder_hurry(); /* what the device had, and MEMTRACE_ON_OOM, are for it */
	if (total)
		mt_record_device(MT_DEVICE_INFO, event->hook, free, total, &ext, NULL);
	ext.stream = event->stream;
	ext.other = event->other;
	ext.status = status;
	ext.capture = event->capture;
	record(MT_DEVICE_FAIL, event, event->bytes, event->error, &ext);
	mt_holders_want(event->class == MT_CLASS_POOL ? MT_HOLD_POOL : MT_HOLD_DEVICE, NULL);
	if (mt_process_state() == MT_STATE_ACTIVE) {
		__atomic_add_fetch(&mt_process.info->device_failures, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&mt_process.session->failures, 1, __ATOMIC_RELAXED);
	}
	errno = kept;
}
