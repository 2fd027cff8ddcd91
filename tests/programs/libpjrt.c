/*
 * A PJRT plugin without a compiler and without memory: its buffers are numbers of bytes on four devices. It has the
 * functions that a framework calls to make and end buffers, and those that the shim asks. Built from the declarations
 * that the shim has of PJRT's interface.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/libpjrt.h"

enum { FUNCTIONS = 119, DEVICES = 4 };

struct device {
	int number;
};
struct buffer {
	struct device *device;
	size_t bytes;
	int is_view, is_deleted;
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
	*b = (struct buffer){ device ? device : &devices[0], bytes, is_view, 0 };
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
	pthread_mutex_unlock(&lock);
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
	a->text = "standin";
	a->bytes = 7;
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
	if (p->donates && input) /* also where it fails then */
		end(input);
	if (self.fails)
		return error();
	for (size_t d = 0; d < a->device_count; d++)
		for (size_t i = 0; i < p->outputs; i++)
			a->outputs[d][i] = make(&devices[d], p->bytes, 0);
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
