/*
 * How a recorded process ended, where it did not say so itself and no traced parent waits for it: SIGKILL, a crash, an
 * exit without the C library. A zombie says it in /proc; one that was waited for says it to who holds a pidfd of it,
 * since Linux 6.15. Elsewhere it stays unknown.
 */
#ifndef MT_RECORDER_EXIT_STATUS_H
#define MT_RECORDER_EXIT_STATUS_H

#include "analyzer/recorder/recorder_process.h"

/* While it lives: holds on to it. Tried once. */
void exit_status_watch(struct record_process *p);

/* Once it is over, and not since another image took its place: fills info->exit_kind and exit_code if they say nothing.
 * */
void exit_status_take(struct record_process *p);

#endif
