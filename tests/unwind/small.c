/* The unwinder's parts one by one; whole stacks are compared with a state that has never seen anything. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "shim/stack/range.h"
#include "shim/stack/rules.h"
#include "shim/stack/unwind.h"
#include "tests/unit/test.h"
#include "tests/unwind/tree.h"

#define FRAME __attribute__((noinline)) static
#define DEPTH 64
#define STAY __asm__ volatile("" ::: "memory")

static struct mt_unwind *new_state(unsigned depth)
{
	struct mt_unwind *u = mmap(NULL, mt_unwind_bytes(depth), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mt_unwind_init(u, depth);
	return u;
}

static void drop_state(struct mt_unwind *u, unsigned depth)
{
	munmap(u, mt_unwind_bytes(depth));
}

/* Like a hook: frames begin with the caller. */
FRAME uint32_t capture(struct mt_unwind *u, bool *cut)
{
	struct mt_regs here;
	uint32_t node;

	*cut = false;
	MT_REGS_HERE(here);
	mt_unwind_walk(u, &here);
	node = mt_unwind_node(u, cut);
	STAY;
	return node;
}

FRAME uint32_t deep(struct mt_unwind *u, unsigned depth, bool *cut)
{
	uint32_t node = depth ? deep(u, depth - 1, cut) : capture(u, cut);

	STAY;
	return node;
}

/* Captures the same stack, from one call, with both states. */
FRAME bool agree(struct mt_unwind *u, struct mt_unwind *v, unsigned depth, uint32_t *node)
{
	struct mt_unwind *volatile both[2] = { u, v };
	uint32_t nodes[2];
	bool cut[2];

	for (volatile int i = 0; i < 2; i++)
		nodes[i] = deep(both[i], depth, &cut[i]);
	*node = nodes[0];
	return nodes[0] == nodes[1] && cut[0] == cut[1];
}

__attribute__((constructor(101))) static void boot(void)
{
	test_tree_start();
	mt_unwind_boot();
}

/* ---- ranges ---- */

TEST(range_tells_readable)
{
	char *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mt_range r = { 0 };

	mprotect(p + 8192, 4096, PROT_NONE);
	errno = 77;
	CHECK(mt_range_probe((uintptr_t)p));
	CHECK(!mt_range_probe((uintptr_t)p + 8192));
	CHECK(!mt_range_probe(0));
	CHECK(!mt_range_probe(~0ull));
	CHECK(!mt_range_enter(&r, (uintptr_t)p + 100));
	CHECK(mt_range_enter(&r, (uintptr_t)p + 200));
	CHECK(mt_range_has(&r, (uintptr_t)p + 4088));
	CHECK(mt_range_has(&r, (uintptr_t)p + 8184));
	CHECK(!mt_range_has(&r, (uintptr_t)p + 8185));
	CHECK(!mt_range_has(&r, (uintptr_t)p + 8192));
	CHECK(!mt_range_has(&r, (uintptr_t)p - 8));
	CHECK(!mt_range_has(&r, ~0ull - 3));
	CHECK_EQ(r.hi - r.lo, 8192);
	mt_range_unmapped();
	CHECK(!mt_range_enter(&r, (uintptr_t)p + 200));
	CHECK_EQ(r.hi - r.lo, 4096);
	CHECK_EQ(errno, 77);
	munmap(p, 3 * 4096);
}

TEST(range_grows_downwards_only_over_readable_pages)
{
	char *p = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mt_range r = { 0 };

	mt_range_enter(&r, (uintptr_t)p + 7 * 4096);
	CHECK(mt_range_enter(&r, (uintptr_t)p + 4 * 4096));
	CHECK_EQ(r.lo, (uintptr_t)p + 4 * 4096);
	mprotect(p + 2 * 4096, 4096, PROT_NONE);
	CHECK(!mt_range_enter(&r, (uintptr_t)p));
	CHECK_EQ(r.hi, (uintptr_t)p + 4096);
	munmap(p, 8 * 4096);
}

/* ---- rules ---- */

static struct mt_cfi scratch, scratch2;

static bool same_rule(struct mt_rule a, struct mt_rule b)
{
	return a.kind == b.kind && a.cfa == b.cfa && a.fp == b.fp && a.ra == b.ra;
}

