#include <stdlib.h>
void *mod_alloc(void);
__attribute__((noinline)) static void *module_a_leaf(void) { void *volatile p = malloc(1000); return p; }
void *mod_alloc(void) { void *volatile p = module_a_leaf(); return p; }
