/* What the hooks of frameworks' pools ask PyTorch: pool.c sees c10's calls, mstx.c the blocks of torch_npu's pool. */
#ifndef MT_POOL_H
#define MT_POOL_H

#include <stdint.h>

/* Bytes of this thread's request, which is under way or has failed; 0 = not known. */
uint64_t mt_pool_asked(void);

/* What mt_ext_device.other says of the block that it got; the request is over. */
uint64_t mt_pool_unasked(uint64_t bytes);

/* Id of torch_npu's stream that the thread uses on this device; 0 = the default one, or torch_npu isn't there. */
uint64_t mt_pool_npu_stream(uint32_t ordinal);

#endif
