/* What the files of AMD's hooks share. An ordinal is the N of hip:N. */
#ifndef MT_DEVICE_HIP_H
#define MT_DEVICE_HIP_H

#include <stddef.h>
#include <stdint.h>

#include "shim/device/hip_abi.h"
#include "shim/hooks/dlsym.h"

extern const struct mt_library mt_lib_HIP;

/*
 * hip_driver.c: questions to HIP, if it is loaded. HIP has no driver below that could be asked instead, and each call
 * may change what the program gets of hipGetLastError():
 *
 *   before 7.0   that is the status of the last call: it stays if we ask before the program's call, or after one that
 *                succeeded
 *   since        that is the last error: it stays if what we ask is answered
 */

/* Nonzero if the library is loaded. */
int mt_hip_is_there(void);

/* Ordinal of the thread's current device, -1 = unknown. */
int mt_hip_current(void);

/* Ordinal of the device that a pointer, or a handle of physical memory, belongs to; -1 = unknown. */
int mt_hip_device_of(uint64_t p);
int mt_hip_device_of_handle(uint64_t handle);

/* The device that physical memory was asked for, -1 = the host, or unknown: before HIP 6 the structure was another. */
int mt_hip_place(const hipMemAllocationProp *prop);

/* Bytes of the allocation that a device address lies in; 0 = unknown. */
uint64_t mt_hip_range(uint64_t p);

/* The free and total bytes of the current device. Nonzero if they are known. */
int mt_hip_memory(uint64_t *free, uint64_t *total);

/* Nonzero if a question that is answered leaves the last error as it is, whenever it is asked. */
int mt_hip_asks_freely(void);

/* Nonzero if the stream is being captured into a graph; and in which capture, 0 = none. */
int mt_hip_capturing(uint64_t stream);
uint32_t mt_hip_capture(uint64_t stream);

/* MT_REC_DEVICE.id of an ordinal; 0 for -1. */
uint32_t mt_hip_id(int ordinal);

#endif
