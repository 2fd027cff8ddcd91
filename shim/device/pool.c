/*
 * Blocks of PyTorch's caching allocator. libc10_cuda.so calls the functions of hooks_pool.def in libc10.so for every
 * block it gives out or takes back, under the allocator's lock, whether a profiler listens or not. We export functions
 * of the same names and hand each call on, so that a profiler works as without us. The CPU allocator's calls are not
 * recorded: they are malloc's.
 *
 * PyTorch for ROCm calls AMD's devices cuda, and its library libc10_hip.so. The allocators of other devices report to
 * the same functions. Of those nobody sees the memory below, so their blocks are what the device has.
 *
 * What was asked for is told by another call: for each request of 512 bytes or more the allocator asks the
 * configuration how to round it.
 *
 * What is allocated while its stream is being captured comes from a private pool of the graph. The driver is asked, as
 * the allocator asks it, and never of the default stream: so a block costs no more where there are no graphs, and no
 * route to a capture is missed.
 */
#include <errno.h>

#include "shim/device/cuda.h"
#include "shim/device/device.h"
#include "shim/device/hip.h"
#include "shim/device/pool.h"
#include "shim/device/pool_before.h"
#include "shim/device/ze.h"
#include "shim/hooks/hooks.h"
#include "shim/trace/settings.h"

/* c10::Device, c10::Stream and c10::cuda::CUDAStream, which is a Stream. */
struct c10_device {
	int8_t type, index;
};
struct c10_stream {
	int8_t type, index;
	int64_t id;
};

static const struct mt_library libc10 = { .prefix = "libc10.so", .linked = 1, .link = { { "libc10.so", NULL } } };
static const struct mt_library libc10_cuda = { .prefix = "libc10_cuda.so",
					       .linked = 1,
					       .link = { { "libc10_cuda.so", NULL } } };
static const struct mt_library libc10_hip = { .prefix = "libc10_hip.so",
					      .linked = 1,
					      .link = { { "libc10_hip.so", NULL } } };
static const struct mt_library torch_npu = { .prefix = "libtorch_npu.so",
					     .linked = 1,
					     .link = { { "libtorch_npu.so", NULL } } };

enum {
	ROW_c10_reportMemoryUsageToProfiler,
	ROW_c10_reportOutOfMemoryToProfiler,
	ROW_currentStream,
	ROW_streamPointer,
	ROW_hipStream,
	ROW_hipStreamPointer,
	ROW_npuStream,
	ROW_c10_roundup,
	ROW_c10_cuda_roundup,
	ROWS
};

static struct mt_slot slots[ROWS][MT_INSTANCES];

/* Looked up like a linked hook's real function, and forgotten like one when its library goes. */
static const struct mt_wrapped rows[ROWS] = {
#define ROUND(name, library, symbol) [ROW_##name] = { #symbol, &library, slots[ROW_##name], NULL },
#define HAND(name, symbol)           ROUND(name, libc10, symbol)
#include "shim/hooks/hooks_pool.def"
#undef HAND
	[ROW_currentStream] = { "_ZN3c104cuda20getCurrentCUDAStreamEa", &libc10_cuda, slots[ROW_currentStream], NULL },
	[ROW_streamPointer] = { "_ZNK3c104cuda10CUDAStream6streamEv", &libc10_cuda, slots[ROW_streamPointer], NULL },
	[ROW_hipStream] = { "_ZN3c103hip19getCurrentHIPStreamEa", &libc10_hip, slots[ROW_hipStream], NULL },
	[ROW_hipStreamPointer] = { "_ZNK3c103hip9HIPStream6streamEv", &libc10_hip, slots[ROW_hipStreamPointer], NULL },
	[ROW_npuStream] = { "_ZN7c10_npu19getCurrentNPUStreamEa", &torch_npu, slots[ROW_npuStream], NULL },
};

static const struct mt_wrap_table table = { rows, ROWS };
MT_SET_ADD(mt_wrap_table, table);

#define REAL(row, type) ((type)(uintptr_t)mt_slot_real(&rows[row], &slots[row][0], NULL))

/* Whose device a block is on. HIP has two: since PyTorch 2.11 libc10_hip.so has its functions under CUDA's names. */
enum vendor { NOBODY, CUDA, HIP, HIP_BY_CUDAS_NAMES, XPU, ANOTHER };

