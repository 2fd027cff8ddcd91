/* MEMTRACE_ON_OOM: a command that the recorder runs when a process of the trace ran out of memory. */
#ifndef MT_RECORDER_OOM_COMMAND_H
#define MT_RECORDER_OOM_COMMAND_H

#include "analyzer/recorder/recorder_process.h"

struct oom_command;

/* NULL: nothing is to be run, or there is no memory; that is fine for the others. */
struct oom_command *oom_command_new(const struct recorder *r);
void oom_command_free(struct oom_command *);

/* Once a round, before any process: takes note of how the command ended, and of the kernel's kills. */
void oom_command_round(struct oom_command *);

/* At each process that is open, when it is known whether it is over and before it is finished. */
void oom_command_look(struct oom_command *, const struct recorder *r, struct record_process *p);

#endif
