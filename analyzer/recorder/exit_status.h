/*
 * How a recorded process ended, where neither its own exit hook nor a traced parent recorded it: SIGKILL, a crash, an
 * exit without the C library. The kernel shows the exit status of a zombie in /proc and, since Linux 6.15, that of a
 * process that was waited for to whoever holds a pidfd of it. Elsewhere it stays unknown.
 */
#ifndef MT_RECORDER_EXIT_STATUS_H
#define MT_RECORDER_EXIT_STATUS_H

#include "analyzer/recorder/rings/recorder_process.h"

/* While the process lives: takes a pidfd, into p->pidfd. It is tried once for each process. */
void exit_status_watch(struct record_process *p);

/* Once the process has ended (not where exec made it another image): fills in exit_kind and exit_code of p->info, if
 * they are not known yet. */
void exit_status_take(struct record_process *p);

#endif
