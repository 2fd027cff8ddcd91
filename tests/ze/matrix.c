/*
 * Calls every function of the hook table as tests/ze/calls.def says, got in the way that argv[1] names, and prints what each call did:
 * kind class function address bytes device status. With -DLINKED the functions are bound at link time.
 *
 *   matrix WAY [STATUS]    STATUS: what every function shall return
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/device/ze_abi.h"

#ifdef LINKED
#define HAND(name, params, args) extern ze_result_t name params;
#include "shim/hooks/hooks_ze.def"
#endif

static struct {
#define HAND(name, params, args) ze_result_t (*name) params;
#include "shim/hooks/hooks_ze.def"
} f;

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "handle";
	int status = argc > 2 ? (int)strtol(argv[2], NULL, 0) : 0, got;
	void *library = dlopen("libze_loader.so.1", RTLD_LAZY | (!strcmp(way, "default") ? RTLD_GLOBAL : RTLD_LOCAL)), *p = &p;
	void (*set)(int);
	ze_context_handle_t c = (ze_context_handle_t)&got;
	ze_device_handle_t gpu = (ze_device_handle_t)0x200, tile = (ze_device_handle_t)0x201;
	ze_device_handle_t other = (ze_device_handle_t)0x100, npu = (ze_device_handle_t)0x180;
	ze_physical_mem_handle_t h = (ze_physical_mem_handle_t)&p;
	ze_physical_mem_desc_t how = { .size = 1 << 21 }, host = { .flags = 2, .size = 1 << 20 };
	ze_ipc_mem_handle_t from;

	memset(&from, 0, sizeof(from));
	if (!library || !(set = dlsym(library, "fake_set")))
		return fprintf(stderr, "no library: %s\n", dlerror()), 1;
	set(status);
#ifdef LINKED
#define HAND(name, params, args) f.name = name;
#else
#define HAND(name, params, args) f.name = dlsym(!strcmp(way, "default") ? RTLD_DEFAULT : library, #name);
#endif
#include "shim/hooks/hooks_ze.def"

#define CALL(kind, class, name, arguments, address, bytes, device)                                           \
	got = (int)f.name arguments;                                                                         \
	printf("CALL %d %d %s %" PRIu64 " %" PRIu64 " %d %u\n", kind, class, #name, (uint64_t)(uintptr_t)(address), \
	       (uint64_t)(bytes), device, (unsigned)got);
#define ALLOC(class, name, arguments, address, bytes, device) CALL(10, class, name, arguments, address, bytes, device)
#define DROP(class, name, arguments, address, device) CALL(11, class, name, arguments, address, 0, device)
#define OTHER(kind, name, arguments, address, bytes) CALL(kind, 5, name, arguments, address, bytes, -1)
#include "tests/ze/calls.def"
	return 0;
}
