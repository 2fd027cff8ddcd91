/*
 * Buffers of PJRT plugins that lie on devices: which device that is, where in its memory, what becomes of them.
 *
 * A buffer is recorded when it is given out, as only then the line of Python is known. Its memory may come later, on a
 * thread of the plugin's. So its address is made up (MT_NOWHERE), and where it lies is told when it is ready (an
 * MT_DEVICE_MAP). If it ends in an error it never had memory.
 */
#include <string.h>

#include "shim/base/log.h"
#include "shim/base/sys.h"
#include "shim/device/cuda.h"
#include "shim/device/device.h"
#include "shim/device/hip.h"
#include "shim/device/pjrt_internal.h"
#include "shim/trace/record.h"

enum { DEVICES = 64 };

/* ---- devices ---- */

/* In the order in which they were met, up to the first without a place. Written under the lock. */
static struct device {
	uint64_t place;
	const struct mt_pjrt *api;
	void *device;
} devices[DEVICES];

/* NULL = there is none. */
static struct device *device_at(uint64_t place)
{
	for (unsigned i = 0; i < DEVICES && devices[i].place; i++)
		if (devices[i].place == place)
			return &devices[i];
	return NULL;
}

/* As mt_cuda_memory(). */
static int rocm_memory(int ordinal, uint64_t *free, uint64_t *total)
{
	return mt_hip_asks_freely() && mt_hip_current() == ordinal && mt_hip_memory(free, total);
}

/* By platform's name, in order of enum mt_pjrt_vendor. */
static const struct {
	char name[5];
	uint32_t (*id)(int ordinal);
	int (*memory)(int ordinal, uint64_t *free, uint64_t *total);
} vendors[PJRT_VENDORS] = {
	[PJRT_CUDA] = { "cuda", mt_cuda_id, mt_cuda_memory }, [PJRT_ROCM] = { "rocm", mt_hip_id, rocm_memory }
};

enum mt_pjrt_vendor mt_pjrt_vendor_called(const char *name, size_t bytes)
{
	for (int i = PJRT_CUDA; i < PJRT_VENDORS; i++)
		if (bytes == 4 && !memcmp(name, vendors[i].name, 4))
			return (enum mt_pjrt_vendor)i;
	return PJRT_OTHER;
}

/* Called by mt_device_id(). */
static void describe(unsigned ordinal, struct mt_device_facts *facts)
{
	const struct device *it = device_at(mt_pjrt_place_on(PJRT_OTHER, ordinal));
	const struct mt_pjrt *api = it->api;
	struct pjrt_Device_MemoryStats *stats = PJRT_ARGS(struct pjrt_Device_MemoryStats, .device = it->device);
	struct pjrt_text *kind = PJRT_ARGS(struct pjrt_text, .thing = NULL);

	mt_record_mute(1);
	kind->thing = mt_pjrt_thing(api, PJRT_Device_GetDescription, it->device);
	if (kind->thing && mt_pjrt_ask(api, PJRT_DeviceDescription_Kind, kind) && kind->text)
		memcpy(facts->model, kind->text,
		       kind->bytes < sizeof(facts->model) ? kind->bytes : sizeof(facts->model) - 1);
	if (mt_pjrt_ask(api, PJRT_Device_MemoryStats, stats) && stats->limit_known && stats->limit > 0)
		facts->total = (uint64_t)stats->limit;
	mt_record_mute(0);
}

/* Its ordinal is the driver's number, where a driver has hooks; else the one that the plugin gives it, or the next that
 * is free, as another plugin may have a device of that number. Under the lock. */
static uint64_t place_of(const struct mt_pjrt *api, void *device, unsigned number)
{
	struct device *it;
	unsigned count = 0;

	for (; count < DEVICES && devices[count].place; count++)
		if (api->vendor == PJRT_OTHER && devices[count].api == api && devices[count].device == device)
			return devices[count].place;
	while (api->vendor == PJRT_OTHER && number <= PJRT_ORDINAL && device_at(mt_pjrt_place_on(PJRT_OTHER, number)))
		number++;
	it = number <= PJRT_ORDINAL ? device_at(mt_pjrt_place_on(api->vendor, number)) : NULL;
	if (!it && count < DEVICES && number <= PJRT_ORDINAL)
		it = &devices[count];
	if (!it)
		return 0;
	it->api = api;
	it->device = device;
	__atomic_store_n(&it->place, mt_pjrt_place_on(api->vendor, number), __ATOMIC_RELEASE);
	return it->place;
}

