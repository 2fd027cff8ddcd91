/* Ascend's devices, for hooks that are given only their number. */
#ifndef MT_DEVICE_ACL_H
#define MT_DEVICE_ACL_H

#include <stdint.h>

/* The id in the trace (MT_REC_DEVICE.id) of the process's device npu:ordinal; 0 = unknown. */
uint32_t mt_acl_device(int ordinal);

struct mt_tables;
void mt_acl_tables(struct mt_tables *t);

#endif
