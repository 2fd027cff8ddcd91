/* What the files of the CUDA hooks share. An ordinal is the N of cuda:N. */
#ifndef MT_DEVICE_CUDA_H
#define MT_DEVICE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "shim/device/cuda_abi.h"
#include "shim/hooks/dlsym.h"

extern const struct mt_library mt_lib_CUDA, mt_lib_CUDART;

/* ---- cuda_driver.c: questions to the driver, if it is loaded. They do not initialise it and do not change the
 * runtime's last error. They are asked between mt_call_begin() and mt_call_end(). ---- */

/* Ordinal of the thread's current device, -1 without a context. */
int mt_cuda_current(void);

/* Ordinal of the device that a pointer, or a handle of physical memory, belongs to; -1 = unknown. */
int mt_cuda_device_of(uint64_t p);
int mt_cuda_device_of_handle(uint64_t handle);

/* Bytes of the allocation that a device address lies in; 0 = unknown. */
uint64_t mt_cuda_range(uint64_t p);

/* The free and total bytes of a device, which must be the current one. Nonzero if they are known. */
int mt_cuda_memory(int ordinal, uint64_t *free, uint64_t *total);

/* Nonzero if the stream is being captured into a graph. */
int mt_cuda_capturing(uint64_t stream);

/* The number of the capture that the stream is in: the lower 32 bits of the driver's; 0 = none. */
uint32_t mt_cuda_capture(uint64_t stream);

/* Ordinal of a context's device, -1 = unknown. Nonzero if the device's primary context is alive. */
int mt_cuda_context_device(CUcontext context);
int mt_cuda_primary_alive(int ordinal);

/* MT_REC_DEVICE.id of an ordinal; 0 for -1. */
uint32_t mt_cuda_id(int ordinal);

/* ---- cuda_array.c: bytes of arrays, from their descriptors, without the driver's padding, which is not known. ---- */

uint64_t mt_cuda_array_bytes(int format, unsigned channels, const uint64_t extent[3], unsigned levels, unsigned flags);
uint64_t mt_cuda_texel_bytes(const struct cudaChannelFormatDesc *d, struct cudaExtent e, unsigned levels,
			     unsigned flags);

#endif