uint64_t mt_pjrt_place_of_device(struct mt_pjrt *api, void *device)
{
	struct pjrt_one *q = PJRT_ARGS(struct pjrt_one, .thing = device);

	if (!device || !mt_pjrt_ask(api, PJRT_Device_LocalHardwareId, q) || q->out.number < 0 ||
	    !mt_lock_take(&mt_pjrt_lock))
		return 0;
	api->place = place_of(api, device, (unsigned)q->out.number);
	mt_lock_drop(&mt_pjrt_lock);
	return api->place;
}

uint64_t mt_pjrt_place_of_memory(struct mt_pjrt *api, void *memory)
{
	struct pjrt_text *kind = PJRT_ARGS(struct pjrt_text, .thing = memory);
	struct pjrt_Memory_AddressableByDevices *q =
		PJRT_ARGS(struct pjrt_Memory_AddressableByDevices, .memory = memory);

	if (!mt_pjrt_ask(api, PJRT_Memory_Kind, kind) || kind->bytes != 6 || memcmp(kind->text, "device", 6) != 0 ||
	    !mt_pjrt_ask(api, PJRT_Memory_AddressableByDevices, q) || q->count != 1)
		return 0;
	return mt_pjrt_place_of_device(api, q->devices[0]);
}

uint64_t mt_pjrt_place(struct mt_pjrt *api, void *buffer)
{
	return mt_pjrt_place_of_device(api, mt_pjrt_thing(api, PJRT_Buffer_Device, buffer));
}

/* ---- buffers ---- */

/* Of buffers the value is where they lie, and maybe: */
enum { FAILED = 1 << 11 };

static struct mt_pjrt_map buffers;

/* Addresses that no memory has, each for one buffer. */
static uint64_t address_for(uint64_t bytes)
{
	static uint64_t next = MT_NOWHERE;

	return __atomic_fetch_add(&next, (bytes | 255) + 1, __ATOMIC_RELAXED);
}

static struct mt_device_event event_of(unsigned hook, uint64_t place, uint64_t addr)
{
	const unsigned ordinal = place & PJRT_ORDINAL;
	uint32_t (*id)(int) = vendors[mt_pjrt_vendor(place)].id;

	return (struct mt_device_event){ .hook = hook,
					 .class = id ? MT_CLASS_POOL : MT_CLASS_DEVICE,
					 .addr = addr,
					 .device = id ? id((int)ordinal)
						      : mt_device_id(MT_BACKEND_OTHER, ordinal, describe) };
}

void mt_pjrt_begin(struct mt_pjrt_buffer *b, const void *caller)
{
	struct mt_pjrt_known known = { .handle = b->buffer, .value = b->place };
	struct mt_device_event event;

	known.addr = b->addr = address_for(b->bytes);
	event = event_of(b->hook, b->place, b->addr);
	event.bytes = b->bytes;
	event.caller = caller;
	if (mt_pjrt_keep(&buffers, &known))
		mt_device_note(MT_DEVICE_ALLOC, &event);
	else
		mt_process_lost(1);
}

void mt_pjrt_temporary(unsigned hook, uint64_t place, uint64_t bytes, const void *caller)
{
	struct mt_device_event event = event_of(hook, place, address_for(bytes));

	event.bytes = bytes;
	event.caller = caller;
	mt_device_note(MT_DEVICE_ALLOC, &event);
	mt_device_note(MT_DEVICE_FREE, &event);
}

uint64_t mt_pjrt_known_place(const void *buffer)
{
	return mt_pjrt_look_up(&buffers, buffer, 0).value & ~(uint64_t)FAILED;
}

int mt_pjrt_has_failed(const void *buffer)
{
	return (mt_pjrt_look_up(&buffers, buffer, 0).value & FAILED) != 0;
}

struct mt_pjrt_known mt_pjrt_take(const void *buffer)
{
	return mt_pjrt_look_up(&buffers, buffer, 1);
}

void mt_pjrt_end(unsigned hook, const struct mt_pjrt_known *known)
{
	struct mt_device_event event;

	if (!known->value || known->value & FAILED)
		return;
	event = event_of(hook, known->value, known->addr);
	mt_device_note(MT_DEVICE_FREE, &event);
}

void mt_pjrt_lies_at(const struct mt_pjrt_buffer *b, const void *p)
{
	struct mt_device_event event = event_of(b->hook, b->place, (uintptr_t)p);

	event.bytes = b->bytes;
	event.stream = b->addr;
	mt_device_note(MT_DEVICE_MAP, &event);
}

