#ifndef MT_BASE_LOCK_H
#define MT_BASE_LOCK_H

#include <stdint.h>

/* A lock for slow paths only. Waiting is bounded: 0 after about two seconds, and the caller then drops its event, so
 * that the program goes on. 0 at once if the thread has the lock already, as a signal handler may interrupt its holder
 * where signals can't be blocked. */
struct mt_lock {
	uint32_t word;
	const void *owner;
};
int mt_lock_take(struct mt_lock *lock);
void mt_lock_reset(struct mt_lock *lock);
void mt_lock_drop(struct mt_lock *lock);

#endif
