/* MEMTRACE_ON_OOM: a command that the recorder runs when a process of the trace ran out of memory. */
#ifndef MT_RECORDER_OOM_COMMAND_H
#define MT_RECORDER_OOM_COMMAND_H

#include "analyzer/recorder/rings/recorder_process.h"

struct oom_command;

/* NULL: MEMTRACE_ON_OOM is not set, or there is no memory. The other functions take NULL and do nothing. */
struct oom_command *oom_command_new(const struct recorder *r);
void oom_command_free(struct oom_command *);

/* Called once a round, before the processes: collects the command's exit status, and counts the kernel's OOM kills. */
void oom_command_round(struct oom_command *);

/* Called for each process that is open, once p->over is known and before the process is finished: runs the command if
 * the process has run out of memory since the last call. */
void oom_command_look(struct oom_command *, const struct recorder *r, struct record_process *p);

#endif
