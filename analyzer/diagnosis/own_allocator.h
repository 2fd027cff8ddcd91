/*
 * An allocator that is linked into a program, or into one of its libraries, and serves it without the malloc family:
 * the hooks see what it maps, and nothing of what it gives out. It is noticed by mappings that grow while the heap does
 * not, made through a function with an allocator's name, or, again and again, by code of the program that has no names.
 */
#ifndef MT_DIAGNOSIS_OWN_ALLOCATOR_H
#define MT_DIAGNOSIS_OWN_ALLOCATOR_H

#include "analyzer/model/selection/selection.h"
#include "analyzer/reader/samples.h"

struct own_allocator {
	/* anonymous memory that it had mapped at the peak of the process's mappings; 0 = there is none */
	uint64_t bytes;
	/* resident bytes of it in the sample with most, the rest is reserved address space; `bytes` where there is no
	 * sample */
	uint64_t resident;
	const struct frame *frame; /* the function of it that maps most; NULL = it has no name. Borrowed */
	const char *library;       /* whose it is: the path of a library, or of the program. Borrowed */
	const char *setting;       /* with which it calls malloc instead (shown_by.h); NULL = none is known */
};

/* `samples` may be NULL. */
struct own_allocator own_allocator_find(const struct selection *sel, const struct samples *samples,
					const struct model_process *m);

#endif
