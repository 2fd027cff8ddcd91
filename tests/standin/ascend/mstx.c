/* libms_tools_ext.so: every call goes through a slot that a tool may fill. Who wants to is asked once, at the first call:
 * the library of MSTX_INJECTION_PATH, or whoever exports InitInjectionMstx. */
#include "standin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

typedef void (*slot)(void);

static struct {
	slot core[5], domain[6], memory[6];
} slots;

static pthread_once_t once = PTHREAD_ONCE_INIT;

#define TABLE(part) { NULL, &slots.part[1], &slots.part[2], &slots.part[3], &slots.part[4] }
static slot *core[6] = TABLE(core), *domain[7] = { NULL, &slots.domain[1], &slots.domain[2], &slots.domain[3], &slots.domain[4],
	                                           &slots.domain[5] }, *memory[6] = TABLE(memory);

/* A list begins with nothing and ends with nothing; its size counts the first of them. */
static int tables(int module, slot ***table, unsigned *size)
{
	static const struct { slot **table; unsigned size; } lists[] = { { NULL, 0 }, { core, 5 }, { domain, 6 }, { memory, 5 } };

	if (module < 1 || module > 3 || !table || !size)
		return 1;
	*table = lists[module].table;
	*size = lists[module].size;
	return 0;
}

static void ask(void)
{
	const char *path = getenv("MSTX_INJECTION_PATH");
	void *handle = path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : RTLD_DEFAULT;
	int (*init)(int (*)(int, slot ***, unsigned *)) = (int (*)(int (*)(int, slot ***, unsigned *)))(uintptr_t)dlsym(handle, "InitInjectionMstx");

	if (init && init(tables) != 0)
		slots = (__typeof__(slots)){ .core = { NULL } };
}

#define CALL(type, name, params, args, part, index, otherwise)              \
	EXPORT type name params                                             \
	{                                                                   \
		pthread_once(&once, ask);                                   \
		type (*to) params = (type (*) params)slots.part[index];     \
		return to ? to args : otherwise;                            \
	}

CALL(void, mstxMarkA, (const char *text, void *stream), (text, stream), core, 1, (void)0)
CALL(uint64_t, mstxRangeStartA, (const char *text, void *stream), (text, stream), core, 2, 0)
CALL(void, mstxRangeEnd, (uint64_t id), (id), core, 3, (void)0)
CALL(mstx_domain, mstxDomainCreateA, (const char *name), (name), domain, 1, NULL)
CALL(void, mstxDomainDestroy, (mstx_domain of), (of), domain, 2, (void)0)
CALL(void, mstxDomainMarkA, (mstx_domain of, const char *text, void *stream), (of, text, stream), domain, 3, (void)0)
CALL(uint64_t, mstxDomainRangeStartA, (mstx_domain of, const char *text, void *stream), (of, text, stream), domain, 4, 0)
CALL(void, mstxDomainRangeEnd, (mstx_domain of, uint64_t id), (of, id), domain, 5, (void)0)
CALL(void *, mstxMemHeapRegister, (mstx_domain of, const struct mstx_heap *heap), (of, heap), memory, 1, NULL)
CALL(void, mstxMemHeapUnregister, (mstx_domain of, void *heap), (of, heap), memory, 2, (void)0)
CALL(void, mstxMemRegionsRegister, (mstx_domain of, const struct mstx_regions *regions), (of, regions), memory, 3, (void)0)
CALL(void, mstxMemRegionsUnregister, (mstx_domain of, const struct mstx_references *refs), (of, refs), memory, 4, (void)0)
