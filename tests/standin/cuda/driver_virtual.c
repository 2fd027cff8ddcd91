/* The stand-in libcuda.so.1, third part: virtual memory management, and graphs that allocate.
 *
 * A physical handle's bytes are charged at cuMemCreate and come back when it was released as often as it was had and is mapped
 * nowhere. A reservation is addresses only. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HANDLES = 1 << 16 };

struct physical {
	uint64_t bytes;
	int device;
	bool foreign; /* another process's, charged there */
	unsigned references, maps;
	unsigned next_free;
};

struct mapping { uint64_t start, bytes; unsigned handle; };

static struct physical *handles; /* [0] is nobody's: a handle is never 0 */
static unsigned handle_count = 1, first_free;
static struct mapping *mappings;
static size_t mapping_count;

static bool set_up(void)
{
	if (!handles) {
		handles = sd_map(NULL, HANDLES * sizeof *handles, MAP_NORESERVE);
		mappings = sd_map(NULL, HANDLES * sizeof *mappings, MAP_NORESERVE);
	}
	return handles != MAP_FAILED && mappings != MAP_FAILED;
}

/* ---- handles; a number is given out again as soon as it is free ---- */

static const uint64_t HANDLE_BASE = 0x7100000000;

static CUmemGenericAllocationHandle handle_name(unsigned i)
{
	return HANDLE_BASE + i * 64ull;
}

static unsigned handle_number(CUmemGenericAllocationHandle name)
{
	uint64_t i = (name - HANDLE_BASE) / 64;
	return handles && name >= HANDLE_BASE && i < handle_count && (handles[i].references || handles[i].maps) ? (unsigned)i : 0;
}

static unsigned handle_new(uint64_t bytes, int device, bool foreign)
{
	unsigned i = first_free;
	if (i)
		first_free = handles[i].next_free;
	else if (handle_count < HANDLES)
		i = handle_count++;
	if (i)
		handles[i] = (struct physical){.bytes = bytes, .device = device, .foreign = foreign, .references = 1};
	return i;
}

static void handle_drop(const char *function, unsigned i)
{
	struct physical *p = &handles[i];
	if (p->references || p->maps)
		return;
	if (!p->foreign) {
		refund(p->device, p->bytes);
		note("free", function, "physical", p->device, 0, p->bytes, handle_name(i), CUDA_SUCCESS);
	}
	p->next_free = first_free;
	first_free = i;
}

API CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags which)
{
	ALIVE();
	*bytes = 2 << 20;
	return CUDA_SUCCESS;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags)
{
	ALIVE();
	int device = physical(properties->location.id);
	if (!bytes || bytes % (2 << 20) || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	/* as an H200 without NVLink's fabric answers: PyTorch and NCCL ask for one first, then for a descriptor */
	if (properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC)
		return CUDA_ERROR_NOT_PERMITTED;
	driver_lock();
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
	unsigned i = 0;
	if (set_up() && charge(device, bytes)) {
		i = handle_new(bytes, device, false);
		if (i)
			status = CUDA_SUCCESS;
		else
			refund(device, bytes);
	}
	note(i ? "alloc" : "fail", "cuMemCreate", "physical", device, 0, bytes, i ? handle_name(i) : 0, status);
	driver_unlock();
	if (i)
		*handle = handle_name(i);
	return status;
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	ALIVE();
	driver_lock();
	unsigned i = handle_number(handle);
	bool good = i && handles[i].references;
	if (good) {
		handles[i].references--;
		note("release", "cuMemRelease", "physical", handles[i].device, 0, handles[i].bytes, handle, CUDA_SUCCESS);
		handle_drop("cuMemRelease", i);
	}
	driver_unlock();
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
	ALIVE();
	unsigned i = handle_number(handle);
	if (!i)
		return CUDA_ERROR_INVALID_VALUE;
	memset(properties, 0, sizeof *properties);
	properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
	properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	properties->location.id = ordinal_of(handles[i].device);
	return CUDA_SUCCESS;
}

/* ---- sharing: a descriptor whose contents say what is behind it ---- */

struct shared_handle { int pid, device; uint64_t bytes; CUmemGenericAllocationHandle handle; };

API CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags)
{
	ALIVE();
	unsigned i = handle_number(handle);
	if (!i)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct shared_handle shared = {getpid(), handles[i].device, handles[i].bytes, handle};
	int fd = memfd_create("standin-memory", MFD_CLOEXEC);
	if (fd < 0 || write(fd, &shared, sizeof shared) != sizeof shared)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from, CUmemAllocationHandleType type)
{
	ALIVE();
	struct shared_handle shared;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (pread((int)(intptr_t)from, &shared, sizeof shared, 0) != sizeof shared)
		return CUDA_ERROR_INVALID_VALUE;
	driver_lock();
	unsigned i = shared.pid == getpid() ? handle_number(shared.handle) : 0;
	if (i)
		handles[i].references++;
	else if (set_up())
		i = handle_new(shared.bytes, shared.device, true);
	note("import", "cuMemImportFromShareableHandle", "physical", shared.device, 0, shared.bytes, i ? handle_name(i) : 0, CUDA_SUCCESS);
	driver_unlock();
	if (!i)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handle = handle_name(i);
	return CUDA_SUCCESS;
}

