/*
 * Stacks by libunwind, for machines that our own unwinder doesn't know: slower by orders of magnitude, but all that it
 * takes is the library, which is loaded when the program begins and for us alone (RTLD_LOCAL). Where it isn't
 * installed, a stack is the address that the hook returns to, and counts as truncated; so it does before the library is
 * loaded, after a system call filter was set, in children of a fork that found a capture under way, and on signal
 * stacks that are too small for libunwind.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <sys/resource.h>

#include "shim/base/config.h"
#include "shim/base/sys.h"
#include "shim/base/tables.h"
#include "shim/hooks/dlsym.h"
#include "shim/stack/ehframe.h"
#include "shim/stack/range.h"
#include "shim/stack/modules.h"
#include "shim/stack/stack.h"
#include "shim/stack/tree.h"

#define OWN 16 /* frames of ours and of libunwind's, at most */
/* bytes of a stack that libunwind is given: it takes up to 8 KiB on x86-64, 9.7 on ppc64el */
#define ROOM       (24 << 10)
#define PAGE       4096
#define WAIT_TURNS 1000
#define MOST_STACK (64ull << 20) /* what is taken for the first thread's: behind it other mappings may be */

struct mt_stack {
	uint64_t count;
	bool cut;
	void *pc[]; /* innermost first */
};

static int (*backtrace)(void **, int);
static void (*flush)(void *space, uintptr_t from, uintptr_t to);
static void **space;
/* Captures under way, and how many reasons there are for beginning no other one. */
static uint32_t inside, closed;
static uint64_t stack_limit; /* of the first thread */

void mt_stack_tables(struct mt_tables *t)
{
	(void)t;
}

void mt_stack_boot(void)
{
	mt_range_boot();
	mt_ehframe_boot();
}

/* No other thread may be within libunwind while we fork: the child would wait for its locks for ever. It is
 * not waited for longer than a thread that has the processor takes. */
static void before_fork(void)
{
	__atomic_fetch_add(&closed, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < WAIT_TURNS && __atomic_load_n(&inside, __ATOMIC_SEQ_CST); i++)
		sched_yield();
}

static void after_fork(void)
{
	__atomic_fetch_sub(&closed, 1, __ATOMIC_SEQ_CST);
}

static void forked(void)
{
	if (!inside)
		after_fork();
}

/* Functions that are not the same on all machines have the machine in their name. */
static void find_flush(void *library)
{
	static const char *const functions[] = { "_Ux86_64_flush_cache", "_Uaarch64_flush_cache",
						 "_Uppc64_flush_cache",  "_Uriscv_flush_cache",
						 "_Us390x_flush_cache",  "_Uloongarch64_flush_cache" };
	static const char *const spaces[] = { "_ULx86_64_local_addr_space", "_ULaarch64_local_addr_space",
					      "_ULppc64_local_addr_space",  "_ULriscv_local_addr_space",
					      "_ULs390x_local_addr_space",  "_ULloongarch64_local_addr_space" };

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]) && !space; i++) {
		space = dlsym(library, spaces[i]);
		flush = (void (*)(void *, uintptr_t, uintptr_t))(uintptr_t)dlsym(library, functions[i]);
	}
	if (!space || !flush)
		space = NULL;
}

void mt_stack_load(void)
{
	void *library = mt_sys_quiet() ? NULL : dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL), *warm[4];
	int (*found)(void **, int) = NULL;
	struct rlimit limit = { 0 };

	if (!library) {
		dlerror();
		dlerror();
		return;
	}
	found = (int (*)(void **, int))(uintptr_t)dlsym(library, "unw_backtrace");
	if (!found || pthread_atfork(before_fork, after_fork, forked))
		return;
	getrlimit(RLIMIT_STACK, &limit);
	stack_limit = limit.rlim_cur < MOST_STACK ? limit.rlim_cur : MOST_STACK;
	find_flush(library);
	found(warm, 4); /* what it sets up once */
	__atomic_store_n(&backtrace, found, __ATOMIC_RELEASE);
}

