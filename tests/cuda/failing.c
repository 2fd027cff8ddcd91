/* failing SEED COUNT: calls of the functions of a hook table on libraries that refuse everything, with arguments drawn by the seed. Built for CUDA
 * on fake.c, with -DASCEND on failing.c's own libascendcl.so (-DASCEND -DLIBRARY). */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 207001, INVALID_PARAM = 107000 };

#ifdef LIBRARY

static int status_now = OUT_OF_MEMORY;
void fake_set(int status, int device, int alive) { (void)device, (void)alive; status_now = status; }
int aclrtGetDevice(int32_t *device) { return *device = 0; }
#define ACL(name, params, args, before, after) int name params { return status_now; }
#define LOW(name, params, args, before, after) long name params { return status_now; }
struct acl_config;
struct acl_physical;
#include "shim/hooks/hooks_acl.def"

#else

#ifndef ASCEND
#include "shim/device/cuda_abi.h"
#endif

typedef long any(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* What is given back is not looked into: its address may be anything. Of others an argument may be a pointer, also into the caller's own. */
static struct {
	const char *name;
	int gives_back;
	any *call;
} functions[] = {
#ifdef ASCEND
#define ACL(name, params, args, before, after) { #name, !strcmp(#name, "aclrtUnmapMem") || strstr(#name, "Free"), NULL },
#define LOW ACL
#include "shim/hooks/hooks_acl.def"
#else
#define HAND(library, name, params, args) { #name, 0, NULL },
#define DROP(library, class, name, params, args, address, stream) { #name, 1, NULL },
#include "shim/hooks/hooks_cuda.def"
#endif
};
enum { FUNCTIONS = sizeof(functions) / sizeof(*functions) };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return state % below;
}

static uint64_t address(void)
{
	static const uint64_t words[] = { 0, 1, UINT64_MAX, UINT64_MAX - 4095, 1ull << 63, 1ull << 48, (1ull << 48) - 4096, 0x7f0000000000 };
	return words[draw(8)] + draw(2) * draw(4096);
}

static uint64_t argument(void)
{
	static _Alignas(64) unsigned char zeros[4096], ones[4096];
	memset(zeros, 0, sizeof(zeros));
#ifndef ASCEND /* whose structures have pointers in them */
	memset(ones, 0xff, sizeof(ones) - 1); /* a name has an end */
#endif
	return draw(3) ? (uintptr_t)(draw(2) ? zeros : ones) : 0;
}

int main(int argc, char **argv)
{
#ifdef ASCEND
	static const int refusals[] = { OUT_OF_MEMORY, INVALID_PARAM };
	void *library = dlopen("libascendcl.so", RTLD_NOW), *second = library;
#else
	static const int refusals[] = { 1, 2 };
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *second = dlopen("libcudart.so.13", RTLD_NOW);
#endif
	void (*set)(int, int, int) = library ? (void (*)(int, int, int))(uintptr_t)dlsym(library, "fake_set") : NULL;
	long calls = 0;

	if (argc != 3 || !set || !second)
		return fprintf(stderr, "no library: %s\n", dlerror()), 1;
	state = 0x9E3779B97F4A7C15ul * (strtoul(argv[1], NULL, 10) + 1);
	for (int i = 0; i < FUNCTIONS; i++) {
		void *found = dlsym(library, functions[i].name);
		functions[i].call = (any *)(uintptr_t)(found ? found : dlsym(second, functions[i].name));
	}
	for (long n = strtol(argv[2], NULL, 10); n > 0; n--) {
		int i = (int)draw(FUNCTIONS), frees = functions[i].gives_back || strstr(functions[i].name, "Unmap");
		uint64_t a[6];
		if (!functions[i].call || strstr(functions[i].name, "GetProcAddress") || strstr(functions[i].name, "DriverEntryPoint"))
			continue; /* those that find functions allocate nothing */
		set(refusals[draw(2)], 0, 1);
		for (int k = 0; k < 6; k++)
			a[k] = frees ? address() : argument();
		if ((int)functions[i].call(a[0], a[1], a[2], a[3], a[4], a[5]) == 0)
			return printf("%s succeeded\n", functions[i].name), 1;
		calls++;
	}
	printf("%ld calls failed\n", calls);
	return 0;
}

#endif