/* ---- addresses and mappings ---- */

API CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	ALIVE();
	if (!bytes || bytes % (2 << 20))
		return CUDA_ERROR_INVALID_VALUE;
	driver_lock();
	uint64_t base = space_find(bytes, alignment > 2 << 20 ? alignment : 2 << 20);
	bool good = base && block_add(base, bytes, bytes, -1, RESERVATION);
	CUresult status = good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	note(good ? "alloc" : "fail", "cuMemAddressReserve", "reservation", -1, good ? base : 0, bytes, 0, status);
	driver_unlock();
	if (good)
		*address = base;
	return status;
}

static bool mapped_within(uint64_t start, uint64_t bytes)
{
	for (size_t i = 0; i < mapping_count; i++)
		if (mappings[i].start < start + bytes && start < mappings[i].start + mappings[i].bytes)
			return true;
	return false;
}

int mapped_device(uint64_t address)
{
	for (size_t i = 0; i < mapping_count; i++)
		if (address - mappings[i].start < mappings[i].bytes)
			return handles[mappings[i].handle].device;
	return 0;
}

API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	ALIVE();
	driver_lock();
	struct block *block = read_block_header(address, 1 << RESERVATION);
	bool good = block && block->bytes == bytes && !mapped_within(address, bytes);
	if (good) {
		block_remove(block);
		space_clear(address, bytes);
		note("free", "cuMemAddressFree", "reservation", -1, address, bytes, 0, CUDA_SUCCESS);
	}
	driver_unlock();
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	ALIVE();
	driver_lock();
	unsigned i = handle_number(handle);
	struct block *block = block_around(address);
	bool good = i && block && block->kind == RESERVATION && address + bytes <= block->base + block->size &&
		    offset + bytes <= handles[i].bytes && mapping_count < HANDLES && !mapped_within(address, bytes);
	if (good) {
		mappings[mapping_count++] = (struct mapping){address, bytes, i};
		handles[i].maps++;
		note("map", "cuMemMap", "physical", handles[i].device, address, bytes, handle, CUDA_SUCCESS);
	}
	driver_unlock();
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void unmap(struct mapping *mapping)
{
	struct mapping was = *mapping;
	*mapping = mappings[--mapping_count];
	handles[was.handle].maps--;
	space_clear(was.start, was.bytes);
	note("unmap", "cuMemUnmap", "physical", handles[was.handle].device, was.start, was.bytes, handle_name(was.handle), CUDA_SUCCESS);
	handle_drop("cuMemUnmap", was.handle);
}

/* Whole mappings, and at least one. */
API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	ALIVE();
	bool any = false;
	driver_lock();
	for (size_t i = mapping_count; i-- > 0;)
		if (mappings[i].start >= address && mappings[i].start + mappings[i].bytes <= address + bytes) {
			unmap(&mappings[i]);
			any = true;
		}
	driver_unlock();
	return any ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
	ALIVE();
	driver_lock();
	bool good = mapped_within(address, bytes);
	driver_unlock();
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
	ALIVE();
	*flags = 3;
	return CUDA_SUCCESS;
}

API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	ALIVE();
	unsigned found = 0;
	driver_lock();
	for (size_t i = 0; i < mapping_count && !found; i++)
		if ((uint64_t)(uintptr_t)address - mappings[i].start < mappings[i].bytes)
			found = mappings[i].handle;
	if (found) {
		handles[found].references++;
		*handle = handle_name(found);
		note("retain", "cuMemRetainAllocationHandle", "physical", handles[found].device, (uint64_t)(uintptr_t)address,
		     handles[found].bytes, *handle, CUDA_SUCCESS);
	}
	driver_unlock();
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- graphs: an allocation node has an address at once and memory from the first launch on ---- */

