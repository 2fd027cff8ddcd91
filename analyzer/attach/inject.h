/* Calls of functions in a running program, by ptrace. */
#ifndef MT_ATTACH_INJECT_H
#define MT_ATTACH_INJECT_H

#include "analyzer/attach/target.h"

enum inject_waits {
	INJECT_WAITS_FOR_NONE,
	INJECT_WAITS_FOR_LOADER, /* dlopen */
	INJECT_WAITS_FOR_FORK,   /* before glibc 2.36 whoever registers handlers of forks */
};

/* Makes one of the target's threads call function(argument, second), with `bytes` of `passed` on its stack and their
 * address as `argument`. They are read back when it has returned. The thread is as it was before then.
 *
 * Only that thread is stopped, at a place that is safe (place.h); threads are tried for some seconds until one is. If
 * this process ends at any moment, the target goes on: the call returns by itself. `waits`: for what lock the call may
 * wait before it has done anything. If it does so for too long, it is undone.
 *
 * 0, or an error: no safe place was found and nothing was done, or the call did not return in time and is left to
 * itself. */
int inject_call(struct target *t, uint64_t function, void *passed, size_t bytes, uint64_t second,
		enum inject_waits waits);

/* Waits until what the target's threads were doing when this was called is over: each has waited or run for a while. */
void inject_settle(const struct target *t);

#endif
