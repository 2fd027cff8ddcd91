/* The stand-in libcuda.so.1, first part: life, devices, contexts, streams, events, modules, copies. */
#include "memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct CUevent_st { struct timespec time; unsigned queries; };
struct CUmod_st { int unused; };

static struct {
	pthread_mutex_t lock;
	int pid; /* that called cuInit */
	bool over;
	int count;
	int visible[SD_DEVICES];
	struct CUctx_st primary[SD_DEVICES];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};
static __thread CUcontext stack[32];
static __thread int depth;

/* ---- life ---- */

void driver_lock(void)
{
	pthread_mutex_lock(&driver.lock);
}

void driver_unlock(void)
{
	pthread_mutex_unlock(&driver.lock);
}

CUresult ready(void)
{
	if (driver.over)
		return CUDA_ERROR_DEINITIALIZED;
	return driver.pid && driver.pid == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

void note(const char *op, const char *function, const char *kind, int device, uint64_t address, uint64_t bytes, uint64_t handle,
	  CUresult status)
{
	struct sd_event event = {.op = op, .function = function, .kind = kind, .device = device, .status = (int)status,
				 .address = address, .bytes = bytes, .handle = handle};
	sd_log(&event);
}

/* Handlers registered before cuInit and library destructors run later than this: they find the driver gone, like NVIDIA's. */
static void end(void)
{
	if (driver.over || driver.pid != getpid())
		return;
	driver.over = true;
	note("exit", "exit", "process", -1, 0, 0, 0, CUDA_SUCCESS);
	sd_leave();
}

static int visible_device(const char *word, size_t length)
{
	char uuid[SD_UUID_TEXT], *rest;
	for (int i = 0; i < sd_count(); i++) {
		sd_uuid_text(i, uuid);
		if (length > 4 && length < sizeof uuid && strncmp(word, uuid, length) == 0)
			return i;
	}
	long n = strtol(word, &rest, 10);
	return rest == word + length && length && n >= 0 && n < sd_count() ? (int)n : -1;
}

static void read_visible(void)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	driver.count = 0;
	if (!text) {
		while (driver.count < sd_count()) {
			driver.visible[driver.count] = driver.count;
			driver.count++;
		}
		return;
	}
	while (driver.count < SD_DEVICES) {
		size_t length = strcspn(text, ",");
		int device = visible_device(text, length);
		if (device < 0)
			return; /* the first bad one ends the list */
		driver.visible[driver.count++] = device;
		if (!text[length])
			return;
		text += length + 1;
	}
}

API CUresult cuInit(unsigned flags)
{
	if (driver.over)
		return CUDA_ERROR_DEINITIALIZED;
	driver_lock();
	if (!driver.pid) {
		read_visible();
		if (driver.count) {
			driver.pid = getpid();
			atexit(end);
		}
	}
	driver_unlock();
	return driver.pid ? ready() : CUDA_ERROR_NO_DEVICE;
}

API CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