struct CUgraphNode_st {
	CUgraphNode next;
	uint64_t address;
	bool frees;
};

struct CUgraph_st { CUgraphNode nodes; size_t count; };
struct CUgraphExec_st { size_t count; struct { uint64_t address; bool frees; } steps[]; };

CUgraph graph_new(void)
{
	return calloc(1, sizeof(struct CUgraph_st));
}

static CUresult add_node(CUgraph graph, CUgraphNode *out, uint64_t address, bool frees)
{
	CUgraphNode node = calloc(1, sizeof *node), *end = &graph->nodes;
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*node = (struct CUgraphNode_st){.address = address, .frees = frees};
	while (*end)
		end = &(*end)->next;
	*end = node;
	graph->count++;
	*out = node;
	return CUDA_SUCCESS;
}

API CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
	ALIVE();
	*graph = graph_new();
	return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	ALIVE();
	int device = physical(parameters->poolProps.location.id);
	uint64_t bytes = parameters->bytesize, size = round_up(bytes, 2 << 20), base = 0;
	if (!bytes || device < 0)
		return CUDA_ERROR_INVALID_VALUE;
	driver_lock();
	base = space_find(size, 2 << 20);
	bool good = base && block_add(base, size, bytes, device, GRAPH);
	note(good ? "node" : "fail", "cuGraphAddMemAllocNode", "graph", device, base, bytes, 0, good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
	driver_unlock();
	if (!good)
		return CUDA_ERROR_OUT_OF_MEMORY;
	parameters->dptr = base;
	return add_node(graph, node, base, false);
}

API CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n, CUdeviceptr address)
{
	ALIVE();
	return add_node(graph, node, address, true);
}

API CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n)
{
	ALIVE();
	return add_node(graph, node, 0, false);
}

API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	ALIVE();
	size_t i = 0;
	for (CUgraphNode node = graph->nodes; node && nodes && i < *n; node = node->next)
		nodes[i++] = node;
	*n = nodes ? i : graph->count;
	return CUDA_SUCCESS;
}

API CUresult cuGraphDestroy(CUgraph graph)
{
	ALIVE();
	for (CUgraphNode node = graph->nodes, next; node; node = next) {
		next = node->next;
		free(node);
	}
	free(graph);
	return CUDA_SUCCESS;
}

API CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	ALIVE();
	CUgraphExec exec = calloc(1, sizeof *exec + graph->count * sizeof *exec->steps);
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (CUgraphNode node = graph->nodes; node; node = node->next, exec->count++) {
		exec->steps[exec->count].address = node->address;
		exec->steps[exec->count].frees = node->frees;
	}
	*out = exec;
	return CUDA_SUCCESS;
}

API CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	ALIVE();
	free(exec);
	return CUDA_SUCCESS;
}

/* What a graph's own free node returns stays with the graph's addresses: another launch finds it there. */
static CUresult launch(const char *function, CUgraphExec exec)
{
	ALIVE();
	CUresult status = CUDA_SUCCESS;
	driver_lock();
	for (size_t i = 0; i < exec->count && status == CUDA_SUCCESS; i++) {
		struct block *block = read_block_header(exec->steps[i].address, 1 << GRAPH);
		if (!block || exec->steps[i].frees || block->opened)
			continue;
		block->opened = charge(block->device, block->bytes);
		status = block->opened ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		note(block->opened ? "alloc" : "fail", function, "graph", block->device, block->base, block->bytes, 0, status);
	}
	driver_unlock();
	return status;
}

API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return launch("cuGraphLaunch", exec);
}

API CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	return launch("cuGraphLaunch_ptsz", exec);
}

API CUresult cuDeviceGraphMemTrim(CUdevice ordinal)
{
	ALIVE();
	return physical(ordinal) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

API CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
	ALIVE();
	int device = physical(ordinal);
	if (device < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	uint64_t sum = 0;
	driver_lock();
	for (struct block *block = block_first(); block < block_end(); block++)
		sum += block->kind == GRAPH && block->opened && block->device == device ? block->bytes : 0;
	driver_unlock();
	*(cuuint64_t *)value = sum;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
	ALIVE();
	return CUDA_SUCCESS;
}
