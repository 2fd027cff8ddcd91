/*
 * NVIDIA devices through their management library, which is loaded here and never in the program. The declarations are
 * our own, of what has been stable since drivers of 2016; what a driver lacks is left out.
 */
#include "analyzer/recorder/sampler/sampler_sources.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES   128u
#define MAX_PROCESSES 1024u
#define NOT_KNOWN     UINT64_MAX
#define LIBRARY       "libnvidia-ml.so.1"

typedef void *handle; /* nvmlDevice_t */

struct memory {
	unsigned long long total, free, used;
};
struct memory2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct user {
	unsigned pid;
	unsigned long long bytes;
	unsigned instance, compute_instance;
}; /* since driver 450 */
struct old_user {
	unsigned pid;
	unsigned long long bytes;
};

#define MEMORY2_VERSION ((unsigned)sizeof(struct memory2) | 2u << 24)

/* name, parameters */
/* clang-format off */
#define NVML_FUNCTIONS(X) \
	X(nvmlInit_v2, (void)) \
	X(nvmlShutdown, (void)) \
	X(nvmlDeviceGetCount_v2, (unsigned *)) \
	X(nvmlDeviceGetHandleByIndex_v2, (unsigned, handle *)) \
	X(nvmlDeviceGetUUID, (handle, char *, unsigned)) \
	X(nvmlDeviceGetName, (handle, char *, unsigned)) \
	X(nvmlDeviceGetMemoryInfo, (handle, struct memory *)) \
	X(nvmlDeviceGetMemoryInfo_v2, (handle, struct memory2 *)) \
	X(nvmlDeviceGetComputeRunningProcesses_v3, (handle, unsigned *, struct user *)) \
	X(nvmlDeviceGetComputeRunningProcesses_v2, (handle, unsigned *, struct user *)) \
	X(nvmlDeviceGetComputeRunningProcesses, (handle, unsigned *, struct old_user *)) \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3, (handle, unsigned *, struct user *)) \
	X(nvmlDeviceGetGraphicsRunningProcesses_v2, (handle, unsigned *, struct user *)) \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v3, (handle, unsigned *, struct user *)) \
	X(nvmlDeviceGetMigMode, (handle, unsigned *, unsigned *)) \
	X(nvmlDeviceGetMaxMigDeviceCount, (handle, unsigned *)) \
	X(nvmlDeviceGetMigDeviceHandleByIndex, (handle, unsigned, handle *))
/* clang-format on */

struct device {
	handle handle;
	unsigned index;
	char uuid[96], name[96];
};

struct nvml {
	void *library;
#define X(name, params) int(*name) params;
	NVML_FUNCTIONS(X)
#undef X
	struct device device[MAX_DEVICES];
	unsigned count;
};

/* ---- opening --------------------------------------------------------------------------------------------- */

