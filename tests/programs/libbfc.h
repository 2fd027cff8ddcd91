/* What libbfc.cc offers to programs that have loaded it. */
#ifndef MT_TESTS_PROGRAMS_LIBBFC_H
#define MT_TESTS_PROGRAMS_LIBBFC_H

#include <stddef.h>

extern "C" {
void *bfc_new(size_t limit, int device);
void bfc_delete(void *pool);
void *bfc_take(void *pool, size_t bytes, int retry);
void bfc_give(void *pool, void *p);
size_t bfc_size(void *pool, const void *p);
size_t bfc_reserved(void *pool);
}

#endif
