/* mstx, which the frameworks of Ascend tell about their pools, and programs about their phases. */
#ifndef MT_MSTX_H
#define MT_MSTX_H

/* Constructor time: with MEMTRACE_ASCEND_POOL=1, makes the frameworks tell. */
void mt_mstx_boot(void);

#endif
