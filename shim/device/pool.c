/*
 * Blocks of PyTorch's caching allocator. libc10_cuda.so calls the functions of hooks_pool.def in libc10.so for every
 * block it gives out or takes back, under the allocator's lock, whether a profiler listens or not. We export functions
 * of the same names and hand each call on, so that a profiler works as without us. Only the CUDA allocator's calls are
 * recorded: the CPU's are malloc's.
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
#include "shim/device/pool.h"
#include "shim/device/pool_before.h"
#include "shim/hooks/hooks.h"

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
static const struct mt_library torch_npu = { .prefix = "libtorch_npu.so",
					     .linked = 1,
					     .link = { { "libtorch_npu.so", NULL } } };

enum {
	ROW_c10_reportMemoryUsageToProfiler,
	ROW_c10_reportOutOfMemoryToProfiler,
	ROW_currentStream,
	ROW_streamPointer,
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
	[ROW_npuStream] = { "_ZN7c10_npu19getCurrentNPUStreamEa", &torch_npu, slots[ROW_npuStream], NULL },
};

static const struct mt_wrap_table table = { rows, ROWS };
MT_SET_ADD(mt_wrap_table, table);

#define REAL(row, type) ((type)(uintptr_t)mt_slot_real(&rows[row], &slots[row][0], NULL))

/* Ordinal of the device on a backend we know; -1 otherwise. CUDA is 1 in c10::DeviceType. */
static int ordinal_of(struct c10_device device)
{
	return device.type == 1 && device.index >= 0 ? device.index : -1;
}

/* The stream a block is allocated for is the thread's current one: its cudaStream_t, as the allocator's own snapshot
 * has it. */
static uint64_t current_stream(int ordinal)
{
	struct c10_stream (*current)(int8_t) = REAL(ROW_currentStream, struct c10_stream(*)(int8_t));
	void *(*pointer)(const struct c10_stream *) = REAL(ROW_streamPointer, void *(*)(const struct c10_stream *));
	struct c10_stream stream;

	if (!current || !pointer)
		return 0;
	stream = current((int8_t)ordinal);
	return (uintptr_t)pointer(&stream);
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

static __attribute__((noinline)) void note(void *p, int64_t size, int ordinal, const void *caller)
{
	struct mt_device_event event = { .hook = MT_HOOK_c10_reportMemoryUsageToProfiler,
					 .class = MT_CLASS_POOL,
					 .addr = (uintptr_t)p };
	int kept = errno;

	event.device = mt_cuda_id(ordinal);
	if (size > 0) {
		event.bytes = (uint64_t)size;
		event.other = mt_pool_unasked(event.bytes);
		event.stream = current_stream(ordinal);
		event.capture = mt_cuda_capture(event.stream);
		event.caller = caller;
		mt_device_note(MT_DEVICE_ALLOC, &event);
	} else {
		mt_device_note(MT_DEVICE_FREE, &event);
	}
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
	int ordinal = ordinal_of(device);

	if (ordinal >= 0 && p && mt_process_state() != MT_STATE_OFF)
		note(p, size, ordinal, MT_CALLER);
	if (real)
		real(p, size, allocated, reserved, device);
}

MT_EXPORT void mt_entry_0_c10_reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved,
							  struct c10_device device)
{
	void (*real)(int64_t, size_t, size_t, struct c10_device) =
		REAL(ROW_c10_reportOutOfMemoryToProfiler, void (*)(int64_t, size_t, size_t, struct c10_device));
	struct mt_device_event event = { .hook = MT_HOOK_c10_reportOutOfMemoryToProfiler,
					 .class = MT_CLASS_POOL,
					 .bytes = (uint64_t)size,
					 .stream = allocated,
					 .other = reserved,
					 .caller = MT_CALLER };
	int ordinal = ordinal_of(device), kept = errno;
	uint64_t free = 0, total = 0;

	if (ordinal >= 0 && mt_process_state() != MT_STATE_OFF) {
		event.device = mt_cuda_id(ordinal);
		event.capture = mt_cuda_capture(current_stream(ordinal));
		mt_cuda_memory(ordinal, &free, &total);
		mt_device_note_failure(&event, 2 /* out of memory, as CUDA says it */, free, total);
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
