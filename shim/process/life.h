/*
 * The life cycle of a process: its first event, forks, exec and exit, and giving up rights. The ground under it is
 * base/state.h.
 */
#ifndef MT_PROCESS_LIFE_H
#define MT_PROCESS_LIFE_H

#include <stdint.h>

#include "format/format.h"

/* Around a fork, in the parent: its moment. A forked child that has had no event so far enters: what it forks inherits
 * from it, as of now, and not from its own parent. Async-signal-safe. */
void mt_life_before_fork(void);
void mt_life_after_fork(void);

/* Called in the child by hooks that know of the fork: neither the wiped word nor getpid() may be available there. */
void mt_life_forked(void);

/* Notes how the process ends, as far as an exit hook knows. */
void mt_life_ends(enum mt_exit kind, int code);

/* Notes that exec is about to make it another image, which is counted if it won't be recorded; see unseen.h for the
 * arguments. mt_life_goes_on() withdraws both: exec has failed. */
struct mt_leaving {
	uint32_t why; /* enum mt_loss; 0 = nothing was counted */
	unsigned note;
};
struct mt_leaving mt_life_execs(const char *path, int searched, char *const envp[]);
void mt_life_goes_on(struct mt_leaving l);

/* The same count for a program that another process was started with. */
void mt_life_started(uint32_t pid, const char *path, int searched, char *const envp[]);

/* Before the process gives up its rights to the trace directory: reserves chunks and nodes, so that no file has to be
 * opened later. */
void mt_life_before_drop(void);

/* Before a seccomp filter comes into force: make what will be needed while it is still allowed. */
void mt_life_before_sandbox(void);

#endif