/* CUDA or HIP: there is one build of PyTorch in a process. Asked once, when its allocator has given out a block. */
static enum vendor cuda_or_hip(void)
{
	static uint8_t known;
	enum vendor v = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (v == NOBODY) {
		v = !mt_hip_is_there()                                                 ? CUDA
		    : mt_library_symbol(&libc10_hip, rows[ROW_hipStream].name) != NULL ? HIP
										       : HIP_BY_CUDAS_NAMES;
		__atomic_store_n(&known, (uint8_t)v, __ATOMIC_RELAXED);
	}
	return v;
}

/* Whether PrivateUse1 is torch_npu's. Asked once, as its library is there before its first block. */
static int is_npu(void)
{
	enum { UNASKED, NO, YES };
	static uint8_t known;
	uint8_t is = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (is == UNASKED) {
		is = REAL(ROW_npuStream, void *) ? YES : NO;
		__atomic_store_n(&known, is, __ATOMIC_RELAXED);
	}
	return is == YES;
}

/* By c10::DeviceType. What torch_npu reports comes by mstx, with what is below it. */
static enum vendor vendor_of(struct c10_device device)
{
	enum { TYPE_CPU = 0, TYPE_CUDA = 1, TYPE_HIP = 6, TYPE_XPU = 12, TYPE_META = 14, TYPE_PRIVATE = 20 };

	if (device.index < 0 || device.type == TYPE_CPU || device.type == TYPE_META)
		return NOBODY;
	if (device.type == TYPE_CUDA || device.type == TYPE_HIP)
		return cuda_or_hip();
	if (device.type == TYPE_PRIVATE && is_npu())
		return NOBODY;
	return device.type == TYPE_XPU ? XPU : ANOTHER;
}

static int is_hip(enum vendor v)
{
	return v == HIP || v == HIP_BY_CUDAS_NAMES;
}

static enum mt_class class_on(enum vendor v)
{
	return v == CUDA || is_hip(v) || (v == XPU && mt_ze_is_there()) ? MT_CLASS_POOL : MT_CLASS_DEVICE;
}

static void describe_nothing(unsigned ordinal, struct mt_device_facts *facts)
{
	(void)ordinal, (void)facts;
}

static uint32_t device_id(enum vendor v, int ordinal)
{
	if (v == CUDA)
		return mt_cuda_id(ordinal);
	if (is_hip(v))
		return mt_hip_id(ordinal);
	if (v == XPU && mt_ze_is_there())
		return mt_ze_id(ordinal);
	return mt_device_id(v == XPU ? MT_BACKEND_XPU : MT_BACKEND_OTHER, (unsigned)ordinal, describe_nothing);
}

/* The stream a block is allocated for is the thread's current one: its cudaStream_t, as the allocator's own snapshot
 * has it. */
static uint64_t current_stream(enum vendor v, int ordinal)
{
	const int own = v == HIP, any = v == CUDA || is_hip(v);
	struct c10_stream (*current)(int8_t) =
		any ? REAL(own ? ROW_hipStream : ROW_currentStream, struct c10_stream(*)(int8_t)) : NULL;
	void *(*pointer)(const struct c10_stream *) =
		any ? REAL(own ? ROW_hipStreamPointer : ROW_streamPointer, void *(*)(const struct c10_stream *)) : NULL;
	struct c10_stream stream;

	if (!current || !pointer)
		return 0;
	stream = current((int8_t)ordinal);
	return (uintptr_t)pointer(&stream);
}

/* HIP is asked where that can't change what the program gets of its last error. */
static uint32_t capture_of(enum vendor v, uint64_t stream)
{
	return v == CUDA ? mt_cuda_capture(stream) : is_hip(v) && mt_hip_asks_freely() ? mt_hip_capture(stream) : 0;
}

static void memory_of(enum vendor v, int ordinal, uint64_t *free, uint64_t *total)
{
	if (v == CUDA)
		mt_cuda_memory(ordinal, free, total);
	else if (is_hip(v) && mt_hip_asks_freely() && mt_hip_current() == ordinal)
		mt_hip_memory(free, total);
}

/* c10_npu::NPUStream has a destructor, so it is returned in memory, as every structure of this size is. */
struct npu_stream {
	struct c10_stream stream;
	uint64_t unused;
};

