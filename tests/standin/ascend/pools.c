/* Tells mstx of pools as torch_npu and MindSpore do, with the fields they leave uninitialised set to what would crash a reader, if
 * LD_PRELOAD has an entry whose real path ends as they want it; otherwise nothing. Also ranges and marks. Prints what it told. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl.h"

#define POISON ((void *)0x5a5a5a5a5a5a5a58ull)
#define MIB (1l << 20)

/* LD_PRELOAD is split at colons, as torch_npu does. */
static bool is_wanted(void)
{
	static const char ending[] = "libascend_kernel_hook.so";
	char list[8192], path[PATH_MAX], *rest = list, *entry;

	snprintf(list, sizeof list, "%s", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "");
	while ((entry = strsep(&rest, ":")))
		if (realpath(entry, path) && strlen(path) > strlen(ending) && !strcmp(path + strlen(path) - strlen(ending), ending))
			return true;
	return false;
}

/* The domain is created on every event. */
static void tell(const char *pool, uint32_t device, void *block, int64_t bytes, int64_t reserved)
{
	mstx_domain domain = mstxDomainCreateA(pool);
	struct mstx_range range = { device, block, reserved };
	struct mstx_heap heap = { 0x5a5a5a5a, 0x5a5a5a5a, &range };
	struct mstx_regions regions = { POISON, 0x5a5a5a5a, 1, &range, POISON };

	if (!domain || domain != mstxDomainCreateA(pool))
		puts("a domain without a lasting handle");
	if (!mstxMemHeapRegister(domain, &heap))
		puts("a heap without a handle");
	range.bytes = bytes;
	mstxMemRegionsRegister(domain, &regions);
}

static void untell(const char *pool, void *block)
{
	struct mstx_reference reference = { 0, block };
	struct mstx_references references = { 1, &reference };

	mstxMemRegionsUnregister(mstxDomainCreateA(pool), &references);
}

/* Blocks within one segment of the device's memory. */
static void caching(const char *pool, char *segment)
{
	tell(pool, 0, segment, 512, 20 * MIB);
	tell(pool, 0, segment + MIB, 3 * MIB, 20 * MIB);
	tell(pool, 0, segment + 5 * MIB, 10 * MIB, 20 * MIB);
	untell(pool, segment + MIB);
	tell(pool, 0, segment + MIB, 2 * MIB, 20 * MIB);
	untell(pool, segment);
	printf("%s alloc %ld %ld %ld %ld free 2\n", pool, 512l, 3 * MIB, 10 * MIB, 2 * MIB);
}

/* What is told of a workspace is the sum of all of the device's; one is told again without having been given back. */
static void workspaces(char *first, char *second)
{
	tell("ptaWorkspace", 0, first, 4 * MIB, 4 * MIB);
	tell("ptaWorkspace", 0, second, 10 * MIB, 10 * MIB); /* 4 + 6 */
	untell("ptaWorkspace", first);
	tell("ptaWorkspace", 0, first, 11 * MIB, 10 * MIB); /* 5 + 6 */
	tell("ptaWorkspace", 0, first, 13 * MIB, 10 * MIB); /* 7 + 6 */
	untell("ptaWorkspace", first);
	untell("ptaWorkspace", second);
	printf("ptaWorkspace alloc %ld %ld %ld %ld free 4\n", 4 * MIB, 6 * MIB, 5 * MIB, 7 * MIB);
}

static void phases(void)
{
	mstx_domain domain = mstxDomainCreateA("mine");
	uint64_t outer = mstxRangeStartA("epoch", NULL), other = mstxDomainRangeStartA(domain, "load", NULL);
	uint64_t inner = mstxRangeStartA("step", NULL);

	mstxMarkA("step start", NULL);
	mstxDomainMarkA(domain, "moment", NULL);
	mstxRangeEnd(outer); /* they need not nest */
	mstxRangeEnd(inner);
	mstxDomainRangeEnd(domain, other);
	mstxDomainDestroy(domain);
	printf("ids differ: %d\n", outer != inner && inner != other && outer != other);
}

int main(void)
{
	void *segment[3];

	aclInit(NULL);
	aclrtSetDevice(0);
	for (int i = 0; i < 3; i++)
		aclrtMallocAlign32(&segment[i], 20 * MIB, 1);
	phases();
	if (!is_wanted())
		return puts("not wanted") < 0;
	caching("ptaCaching", segment[0]);
	caching("mindsporeMemPool", segment[1]);
	caching("msleaks", (char *)segment[2] + 10 * MIB);
	workspaces(segment[2], (char *)segment[2] + 8 * MIB);
	return 0;
}
