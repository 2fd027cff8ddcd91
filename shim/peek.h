/* Reading memory of this process that may not be what we take it for. */
#ifndef MT_PEEK_H
#define MT_PEEK_H

#include <stddef.h>
#include <stdint.h>

#include "shim/arch/arch.h"

/* Could an object be there at all? */
static inline int mt_peek_plausible(uintptr_t at)
{
	return at >= 4096 && !(at & 7) && !(at >> MT_ADDRESS_BITS);
}

/* Copies through the kernel, which refuses where a load would be a fault. False if not all of it is there. Where that
 * call may kill the program, the kernel's list of mappings is asked (maps.h). */
int mt_peek_copy(void *to, uintptr_t at, size_t bytes);

/* The same for storing a word, whole at any moment. */
int mt_peek_store(uintptr_t at, uintptr_t word);

#endif