TEST(rules_from_the_cache_are_what_was_worked_out)
{
	uint64_t start = (uintptr_t)strtol & ~0xfffull;
	unsigned kept = 0;

	for (uint64_t pc = start; pc < start + 40000; pc++) {
		struct mt_rule made = mt_rules_make(&scratch, pc, pc & 1, 3);
		uint64_t word = mt_rules_find(pc, pc & 1, 3);
		CHECK(!word || same_rule(mt_rules_unpack(word), made));
		CHECK(!mt_rules_find(pc, pc & 1, 4));
		kept += word != 0;
	}
	CHECK(kept > 30000);
	mt_rules_wipe();
	CHECK(!mt_rules_find(start + 64, 0, 3));
}

TEST(rules_of_addresses_that_are_no_code)
{
	static const uint64_t wild[] = { 0, 1, 4095, 4096, 0x4141414141414141, 1ull << 47, ~0ull, 0x7fffffffffff };

	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		CHECK_EQ(mt_rules_get(&scratch, wild[i], false, 0).kind, MT_RULE_NONE);
		CHECK_EQ(mt_rules_get(&scratch, wild[i], true, 0).kind, MT_RULE_NONE);
	}
}

static volatile int stop;

static void *hammer(void *arg)
{
	struct mt_cfi *own = calloc(1, sizeof(*own));
	uint64_t start = (uintptr_t)strtol & ~0xfffull;
	uintptr_t wrong = 0;
	unsigned seed = (unsigned)(uintptr_t)arg;

	while (!stop) {
		uint64_t pc;
		struct mt_rule got;
		seed = seed * 1664525 + 1013904223;
		pc = start + (seed >> 8) % 60000;
		got = mt_rules_get(own, pc, false, 0);
		mt_ehframe_find(&own->eh, pc - 1);
		if (seed >> 27 == 0)
			wrong += !same_rule(got, mt_rules_make(own, pc, false, 0));
	}
	free(own);
	return (void *)wrong;
}

TEST(rules_stay_whole_between_threads)
{
	pthread_t t[4];
	void *wrong;

	stop = 0;
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, hammer, (void *)(i + 1));
	for (int i = 0; i < 300; i++) {
		mt_rules_wipe();
		usleep(1000);
	}
	stop = 1;
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &wrong);
		CHECK_EQ((uintptr_t)wrong, 0);
	}
}

/* ---- captures ---- */

TEST(capture_keeps_errno_and_finds_the_same_node_again)
{
	struct mt_unwind *u = new_state(DEPTH), *fresh;
	uint32_t node;
	uint64_t pc[DEPTH];

	errno = 78;
	for (unsigned i = 0; i < 100; i++) {
		fresh = new_state(DEPTH);
		CHECK(agree(u, fresh, i % 7, &node));
		CHECK(test_tree_path(node, pc, DEPTH) > i % 7 + 3);
		drop_state(fresh, DEPTH);
	}
	CHECK_EQ(errno, 78);
	drop_state(u, DEPTH);
}

TEST(depth_keeps_the_innermost_frames)
{
	struct mt_unwind *u = new_state(5);
	uint64_t pc[16];
	bool cut;

	for (unsigned d = 0; d < 20; d++) {
		uint32_t node = deep(u, d, &cut);
		CHECK(cut);
		CHECK_EQ(test_tree_path(node, pc, 16), 5);
		for (unsigned i = 2; i < 5 && i < d; i++)
			CHECK_EQ(pc[i], pc[1]);
	}
	drop_state(u, 5);
}

TEST(a_full_tree_gives_the_deepest_ancestor)
{
	struct mt_unwind *u = new_state(DEPTH);
	uint64_t full[DEPTH], part[DEPTH];
	uint32_t all = test_tree_limit, node;
	unsigned n, m;
	bool cut;

	node = deep(u, 3, &cut);
	n = test_tree_path(node, full, DEPTH);
	CHECK(!cut);
	test_tree_limit = test_tree_count() + 3;
	for (int i = 0; i < 3; i++) {
		node = deep(u, 20, &cut);
		CHECK(cut);
		m = test_tree_path(node, part, DEPTH);
		CHECK(m < n + 17 && m > 1);
	}
	test_tree_limit = all;
	node = deep(u, 20, &cut);
	CHECK(!cut);
	CHECK_EQ(test_tree_path(node, part, DEPTH), n + 17);
	drop_state(u, DEPTH);
}

