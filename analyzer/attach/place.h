/*
 * Where a stopped thread may be made to call dlopen: not within the loader, malloc, fork, or another function of the C
 * library that may hold a lock which dlopen or the library's start need; on a stack with room.
 */
#ifndef MT_ATTACH_PLACE_H
#define MT_ATTACH_PLACE_H

#include "analyzer/attach/arch.h"
#include "analyzer/attach/target.h"

/* Unwinds stacks of the target. */
struct place;

struct place *place_new(struct target *t);
void place_free(struct place *p);

#define PLACE_LOADER_IS_BUSY "beside one that waits while it loads a library"

/* NULL: it may call here. Else why not. `tid` is stopped by us. */
const char *place_is_unsafe(struct place *p, pid_t tid, const struct arch_thread *thread);

#endif