/* Its id will do: for its pointer torch_npu waits until all that was launched on it is done. */
uint64_t mt_pool_npu_stream(uint32_t ordinal)
{
	struct npu_stream (*current)(int8_t) = REAL(ROW_npuStream, struct npu_stream(*)(int8_t));

	return current && ordinal <= INT8_MAX ? (uint64_t)current((int8_t)ordinal).stream.id : 0;
}

static __thread uint64_t asked;

uint64_t mt_pool_asked(void)
{
	return asked;
}

uint64_t mt_pool_unasked(uint64_t bytes)
{
	uint64_t was = asked;

	asked = 0;
	return was && was <= bytes ? bytes - was + 1 : 0;
}

static __attribute__((noinline)) void note(void *p, int64_t size, struct c10_device device, const void *caller)
{
	struct mt_device_event event = { .hook = MT_HOOK_c10_reportMemoryUsageToProfiler, .addr = (uintptr_t)p };
	int kept = errno;
	enum vendor vendor = vendor_of(device);

	if (vendor == NOBODY) {
		errno = kept;
		return;
	}
	event.class = class_on(vendor);
	event.device = device_id(vendor, device.index);
	if (size > 0) {
		uint64_t unasked = mt_pool_unasked((uint64_t)size);

		event.bytes = (uint64_t)size;
		event.other = event.class == MT_CLASS_POOL ? unasked : 0;
		event.stream = current_stream(vendor, device.index);
		event.capture = capture_of(vendor, event.stream);
		event.caller = caller;
		mt_device_note(MT_DEVICE_ALLOC, &event);
	} else {
		mt_device_note(MT_DEVICE_FREE, &event);
	}
	if (vendor == CUDA)
		mt_pool_before_look();
	errno = kept;
}

#define HAND(name, symbol) MT_LINK_AS(0, name, #symbol, "MEMTRACE_HOOKS")
#include "shim/hooks/hooks_pool.def"
#undef HAND

MT_EXPORT void mt_entry_0_c10_reportMemoryUsageToProfiler(void *p, int64_t size, size_t allocated, size_t reserved,
							  struct c10_device device)
{
	void (*real)(void *, int64_t, size_t, size_t, struct c10_device) =
		REAL(ROW_c10_reportMemoryUsageToProfiler, void (*)(void *, int64_t, size_t, size_t, struct c10_device));

	if (device.type && p && mt_process_state() != MT_STATE_OFF)
		note(p, size, device, MT_CALLER);
	if (real)
		real(p, size, allocated, reserved, device);
}

MT_EXPORT void mt_entry_0_c10_reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved,
							  struct c10_device device)
{
	void (*real)(int64_t, size_t, size_t, struct c10_device) =
		REAL(ROW_c10_reportOutOfMemoryToProfiler, void (*)(int64_t, size_t, size_t, struct c10_device));
	struct mt_device_event event = { .hook = MT_HOOK_c10_reportOutOfMemoryToProfiler,
					 .bytes = (uint64_t)size,
					 .stream = allocated,
					 .other = reserved,
					 .caller = MT_CALLER };
	int kept = errno;
	enum vendor vendor = mt_process_state() != MT_STATE_OFF ? vendor_of(device) : NOBODY;
	uint64_t free = 0, total = 0;

	if (vendor != NOBODY) {
		event.class = class_on(vendor);
		event.device = device_id(vendor, device.index);
		event.capture = capture_of(vendor, current_stream(vendor, device.index));
		memory_of(vendor, device.index, &free, &total);
		mt_device_note_failure(&event, 2 /* out of memory, as CUDA says it */, free, total);
		mt_settings_failed();
	}
	errno = kept;
	if (real)
		real(size, allocated, reserved, device);
}

#define HAND(name, symbol)
#define ROUND(name, library, symbol) \
	MT_LINK_AS(0, name, #symbol, "MEMTRACE_HOOKS") \
	MT_EXPORT size_t mt_entry_0_##name(size_t bytes) \
	{ \
		size_t (*real)(size_t) = REAL(ROW_##name, size_t (*)(size_t)); \
		asked = bytes; \
		return real ? real(bytes) : 0; \
	}
#include "shim/hooks/hooks_pool.def"
#undef HAND
