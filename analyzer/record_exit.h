/*
 * How a recorded process ended, where it did not say so itself and no traced parent waits for it: SIGKILL, a crash, an exit without the C
 * library. A zombie says it in /proc; one that was waited for says it to who holds a pidfd of it, since Linux 6.15. Elsewhere it stays unknown.
 */
#ifndef MT_RECORD_EXIT_H
#define MT_RECORD_EXIT_H

#include "analyzer/record_process.h"

/* While it lives: holds on to it. Tried once. */
void record_exit_watch(struct record_process *p);

/* Once it is over, and not since another image took its place: fills info->exit_kind and exit_code if they say nothing. */
void record_exit_take(struct record_process *p);

#endif
