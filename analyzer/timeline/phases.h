/*
 * Phases of each process, and the memory in them: the lines of the main script that the main thread is in, and ranges
 * that the program marked (memtrace_phase_begin(), NVTX, mstx), which nest.
 *
 * The first of two passes learns how long each line takes, a few functions deep, looking at the program's own files
 * only. A phase is then a line of the outermost function; where nearly all the time is in one (main()), or most of it
 * in one whose function goes on to others of the program's behind a loop (fit(), which evaluates in the end), of the
 * next function in, and so on. Lines that import are one phase together.
 *
 * A line (or a range) that is entered again and again has a phase for each of its first visits; one of more than
 * PHASE_VISITS has one phase for all of them: then peak, low and kept are over all its visits.
 */
#ifndef MT_TIMELINE_PHASES_H
#define MT_TIMELINE_PHASES_H

#include "analyzer/model/model.h"

/* PHASE_VISITS: a line that was entered more often is one of a loop. */
enum { PHASE_VISITS = 8, PHASE_NAMES = 512 };

enum phase_source { PHASE_LINE = 0, PHASE_MARK, PHASE_NVTX, PHASE_MSTX };

struct phase_track {
	uint32_t kind, device;
	uint64_t begin_bytes, end_bytes; /* live when it began and when it ended (of several visits: the latest) */
	uint64_t peak_bytes, peak_ns;
	int64_t kept_bytes; /* what more was live when it ended, summed over visits */
	/* of a pool: what the process had of the device when the pool's blocks were at their peak */
	uint64_t driver_bytes;
};

/* What became of the blocks that a pool had at the peak and not at the phase's end. All sums are net, so that
 * freed = to_driver + in_pool. */
struct phase_freed {
	uint64_t freed;
	int64_t to_driver; /* the process has less of the device by that; < 0: more */
	int64_t in_pool;   /* still the process's, though it is not in blocks */
};

struct phase {
	const struct process *process;
	/* "train.py:217 Trainer.train" by what it calls of the program's own, "train.py:40 main > Adam.step" by where it is
	 * and what it calls of a library, "imports", or what the program called it */
	const char *name;
	enum phase_source source;
	uint64_t begin_ns, end_ns; /* of several visits: of the first and of the last */
	uint64_t visits, busy_ns;  /* busy: the sum of their lengths */
	struct phase_track *tracks;
	size_t track_count;
};

struct phases;

struct phases *phases_new(void);
void phases_free(struct phases *s);

/* The first pass: every change. */
void phases_first_change(struct phases *s, const struct model_change *c);

/* The second pass: every slot, change and level; phases_finish() behind it. */
void phases_event(struct phases *s, const struct process *p, const struct mt_event *slot, uint32_t thread);
void phases_change(struct phases *s, const struct model_change *c);
void phases_level(struct phases *s, const struct model_level_change *l);
void phases_finish(struct phases *s);

/* False: it is no pool's track, or there were more visits than one, or nothing was seen of the driver. */
bool phase_freed(const struct phase *p, const struct phase_track *t, struct phase_freed *out);

/* In order of their beginning. */
size_t phases_count(const struct phases *s);
const struct phase *phases_get(const struct phases *s, size_t i);

/* The first phase at or after `from` whose name is that, or else whose place ("train.py:217") or callee ("train") is,
 * or else whose name contains it; phases_count() = none. */
size_t phases_find(const struct phases *s, const char *name, size_t from);

#endif
