/* Intel's devices, for hooks that are given only their number. */
#ifndef MT_DEVICE_ZE_H
#define MT_DEVICE_ZE_H

#include <stdint.h>

/* Nonzero if Level Zero is loaded. */
int mt_ze_is_there(void);

/* MT_REC_DEVICE.id of the device xpu:ordinal; 0 = unknown. */
uint32_t mt_ze_id(int ordinal);

#endif
