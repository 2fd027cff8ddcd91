/* The stand-in libcuda.so.1, last part: cuGetProcAddress in both ABIs.
 *
 * Answers come from a table rather than from dlsym, which a preloaded library may have replaced: it must be told our functions, not
 * its own. */
#include "abi.h"

#include <string.h>

#ifdef VENDOR
#error "its declarations are not the vendor's"
#endif

static CUresult unsupported(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

API CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags);
API CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found);

#define ENTRY(name, since, symbol, twin) extern CUresult symbol();
#define NO(name)
#define cuGetProcAddress ignore
#define cuGetProcAddress_v2 ignore
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include "entries.def"
#undef cuGetProcAddress
#undef cuGetProcAddress_v2
#undef ENTRY
#undef NO
extern CUresult cuMemAllocAsync_ptsz(), cuMemAllocFromPoolAsync_ptsz(), cuMemFreeAsync_ptsz(), cuGraphLaunch_ptsz();

struct entry { const char *name, *symbol; int since; void *function, *twin; };
static const struct entry entries[] = {
#define ENTRY(name, since, symbol, twin) {#name, #symbol, since, (void *)symbol, (void *)twin},
#define NO(name) {#name, #name, 0, (void *)unsupported, NULL},
#include "entries.def"
};

/* The newest that the program knows; exact symbols are found too. */
static const struct entry *find(const char *name, int version, CUdriverProcAddressQueryResult *found)
{
	const struct entry *best = NULL;
	*found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	for (const struct entry *e = entries; e < entries + sizeof entries / sizeof *entries; e++) {
		if (strcmp(e->name, name) != 0 && strcmp(e->symbol, name) != 0)
			continue;
		if (e->since > version)
			*found = best ? *found : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
		else if (!best || e->since > best->since)
			best = e;
	}
	if (best)
		*found = CU_GET_PROC_ADDRESS_SUCCESS;
	return best;
}

API CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found)
{
	CUdriverProcAddressQueryResult ignored;
	if (!name || !function)
		return CUDA_ERROR_INVALID_VALUE;
	const struct entry *entry = find(name, version, found ? found : &ignored);
	*function = !entry ? NULL : flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && entry->twin ? entry->twin : entry->function;
	return entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

API CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
