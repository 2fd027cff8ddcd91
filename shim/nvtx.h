#ifndef MT_NVTX_H
#define MT_NVTX_H

/* Constructor time: finds the getenv that ours hands on to. */
void mt_nvtx_boot(void);

#endif
