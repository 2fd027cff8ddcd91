#ifndef MT_WEAK_H
#define MT_WEAK_H

/* Constructor time: weak references to hooks of libraries that nobody has loaded are NULL again. */
void mt_weak_boot(void);

#endif
