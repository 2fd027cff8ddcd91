/*
 * A PJRT plugin without a compiler and without memory: its buffers are numbers of bytes on four devices. It has the
 * functions that a framework calls to make and end buffers, and those that the shim asks. Built from the declarations
 * that the shim has of PJRT's interface.
 */
#include <pthread.h>
#include <sched.h>
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
	size_t bytes;
	struct event *next;
};
struct buffer {
	struct device *device;
	size_t bytes;
	int is_view, is_deleted;
	/* on the host */
	void *memory;
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

static void *error(void)
{
	__atomic_add_fetch(&self.errors, 1, __ATOMIC_RELAXED);
	return malloc(16);
}

static void *error_destroy(void *args)
{
	struct pjrt_one *a = args;
	if (a->thing)
		__atomic_sub_fetch(&self.errors, 1, __ATOMIC_RELAXED);
	free(a->thing);
	return NULL;
}

static struct buffer *make(struct device *device, size_t bytes, int is_view)
{
	struct buffer *b = malloc(sizeof(*b));
	*b = (struct buffer){ .device = device ? device : &devices[0], .bytes = bytes, .is_view = is_view };
	if (self.on_host && !is_view && posix_memalign(&b->memory, 64, bytes))
		abort();
	pthread_mutex_lock(&lock);
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
	self.in_use -= b->is_view || b->is_deleted ? 0 : b->bytes;
	b->is_deleted = 1;
	free(b->memory);
	b->memory = NULL;
	pthread_mutex_unlock(&lock);
}

/* ---- computing, on the host ---- */

static struct event *queue;
static int is_asked_for, is_started;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;

static void leave_event(struct event *e)
{
	if (!__atomic_sub_fetch(&e->users, 1, __ATOMIC_ACQ_REL))
		free(e);
}

__attribute__((noinline)) void compute(struct event *e)
{
	void *memory = NULL;
	if (posix_memalign(&memory, 64, e->bytes))
		abort();
	pthread_mutex_lock(&lock);
	if (e->buffer && !e->buffer->is_deleted)
		e->buffer->memory = memory;
	else
		free(memory);
	e->failed = self.computes_badly;
	e->is_ready = 1;
	const int calls = e->calls;
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < calls; i++)
		e->call[i](e->failed ? error() : NULL, e->argument[i]);
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

static struct buffer *make_late(struct device *device, size_t bytes)
{
	struct buffer *b = make(device, bytes, 1);
	pthread_t thread;
	b->event = calloc(1, sizeof(*b->event));
	b->event->users = 2;
	b->event->buffer = b;
	b->event->bytes = bytes;
	pthread_mutex_lock(&lock);
	if (!is_started)
		pthread_create(&thread, NULL, work, NULL);
	is_started = 1;
	b->event->next = queue;
	queue = b->event;
	pthread_mutex_unlock(&lock);
	return b;
}

static void *ready_event(void *args)
{
	struct pjrt_one *a = args;
	struct buffer *b = a->thing;
	if (!b->event)
		return error();
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
		a->call(e->failed ? error() : NULL, a->argument);
	return NULL;
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
	a->text = self.is_cuda ? "cuda" : "standin";
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
	a->buffer = make(a->device, bytes_of(a->dims, a->dim_count), 0);
	a->done = NULL;
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
	for (size_t d = 0; d < a->device_count; d++)
		for (size_t i = 0; i < p->outputs; i++)
			a->outputs[d][i] =
				self.on_host ? make_late(&devices[d], p->bytes) : make(&devices[d], p->bytes, 0);
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

static void *memory_stats(void *args)
{
	struct pjrt_Device_MemoryStats *a = args;
	a->in_use = (int64_t)self.in_use;
	a->limit = (int64_t)1 << 30;
	a->limit_known = true;
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
	t->function[PJRT_Executable_Destroy] = executable_destroy;
	t->function[PJRT_Executable_NumOutputs] = output_count;
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