static const char *error_text(CUresult error, bool name)
{
	static const struct { int error; const char *name, *text; } errors[] = {
		{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
		{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
		{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
		{CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
		{CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
		{CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
		{CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
		{CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
		{CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
		{CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	};
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].error == (int)error)
			return name ? errors[i].name : errors[i].text;
	return name ? "CUDA_ERROR_UNKNOWN" : "stand-in error";
}

API CUresult cuGetErrorString(CUresult error, const char **text)
{
	*text = error_text(error, false);
	return CUDA_SUCCESS;
}

API CUresult cuGetErrorName(CUresult error, const char **text)
{
	*text = error_text(error, true);
	return CUDA_SUCCESS;
}

/* What NVIDIA's own runtime can't do without, and the reason why it doesn't run here. */
API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

/* ---- devices ---- */

int physical(CUdevice ordinal)
{
	return ordinal >= 0 && ordinal < driver.count ? driver.visible[ordinal] : -1;
}

int ordinal_of(int device)
{
	for (int i = 0; i < driver.count; i++)
		if (driver.visible[i] == device)
			return i;
	return 0;
}

#define DEVICE(device, ordinal) \
	ALIVE(); \
	int device = physical(ordinal); \
	if (device < 0) \
		return CUDA_ERROR_INVALID_DEVICE

API CUresult cuDeviceGetCount(int *count)
{
	ALIVE();
	*count = driver.count;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *ordinal, int number)
{
	DEVICE(device, number);
	*ordinal = device < 0 ? -1 : number;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int size, CUdevice ordinal)
{
	DEVICE(device, ordinal);
	snprintf(name, (size_t)size, "Stand-in GPU %d", device);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice ordinal)
{
	DEVICE(device, ordinal);
	*bytes = sd_size(device);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice ordinal)
{
	DEVICE(device, ordinal);
	sd_uuid(device, (uint8_t *)uuid->bytes);
	return CUDA_SUCCESS;
}

#ifndef VENDOR
API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice ordinal)
{
	return cuDeviceGetUuid_v2(uuid, ordinal);
}
#endif

API CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice ordinal)
{
	DEVICE(device, ordinal);
	snprintf(text, (size_t)size, "0000:%02X:00.0", device + 1);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice ordinal)
{
	DEVICE(device, ordinal);
#define A(number, answer) case number: *value = answer; break;
	switch ((int)attribute) {
	DEVICE_ATTRIBUTES(A)
	case 33: *value = device + 1; break; /* the PCI bus */
	default: *value = 0;
	}
#undef A
	return CUDA_SUCCESS;
}

API CUresult cuDeviceCanAccessPeer(int *can, CUdevice from, CUdevice to)
{
	ALIVE();
	*can = from != to;
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

static CUresult context_begin(const char *function, CUcontext context, int ordinal)
{
	int device = physical(ordinal);
	*context = (struct CUctx_st){.device = device, .ordinal = ordinal, .alive = true, .references = 1};
	CUresult status = charge_context(device, (int64_t)sd_context()) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	context->alive = status == CUDA_SUCCESS;
	note(context->alive ? "alloc" : "fail", function, "context", device, 0, sd_context(), 0, status);
	return status;
}

static void context_end(const char *function, CUcontext context)
{
	if (!context->alive)
		return;
	context_release_memory(function, context);
	context->alive = false;
	context->references = 0;
	charge_context(context->device, -(int64_t)sd_context());
	note("free", function, "context", context->device, 0, sd_context(), 0, CUDA_SUCCESS);
}

CUcontext current(void)
{
	return depth && stack[depth - 1] && stack[depth - 1]->alive ? stack[depth - 1] : NULL;
}

static CUresult push(CUcontext context)
{
	if (depth == (int)(sizeof stack / sizeof *stack))
		return CUDA_ERROR_ILLEGAL_STATE;
	stack[depth++] = context;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal)
{
	DEVICE(device, ordinal);
	CUcontext context = &driver.primary[ordinal];
	CUresult status = CUDA_SUCCESS;
	driver_lock();
	if (context->alive && context->device == device)
		context->references++;
	else
		status = context_begin("cuDevicePrimaryCtxRetain", context, ordinal);
	driver_unlock();
	*out = status == CUDA_SUCCESS ? context : NULL;
	return status;
}

static CUresult primary_drop(const char *function, CUdevice ordinal, bool reset)
{
	DEVICE(device, ordinal);
	CUcontext context = &driver.primary[ordinal];
	driver_lock();
	if (context->alive && device >= 0 && (reset || --context->references == 0))
		context_end(function, context);
	driver_unlock();
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
	return primary_drop("cuDevicePrimaryCtxRelease_v2", ordinal, false);
}

API CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
	return primary_drop("cuDevicePrimaryCtxReset_v2", ordinal, true);
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags, int *active)
{
	DEVICE(device, ordinal);
	*flags = 0;
	*active = device >= 0 && driver.primary[ordinal].alive;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags)
{
	DEVICE(device, ordinal);
	return device < 0;
}

static CUresult create_context(const char *function, CUcontext *out, CUdevice ordinal)
{
	DEVICE(device, ordinal);
	CUcontext context = calloc(1, sizeof *context);
	if (!context || device < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	driver_lock();
	CUresult status = context_begin(function, context, ordinal);
	driver_unlock();
	if (status != CUDA_SUCCESS) {
		free(context);
		return status;
	}
	*out = context;
	return push(context);
}

API CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice ordinal)
{
	return create_context("cuCtxCreate_v2", out, ordinal);
}

API CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int n, unsigned flags, CUdevice ordinal)
{
	return create_context("cuCtxCreate_v3", out, ordinal);
}

API CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *parameters, unsigned flags, CUdevice ordinal)
{
	return create_context("cuCtxCreate_v4", out, ordinal);
}

/* The struct stays, dead: handles to it may be on other threads' stacks. */
static CUresult destroy_context(const char *function, CUcontext context)
{
	ALIVE();
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context->alive)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	driver_lock();
	context_end(function, context);
	driver_unlock();
	if (depth && stack[depth - 1] == context)
		depth--;
	return CUDA_SUCCESS;
}

API CUresult cuCtxDestroy_v2(CUcontext context)
{
	return destroy_context("cuCtxDestroy_v2", context);
}

#ifndef VENDOR
API CUresult cuCtxDestroy(CUcontext context)
{
	return destroy_context("cuCtxDestroy", context);
}
#endif

API CUresult cuCtxGetCurrent(CUcontext *context)
{
	ALIVE();
	*context = depth ? stack[depth - 1] : NULL;
	return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext context)
{
	ALIVE();
	if (!depth)
		return push(context);
	stack[depth - 1] = context;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	ALIVE();
	return context ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

API CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	ALIVE();
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (context)
		*context = stack[depth];
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *ordinal)
{
	ALIVE();
	if (!current())
		return CUDA_ERROR_INVALID_CONTEXT;
	*ordinal = current()->ordinal;
	return CUDA_SUCCESS;
}

static CUresult synchronize(int device)
{
	ALIVE();
	if (device < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	driver_lock();
	pools_synchronize(device);
	driver_unlock();
	return CUDA_SUCCESS;
}

API CUresult cuCtxSynchronize(void)
{
	return synchronize(current() ? current()->device : -1);
}

API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
	ALIVE();
	*version = 13000;
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	ALIVE();
	*least = 0;
	*greatest = -5;
	return CUDA_SUCCESS;
}

API CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned flags)
{
	ALIVE();
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	ALIVE();
	*value = 0;
	return CUDA_SUCCESS;
}

API CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	ALIVE();
	return CUDA_SUCCESS;
}

/* ---- streams and events: everything is done at once ---- */

struct CUstream_st {
	int device, priority;
	unsigned flags;
	unsigned long long capture; /* the id of the capture in progress */
	CUgraph graph;
};

CUgraph graph_new(void);

CUstream stream_or_null(CUstream stream)
{
	return (uintptr_t)stream <= 2 ? NULL : stream; /* 1 and 2 are the legacy and the per-thread default stream */
}

int stream_device(CUstream stream)
{
	if (stream_or_null(stream))
		return stream->device;
	return current() ? current()->device : -1;
}

API CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
	ALIVE();
	if (!current())
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = calloc(1, sizeof **out);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	**out = (struct CUstream_st){.device = current()->device, .flags = flags, .priority = priority};
	return CUDA_SUCCESS;
}

API CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
	return cuStreamCreateWithPriority(out, flags, 0);
}

API CUresult cuStreamDestroy_v2(CUstream stream)
{
	ALIVE();
	free(stream_or_null(stream));
	return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream stream)
{
	return synchronize(stream_device(stream));
}

API CUresult cuStreamQuery(CUstream stream)
{
	ALIVE();
	return CUDA_SUCCESS;
}

API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	ALIVE();
	return CUDA_SUCCESS;
}

API CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	ALIVE();
	*priority = stream_or_null(stream) ? stream->priority : 0;
	return CUDA_SUCCESS;
}

API CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
	ALIVE();
	*flags = stream_or_null(stream) ? stream->flags : 0;
	return CUDA_SUCCESS;
}

API CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	ALIVE();
	*context = stream_or_null(stream) ? &driver.primary[ordinal_of(stream->device)] : current();
	return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	static unsigned long long last;
	ALIVE();
	if (!stream_or_null(stream) || stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	stream->capture = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	stream->graph = graph_new();
	return CUDA_SUCCESS;
}

API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	ALIVE();
	if (!stream_or_null(stream) || !stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	*graph = stream->graph;
	stream->capture = 0;
	stream->graph = NULL;
	return CUDA_SUCCESS;
}

API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	ALIVE();
	*status = stream_or_null(stream) && stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

