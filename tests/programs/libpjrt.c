/*
 * A PJRT plugin without a compiler and without memory: its buffers are numbers of bytes on four devices. It has the
 * functions that a framework calls to make and end buffers, and those that the shim asks. Built from the declarations
 * that the shim has of PJRT's interface.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/libpjrt.h"

enum { FUNCTIONS = 119, DEVICES = 4 };

struct device {
	int number;
};
/* Of an output that is computed later: used by the queue, the buffer, and who was given it. */
struct event {
	int is_ready, failed, users, calls;
	void (*call[4])(void *error, void *argument);
	void *argument[4];
	struct buffer *buffer; /* NULL = destroyed */
	struct event *of;      /* that it is computed from; NULL = it is there */
	size_t bytes;
	struct event *next;
};
struct buffer {
	struct device *device;
	size_t bytes;
	int is_view, is_deleted;
	void *memory;    /* on the host, or of the pool */
	int asked, asks; /* just now; ever */
	struct event *event;
};
struct program {
	size_t outputs, bytes;
	int donates;
};

static struct plug self;
static struct device devices[DEVICES] = { { 0 }, { 1 }, { 2 }, { 3 } };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *plug_memory(void)
{
	return &devices[0];
}

struct plug *plug_self(void)
{
	return &self;
}

void *plug_program(size_t outputs, size_t bytes, int donates)
{
	struct program *p = malloc(sizeof(*p));
	*p = (struct program){ outputs, bytes, donates };
	return p;
}

struct error {
	int code;
	char text[100];
};

static void *error_of(int code, const char *text, size_t bytes)
{
	struct error *e = malloc(sizeof(*e));
	__atomic_add_fetch(&self.errors, 1, __ATOMIC_RELAXED);
	e->code = code;
	snprintf(e->text, sizeof(e->text), text, bytes);
	return e;
}

static void *error(void)
{
	return self.exhausts ? error_of(PJRT_RESOURCE_EXHAUSTED,
					self.wanted ? "Out of memory while trying to allocate %zu bytes." : "Too much.",
					self.wanted)
			     : error_of(13, "It went wrong.", 0);
}

static void *error_destroy(void *args)
{
	struct pjrt_one *a = args;
	if (a->thing)
		__atomic_sub_fetch(&self.errors, 1, __ATOMIC_RELAXED);
	free(a->thing);
	return NULL;
}

/* Returns nothing: what is in the register is not to be looked at. */
static void *error_message(void *args)
{
	struct pjrt_text *a = args;
	a->text = ((struct error *)a->thing)->text;
	a->bytes = strlen(a->text);
	return (void *)1;
}

static void *error_code(void *args)
{
	struct pjrt_one *a = args;
	a->out.number = ((struct error *)a->thing)->code;
	return NULL;
}

/* ---- a pool in memory of CUDA's driver: the first hole that is large enough ---- */

enum { BLOCKS = 1000 };

static struct {
	int (*take)(uint64_t *, size_t), (*give)(uint64_t); /* of AMD's driver hipMalloc() and hipFree() */
	uint64_t start;
	struct piece {
		uint64_t at, size;
	} block[BLOCKS];
	size_t count;
} pool;