static void *load(const char *beside)
{
	const char *told = getenv("MEMTRACE_NVML"), *slash = strrchr(beside, '/');
	char path[4400];
	void *library = NULL;
	if (told)
		return *told ? dlopen(told, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (slash) {
		snprintf(path, sizeof(path), "%.*s/" LIBRARY, (int)(slash - beside), beside);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library ? library : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static void add_device(struct nvml *n, handle h, unsigned index)
{
	struct device *d = &n->device[n->count];
	if (n->count == MAX_DEVICES || n->nvmlDeviceGetUUID(h, d->uuid, sizeof(d->uuid)))
		return;
	if (!n->nvmlDeviceGetName || n->nvmlDeviceGetName(h, d->name, sizeof(d->name)))
		*d->name = '\0';
	d->handle = h;
	d->index = index;
	n->count++;
}

/* Instances of a device that is divided: they, not it, are what programs see. */
static bool add_instances(struct nvml *n, handle h, unsigned index)
{
	unsigned now = 0, pending, most = 0, before = n->count;
	handle instance;
	if (!n->nvmlDeviceGetMigMode || !n->nvmlDeviceGetMaxMigDeviceCount || !n->nvmlDeviceGetMigDeviceHandleByIndex ||
	    n->nvmlDeviceGetMigMode(h, &now, &pending) || !now || n->nvmlDeviceGetMaxMigDeviceCount(h, &most))
		return false;
	for (unsigned i = 0; i < most; i++)
		if (!n->nvmlDeviceGetMigDeviceHandleByIndex(h, i, &instance))
			add_device(n, instance, index);
	return n->count > before;
}

static bool set_up(struct nvml *n)
{
	unsigned count = 0;
	handle h;
#define X(name, params) n->name = (int(*) params)(uintptr_t)dlsym(n->library, #name);
	NVML_FUNCTIONS(X)
#undef X
	if (!n->nvmlInit_v2 || !n->nvmlShutdown || !n->nvmlDeviceGetCount_v2 || !n->nvmlDeviceGetHandleByIndex_v2 ||
	    !n->nvmlDeviceGetUUID || !n->nvmlDeviceGetMemoryInfo || n->nvmlInit_v2())
		return false;
	if (!n->nvmlDeviceGetCount_v2(&count))
		for (unsigned i = 0; i < count; i++)
			if (!n->nvmlDeviceGetHandleByIndex_v2(i, &h) && !add_instances(n, h, i))
				add_device(n, h, i);
	if (!n->count)
		n->nvmlShutdown();
	return n->count > 0;
}

static void *nvml_open(const char *beside)
{
	struct nvml *n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->library = load(beside);
	if (n->library && set_up(n))
		return n;
	if (n->library)
		dlclose(n->library);
	free(n);
	return NULL;
}

static void nvml_close(void *source)
{
	struct nvml *n = source;
	n->nvmlShutdown();
	dlclose(n->library);
	free(n);
}

/* ---- figures --------------------------------------------------------------------------------------------- */

static void take_memory(const struct nvml *n, const struct device *d, struct figures *f)
{
	struct memory2 m2 = { .version = MEMORY2_VERSION };
	struct memory m;
	if (n->nvmlDeviceGetMemoryInfo_v2 && !n->nvmlDeviceGetMemoryInfo_v2(d->handle, &m2)) {
		figure(f, MT_DEVICE_total, m2.total);
		figure(f, MT_DEVICE_used, m2.used);
		figure(f, MT_DEVICE_free, m2.free);
		figure(f, MT_DEVICE_reserved, m2.reserved);
	} else if (!n->nvmlDeviceGetMemoryInfo(d->handle, &m)) {
		figure(f, MT_DEVICE_total, m.total);
		figure(f, MT_DEVICE_used, m.used);
		figure(f, MT_DEVICE_free, m.free);
	}
}

static unsigned list_old_users(const struct nvml *n, handle h, struct user *users)
{
	static struct old_user old[MAX_PROCESSES];
	unsigned count = MAX_PROCESSES;
	if (!n->nvmlDeviceGetComputeRunningProcesses || n->nvmlDeviceGetComputeRunningProcesses(h, &count, old))
		return 0;
	for (unsigned i = 0; i < count; i++)
		users[i] = (struct user){ .pid = old[i].pid, .bytes = old[i].bytes };
	return count;
}

typedef int lister(handle, unsigned *, struct user *);

/* A program may use a device for both, with the same bytes in either list. */
static unsigned append_users(lister *list, handle h, struct user *users, unsigned have)
{
	unsigned count = MAX_PROCESSES - have, kept = have;
	if (!list || list(h, &count, users + have))
		return have;
	for (unsigned i = have; i < have + count; i++) {
		unsigned k = 0;
		while (k < have && users[k].pid != users[i].pid)
			k++;
		if (k == have)
			users[kept++] = users[i];
	}
	return kept;
}

static unsigned list_users(const struct nvml *n, handle h, struct user *users)
{
	lister *compute = n->nvmlDeviceGetComputeRunningProcesses_v3 ? n->nvmlDeviceGetComputeRunningProcesses_v3
								     : n->nvmlDeviceGetComputeRunningProcesses_v2;
	lister *graphics = n->nvmlDeviceGetGraphicsRunningProcesses_v3 ? n->nvmlDeviceGetGraphicsRunningProcesses_v3
								       : n->nvmlDeviceGetGraphicsRunningProcesses_v2;
	unsigned count = compute ? append_users(compute, h, users, 0) : list_old_users(n, h, users);
	count = append_users(graphics, h, users, count);
	return append_users(n->nvmlDeviceGetMPSComputeRunningProcesses_v3, h, users, count);
}

static void add_user(const struct device *d, const struct user *u, struct samples_file *file, pid_of *pid_of, void *arg)
{
	char name[64] = "";
	struct figures f = { 0 };
	uint32_t pid = pid_of(arg, u->pid, name);
	struct subject_key key = { .kind = MT_SUBJECT_DEVICE_PROCESS,
				   .key = { MT_BACKEND_CUDA, pid, u->pid },
				   .text = d->uuid,
				   .text2 = name };
	figure(&f, MT_DEVICE_PROCESS_known, u->bytes != NOT_KNOWN);
	if (u->bytes != NOT_KNOWN) /* some drivers only tell that it is there */
		figure(&f, MT_DEVICE_PROCESS_bytes, u->bytes);
	samples_file_add(file, &key, &f);
}

static bool nvml_sample(void *source, struct samples_file *file, uint64_t now, pid_of *pid_of, void *arg)
{
	static struct user users[MAX_PROCESSES];
	const struct nvml *n = source;
	(void)now;
	for (unsigned i = 0; i < n->count; i++) {
		const struct device *d = &n->device[i];
		struct figures f = { 0 };
		struct subject_key key = { .kind = MT_SUBJECT_DEVICE,
					   .key = { MT_BACKEND_CUDA, d->index },
					   .text = d->uuid,
					   .text2 = d->name };
		take_memory(n, d, &f);
		samples_file_add(file, &key, &f);
		unsigned count = list_users(n, d->handle, users);
		for (unsigned k = 0; k < count; k++)
			add_user(d, &users[k], file, pid_of, arg);
	}
	return true;
}

const struct device_source nvml_source = {
	.backend = MT_BACKEND_CUDA,
	.library = "/libcuda.so",
	.open = nvml_open,
	.close = nvml_close,
	.sample = nvml_sample,
};
