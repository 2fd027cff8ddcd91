/* What the hooks of frameworks' pools know of PyTorch's: pool.c hooks c10's calls, mstx.c gets the blocks of
 * torch_npu's pool. */
#ifndef MT_DEVICE_POOL_H
#define MT_DEVICE_POOL_H

#include <stdint.h>

/* Bytes of this thread's request to the pool that is under way or has failed; 0 = unknown. */
uint64_t mt_pool_asked(void);

/* Ends the request, which got a block of `bytes`: returns mt_ext_device.other of that block's event. */
uint64_t mt_pool_unasked(uint64_t bytes);

/* Id of the stream that the thread uses in torch_npu on this device; 0 = the default one, or torch_npu isn't loaded. */
uint64_t mt_pool_npu_stream(uint32_t ordinal);

#endif
