/*
 * Most captures of a thread share their outer frames with the one before. The previous capture is kept with
 * the node of each of its frames; the new one is compared from the outermost frame inwards, and only frames
 * beyond the common part are looked up in the call tree.
 */
#include <dlfcn.h>
#include <errno.h>

#include "format/format.h"
#include "shim/config.h"
#include "shim/modules.h"
#include "shim/stack.h"
#include "shim/tree.h"

struct mt_stack {
	uint32_t epoch;
	uint32_t n;      /* frames of the previous capture */
	uint32_t failed; /* the tree had no room: nodes above are missing */
	uint64_t frame[];  /* [0, room): scratch, innermost first; [room, 2 room): previous, outermost first;
	                    * then room node ids of the previous */
};

#define OWN_FRAMES 8 /* of this library, on top of the depth that is kept */

static int (*backtrace_fast)(void **, int);
static uint32_t epoch;

void mt_stack_boot(void)
{
	void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	int (*set_policy)(void *, int);
	void **space;

	if (!lib) {
		mt_say("no libunwind.so.8: stacks hold the caller only", "");
		return;
	}
	/* one cache per thread: no lock between threads, and no signal masking on a hit (libunwind 1.x) */
	set_policy = (int (*)(void *, int))(uintptr_t)dlsym(lib, "_Ux86_64_set_caching_policy");
	space = dlsym(lib, "_Ux86_64_local_addr_space");
	if (!set_policy) {
		set_policy = (int (*)(void *, int))(uintptr_t)dlsym(lib, "_Uaarch64_set_caching_policy");
		space = dlsym(lib, "_Uaarch64_local_addr_space");
	}
	if (set_policy && space)
		set_policy(*space, 2 /* UNW_CACHE_PER_THREAD */);
	backtrace_fast = (int (*)(void **, int))(uintptr_t)dlsym(lib, "unw_backtrace");
}

static uint32_t room(void)
{
	return mt_config.depth + OWN_FRAMES;
}

uint64_t mt_stack_bytes(void)
{
	return sizeof(struct mt_stack) + (uint64_t)room() * (8 + 8 + 4);
}

void mt_stack_flush(void)
{
	__atomic_fetch_add(&epoch, 1, __ATOMIC_RELEASE);
}

/* Node of frames [0, n) given outermost first in the order frame(n-1) .. frame(0) of `pc`. */
static uint32_t join(struct mt_stack *s, const uint64_t *pc, uint32_t n)
{
	uint64_t *previous = s->frame + room();
	uint32_t *nodes = (uint32_t *)(previous + room());
	uint32_t same = 0, node;

	while (same < n && same < s->n && previous[same] == pc[n - 1 - same])
		same++;
	node = same ? nodes[same - 1] : 0;
	for (uint32_t i = same; i < n; i++) {
		uint32_t child = mt_tree_child(node, pc[n - 1 - i], 0);
		if (child == MT_NODE_FAILED) {
			s->n = i;
			s->failed = 1;
			return node;
		}
		previous[i] = pc[n - 1 - i];
		nodes[i] = node = child;
	}
	s->n = n;
	s->failed = 0;
	return node;
}

uint32_t mt_stack_capture(struct mt_stack *s, uint64_t caller, int *truncated)
{
	uint32_t now = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE), skip = 0, node;
	int n = 0, kept = errno;

	if (s->epoch != now) {
		s->n = 0;
		s->epoch = now;
	}
	if (backtrace_fast)
		n = backtrace_fast((void **)s->frame, (int)room());
	while (skip < (uint32_t)n && mt_modules_is_own(s->frame[skip]))
		skip++;
	if (n <= 0 || skip == (uint32_t)n) {
		s->frame[0] = caller;
		n = 1;
		skip = 0;
		*truncated = 1;
	}
	n -= (int)skip;
	if ((uint32_t)n > mt_config.depth) {
		n = (int)mt_config.depth;
		*truncated = 1;
	}
	node = join(s, s->frame + skip, (uint32_t)n);
	*truncated |= (int)s->failed;
	errno = kept;
	return node;
}
