/* What libpjrt.c offers beside its table, to programs that have loaded it. */
#ifndef MT_TESTS_PROGRAMS_LIBPJRT_H
#define MT_TESTS_PROGRAMS_LIBPJRT_H

#include <stddef.h>

#include "shim/device/pjrt_abi.h"

/* How it is to behave, and its own account. */
struct plug {
	/* to be set before the table is asked for */
	size_t functions;   /* 0 = as many as there are */
	int major, missing; /* `missing`: this function is NULL; 0 = none */
	/* at any time */
	int on_host, fails, hides_sizes;
	/* of all buffers that are no views */
	size_t in_use, most, allocations;
	long errors, executables; /* that are still there */
};

struct plug *plug_self(void);

/* A loaded executable. `donates`: its first input is. */
void *plug_program(size_t outputs, size_t bytes, int donates);

#endif