static void begin_cuda(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
	int (*retain)(void **, int) = (int (*)(void **, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
	int (*set)(void *) = (int (*)(void *))dlsym(cuda, "cuCtxSetCurrent");
	void *context;
	pool.take = (int (*)(uint64_t *, size_t))dlsym(cuda, "cuMemAlloc_v2");
	pool.give = (int (*)(uint64_t))dlsym(cuda, "cuMemFree_v2");
	if (init(0) || retain(&context, 0) || set(context))
		abort();
}

static void begin_pool(void)
{
	void *hip = self.is_rocm ? dlopen("libamdhip64.so.7", RTLD_NOW) : NULL;
	if (hip) {
		pool.take = (int (*)(uint64_t *, size_t))dlsym(hip, "hipMalloc");
		pool.give = (int (*)(uint64_t))dlsym(hip, "hipFree");
	} else {
		begin_cuda();
	}
	if (!self.asks_driver_each && pool.take(&pool.start, self.pool))
		abort();
}

/* Under the lock. NULL = no room, or there is no pool. */
static void *take(size_t bytes)
{
	const uint64_t size = (bytes + 255) & ~(uint64_t)255;
	uint64_t at;
	size_t i = 0;
	if (!self.pool)
		return NULL;
	if (!pool.take)
		begin_pool();
	at = pool.start;
	if (self.asks_driver_each)
		return pool.take(&at, bytes) ? NULL : (void *)at;
	for (; i < pool.count && pool.block[i].at - at < size; i++)
		at = pool.block[i].at + pool.block[i].size;
	if (at + size > pool.start + self.pool || pool.count == BLOCKS)
		return NULL;
	memmove(&pool.block[i + 1], &pool.block[i], (pool.count++ - i) * sizeof(pool.block[0]));
	pool.block[i] = (struct piece){ at, size };
	self.pooled += size;
	self.pooled_most = self.pooled > self.pooled_most ? self.pooled : self.pooled_most;
	return (void *)at;
}

static void give(void *p)
{
	for (size_t i = 0; i < pool.count; i++)
		if (pool.block[i].at == (uint64_t)p) {
			self.pooled -= pool.block[i].size;
			memmove(&pool.block[i], &pool.block[i + 1], (--pool.count - i) * sizeof(pool.block[0]));
			return;
		}
	if (p && self.asks_driver_each)
		pool.give((uint64_t)p);
}

static struct buffer *make(struct device *device, size_t bytes, int is_view)
{
	struct buffer *b = malloc(sizeof(*b));
	*b = (struct buffer){ .device = device ? device : &devices[0], .bytes = bytes, .is_view = is_view };
	if (self.on_host && !is_view && posix_memalign(&b->memory, 64, bytes))
		abort();
	pthread_mutex_lock(&lock);
	if (self.pool && !is_view && !(b->memory = take(bytes))) {
		pthread_mutex_unlock(&lock);
		free(b);
		return NULL;
	}
	if (!is_view) {
		self.in_use += bytes;
		self.most = self.in_use > self.most ? self.in_use : self.most;
		self.allocations++;
	}
	pthread_mutex_unlock(&lock);
	return b;
}

static void end(struct buffer *b)
{
	pthread_mutex_lock(&lock);
	self.in_use -= b->is_view || b->is_deleted || (self.on_host && b->event) ? 0 : b->bytes;
	b->is_deleted = 1;
	if (self.on_host)
		free(b->memory);
	else
		give(b->memory);
	b->memory = NULL;
	pthread_mutex_unlock(&lock);
}

/* ---- computing, later ---- */

static struct event *queue;
static int is_asked_for, is_started;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;

static void leave_event(struct event *e)
{
	if (!__atomic_sub_fetch(&e->users, 1, __ATOMIC_ACQ_REL))
		free(e);
}

/* Memory of the host is asked for without the lock, as others ask meanwhile. */
static void *memory_of(const struct event *e)
{
	void *memory = NULL;
	if (self.on_host && posix_memalign(&memory, 64, e->bytes))
		abort();
	pthread_mutex_lock(&lock);
	if (!self.on_host && self.pool && !(e->of && e->of->failed))
		memory = take(e->bytes);
	return memory;
}

static void *late_error(const struct event *e)
{
	return e->failed == PJRT_RESOURCE_EXHAUSTED
		       ? error_of(e->failed, "Out of memory while trying to allocate %zu bytes.", self.wanted)
		       : error();
}

__attribute__((noinline)) void compute(struct event *e)
{
	void *memory = memory_of(e);
	struct buffer *b = e->buffer && !e->buffer->is_deleted ? e->buffer : NULL;
	e->failed = self.computes_badly;
	if (self.pool && !memory) {
		self.wanted = e->of && e->of->failed ? self.wanted : e->bytes;
		e->failed = PJRT_RESOURCE_EXHAUSTED;
	}
	if (b && e->failed && !self.on_host) { /* it is there, without memory */
		self.in_use -= b->bytes;
		b->bytes = 0;
	}
	if (b && !e->failed)
		b->memory = memory;
	else if (self.on_host)
		free(memory);
	else
		give(memory);
	e->is_ready = 1;
	const int calls = e->calls;
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < calls; i++)
		e->call[i](e->failed ? late_error(e) : NULL, e->argument[i]);
	if (e->of)
		leave_event(e->of);
	leave_event(e);
}

static void *work(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!is_asked_for)
			pthread_cond_wait(&turn, &lock);
		while (queue) {
			struct event *e = queue;
			queue = e->next;
			pthread_mutex_unlock(&lock);
			compute(e);
			pthread_mutex_lock(&lock);
		}
		is_asked_for = 0;
		pthread_cond_broadcast(&done);
	}
	return unused;
}

