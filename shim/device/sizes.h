/* What the rows of hooks_cuda.def and hooks_hip.def say of sizes. Formats and kinds of texels have the same numbers in
 * both. */
#ifndef MT_DEVICE_SIZES_H
#define MT_DEVICE_SIZES_H

#include <stdint.h>

#include "format/format.h"
#include "shim/device/cuda.h"

static inline uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t n;

	return __builtin_mul_overflow(a, b, &n) ? MT_MAX_SIZE : n;
}

/* Of an array's descriptor, which may be NULL. */
#define ARRAY2D(d) \
	((d) ? mt_cuda_array_bytes((d)->Format, (d)->NumChannels, (uint64_t[]){ (d)->Width, (d)->Height, 0 }, 1, 0) : 0)
#define ARRAY3D(d, levels) \
	((d) ? mt_cuda_array_bytes((d)->Format, (d)->NumChannels, (uint64_t[]){ (d)->Width, (d)->Height, (d)->Depth }, \
				   levels, (d)->Flags) \
	     : 0)

#endif
