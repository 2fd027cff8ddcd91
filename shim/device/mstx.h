/* mstx, the tools interface of Ascend: frameworks report their pools through it, and programs their phases. */
#ifndef MT_DEVICE_MSTX_H
#define MT_DEVICE_MSTX_H

/* Constructor time: with MEMTRACE_ASCEND_POOL=1, sets what makes the frameworks report their pools. */
void mt_mstx_boot(void);

struct mt_tables;
void mt_mstx_tables(struct mt_tables *t);

#endif
