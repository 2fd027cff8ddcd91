/*
 * AMD devices through files of the kernel's compute driver (amdkfd) and of its graphics driver (amdgpu): no library, no
 * ioctl, nothing opened that would count as using a device. All of them are text that everybody may read (mode 0444);
 * where a container's device group forbids a device, the files of its node can't be read.
 *
 *   /sys/class/kfd/kfd/topology/         (kfd_topology.c)
 *     generation_id                      another number once devices came or went
 *     nodes/N/gpu_id                     0 for a processor
 *     nodes/N/properties                 lines "name decimal": unique_id (0 = none), drm_render_minor, domain,
 *                                        location_id (bus << 8 | device << 3 | function)
 *     nodes/N/mem_banks/0/properties     size_in_bytes: what the compute driver hands out
 *   /sys/class/drm/renderDN/device/      (amdgpu_vram_mgr.c)
 *     mem_info_vram_total, .._used       bytes
 *   /sys/class/kfd/kfd/proc/PID/         (kfd_process.c)
 *     vram_GPUID                         bytes; PID is the number in the machine's first pid namespace
 *
 * So it is since Linux 5.8; before, vram_GPUID and domain are missing. Kernels before 2022 don't count a removal in
 * generation_id; there the device's files can no longer be read.
 *
 * HIP's UUID of a device is unique_id as 16 hexadecimal digits (ROCr, amd_gpu_agent.cpp); without one its PCI address,
 * which HIP makes of location_id and domain, is the name here and in the shim (hip_driver.c).
 *
 * amdgpu counts the memory on the card. A part of a card that is divided has less, and a processor's graphics unit has
 * the machine's memory instead: there size_in_bytes is another, and the device is left out.
 */
#include "analyzer/recorder/sampler/sampler_sources.h"
#include "analyzer/util/system/kernel_file.h"
#include "analyzer/util/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOPOLOGY "/sys/class/kfd/kfd/topology"
#define PROC     "/sys/class/kfd/kfd/proc"

/* Of what the card has, the compute driver hands out nearly all; of a divided one, half at most. */
#define WHOLE(bank, total) ((bank) <= (total) && (bank) >= (total) / 8 * 7)

/* Reading what 100 processes have on 8 devices takes 5 ms. It is repeated after so many times what it took. */
#define PROCESSES_SHARE 200

struct device {
	unsigned index; /* among the nodes that are no processors, the order in which HIP counts */
	uint32_t gpu_id, minor;
	uint64_t total;
	char uuid[32];
};

struct kfd {
	uint64_t generation;
	struct device *device;
	size_t count, room;
	uint64_t processes_ns; /* when they are read again */
};

/* ---- small files ----------------------------------------------------------------------------------------- */

static bool number_of(const char *text, uint64_t *number)
{
	char *end;
	if (!isdigit((unsigned char)*text))
		return false;
	*number = strtoull(text, &end, 10);
	return *end == '\n' || !*end;
}

static bool read_number(const char *path, uint64_t *number)
{
	char text[64];
	return kernel_read(path, text, sizeof(text)) > 0 && number_of(text, number);
}