uint64_t mt_stack_bytes(void)
{
	return sizeof(struct mt_stack) + ((uint64_t)mt_config.depth + OWN) * sizeof(void *);
}

/* Previous captures must not be joined any more. */
static void forget_modules(void)
{
	mt_ehframe_forget();
	mt_range_unmapped();
	if (space)
		flush(*space, 0, 0);
}

static const struct mt_modules_watch watch = { .have_gone = forget_modules };
MT_SET_ADD(mt_modules_watch, watch);

void mt_stack_sandboxed(void)
{
	__atomic_fetch_add(&closed, 1, __ATOMIC_SEQ_CST);
	mt_range_forbid();
}

void mt_stack_unmapped(void)
{
	mt_range_unmapped();
}

/* The first thread's stack grows up to its limit when it is used. */
static bool can_grow(uint64_t at)
{
	extern void *__libc_stack_end;
	uint64_t end = (uintptr_t)__libc_stack_end;

	return at < end && end - at < stack_limit;
}

/* Has this stack no room for libunwind? Where it ends, a guard page can't be read; a stack for signals has none. Of
 * other stacks without one nobody can tell. */
static bool is_narrow(void)
{
	char *here = __builtin_frame_address(0);
	stack_t alt = { 0 };

	if (!mt_sys_failed(MT_SYS2(SYS_sigaltstack, NULL, &alt)) && (alt.ss_flags & SS_ONSTACK))
		return here - (char *)alt.ss_sp < ROOM;
	if (can_grow((uintptr_t)here - ROOM))
		return false;
	for (int at = PAGE; at <= ROOM; at += PAGE)
		if (!mt_range_probe((uintptr_t)here - (uintptr_t)at))
			return true;
	return false;
}

/* Ours are left out wherever they are: an operator of C++ is called through one. */
static void take(struct mt_stack *s, int n)
{
	for (int i = 0; i < n; i++)
		if (s->pc[i] && !mt_is_own(s->pc[i]))
			s->pc[s->count++] = s->pc[i];
	s->cut = n == (int)mt_config.depth + OWN || s->count > mt_config.depth;
	if (s->count > mt_config.depth)
		s->count = mt_config.depth;
}

void mt_stack_walk(struct mt_stack *s, const struct mt_frame *frame)
{
	int (*unwind)(void **, int) = __atomic_load_n(&backtrace, __ATOMIC_ACQUIRE), kept = errno;
	const char *mark;
	uint64_t signals;

	(void)frame;
	s->count = 0;
	if (!unwind || mt_sys_quiet() || is_narrow())
		return;
	/* a handler would be taken for libunwind, and might leave by longjmp */
	mt_sys_block_signals(&signals);
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&closed, __ATOMIC_SEQ_CST)) {
		MT_SET_EACH (mt_stack_hush, quietly) { /* there is one */
			mark = (*quietly)->hush();     /* it maps memory */
			take(s, unwind(s->pc, (int)mt_config.depth + OWN));
			(*quietly)->unhush(mark);
		}
	}
	__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
	mt_sys_restore_signals(&signals);
	errno = kept;
}

void mt_stack_reset(struct mt_stack *s)
{
	s->count = 0;
}

bool mt_stack_passes(struct mt_stack *s, uint64_t address)
{
	(void)s;
	(void)address;
	return false;
}

static uint32_t node_of_caller(const void *caller)
{
	uint32_t node = mt_tree_child(0, (uintptr_t)caller, 0);

	return node == MT_NODE_FAILED ? 0 : node;
}

uint32_t mt_stack_node(struct mt_stack *s, const void *caller, int *truncated)
{
	struct mt_tree_frame path[MT_TREE_PATH];
	uint32_t node = 0, n, done;

	for (uint64_t left = s->count; left;) {
		for (n = 0; left && n < MT_TREE_PATH; n++)
			path[n] = (struct mt_tree_frame){ (uintptr_t)s->pc[--left], 0, 0 };
		done = mt_tree_path(node, path, n);
		node = done ? path[done - 1].node : node;
		if (done < n) {
			s->cut = true;
			break;
		}
	}
	*truncated |= !node || s->cut;
	return node ? node : node_of_caller(caller);
}
