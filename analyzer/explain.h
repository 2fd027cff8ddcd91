/*
 * What a report says beyond figures: what memory was for, what is there twice, and why it failed. Gathers what the other
 * modules know of one trace into struct evidence, and asks the rules.
 *
 *   struct explain *x;
 *   int e = explain_new(&x, v, course, samples, complete);    behind view_run(); all of it must outlive x
 *   e = course_run(course, v);                                which collects for x, too
 *   e = explain_make(x);
 *   ... x->verdicts, x->spaces ... explain_free(x);
 */
#ifndef MT_EXPLAIN_H
#define MT_EXPLAIN_H

#include "analyzer/categories.h"
#include "analyzer/copies.h"
#include "analyzer/course.h"
#include "analyzer/holders.h"
#include "analyzer/ledger.h"
#include "analyzer/moments.h"
#include "analyzer/system.h"
#include "analyzer/verdicts.h"
#include "analyzer/view.h"

enum { EXPLAIN_LARGEST = 5, EXPLAIN_LATEST = 32, EXPLAIN_LEAST_COPIED = 1024 /* bytes of a block; smaller ones are not compared */ };

/* One space: the heaps of a host, or a device. */
struct explain_space {
	const char *name;                    /* "host", "cuda:0" */
	uint32_t device;                     /* MODEL_NO_DEVICE: host */
	uint64_t ns;                         /* the moment: of its failure, else its peak */
	uint64_t category[CATEGORIES];
	uint64_t bytes;                      /* all categories together */
	struct moment_block largest[EXPLAIN_LARGEST];
	unsigned largest_count;
	uint64_t latest[EXPLAIN_LATEST];     /* order of allocation of the latest activations, falling */
	unsigned latest_count;
	struct holder holders[HOLDERS_MOST]; /* the lines that hold most; of a device */
	unsigned holder_count;
	size_t holding_lines;                /* all of them */
};

struct explain {
	const struct view *view;
	const struct course *course;
	struct system *system;               /* NULL: nothing sampled the system */
	bool complete;
	struct explain_space *spaces;        /* the host (all hosts together), then the devices by index */
	unsigned space_count;
	struct copies copies;
	struct evidence evidence;
	struct verdicts verdicts;
	struct explain_parts *parts;         /* what the above borrows */
};

/* `complete`: nothing was lost while recording. Watches the course's second pass. */
int explain_new(struct explain **out, const struct view *v, struct course *c, struct system *s, bool complete);

int explain_make(struct explain *x);
bool explain_copies_on(const struct copy_set *s, uint32_t device); /* MODEL_NO_DEVICE: the host */
int explain_categories(struct explain *x); /* x->spaces and copies alone, instead */
void explain_free(struct explain *x); /* NULL is fine */

/* "train.py:73 save" of a stack; owned by `x`. */
const char *explain_site(struct explain *x, uint32_t stack);

/* The function of a C extension that a line of Python called for it: "fast.c:12 fast_parse". NULL: none that is the program's own, or not
 * known to be one. */
const char *explain_extension(struct explain *x, uint32_t stack);

/* The same for a part of a stack, as "run.py:12 main". */
const char *explain_call(struct explain *x, uint32_t stack);

/* The stack of a block; 0 = none. */
uint32_t explain_stack(const struct explain *x, const struct moment_block *b);

/* evidence.c: fills x->evidence. */
int evidence_make(struct explain *x);

/* Owned by `x`. NULL when there is no memory. */
const char *explain_keep(struct explain *x, char *text);
void *explain_room(struct explain *x, size_t bytes); /* zeros */

/* The failure of the device that is explained: the last fatal one, else the last. NULL = none. */
const struct model_oom *explain_failure(const struct model_device *d);

struct explain_parts {
	void **kept;                         /* everything that was allocated for it */
	size_t kept_count, kept_room;
	struct moments *moments;
	struct ledger *ledgers;
	unsigned ledger_count;
};

#endif