/* The number of the line "name number"; 0 where there is none, as the kernel says of what a device lacks. */
static uint64_t property(const char *text, const char *name)
{
	size_t n = strlen(name);
	for (const char *line = text; line && *line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
		if (!strncmp(line, name, n) && line[n] == ' ')
			return strtoull(line + n + 1, NULL, 10);
	return 0;
}

/* ---- devices --------------------------------------------------------------------------------------------- */

static void name_device(struct device *d, const char *properties)
{
	uint64_t id = property(properties, "unique_id"), place = property(properties, "location_id");
	unsigned domain = (unsigned)property(properties, "domain");
	if (id)
		snprintf(d->uuid, sizeof(d->uuid), "GPU-%016" PRIx64, id);
	else
		snprintf(d->uuid, sizeof(d->uuid), "PCI-%04x:%02x:%02x.%x", domain, (unsigned)(place >> 8 & 0xff),
			 (unsigned)(place >> 3 & 0x1f), (unsigned)(place & 7));
}

static bool memory_file(const struct device *d, const char *name, uint64_t *bytes)
{
	char path[128];
	snprintf(path, sizeof(path), "/sys/class/drm/renderD%" PRIu32 "/device/%s", d->minor, name);
	return read_number(path, bytes);
}

/* False = its memory is not what amdgpu counts, or can't be read. */
static bool read_device(unsigned node, struct device *d)
{
	char path[128], text[8192];
	snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u/properties", node);
	if (kernel_read(path, text, sizeof(text)) <= 0)
		return false;
	d->minor = (uint32_t)property(text, "drm_render_minor");
	name_device(d, text);
	snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u/mem_banks/0/properties", node);
	if (kernel_read(path, text, sizeof(text)) <= 0 || !memory_file(d, "mem_info_vram_total", &d->total))
		return false;
	return d->total && WHOLE(property(text, "size_in_bytes"), d->total);
}

static bool has_node(unsigned node)
{
	char path[128];
	snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u", node);
	int fd = kernel_open(path);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void find_devices(struct kfd *k)
{
	k->count = 0;
	for (unsigned node = 0, index = 0; has_node(node); node++) {
		struct device d = { .index = index };
		char path[128];
		uint64_t gpu_id;
		snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u/gpu_id", node);
		if (!read_number(path, &gpu_id) || !gpu_id)
			continue;
		index++;
		d.gpu_id = (uint32_t)gpu_id;
		if (read_device(node, &d) && !vec_reserve_raw(k->device, k->room, k->count + 1))
			k->device[k->count++] = d;
	}
}

static void *kfd_open(const char *beside)
{
	struct kfd *k = calloc(1, sizeof(*k));
	(void)beside;
	if (!k || !read_number(TOPOLOGY "/generation_id", &k->generation)) {
		free(k);
		return NULL;
	}
	find_devices(k);
	return k;
}

static void kfd_close(void *source)
{
	struct kfd *k = source;
	free(k->device);
	free(k);
}

/* ---- figures --------------------------------------------------------------------------------------------- */

static void add_memory(const struct device *d, struct samples_file *file)
{
	struct figures f = { 0 };
	struct subject_key key = { .kind = MT_SUBJECT_DEVICE, .key = { MT_BACKEND_HIP, d->index }, .text = d->uuid };
	uint64_t used;
	if (!memory_file(d, "mem_info_vram_used", &used) || used > d->total)
		return;
	figure(&f, MT_DEVICE_total, d->total);
	figure(&f, MT_DEVICE_used, used);
	figure(&f, MT_DEVICE_free, d->total - used);
	samples_file_add(file, &key, &f);
}

static bool read_charge(int dir, uint32_t pid, const struct device *d, uint64_t *bytes)
{
	char path[64], text[64];
	snprintf(path, sizeof(path), "%" PRIu32 "/vram_%" PRIu32, pid, d->gpu_id);
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return number_of(text, bytes);
}

/* It has a file for each device that it may use, so one with 0 is not there. */
static void add_process(const struct kfd *k, int dir, uint32_t number, struct samples_file *file, pid_of *pid_of,
			void *arg)
{
	char name[64] = "";
	uint32_t pid = 0;
	bool known = false;
	uint64_t bytes;
	for (size_t i = 0; i < k->count; i++) {
		struct figures f = { 0 };
		if (!read_charge(dir, number, &k->device[i], &bytes) || !bytes)
			continue;
		if (!known)
			pid = pid_of(arg, number, name);
		known = true;
		struct subject_key key = { .kind = MT_SUBJECT_DEVICE_PROCESS,
					   .key = { MT_BACKEND_HIP, pid, number },
					   .text = k->device[i].uuid,
					   .text2 = name };
		figure(&f, MT_DEVICE_PROCESS_known, 1);
		figure(&f, MT_DEVICE_PROCESS_bytes, bytes);
		samples_file_add(file, &key, &f);
	}
}

static void add_processes(const struct kfd *k, struct samples_file *file, pid_of *pid_of, void *arg)
{
	int fd = k->count ? kernel_open(PROC) : -1;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		uint64_t number;
		if (number_of(entry->d_name, &number))
			add_process(k, fd, (uint32_t)number, file, pid_of, arg);
	}
	closedir(dir);
}

static bool kfd_sample(void *source, struct samples_file *file, uint64_t now, pid_of *pid_of, void *arg)
{
	struct kfd *k = source;
	uint64_t generation;
	if (!read_number(TOPOLOGY "/generation_id", &generation))
		generation = 0; /* the driver was unloaded */
	if (generation != k->generation)
		find_devices(k);
	k->generation = generation;
	for (size_t i = 0; i < k->count; i++)
		add_memory(&k->device[i], file);
	if (now < k->processes_ns)
		return false;
	uint64_t start = worked_ns();
	add_processes(k, file, pid_of, arg);
	k->processes_ns = now + (worked_ns() - start) * PROCESSES_SHARE;
	return true;
}

const struct device_source kfd_source = {
	.backend = MT_BACKEND_HIP, .open = kfd_open, .close = kfd_close, .sample = kfd_sample
};
