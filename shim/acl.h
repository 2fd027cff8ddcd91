/* Ascend's devices, for whoever is told about them by number. */
#ifndef MT_ACL_H
#define MT_ACL_H

#include <stdint.h>

/* MT_REC_DEVICE.id of the process's npu:N, or 0. */
uint32_t mt_acl_device(int ordinal);

#endif
