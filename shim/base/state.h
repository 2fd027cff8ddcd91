/*
 * The traced process as every room sees it: its place in the session, its files, whether this very process may record,
 * and what it could not. How it gets there, and what becomes of it, is the life cycle's (process/life.h).
 *
 * A fork can happen behind our back (raw clone, _Fork), so every event tests one word that the kernel wipes
 * in a child (MADV_WIPEONFORK). A wiped word sends the child's first event to mt_process_enter(), which gives
 * it its own files and, as the base of its call tree, its parent's nodes.
 */
#ifndef MT_BASE_STATE_H
#define MT_BASE_STATE_H

#include <limits.h>
#include <stdint.h>

#include "format/format.h"
#include "shim/base/lock.h"
#include "shim/base/set.h"
#include "shim/base/sys.h"

enum mt_state {
	MT_STATE_NEW = 0, /* nothing is known: the first event, or the first in a forked child */
	MT_STATE_ACTIVE = 1,
	MT_STATE_OFF = 2, /* not to be recorded, or given up */
	MT_STATE_PAUSED = 3,
};

struct mt_process {
	struct mt_session *session;
	struct mt_info *info; /* NULL unless recording was set up in this or a parent process */
	uint8_t *states;      /* enum mt_chunk_state per chunk */
	uint32_t pid;
	uint32_t image;
	uint64_t fork_ticks;            /* stamped in the parent just before a fork; 0 = no fork under way */
	uint32_t fork_node, fork_node2; /* the forking thread's stacks then */
	uint32_t asked, session_asked;  /* of info and session what was obeyed last */
	uint32_t fixed;                 /* files may not be opened any more */
	uint32_t held;                  /* recording is not to begin before hooks are in place: process/attach.h */
	uint32_t attached;              /* enum mt_attached */
	char session_path[PATH_MAX];    /* the trace directory */
	char directory[PATH_MAX];       /* where raw files are: the same, or the session's ring_dir */
	char path[PATH_MAX + 64];       /* of the raw files, up to "PID-N."; extensions are appended at path_end */
	char *path_end;
	uint64_t tree_bytes; /* on disk, of this process's own nodes; written by the call tree */
	struct mt_lock lock; /* slow paths: log, call tree growth, modules */
};

extern struct mt_process mt_process __attribute__((visibility("hidden")));

/* The word every event tests. Points to a static word until the wiped page exists. */
extern uint32_t *mt_state __attribute__((visibility("hidden")));

static inline uint32_t mt_process_state(void)
{
	return __atomic_load_n(mt_state, __ATOMIC_RELAXED);
}

/* Nonzero once a seccomp filter was installed, or is about to be: no files or memory can be had beyond those that
 * exist. */
static inline int mt_process_sandboxed(void)
{
	return mt_sys_quiet() == MT_QUIET_WHOLE;
}

/* First event of an image or of a forked child: reads the configuration, joins or makes the session, makes the
 * files. Returns nonzero if events are to be recorded now. Async-signal-safe; loses the race quietly. What it does is
 * the life cycle's, above all rooms that have events. */
struct mt_process_life {
	int (*enter)(void);
};
MT_SET(mt_process_life);
int mt_process_enter(void);

/* For the life cycle: makes the word that the kernel wipes in a child, if it can; and what the word says from now on.
 */
int mt_process_wipe_on_fork(void);
void mt_process_set_state(enum mt_state state);

/* Recording goes on, or stops until further notice. What a forked child begins with is in mt_config. Async-signal-safe.
 */
void mt_process_switch(int on);

/* What is done just before recording goes on, and just after it has stopped, in the process that is recorded. */
struct mt_process_turn {
	void (*on)(void);
	void (*off)(void);
};
MT_SET(mt_process_turn);

/* Whether memtrace start or stop has asked for that. The load pairs with no store: it is enough to see it some events
 * later. mt_process_obey() does what was asked. */
static inline int mt_process_is_asked(void)
{
	return __atomic_load_n(&mt_process.info->asked, __ATOMIC_RELAXED) !=
	       __atomic_load_n(&mt_process.asked, __ATOMIC_RELAXED);
}
void mt_process_obey(void);

/* Stops recording for good in this process, in a way the trace shows. */
void mt_process_off(void);

/* An inconsistency that should not exist was survived; after MT_MAX_FAULTS the shim turns itself off. */
#define MT_MAX_FAULTS 100
void mt_process_fault(void);

/* A lock was waited for in vain, which stalls the program: a few of these turn the shim off. */
void mt_process_stuck(void);

/* True in the process that owns the files, false in a vfork child that borrows its memory. */
int mt_process_is_owner(void);

/* Records one moment on both clocks, from which the analyzer works out the length of a tick. */
void mt_process_pair_clocks(void);

/* Which limits of memory there are; of a request that was refused, also what the process has of them. */
void mt_process_note_limits(struct mt_info *info);
void mt_process_note_refusal(void);

static inline void mt_count(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* Events that could not be recorded, for whatever reason. */
void mt_process_lost(uint64_t events);
void mt_process_lost_for(uint64_t events, uint32_t why); /* enum mt_loss */

/* When a process (0: this one) started, as /proc/PID/stat says, which tells it from a later one with the same pid. 0 =
 * unknown. */
uint64_t mt_process_boot_start(uint32_t pid);

#endif