/* ---- what failed ---- */

enum { LATEST = 64 };

/* Of failures: their calls, and hashes of what errors said. */
static uint64_t failed_calls[LATEST], said[LATEST];
static unsigned failures;

/* Is this the first report of the failure? Each output of a call reports it, and so does, in the same words, each
 * output of a call that had one of those for its input. Under the lock. */
static int is_new(const struct mt_pjrt_buffer *b, uint64_t text)
{
	for (unsigned i = 0; i < LATEST; i++)
		if (failed_calls[i] && (failed_calls[i] == b->call || (b->follows && said[i] == text)))
			return 0;
	failed_calls[failures % LATEST] = b->call;
	said[failures++ % LATEST] = text;
	return 1;
}

/* What the plugin says of its memory; with a driver below that is its pool. On a thread of another plugin nothing is
 * asked, as it may hold a lock of its own. */
static void ask_memory(const struct mt_pjrt_buffer *b, struct mt_device_event *event, uint64_t *free, uint64_t *total)
{
	struct pjrt_Device_MemoryStats *stats =
		PJRT_ARGS(struct pjrt_Device_MemoryStats, .device = device_at(b->place)->device);
	int (*memory)(int, uint64_t *, uint64_t *) = vendors[mt_pjrt_vendor(b->place)].memory;
	int known;

	if (!memory && b->is_told)
		return;
	mt_record_mute(1);
	known = mt_pjrt_ask(b->api, PJRT_Device_MemoryStats, stats);
	mt_record_mute(0);
	if (memory) {
		memory((int)(b->place & PJRT_ORDINAL), free, total);
		if (known && stats->pool_known && stats->in_use >= 0 && stats->pool > 0) {
			event->stream = (uint64_t)stats->in_use;
			event->other = (uint64_t)stats->pool;
		}
	} else if (known && stats->limit_known && stats->limit >= stats->in_use && stats->in_use >= 0) {
		*total = (uint64_t)stats->limit;
		*free = (uint64_t)(stats->limit - stats->in_use);
	}
}

void mt_pjrt_failed(const struct mt_pjrt_buffer *b, void *error, const void *caller)
{
	struct mt_pjrt_exhausted why = { 0, 0, 0 };
	struct mt_device_event event;
	uint64_t free = 0, total = 0;
	int goes;

	if (!b->place || !mt_pjrt_exhausted(b->api, error, &why) || !mt_lock_take(&mt_pjrt_lock))
		return;
	goes = is_new(b, why.text);
	mt_lock_drop(&mt_pjrt_lock);
	if (!goes)
		return;
	event = event_of(b->hook, b->place, 0);
	event.bytes = why.bytes;
	event.error = why.error;
	if (b->bytes && b->bytes + why.error >= why.bytes && b->bytes <= why.bytes + why.error) {
		event.bytes = b->bytes; /* it is what was rounded */
		event.error = 0;
	}
	event.caller = caller;
	event.native = b->native;
	event.told = b->python;
	ask_memory(b, &event, &free, &total);
	mt_device_note_failure(&event, PJRT_RESOURCE_EXHAUSTED, free, total);
}

/* So many are marked: each takes 32 bytes of the log. */
enum { NEVERS = 65536 };

/* The block is freed, too, for a reader that follows the run and has counted it. The handle may be another buffer's by
 * now. */
void mt_pjrt_never_was(const struct mt_pjrt_buffer *b)
{
	static uint32_t nevers;
	const struct mt_rec_never rec = { .addr = b->addr };
	struct mt_pjrt_known *at;
	struct mt_pjrt_known known = { .value = 0 };

	if (!b->place || !mt_lock_take(&mt_pjrt_lock))
		return;
	at = mt_pjrt_find(&buffers, b->buffer);
	if (at && at->addr == b->addr && !(at->value & FAILED)) {
		known = *at;
		at->value |= FAILED;
	}
	mt_lock_drop(&mt_pjrt_lock);
	if (__atomic_fetch_add(&nevers, 1, __ATOMIC_RELAXED) < NEVERS)
		mt_log_add(MT_REC_NEVER, &(struct mt_part){ &rec, sizeof(rec) }, 1);
	mt_pjrt_end(b->hook, &known);
}

void mt_pjrt_buffers_reset(void)
{
	buffers = (struct mt_pjrt_map){ NULL, 0, 0 }; /* it may have been in the middle of a change */
}
