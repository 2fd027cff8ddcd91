/*
 * The traced process: its place in the session, its files, and whether this very process may record.
 *
 * A fork can happen behind our back (raw clone, _Fork), so every event tests one word that the kernel wipes
 * in a child (MADV_WIPEONFORK). A wiped word sends the child's first event to mt_process_enter(), which gives
 * it its own files and, as the base of its call tree, its parent's nodes.
 */
#ifndef MT_PROCESS_H
#define MT_PROCESS_H

#include <limits.h>
#include <stdint.h>

#include "format/format.h"
#include "shim/sys.h"

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
	uint32_t held;                  /* recording is not to begin before hooks are in place: attach.h */
	char session_path[PATH_MAX];    /* the trace directory */
	char directory[PATH_MAX];       /* where raw files are: the same, or the session's ring_dir */
	char path[PATH_MAX + 64];       /* of the raw files, up to "PID-N."; extensions are appended at path_end */
	char *path_end;
	struct mt_lock lock; /* slow paths: log, call tree growth, modules */
};

extern struct mt_process mt_process;

/* The word every event tests. Points to a static word until the wiped page exists. */
extern uint32_t *mt_state;

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
 * files. Returns nonzero if events are to be recorded now. Async-signal-safe; loses the race quietly. */
int mt_process_enter(void);

/* Around a fork, in the parent: its moment. A forked child that has had no event so far enters: what it forks inherits
 * from it, as of now, and not from its own parent. Async-signal-safe. */
void mt_process_before_fork(void);
void mt_process_after_fork(void);

/* Called in the child by hooks that know of the fork: neither the wiped word nor getpid() may be available there. */
void mt_process_forked(void);

/* Recording goes on, or stops until further notice. What a forked child begins with is in mt_config. Async-signal-safe.
 */
void mt_process_switch(int on);

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

/* Notes how the process ends, as far as an exit hook knows. */
void mt_process_ends(enum mt_exit kind, int code);

/* Notes that exec is about to make it another image, which is counted if it won't be recorded; see unseen.h for the
 * arguments. mt_process_goes_on() withdraws both: exec has failed. */
struct mt_leaving {
	uint32_t why; /* enum mt_loss; 0 = nothing was counted */
	unsigned note;
};
struct mt_leaving mt_process_execs(const char *path, int searched, char *const envp[]);
void mt_process_goes_on(struct mt_leaving l);

/* The same count for a program that another process was started with. */
void mt_process_started(uint32_t pid, const char *path, int searched, char *const envp[]);

/* Before the process gives up its rights to the trace directory: reserves chunks and nodes, so that no file has to be
 * opened later. */
void mt_process_before_drop(void);

/* True in the process that owns the files, false in a vfork child that borrows its memory. */
int mt_process_is_owner(void);

/* Records one moment on both clocks, from which the analyzer works out the length of a tick. */
void mt_process_pair_clocks(void);

/* A request for memory was refused: which limits there are, and what the process has of them. */
void mt_process_note_refusal(void);

/* Disk: may the session grow by so many bytes? Counts them if so. Of what the bytes are:
 *   FIRST  the first piece of a file: granted whatever the file system has left, since a process without files could
 *          not even say that it lost everything
 *   REST   the rest of a piece that was begun: as far as the limit allows
 *   NEW    of rings, which the recorder empties: all raw files together may have half of the limit. They always may
 *          have an eighth of it beside KEPT
 *   KEPT   of the call tree and the log, which stay as long as the process lives, and without which the trace says
 *          nothing: as long as three sixteenths of the limit are free */
enum mt_charge { MT_CHARGE_NEW, MT_CHARGE_FIRST, MT_CHARGE_REST, MT_CHARGE_KEPT };
int mt_process_charge(uint64_t bytes, enum mt_charge what);
void mt_process_refund(uint64_t bytes);

/* Maps part of this image's file with the extension `ext` ("ring", "nodes", "info"), the first `reserved` bytes of it
 * ready to be written to, and makes more of it so, which is `mapped`; see sys.h. The second one charges for it, too. */
void *mt_process_map(const char *ext, uint64_t offset, size_t bytes, size_t reserved, enum mt_open how);
int mt_process_reserve(const char *ext, uint64_t offset, size_t bytes, void *mapped);

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

/* Before a seccomp filter comes into force: make what will be needed while it is still allowed. */
void mt_process_before_sandbox(void);

#endif
