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
	int is_rocm; /* `pool` is AMD's */
	int is_cuda, on_host, fails, hides_sizes;
	int computes_badly; /* outputs that are computed later end in an error */
	int is_late;        /* outputs on devices are computed later, too, and have no memory before */
	int exhausts;       /* calls fail, as memory ran out: */
	size_t wanted;      /* ... of so many bytes, and the error says so; 0 = it says nothing of them */
	/* bytes of a pool on CUDA, that the driver is asked for with the first buffer; 0 = buffers have no address */
	size_t pool;
	int asks_driver_each; /* each buffer is asked of the driver */
	size_t temporary;     /* bytes that a call takes on each device while it is under way, beside its outputs */
	int computes_late;    /* a donated input is computed while the call is under way that it is donated to */
	/* of all buffers that are no views */
	size_t in_use, most, allocations;
	long errors, executables, events; /* that are still there */
	size_t pooled, pooled_most;       /* of the pool, temporaries with them */
	long waited;                      /* was asked for an address before there was one */
	long refused;                     /* was to donate a buffer that is being asked for its address */
};

struct plug *plug_self(void);

/* On the host outputs are computed by a thread of the plugin's, which waits for this. It returns when all are. */
void plug_compute(void);

/* The memory of its first device. */
void *plug_memory(void);

/* A loaded executable. `donates`: its first input is. */
void *plug_program(size_t outputs, size_t bytes, int donates);

#endif