void plug_compute(void)
{
	pthread_mutex_lock(&lock);
	is_asked_for = is_started;
	pthread_cond_broadcast(&turn);
	while (is_asked_for)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
}

static struct buffer *make_late(struct device *device, size_t bytes, struct buffer *of)
{
	struct buffer *b = make(device, bytes, 1);
	b->is_view = 0;
	pthread_t thread;
	b->event = calloc(1, sizeof(*b->event));
	b->event->users = 2;
	b->event->buffer = b;
	b->event->bytes = bytes;
	pthread_mutex_lock(&lock);
	if (!self.on_host) {
		self.in_use += bytes;
		self.most = self.in_use > self.most ? self.in_use : self.most;
		self.allocations++;
	}
	b->event->of = of ? of->event : NULL;
	if (b->event->of)
		__atomic_add_fetch(&b->event->of->users, 1, __ATOMIC_RELAXED);
	if (!is_started)
		pthread_create(&thread, NULL, work, NULL);
	is_started = 1;
	struct event **last = &queue;
	while (*last)
		last = &(*last)->next;
	*last = b->event;
	pthread_mutex_unlock(&lock);
	return b;
}

static void *ready_event(void *args)
{
	struct pjrt_one *a = args;
	struct buffer *b = a->thing;
	if (!b->event && !self.pool)
		return error();
	if (!b->event) {
		b->event = calloc(1, sizeof(*b->event));
		b->event->users = 1;
		b->event->is_ready = 1;
		b->event->buffer = b;
	}
	__atomic_add_fetch(&b->event->users, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&self.events, 1, __ATOMIC_RELAXED);
	a->out.pointer = b->event;
	return NULL;
}

static void *event_destroy(void *args)
{
	__atomic_sub_fetch(&self.events, 1, __ATOMIC_RELAXED);
	leave_event(((struct pjrt_one *)args)->thing);
	return NULL;
}

static void *event_is_ready(void *args)
{
	struct pjrt_one *a = args;
	a->out.flag = __atomic_load_n(&((struct event *)a->thing)->is_ready, __ATOMIC_ACQUIRE) != 0;
	return NULL;
}

static void *on_ready(void *args)
{
	struct pjrt_Event_OnReady *a = args;
	struct event *e = a->event;
	pthread_mutex_lock(&lock);
	const int ready = e->is_ready;
	if (!ready) {
		e->call[e->calls] = a->call;
		e->argument[e->calls++] = a->argument;
	}
	pthread_mutex_unlock(&lock);
	if (ready)
		a->call(e->failed ? late_error(e) : NULL, a->argument);
	return NULL;
}

static void *event_error(void *args)
{
	struct event *e = ((struct pjrt_one *)args)->thing;
	return e->failed ? late_error(e) : NULL;
}

static void *address(void *args)
{
	struct pjrt_one *a = args;
	struct buffer *b = a->thing;
	pthread_mutex_lock(&lock);
	b->asked = 1;
	b->asks++;
	self.waited += b->event && !b->event->is_ready;
	a->out.pointer = b->memory;
	pthread_mutex_unlock(&lock);
	sched_yield();
	pthread_mutex_lock(&lock);
	b->asked = 0;
	pthread_mutex_unlock(&lock);
	return b->is_deleted ? error() : NULL;
}

static size_t bytes_of(const int64_t *dims, size_t count)
{
	size_t bytes = 4;
	for (size_t i = 0; i < count; i++)
		bytes *= (size_t)dims[i];
	return bytes;
}

static void *client_create(void *args)
{
	((struct pjrt_Client_Create *)args)->client = &self;
	return NULL;
}

static void *platform_name(void *args)
{
	struct pjrt_text *a = args;
	a->text = self.is_rocm ? "rocm" : self.is_cuda ? "cuda" : "standin";
	a->bytes = strlen(a->text);
	return NULL;
}

static void *device_kind(void *args)
{
	struct pjrt_text *a = args;
	a->text = "Stand-in 9000, and more";
	a->bytes = 13;
	return NULL;
}

static void *from_host(void *args)
{
	struct pjrt_Client_BufferFromHostBuffer *a = args;
	if (self.fails)
		return error();
	a->buffer = make(a->device ? a->device : a->memory, bytes_of(a->dims, a->dim_count), 0);
	a->done = NULL;
	if (!a->buffer)
		return error_of(PJRT_RESOURCE_EXHAUSTED,
				"Failed to allocate request for 1.5GiB (%zuB) on device ordinal 0",
				bytes_of(a->dims, a->dim_count));
	return NULL;
}

