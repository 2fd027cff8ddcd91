/*
 * Starting the recorder: another process, never a child that the target could notice.
 *
 * Two nested clone(CLONE_VM | CLONE_VFORK) without an exit signal: nothing is copied, no SIGCHLD comes, and the
 * grandchild that becomes `memtrace record` is an orphan of its own session before the target runs on. wait(-1)
 * says ECHILD. Where an orphan would come back as the target's child (PID 1, a subreaper) none is started.
 *
 * Neither clone is given to a tracer of the target (CLONE_UNTRACED). A tracer that follows forks would wait for the
 * recorder's end, and the recorder for the tracer's if that is recorded, too.
 */
#ifndef MT_TRACE_RECORDER_H
#define MT_TRACE_RECORDER_H

#include <stdint.h>
#include <sys/types.h>

/* The tick from which on an event starts the recorder; UINT64_MAX once it was started. It is about a second after the
 * session's start, so that short programs never pay for one. */
extern uint64_t mt_recorder_due;
void mt_recorder_start_timer(void);

/* Called before an allocation is recorded. A program that has allocated much may have no further event for long, and
 * the recorder is to sample its memory meanwhile. So a block of 64 MiB makes it due at once, or 256 MiB in
 * blocks of 64 KiB or more; 64 MiB in such blocks do a little later. */
#define MT_RECORDER_LARGE (64u << 10)
void mt_recorder_weigh_large(uint64_t bytes);

/* Makes the recorder due at the next event, if it was not started. */
void mt_recorder_hurry(void);

static inline void mt_recorder_weigh(uint64_t bytes)
{
	if (__builtin_expect(bytes >= MT_RECORDER_LARGE, 0))
		mt_recorder_weigh_large(bytes);
}

/* Constructor time: where the memtrace program is. */
void mt_recorder_boot(void);

/* The kernel has no child that nobody can wait for. So another thread's wait with __WALL or __WCLONE may meet the first
 * clone, in the moment between its start and our own wait for it: hooks of wait ask again then. `before` is what
 * mt_recorder_launches() said before the real wait, `met` what that has collected: 0 = nobody, -1 = it failed. */
uint32_t mt_recorder_launches(void);
int mt_recorder_was_met(pid_t met, uint32_t before);
/* From now on nobody of the session starts one: it would come back as a child of the caller, who may wait for all of
 * its children while the recorder waits for it. One that is at work already is nobody's child here. */
void mt_recorder_forbid(void);

/* Starts a recorder, as there is work for it, unless the session seems to have one. */
void mt_recorder_want(void);

#endif
