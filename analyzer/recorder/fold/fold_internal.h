/* What the parts of folding share: its state, and the job, which folds one file. fold.c chooses the file, fold_plan.c
 * plans what becomes of its blocks, fold_job.c reads and writes them. */
#ifndef MT_RECORDER_FOLD_FOLD_INTERNAL_H
#define MT_RECORDER_FOLD_FOLD_INTERNAL_H

#include "analyzer/recorder/fold/fold.h"

#include "analyzer/recorder/rings/file_io.h"
#include "analyzer/recorder/fold/fold_window.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#define FOLD_TEMP ".fold" /* behind the name of the trace */

/* A block of events of the file that is folded. */
struct part {
	uint64_t offset, bytes;
	uint32_t slots, covers;
	uint32_t place;       /* slots of its window that come before it */
	uint8_t shift, level; /* as in its header: unit of time, how often it was folded */
	uint8_t target;       /* the level that it is to get; 0 = it stays as it is */
	bool wide;            /* its window is a long one: pairs that lie far apart are found too */
};

/* By ring: the thread that owns it, and up to which position blocks cover its events. */
struct chunk_owners {
	struct owner {
		uint32_t thread;
		uint64_t covered;
	} *rings;
	size_t room;
};

/* Of a job: first pass over a window, second pass; blocks that stay as they are; blocks that were appended
 * meanwhile. */
enum phase { LOOK, WRITE, COPY, TAIL };

struct job {
	char name[32], path[4400], temp[4410];
	struct record_process *p; /* NULL: it has ended and its trace is complete */
	int in, out;
	uint64_t in_bytes; /* size of `in` when the job began */
	struct part *parts;
	size_t part_count, part_room;
	uint64_t copied;          /* offset in `in`: what lies before is in `out`, folded or not */
	uint64_t out_end, synced; /* offsets in `out`: its end; up to where it is known to be on disk */
	uint64_t before, after;   /* bytes of blocks folded for the first time, and of what they became */

	enum phase phase;
	size_t first, end, next; /* the window is parts [first, end); `next` is the one to read next */
	uint64_t window_out;     /* offset in `out` where the window begins */
	bool held;               /* the window's slots stay in memory from the first pass to the second */
	struct fold_window *window;
	struct fold_out kept;
	struct chunk_owners owners, at_first; /* now; when the window began */
	struct mt_cover *covers;              /* of the block that is being made */
	size_t cover_count, cover_room;
	uint32_t *last_cover; /* by ring: index of its last one in `covers`, + 1 */
	size_t last_cover_room;
	unsigned shift;    /* times in folded blocks are in units of 2^shift ticks */
	size_t held_slots; /* the most slots that are held so: the size of a short window */
	size_t out_slots;  /* a folded block has at least as many slots, where there are enough */

	struct codec_buf block; /* the part at hand */
	struct mt_event *slots; /* decoded: of that part or, with `held`, of the window */
	uint32_t *rings, *threads;
	size_t slot_room, ring_room, thread_room;
};

/* What is remembered of a file that was folded. */
struct folded {
	char name[32];
	uint64_t bytes; /* size when it was folded */
	unsigned level; /* that blocks get when they are folded for the first time */
	/* how many times in a row there was too little space, or little was gained: raises the levels of all blocks */
	unsigned hurry;
	uint64_t retry_ns; /* CLOCK_MONOTONIC; not tried again before, as there was too little space */
};

/* A process that was forked, and when. */
struct fork {
	uint32_t pid;
	uint64_t ticks;
};

struct folding {
	struct job *job;
	struct folded *files;
	size_t file_count, file_room;
	uint64_t look_ns;   /* CLOCK_MONOTONIC; when a file was last looked for */
	struct fork *forks; /* of processes in traces that had ended when the recorder started */
	size_t fork_count, fork_room;
	bool forks_known;
};

/* fold_plan.c: plans the folding of a file. NULL = there is nothing to do, or an error was set. */
struct job *fold_begin(struct folding *f, struct recorder *r, struct record_process *processes,
		       const struct folded *file);
/* Bytes that the new file is still going to take, if folding halves blocks that were not folded before. */
uint64_t fold_still_needed(const struct job *j);
/* True if `file` is the name of a trace; `name` then is that without ".trace". */
bool fold_is_trace(const char *file, char name[32]);
/* Notes when a process was forked, if it was. 0 or -MT_EMEMORY. */
int fold_add_fork(struct folding *f, const struct mt_info *info);

/* fold_job.c: some more of the job. 1 = it is done, 0 = there is more, or an error. */
int fold_step(struct job *j, struct recorder *r);
/* Goes on to the next window, or to TAIL behind the last. 0 or an error. */
int fold_begin_window(struct job *j);
void fold_free_job(struct job *j); /* NULL is fine */

/* Bytes that the session may still take under its disk limit. */
static inline uint64_t fold_disk_left(const struct recorder *r)
{
	const struct mt_session *s = r->session;
	uint64_t used = __atomic_load_n(&s->used_bytes, __ATOMIC_RELAXED);
	return s->limit_bytes > used ? s->limit_bytes - used : 0;
}

#endif
