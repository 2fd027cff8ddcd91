/*
 * Threads make the same and different stacks at once, while another forgets code: each node must say what was asked
 * for, whoever made it.
 */
#include <stdio.h>

#include "tests/unit/random.h"
#include "tests/unit/tsan_stubs.h"

#include "shim/stack/tree.c"

#define THREADS 4
#define STACKS  20000
#define DEPTH   8

static const char *wrong;

void mt_modules_meet(uint64_t pc)
{
	(void)pc;
}

static void *make_stacks(void *arg)
{
	uint64_t random = (uintptr_t)arg / 2 * 0x9E3779B97F4A7C15u + 1; /* two threads make the same ones */

	for (int i = 0; i < STACKS; i++) {
		uint32_t node = 0;
		for (int k = 0; k < DEPTH; k++) {
			uint64_t pc = 0x1000 + (random_next(&random) >> 60) * (k + 1);
			uint32_t child = mt_tree_child(node, pc, 0);
			if (child == MT_NODE_FAILED || child <= node)
				return (void *)(wrong = "no node, or one below its parent");
			if (node_at(child)->pc != pc || node_at(child)->parent != node)
				wrong = "a node is another one's";
			node = child;
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	stub_start(UINT64_MAX);
	if (!mt_tree_start(0))
		return stub_result("call tree under ThreadSanitizer", "does not start");
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, make_stacks, (void *)i);
	for (int i = 0; i < 20; i++) {
		uint64_t signals;
		mt_sys_block_signals(&signals);
		mt_lock_take(&mt_process.lock);
		forget_code(0x1000 + (uint64_t)i, 0x1002 + (uint64_t)i);
		mt_lock_drop(&mt_process.lock);
		mt_sys_restore_signals(&signals);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return stub_result("call tree under ThreadSanitizer", wrong);
}