/* Paints the stack below, makes a capture, and sees how far down the paint is gone. */
FRAME unsigned stack_used(struct mt_unwind *u)
{
	volatile char *sp;
	bool cut;

#if defined(__x86_64__)
	__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
#else
	__asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
	for (int i = 1; i <= 4096; i++)
		sp[-i] = 0x5a;
	capture(u, &cut);
	for (unsigned i = 4096; i > 0; i--)
		if (sp[-(int)i] != 0x5a)
			return i;
	return 0;
}

TEST(a_capture_needs_less_than_512_bytes_of_stack)
{
	struct mt_unwind *u = new_state(DEPTH);
	unsigned cold = stack_used(u), warm = 0;

	for (int i = 0; i < 5; i++)
		warm = stack_used(u);
	printf("# stack: %u bytes cold, %u warm\n", cold, warm);
	CHECK(cold > 100 && cold < 512);
	CHECK(warm > 50 && warm <= cold);
	for (int i = 0; i < 10; i++) {
		mt_unwind_flush();
		CHECK(stack_used(u) < 512);
	}
	drop_state(u, DEPTH);
}

/* ---- left in the middle ---- */

static sigjmp_buf out;
static volatile sig_atomic_t armed, jumped;

static void leave(int signal)
{
	(void)signal;
	if (armed) {
		armed = 0;
		jumped++;
		siglongjmp(out, 1);
	}
}

FRAME void wander(struct mt_unwind *u, unsigned depth)
{
	bool cut;

	capture(u, &cut);
	if (depth) {
		wander(u, depth - 1);
		capture(u, &cut);
		if (depth % 3 == 0)
			wander(u, depth - 2);
	}
	STAY;
}

TEST(a_capture_may_be_left_by_longjmp)
{
	struct itimerval every = { { 0, 211 }, { 0, 211 } }, never = { 0 };
	struct sigaction act = { .sa_handler = leave }, old;
	struct mt_unwind *u = new_state(DEPTH);
	volatile unsigned round = 0;

	sigaction(SIGALRM, &act, &old);
	setitimer(ITIMER_REAL, &every, NULL);
	while (jumped < 2000) {
		struct mt_unwind *fresh;
		uint32_t node;
		if (!sigsetjmp(out, 1)) {
			armed = 1;
			for (;;)
				wander(u, 5 + round % 7);
		}
		round++;
		fresh = new_state(DEPTH);
		CHECK(agree(u, fresh, round % 5, &node));
		CHECK(agree(u, fresh, round % 3, &node));
		drop_state(fresh, DEPTH);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	drop_state(u, DEPTH);
}

/* ---- a state that changes hands ---- */

static void *use_state(void *u)
{
	struct mt_unwind *fresh = new_state(DEPTH);
	uintptr_t wrong = 0;
	uint32_t node;

	for (unsigned i = 0; i < 20; i++)
		wrong += !agree(u, fresh, i % 6, &node);
	drop_state(fresh, DEPTH);
	return (void *)wrong;
}

TEST(a_state_may_go_from_thread_to_thread)
{
	struct mt_unwind *u = new_state(DEPTH);
	void *wrong;

	for (int i = 0; i < 200; i++) {
		pthread_t t;
		pthread_create(&t, NULL, use_state, u);
		pthread_join(t, &wrong);
		CHECK_EQ((uintptr_t)wrong, 0);
		CHECK_EQ((uintptr_t)use_state(u), 0);
	}
	drop_state(u, DEPTH);
}

/* ---- modules ---- */

TEST(old_glibc_has_the_same_look_ups)
{
	static struct { uint64_t start, end; enum mt_eh how; } new[20000];
	uint64_t pc = (uintptr_t)strtol & ~0xfffull, found = 0;

	for (int i = 0; i < 20000; i++) {
		new[i].how = mt_ehframe_find(&scratch.eh, pc + 3 * (unsigned)i);
		new[i].start = scratch.eh.fde.start;
		new[i].end = scratch.eh.fde.end;
	}
	mt_ehframe_pretend_old();
	for (int i = 0; i < 20000; i++) {
		CHECK_EQ(mt_ehframe_find(&scratch2.eh, pc + 3 * (unsigned)i), new[i].how);
		found += new[i].how == MT_EH_FOUND;
		CHECK(new[i].how != MT_EH_FOUND || scratch2.eh.fde.start == new[i].start);
		CHECK(new[i].how != MT_EH_FOUND || scratch2.eh.fde.end == new[i].end);
	}
	CHECK(found > 15000);
	CHECK_EQ(mt_ehframe_find(&scratch2.eh, 4096), MT_EH_NO_MODULE);
	mt_ehframe_boot();
}

TEST_MAIN
