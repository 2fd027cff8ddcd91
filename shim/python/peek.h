/* Reading memory of this process at an address that may be wrong. */
#ifndef MT_PYTHON_PEEK_H
#define MT_PYTHON_PEEK_H

#include <stddef.h>
#include <stdint.h>

#include "shim/arch/arch.h"

/* Whether an object can lie at the address at all. */
static inline int mt_peek_plausible(uintptr_t at)
{
	return at >= 4096 && !(at & 7) && !(at >> MT_ADDRESS_BITS);
}

/* Copies by a system call, which fails where a load would fault. Nonzero if all bytes were copied. Where that call may
 * kill the program, the list of mappings decides (maps.h). */
int mt_peek_copy(void *to, uintptr_t at, size_t bytes);

/* The same for storing a word: other threads see the old word or the new one. */
int mt_peek_store(uintptr_t at, uintptr_t word);

#endif