static void *uninitialized(void *args)
{
	struct pjrt_Client_CreateUninitializedBuffer *a = args;
	a->buffer = make(a->device, bytes_of(a->dims, a->dim_count), 0);
	return NULL;
}

static void *view(void *args)
{
	struct pjrt_Client_CreateViewOfDeviceBuffer *a = args;
	a->buffer = make(a->device, bytes_of(a->dims, a->dim_count), 1);
	return NULL;
}

static void *copy_to_device(void *args)
{
	struct pjrt_copy *a = args;
	a->buffer = make(a->to, ((struct buffer *)a->from)->bytes, 0);
	return NULL;
}

static void *retrieve(void *args)
{
	struct pjrt_AsyncHostToDeviceTransferManager_RetrieveBuffer *a = args;
	a->buffer = make(a->manager, 4096 * ((size_t)a->index + 1), 0);
	return NULL;
}

/* They are there with the outputs. NULL = none are, or they have no room. */
static void *take_temporaries(size_t count)
{
	pthread_mutex_lock(&lock);
	void *memory = self.temporary ? take(self.temporary) : NULL;
	self.in_use += count * self.temporary;
	self.allocations += self.temporary ? count : 0;
	pthread_mutex_unlock(&lock);
	return memory;
}

static void give_temporaries(void *memory, size_t count)
{
	pthread_mutex_lock(&lock);
	self.most = self.in_use > self.most ? self.in_use : self.most;
	self.in_use -= count * self.temporary;
	give(memory);
	pthread_mutex_unlock(&lock);
}

static void *execute(void *args)
{
	struct pjrt_LoadedExecutable_Execute *a = args;
	struct program *p = a->executable;
	struct buffer *input = a->input_count ? a->inputs[0][0] : NULL;
	if (p->donates && input && self.computes_late) {
		const int asks = input->asks;
		plug_compute();
		self.refused += input->asks != asks;
	}
	if (p->donates && input) { /* also where it fails then */
		__atomic_add_fetch(&self.refused, input->asked, __ATOMIC_RELAXED);
		end(input);
	}
	if (self.fails)
		return error();
	void *memory = take_temporaries(a->device_count);
	for (size_t d = 0; d < a->device_count; d++)
		for (size_t i = 0; i < p->outputs; i++)
			a->outputs[d][i] = self.on_host || self.is_late ? make_late(&devices[d], p->bytes, input)
									: make(&devices[d], p->bytes, 0);
	give_temporaries(memory, a->device_count);
	return NULL;
}

