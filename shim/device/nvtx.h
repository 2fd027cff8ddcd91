#ifndef MT_DEVICE_NVTX_H
#define MT_DEVICE_NVTX_H

/* Constructor time: finds the real getenv(), which our own calls. */
void mt_nvtx_boot(void);

#endif
