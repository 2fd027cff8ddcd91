#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "shim/base/clock.h"
#include "shim/base/lock.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"

#define WAIT_NS (10 * 1000 * 1000)

/* How a wait for the lock ended. Where none may be made in the kernel, it is spent here. */
static long wait_for(struct mt_lock *lock)
{
	struct timespec wait = { 0, WAIT_NS };
	uint64_t until;

	if (mt_sys_may(SYS_futex))
		return MT_SYS4(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, &wait);
	until = mt_clock_ns(CLOCK_MONOTONIC_COARSE) + WAIT_NS;
	while (__atomic_load_n(&lock->word, __ATOMIC_RELAXED))
		if (mt_clock_ns(CLOCK_MONOTONIC_COARSE) > until)
			return -ETIMEDOUT;
	return 0;
}

static __thread char self; /* its address is the thread's */

/* 0 free, 1 held, 2 held and somebody waits (the classic three-state futex lock). Only time counts against the limit:
 * being woken and losing the race to another thread is progress of the program. */
int mt_lock_take(struct mt_lock *lock)
{
	uint32_t word = 0;
	int waits = 0;

	/* acquire pairs with the release in mt_lock_drop */
	if (!__atomic_compare_exchange_n(&lock->word, &word, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == &self) /* nobody else writes that */
			return 0;
		while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0)
			if (wait_for(lock) == -ETIMEDOUT && ++waits == 300) {
				mt_process_stuck();
				return 0;
			}
	}
	__atomic_store_n(&lock->owner, &self, __ATOMIC_RELAXED);
	return 1;
}

void mt_lock_reset(struct mt_lock *lock)
{
	*lock = (struct mt_lock){ 0 };
}

void mt_lock_drop(struct mt_lock *lock)
{
	__atomic_store_n(&lock->owner, NULL, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2)
		MT_SYS3(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1);
}
