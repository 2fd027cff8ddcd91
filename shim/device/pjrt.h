#ifndef MT_DEVICE_PJRT_H
#define MT_DEVICE_PJRT_H

/* In a forked child: forgets its parent's buffers. */
void mt_pjrt_reset(void);

#endif