static void *get_executable(void *args)
{
	struct pjrt_one *a = args;
	struct program *p = malloc(sizeof(*p));
	*p = *(struct program *)a->thing;
	a->out.pointer = p;
	__atomic_add_fetch(&self.executables, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *executable_destroy(void *args)
{
	free(((struct pjrt_one *)args)->thing);
	__atomic_sub_fetch(&self.executables, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *loaded_destroy(void *args)
{
	free(((struct pjrt_one *)args)->thing);
	return NULL;
}

static void *compiled_stats(void *args)
{
	struct pjrt_Executable_GetCompiledMemoryStats *a = args;
	a->temporary = (int64_t)self.temporary;
	return NULL;
}

static void *output_count(void *args)
{
	struct pjrt_one *a = args;
	a->out.bytes = ((struct program *)a->thing)->outputs;
	return NULL;
}

static void *buffer_destroy(void *args)
{
	struct buffer *b = ((struct pjrt_one *)args)->thing;
	if (b)
		end(b);
	if (b && b->event) {
		pthread_mutex_lock(&lock);
		b->event->buffer = NULL;
		pthread_mutex_unlock(&lock);
		leave_event(b->event);
	}
	free(b);
	return NULL;
}

static void *buffer_delete(void *args)
{
	end(((struct pjrt_one *)args)->thing);
	return NULL;
}

static void *is_deleted(void *args)
{
	struct pjrt_one *a = args;
	a->out.flag = ((struct buffer *)a->thing)->is_deleted != 0;
	return NULL;
}

static void *is_on_cpu(void *args)
{
	struct pjrt_one *a = args;
	a->out.flag = self.on_host != 0;
	return NULL;
}

static void *size(void *args)
{
	struct pjrt_one *a = args;
	if (self.hides_sizes)
		return error();
	a->out.bytes = ((struct buffer *)a->thing)->bytes;
	return NULL;
}

static void *device_of(void *args)
{
	struct pjrt_one *a = args;
	a->out.pointer = ((struct buffer *)a->thing)->device;
	return NULL;
}

static void *description_of(void *args)
{
	struct pjrt_one *a = args;
	a->out.pointer = a->thing;
	return NULL;
}

static void *hardware_id(void *args)
{
	struct pjrt_one *a = args;
	a->out.number = ((struct device *)a->thing)->number;
	return NULL;
}

static void *memory_kind(void *args)
{
	struct pjrt_text *a = args;
	a->text = "device";
	a->bytes = 6;
	return NULL;
}

/* A device's memory has its device's handle. */
static void *devices_of(void *args)
{
	static void *one;
	struct pjrt_Memory_AddressableByDevices *a = args;
	one = a->memory;
	a->devices = &one;
	a->count = 1;
	return NULL;
}

static void *memory_stats(void *args)
{
	struct pjrt_Device_MemoryStats *a = args;
	a->in_use = (int64_t)self.in_use;
	a->limit = (int64_t)1 << 30;
	a->limit_known = true;
	a->pool = (int64_t)self.pool;
	a->pool_known = self.pool > 0;
	return NULL;
}

const struct pjrt_table *GetPjrtApi(void);

const struct pjrt_table *GetPjrtApi(void)
{
	static union {
		struct pjrt_table table;
		char bytes[sizeof(struct pjrt_table) + FUNCTIONS * sizeof(void *)];
	} given;
	struct pjrt_table *t = &given.table;

	if (t->head.bytes)
		return t;
	t->version.head.bytes = sizeof(t->version);
	t->version.major = self.major;
	t->version.minor = 81;
	t->function[PJRT_Error_Destroy] = error_destroy;
	t->function[PJRT_Error_Message] = error_message;
	t->function[PJRT_Error_GetCode] = error_code;
	t->function[PJRT_Event_Error] = event_error;
	t->function[PJRT_Event_Destroy] = event_destroy;
	t->function[PJRT_Event_IsReady] = event_is_ready;
	t->function[PJRT_Event_OnReady] = on_ready;
	t->function[PJRT_Buffer_ReadyEvent] = ready_event;
	t->function[PJRT_Buffer_UnsafePointer] = address;
	t->function[PJRT_Client_Create] = client_create;
	t->function[PJRT_Client_PlatformName] = platform_name;
	t->function[PJRT_Client_BufferFromHostBuffer] = from_host;
	t->function[PJRT_DeviceDescription_Kind] = device_kind;
	t->function[PJRT_Device_GetDescription] = description_of;
	t->function[PJRT_Device_LocalHardwareId] = hardware_id;
	t->function[PJRT_Device_MemoryStats] = memory_stats;
	t->function[PJRT_Memory_Kind] = memory_kind;
	t->function[PJRT_Memory_AddressableByDevices] = devices_of;
	t->function[PJRT_Executable_Destroy] = executable_destroy;
	t->function[PJRT_Executable_NumOutputs] = output_count;
	t->function[PJRT_Executable_GetCompiledMemoryStats] = compiled_stats;
	t->function[PJRT_LoadedExecutable_Destroy] = loaded_destroy;
	t->function[PJRT_LoadedExecutable_GetExecutable] = get_executable;
	t->function[PJRT_LoadedExecutable_Execute] = execute;
	t->function[PJRT_Buffer_Destroy] = buffer_destroy;
	t->function[PJRT_Buffer_OnDeviceSizeInBytes] = size;
	t->function[PJRT_Buffer_Device] = device_of;
	t->function[PJRT_Buffer_Delete] = buffer_delete;
	t->function[PJRT_Buffer_IsDeleted] = is_deleted;
	t->function[PJRT_Buffer_CopyToDevice] = copy_to_device;
	t->function[PJRT_Buffer_IsOnCpu] = is_on_cpu;
	t->function[PJRT_Buffer_CopyToMemory] = copy_to_device;
	t->function[PJRT_Client_CreateViewOfDeviceBuffer] = view;
	t->function[PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer] = retrieve;
	t->function[PJRT_Client_CreateUninitializedBuffer] = uninitialized;
	if (self.missing)
		t->function[self.missing] = NULL;
	t->head.bytes = sizeof(*t) + (self.functions ? self.functions : FUNCTIONS) * sizeof(void *);
	return t;
}
