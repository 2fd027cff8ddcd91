#ifndef TEST_UNWIND_TREE_H
#define TEST_UNWIND_TREE_H

#include <stdint.h>

struct test_node {
	uint64_t pc;
	uint32_t parent, flags;
};

extern uint32_t test_tree_limit; /* nodes */

void test_tree_start(void);
const struct test_node *test_tree_node(uint32_t id);
uint32_t test_tree_count(void);

/* The pcs from a node outwards. */
unsigned test_tree_path(uint32_t id, uint64_t *pc, unsigned most);

#endif
