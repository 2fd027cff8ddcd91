#include <stdlib.h>
void *mod_alloc(void);
/* Padding puts the leaf at another offset than the other module's. */
__attribute__((used, noinline)) static int padding(int n) { return n > 1 ? n * padding(n - 1) : 1; }
__attribute__((noinline)) static void *module_b_leaf(void) { void *volatile p = malloc(2000); return p; }
void *mod_alloc(void) { void *volatile p = module_b_leaf(); return p; }