/* NVIDIA's third version has the edges' data between the dependencies and their number; asked for by nobody here but our own
 * runtime, which wants the first three. */
API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
				       const CUgraphNode **dependencies, size_t *n)
{
	CUresult result = cuStreamIsCapturing(stream, status);
	if (result == CUDA_SUCCESS && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		if (id)
			*id = stream->capture;
		if (graph)
			*graph = stream->graph;
		if (dependencies)
			*dependencies = NULL;
		if (n)
			*n = 0;
	}
	return result;
}

API CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	ALIVE();
	*event = calloc(1, sizeof **event);
	return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuEventDestroy_v2(CUevent event)
{
	ALIVE();
	free(event);
	return CUDA_SUCCESS;
}

API CUresult cuEventRecord(CUevent event, CUstream stream)
{
	ALIVE();
	clock_gettime(CLOCK_MONOTONIC, &event->time);
	event->queries = sd_late();
	return CUDA_SUCCESS;
}

API CUresult cuEventQuery(CUevent event)
{
	ALIVE();
	if (!event->queries)
		return CUDA_SUCCESS;
	event->queries--;
	return CUDA_ERROR_NOT_READY;
}

API CUresult cuEventSynchronize(CUevent event)
{
	ALIVE();
	event->queries = 0;
	return CUDA_SUCCESS;
}

API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent from, CUevent to)
{
	ALIVE();
	*milliseconds = (float)((double)(to->time.tv_sec - from->time.tv_sec) * 1e3 +
				(double)(to->time.tv_nsec - from->time.tv_nsec) / 1e6);
	return CUDA_SUCCESS;
}

API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	ALIVE();
	function(data);
	return CUDA_SUCCESS;
}

/* ---- modules and kernels: nothing ever runs ---- */

API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	ALIVE();
	*module = calloc(1, sizeof **module);
	return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *options, void **values)
{
	return cuModuleLoadData(module, image);
}

API CUresult cuModuleLoad(CUmodule *module, const char *file)
{
	return cuModuleLoadData(module, file);
}

API CUresult cuModuleUnload(CUmodule module)
{
	ALIVE();
	free(module);
	return CUDA_SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	ALIVE();
	*function = (CUfunction)module;
	return CUDA_SUCCESS;
}

API CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	ALIVE();
	return CUDA_SUCCESS;
}

API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	ALIVE();
	*value = 0;
	return CUDA_SUCCESS;
}

API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	ALIVE();
	return CUDA_SUCCESS;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int size, size_t shared)
{
	ALIVE();
	*blocks = 2;
	return CUDA_SUCCESS;
}

API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			    unsigned shared, CUstream stream, void **parameters, void **extra)
{
	ALIVE();
	return CUDA_SUCCESS;
}

API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
				       unsigned shared, CUstream stream, void **parameters)
{
	ALIVE();
	return CUDA_SUCCESS;
}

API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
	ALIVE();
	return CUDA_SUCCESS;
}

/* ---- copies: of linear memory; arrays have no contents ---- */

#define PAGE 4096
#define PAGES_AT_ONCE 2048
#define LARGE_COPY (1 << 20)

static bool on_device(uint64_t address)
{
	driver_lock();
	struct block *block = block_around(address);
	bool device = block && (1 << block->kind & (DEVICE_KINDS | 1 << RESERVATION));
	driver_unlock();
	return device;
}

