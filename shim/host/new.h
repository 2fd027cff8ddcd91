/*
 * Operator new and delete. libstdc++'s and libc++'s call malloc and free, whose events those are; jemalloc, tcmalloc
 * and mimalloc define their own, which call nothing that we would see.
 *
 * So ours are entries that jump (new.S): where the operator of that name belongs to the allocator that also serves
 * malloc, to a function that records and calls it; else to the operator itself, which finds arguments, stack and return
 * address as if we were not there. A program that defines operators is before us and never comes here.
 *
 * The entries are exported as hooks_cuda.def's are (dlsym.h): under hidden versions, so that nobody who asks for an
 * operator by name finds one where no library has it.
 */
#ifndef MT_HOST_NEW_H
#define MT_HOST_NEW_H

enum mt_new_row {
#define NEW(symbol, version, name, params, args) MT_NEW_ROW_##symbol,
#define DELETE                                   NEW
#include "shim/hooks/hooks_new.def"
#undef NEW
#undef DELETE
	MT_NEW_ROWS
};

/* What the entries lead to; NULL = not looked for yet. */
extern void *mt_new_to[MT_NEW_ROWS];

/* Called by the entries: finds where the entry of `row` leads for this caller. */
void *mt_new_find(unsigned row, const void *caller);

/* After a dlclose: operators of libraries that have gone are looked up again. */
void mt_new_forget(void);

/* Nonzero if it is the name of an operator in hooks_new.def. */
int mt_new_is(const char *name);

#endif
