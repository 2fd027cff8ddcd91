/*
 * Starting the recorder: another process, never a child that the target could notice.
 *
 * Two nested clone(CLONE_VM | CLONE_VFORK) without an exit signal: nothing is copied, no SIGCHLD comes, and the
 * grandchild that becomes `memtrace record` is an orphan of its own session before the target runs on. wait(-1)
 * says ECHILD. Where an orphan would come back as the target's child (PID 1, a subreaper) none is started.
 */
#ifndef MT_RECORDER_H
#define MT_RECORDER_H

#include <stdint.h>

/* Tick from which an event asks for the recorder; UINT64_MAX once it was asked. About a second after the session's
 * start, so that short programs never pay for one. */
extern uint64_t mt_recorder_due;
void mt_recorder_start_timer(void);

/* Before the event of an allocation is recorded. Who asks for much may do nothing else for long, and what is in memory
 * then is for the recorder to sample: a block of 64 MiB makes it due at once, as much in smaller ones (of 64 KiB and
 * more) a little later. */
#define MT_RECORDER_LARGE (64u << 10)
void mt_recorder_weigh_large(uint64_t bytes);

/* The next event asks for it, if nobody has. */
void mt_recorder_hurry(void);

static inline void mt_recorder_weigh(uint64_t bytes)
{
	if (__builtin_expect(bytes >= MT_RECORDER_LARGE, 0))
		mt_recorder_weigh_large(bytes);
}

/* Constructor time: where the memtrace program is. */
void mt_recorder_boot(void);

/* There is work for a recorder: starts one if the session seems to have none. */
void mt_recorder_want(void);

#endif
