/* The stand-in libnvidia-ml.so.1: the machine's devices and who uses them, from the same file as the driver's. */
#include "shared.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

typedef struct device *nvmlDevice_t; /* number + 1 */
struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct process_v1 { unsigned pid; unsigned long long used; };
struct process { unsigned pid; unsigned long long used; unsigned instance, compute_instance; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
struct utilization { unsigned gpu, memory; };

static int number(nvmlDevice_t device)
{
	return (int)(intptr_t)device - 1;
}

static bool good(nvmlDevice_t device)
{
	return number(device) >= 0 && number(device) < sd_count();
}

static int text(char *to, unsigned size, const char *from)
{
	return snprintf(to, size, "%s", from) < (int)size ? SUCCESS : INSUFFICIENT_SIZE;
}

API int nvmlInit_v2(void)
{
	return SUCCESS;
}

API int nvmlInit(void)
{
	return SUCCESS;
}

API int nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	return SUCCESS;
}

API int nvmlShutdown(void)
{
	return SUCCESS;
}

API const char *nvmlErrorString(int error)
{
	return error == SUCCESS ? "Success" : error == NOT_SUPPORTED ? "Not Supported" : error == NOT_FOUND ? "Not Found" : "Unknown Error";
}

API int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	*version = 13000;
	return SUCCESS;
}

API int nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

API int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
	return text(version, size, "580.0.stand-in");
}

API int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%u/exe", pid - (unsigned)sd_pid_shift());
	ssize_t n = size ? readlink(path, name, size - 1) : -1;
	if (n < 0)
		return NOT_FOUND;
	name[n] = 0;
	return SUCCESS;
}

API int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = (unsigned)sd_count();
	return SUCCESS;
}

API int nvmlDeviceGetCount(unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	*device = (nvmlDevice_t)(intptr_t)(index + 1);
	return good(*device) ? SUCCESS : INVALID_ARGUMENT;
}

API int nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *name, nvmlDevice_t *device)
{
	unsigned domain, bus;
	if (sscanf(name, "%x:%x", &domain, &bus) != 2)
		return INVALID_ARGUMENT;
	*device = (nvmlDevice_t)(intptr_t)bus;
	return good(*device) ? SUCCESS : NOT_FOUND;
}

API int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	char own[SD_UUID_TEXT];
	for (int i = 0; i < sd_count(); i++) {
		sd_uuid_text(i, own);
		if (strcmp(own, uuid) == 0) {
			*device = (nvmlDevice_t)(intptr_t)(i + 1);
			return SUCCESS;
		}
	}
	return NOT_FOUND;
}

API int nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	*index = (unsigned)number(device);
	return good(device) ? SUCCESS : INVALID_ARGUMENT;
}

API int nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
	return nvmlDeviceGetIndex(device, minor);
}

API int nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned size)
{
	char own[SD_UUID_TEXT];
	if (!good(device))
		return INVALID_ARGUMENT;
	sd_uuid_text(number(device), own);
	return text(uuid, size, own);
}

API int nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned size)
{
	char own[32];
	if (!good(device))
		return INVALID_ARGUMENT;
	snprintf(own, sizeof own, "Stand-in GPU %d", number(device));
	return text(name, size, own);
}

API int nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci *pci)
{
	if (!good(device))
		return INVALID_ARGUMENT;
	memset(pci, 0, sizeof *pci);
	pci->bus = (unsigned)number(device) + 1;
	snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
	snprintf(pci->text, sizeof pci->text, "00000000:%02X:00.0", pci->bus);
	return SUCCESS;
}

API int nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, struct pci *pci)
{
	return nvmlDeviceGetPciInfo_v3(device, pci);
}

API int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *memory)
{
	if (!good(device))
		return INVALID_ARGUMENT;
	memory->total = sd_size(number(device));
	memory->used = sd_used(number(device));
	memory->free = memory->used < memory->total ? memory->total - memory->used : 0;
	return SUCCESS;
}

API int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *memory)
{
	struct memory plain;
	int status = nvmlDeviceGetMemoryInfo(device, &plain);
	if (status == SUCCESS) {
		memory->total = plain.total;
		memory->reserved = 0;
		memory->free = plain.free;
		memory->used = plain.used;
	}
	return status;
}

enum { USERS = 512 };

static int users(nvmlDevice_t device, unsigned *count, struct sd_user list[USERS])
{
	if (!good(device))
		return INVALID_ARGUMENT;
	unsigned room = *count;
	*count = (unsigned)sd_users(number(device), list, USERS);
	return *count <= room ? SUCCESS : INSUFFICIENT_SIZE;
}

/* Its structs end before the instances. */
API int nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, struct process_v1 *processes)
{
	struct sd_user list[USERS];
	int status = users(device, count, list);
	for (unsigned i = 0; status == SUCCESS && i < *count; i++)
		processes[i] = (struct process_v1){(unsigned)list[i].pid, list[i].bytes};
	return status;
}

API int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, struct process *processes)
{
	struct sd_user list[USERS];
	int status = users(device, count, list);
	for (unsigned i = 0; status == SUCCESS && i < *count; i++)
		processes[i] = (struct process){(unsigned)list[i].pid, list[i].bytes, ~0u, ~0u};
	return status;
}

API int nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count, struct process *processes)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes);
}

static int nobody(nvmlDevice_t device, unsigned *count)
{
	*count = 0;
	return good(device) ? SUCCESS : INVALID_ARGUMENT;
}

API int nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, struct process *processes)
{
	(void)processes;
	return nobody(device, count);
}

API int nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, struct process *processes)
{
	(void)processes;
	return nobody(device, count);
}

API int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct utilization *rates)
{
	memset(rates, 0, sizeof *rates);
	return good(device) ? SUCCESS : INVALID_ARGUMENT;
}

API int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *now, unsigned *pending)
{
	*now = *pending = 0;
	return good(device) ? NOT_SUPPORTED : INVALID_ARGUMENT;
}

/* What PyTorch asks before it uses expandable segments. */
API int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, void *pci)
{
	(void)device, (void)link, (void)pci;
	return NOT_SUPPORTED;
}

API int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, void *type)
{
	(void)device, (void)link, (void)type;
	return NOT_SUPPORTED;
}

API int nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, void *zeroed)
{
	(void)device, (void)zeroed; /* all zero: no fabric */
	return SUCCESS;
}

API int nvmlDeviceGetP2PStatus(nvmlDevice_t from, nvmlDevice_t to, int index, int *status)
{
	(void)from, (void)to, (void)index;
	*status = 0;
	return SUCCESS;
}
