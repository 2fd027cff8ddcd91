#ifndef MT_PROCESS_WEAK_H
#define MT_PROCESS_WEAK_H

/* Constructor time: sets weak references to hooks back to NULL where no loaded library has the real function. */
void mt_weak_boot(void);

#endif