/* Zeros need no memory: what was never written reads as zero. */
static void fill_zeros(uint64_t start, size_t n)
{
	uint64_t first = round_up(start, PAGE), end = (start + n) / PAGE * PAGE;
	if (end <= first) {
		memset((void *)(uintptr_t)start, 0, n);
		return;
	}
	space_clear(first, end - first);
	memset((void *)(uintptr_t)start, 0, first - start);
	memset((void *)(uintptr_t)end, 0, start + n - end);
}

/* What was never written is not written in the copy either. */
static void copy_written(uint64_t to, uint64_t from, size_t n, int pagemap)
{
	uint64_t page[PAGES_AT_ONCE];
	for (uint64_t end = from + n, next; from < end; to += next - from, from = next) {
		uint64_t first = from / PAGE, pages = (end + PAGE - 1) / PAGE - first;
		if (pages > PAGES_AT_ONCE)
			pages = PAGES_AT_ONCE;
		size_t bytes = pages * sizeof *page;
		if (pread(pagemap, page, bytes, (off_t)(first * sizeof *page)) != (ssize_t)bytes)
			memset(page, 255, bytes);
		bool written = page[0] >> 62 != 0; /* in memory, or swapped out */
		uint64_t same = 1;
		while (same < pages && (page[same] >> 62 != 0) == written)
			same++;
		next = (first + same) * PAGE < end ? (first + same) * PAGE : end;
		if (written)
			memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, next - from);
		else
			fill_zeros(to, next - from);
	}
}

static CUresult copy(uint64_t to, uint64_t from, size_t n)
{
	ALIVE();
	bool apart = to + n <= from || from + n <= to;
	int pagemap = n >= LARGE_COPY && apart && on_device(to) && on_device(from) ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) : -1;
	if (pagemap < 0) {
		memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n);
		return CUDA_SUCCESS;
	}
	copy_written(to, from, n, pagemap);
	close(pagemap);
	return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr start, unsigned char value, size_t n)
{
	ALIVE();
	if (!value && on_device(start))
		fill_zeros(start, n);
	else
		memset((void *)(uintptr_t)start, value, n);
	return CUDA_SUCCESS;
}

#define COPY(name, ...) API CUresult name(__VA_ARGS__) { return copy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, n); }
COPY(cuMemcpy, CUdeviceptr to, CUdeviceptr from, size_t n)
COPY(cuMemcpyAsync, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream)
COPY(cuMemcpyHtoD_v2, CUdeviceptr to, const void *from, size_t n)
COPY(cuMemcpyDtoH_v2, void *to, CUdeviceptr from, size_t n)
COPY(cuMemcpyDtoD_v2, CUdeviceptr to, CUdeviceptr from, size_t n)
COPY(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void *from, size_t n, CUstream stream)
COPY(cuMemcpyDtoHAsync_v2, void *to, CUdeviceptr from, size_t n, CUstream stream)
COPY(cuMemcpyDtoDAsync_v2, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream)
COPY(cuMemcpyPeer, CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t n)
COPY(cuMemcpyPeerAsync, CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t n, CUstream stream)

API CUresult cuMemsetD8_v2(CUdeviceptr start, unsigned char value, size_t n)
{
	return fill(start, value, n);
}

API CUresult cuMemsetD8Async(CUdeviceptr start, unsigned char value, size_t n, CUstream stream)
{
	return fill(start, value, n);
}

API CUresult cuMemsetD32_v2(CUdeviceptr start, unsigned value, size_t n)
{
	ALIVE();
	if (value == (value & 255) * 0x01010101)
		return fill(start, (unsigned char)value, n * 4);
	for (size_t i = 0; i < n; i++)
		((unsigned *)(uintptr_t)start)[i] = value;
	return CUDA_SUCCESS;
}

API CUresult cuMemsetD32Async(CUdeviceptr start, unsigned value, size_t n, CUstream stream)
{
	return cuMemsetD32_v2(start, value, n);
}
