/* Allocates in _init, as CUDA's libraries do: a function without unwind tables. */
#include <stdlib.h>

void *mod_alloc(void)
{
	return malloc(1);
}

#if defined(__x86_64__)
void *from_init;

__attribute__((used, noinline)) static void take(void)
{
	from_init = malloc(12345);
}

__asm__(".pushsection .init, \"ax\", @progbits\n\tcall take\n\tcall take\n\t.popsection");
#endif
