#include "analyzer/reader/memory_bound.h"

#include "analyzer/util/system/cgroup.h"
#include "analyzer/util/error.h"
#include "format/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Of what traces hold nodes grow least when they are decoded (twofold to fivefold), names most (tenfold): sixty-four
 * times has never been seen, and what is below the least does no harm. The blocks of events that a recorder writes take
 * 9 MiB, one at a time of each process; one more is decoded ahead where there is room. */
#define ROOM_TIMES     64
#define ROOM_LEAST     (256ull << 20)
#define ROOM_A_PROCESS (16ull << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1 /* 16 TiB that are counted though nobody has them */
#else
#define HAS_SHADOW 0
#endif

static uint64_t machine_memory(void)
{
	uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	struct cgroups *c = cgroups_new();
	uint64_t limit = cgroups_limit(c, (uint32_t)getpid());
	cgroups_free(c);
	return limit < bytes ? limit : bytes;
}

int memory_bound_bytes(uint64_t *bytes)
{
	const char *set = getenv(MEMORY_BOUND_SETTING);
	if (!set || !*set) {
		*bytes = machine_memory() / 8 * 7;
		return 0;
	}
	if (mt_read_bytes(set, bytes) == 0 && *bytes)
		return 0;
	return error_set(MT_EUSAGE, MEMORY_BOUND_SETTING, ERROR_NO_OFFSET, "'%s' is no size, like 8G", set);
}

int memory_bound_enforce(void)
{
	static bool done;
	struct rlimit limit;
	uint64_t bytes;
	if (done)
		return 0;
	int e = memory_bound_bytes(&bytes);
	if (e || HAS_SHADOW || getrlimit(RLIMIT_DATA, &limit))
		return e;
	if (limit.rlim_cur > bytes)
		limit.rlim_cur = bytes;
	setrlimit(RLIMIT_DATA, &limit);
	done = true;
	return 0;
}

int memory_bound_make(struct memory_bound *b)
{
	const char *set = getenv(MEMORY_BOUND_SETTING);
	*b = (struct memory_bound){ .set = set && *set };
	int e = memory_bound_bytes(&b->all);
	b->most = b->set || b->all < ROOM_LEAST ? b->all : ROOM_LEAST;
	return e;
}

void memory_bound_widen(struct memory_bound *b, uint64_t bytes, uint64_t processes)
{
	uint64_t more = bytes * ROOM_TIMES + processes * ROOM_A_PROCESS;
	if (!b->set)
		b->most = more < b->all - b->most ? b->most + more : b->all;
}

int memory_bound_take(struct memory_bound *b, uint64_t bytes, const char *file, int64_t offset)
{
	uint64_t taken = __atomic_add_fetch(&b->taken, bytes, __ATOMIC_RELAXED);
	if (taken <= b->most)
		return 0;
	memory_bound_give(b, bytes);
	return error_set(MT_ELARGE, file, offset,
			 "takes %" PRIu64 " MiB decoded, with the rest more than %" PRIu64 " MiB", bytes >> 20,
			 b->most >> 20);
}

void memory_bound_give(struct memory_bound *b, uint64_t bytes)
{
	__atomic_sub_fetch(&b->taken, bytes, __ATOMIC_RELAXED);
}
