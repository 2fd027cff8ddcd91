/*
 * MEMTRACE_VERIFY=1 has every captured stack compared with another unwinder's. That one is a library for tests, which
 * lies beside this one as libmemtrace-verify.so and is not installed; where it is missing nothing is compared.
 */
#ifndef MT_STACK_VERIFY_H
#define MT_STACK_VERIFY_H

#include <stdint.h>

/* Compares the stack of a node. `path` writes the pcs of a node, innermost first, and returns how many it wrote, at
 * most `most`. `cut`: frames are missing at the outer end. */
typedef void mt_verify_fn(uint32_t node, int cut, unsigned (*path)(uint32_t node, uint64_t *pc, unsigned most));

extern mt_verify_fn *mt_verify; /* NULL but in such tests */

/* Constructor time, and muted: it allocates. */
void mt_verify_boot(void);

#endif
