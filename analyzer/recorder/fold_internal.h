/* What the parts of folding share: its state, and the job it is at. fold.c chooses files, fold_plan.c looks into one
 * and begins, fold_job.c reads and writes. */
#ifndef MT_RECORDER_FOLD_INTERNAL_H
#define MT_RECORDER_FOLD_INTERNAL_H

#include "analyzer/recorder/fold.h"

#include "analyzer/recorder/file_io.h"
#include "analyzer/recorder/fold_window.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#define FOLD_TEMP ".fold" /* behind the name of the trace */

/* A block of events of the file that is folded. */
struct part {
	uint64_t offset, bytes;
	uint32_t slots, covers;
	uint32_t place;               /* slots of its window before it */
	uint8_t shift, level, target; /* target: how often it is to have been folded; 0 = it stays as it is */
	bool wide;                    /* pairs are looked for that are far apart */
};

/* Who owns each ring, and how far blocks have come. */
struct chunk_owners {
	struct owner {
		uint32_t thread;
		uint64_t covered;
	} *rings;
	size_t room;
};

enum phase { LOOK, WRITE, COPY, TAIL };

struct job {
	char name[32], path[4400], temp[4410];
	struct record_process *p; /* NULL: it has ended and its trace is complete */
	int in, out;
	uint64_t in_bytes; /* when it began */
	struct part *parts;
	size_t part_count, part_room;
	uint64_t copied; /* of `in`: what lies before is in `out`, folded or not */
	uint64_t out_end, synced;
	uint64_t before, after; /* bytes of fresh blocks that were folded, and of what they became */

	enum phase phase;
	size_t first, end, next; /* parts of the window; the one that is up */
	uint64_t window_out;     /* where it begins in `out` */
	bool held;               /* all its slots are kept from the first pass for the second */
	struct fold_window *window;
	struct fold_out kept;
	struct chunk_owners owners, at_first; /* now; when the window began */
	struct mt_cover *covers;              /* of the block that is being made */
	size_t cover_count, cover_room;
	uint32_t *last_cover; /* by ring: its last one of these, + 1 */
	size_t last_cover_room;
	unsigned shift;
	size_t held_slots; /* the most that are kept so; a short window's */
	size_t out_slots;  /* a folded block has at least as many, if there are */

	struct codec_buf block; /* the part at hand */
	struct mt_event *slots; /* its, or the window's */
	uint32_t *rings, *threads;
	size_t slot_room, ring_room, thread_room;
};

/* What is remembered of a file that was folded. */
struct folded {
	char name[32];
	uint64_t bytes; /* then */
	unsigned level; /* fresh blocks begin with */
	/* so many times in a row there was too little space, or little was gained: all of it at higher levels */
	unsigned hurry;
	uint64_t retry_ns; /* not before, as there was too little space */
};

struct fork {
	uint32_t pid;
	uint64_t ticks;
};

struct folding {
	struct job *job;
	struct folded *files;
	size_t file_count, file_room;
	uint64_t look_ns;
	struct fork *forks; /* of traces that had ended when we began */
	size_t fork_count, fork_room;
	bool forks_known;
};

/* fold_plan.c. NULL = there is nothing to do, or an error was set. */
struct job *fold_begin(struct folding *f, struct recorder *r, struct record_process *processes,
		       const struct folded *file);
/* Bytes that the new file takes beyond what it has, if folding halves what is fresh. */
uint64_t fold_still_needed(const struct job *j);
/* The name of a trace without ".trace", if `file` is one. */
bool fold_is_trace(const char *file, char name[32]);
/* 0 or -MT_EMEMORY. */
int fold_add_fork(struct folding *f, const struct mt_info *info);

/* fold_job.c. 1 = done, 0 = there is more, or an error. */
int fold_step(struct job *j, struct recorder *r);
int fold_begin_window(struct job *j);
void fold_free_job(struct job *j); /* NULL is fine */

static inline uint64_t fold_disk_left(const struct recorder *r)
{
	const struct mt_session *s = r->session;
	uint64_t used = __atomic_load_n(&s->used_bytes, __ATOMIC_RELAXED);
	return s->limit_bytes > used ? s->limit_bytes - used : 0;
}

#endif
