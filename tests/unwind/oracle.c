/*
 * libmemtrace-verify.so: what the shim loads with MEMTRACE_VERIFY=1. Compares every stack that it captured, as it stands in
 * its call tree, with libunwind's whole stack; with BY_LIBGCC, for a shim that unwinds by libunwind itself, with libgcc's. MEMTRACE_VERIFY_REPORT: file that gets one line of key=value a process, appended; else
 * stderr. MEMTRACE_VERIFY_SKEW=1 forgets a frame of libunwind's, to show that differences are seen.
 */
#pragma GCC visibility push(default)
#define UNW_LOCAL_ONLY
#include <errno.h>
#if defined(BY_LIBGCC)
#include <unwind.h>
#else
#include <libunwind.h>
#endif
#include <stdlib.h>
#include <unistd.h>

#include "shim/stack/verify.h"
#include "tests/unwind/compare.h"

#define MOST 4096

void memtrace_verify(uint32_t node, int cut, unsigned (*path)(uint32_t node, uint64_t *pc, unsigned most));

static _Atomic uint64_t captures, truncated;
static int skew;
static uint64_t own[2][2]; /* code of this library, and of the shim */

static void note_own(uint64_t range[2], const void *address)
{
	Dl_info info;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4352], *end;

	if (dladdr(address, &info) && maps)
		while (fgets(line, sizeof(line), maps))
			if (info.dli_fname && strstr(line, info.dli_fname)) {
				uint64_t start = strtoull(line, &end, 16);
				range[0] = range[0] ? range[0] : start;
				range[1] = strtoull(end + 1, NULL, 16);
			}
	if (maps)
		fclose(maps);
}

#if defined(BY_LIBGCC)
struct taken {
	void **pc;
	int count, most;
};

static _Unwind_Reason_Code take(struct _Unwind_Context *context, void *arg)
{
	struct taken *t = arg;
	void *pc = (void *)_Unwind_GetIP(context);

	if (pc)
		t->pc[t->count++] = pc;
	return t->count < t->most ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static int unw_backtrace(void **pc, int most)
{
	struct taken t = { pc, 0, most };

	_Unwind_Backtrace(take, &t);
	return t.count;
}
#endif

static int is_own(uint64_t pc)
{
	return (pc >= own[0][0] && pc < own[0][1]) || (pc >= own[1][0] && pc < own[1][1]);
}

void memtrace_verify(uint32_t node, int cut, unsigned (*path)(uint32_t node, uint64_t *pc, unsigned most))
{
	static __thread uint64_t ours[MOST], theirs[MOST];
	int kept = errno, n, skip = 0;

	if (!own[1][1])
		note_own(own[1], (const void *)(uintptr_t)path);
	n = unw_backtrace((void **)theirs, MOST);
	while (skip < n && is_own(theirs[skip]))
		skip++;
	skip += skew && n - skip > 1;
	captures++;
	truncated += cut != 0;
	compare(ours, (int)path(node, ours, MOST), cut, theirs + skip, n - skip);
	errno = kept;
}

__attribute__((constructor)) static void start(void)
{
	const char *wanted = getenv("MEMTRACE_VERIFY_SKEW");

	skew = wanted && *wanted == '1';
	note_own(own[0], (const void *)(uintptr_t)start);
#if !defined(BY_LIBGCC)
	unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
#endif
}

__attribute__((destructor)) static void stop(void)
{
	const char *name = getenv("MEMTRACE_VERIFY_REPORT");
	FILE *out = name ? fopen(name, "a") : stderr;

	if (!out)
		return;
	fprintf(out, "captures=%lu differ=%lu longer=%lu shorter=%lu beyond_init=%lu truncated=%lu\n", captures, differ, longer, shorter, beyond_init, truncated);
	if (name)
		fclose(out);
}
