/*
 * Which object of Python holds what a site made, where the trace has snapshots of holders (model/holders).
 *
 *   struct held_question q = { .site = strdup("train.py:12 train"), .device = false };
 *   int e = held_find(v, &q, 1);
 *   if (e == 0 && q.known) ... q.holder.path ...
 *   held_fini(&q, 1);
 */
#ifndef MT_ANALYSIS_HELD_H
#define MT_ANALYSIS_HELD_H

#include "analyzer/diagnosis/growth/leaks.h"
#include "analyzer/diagnosis/reasons.h"
#include "analyzer/model/holders/holders.h"
#include "analyzer/model/selection/moment.h"

/* A snapshot of one process, with the blocks that were alive then. */
struct held_snapshot {
	const struct process *process;
	int count, number; /* how many the process has, and which one this is, from 0 */
	struct mt_hold_head *heads;
	struct hold_snapshot snapshot;
	struct hold_graph *graph;
	uint64_t ns; /* when it was taken */
};

/* How many the process has; fills in process, count and heads. An error below 0. held_close() in any case. */
int held_heads(struct held_snapshot *s, const struct process *p);

/* Behind held_heads(): reads the one of this number, runs the selection's model until it was taken. 0 or an error. */
int held_open(struct held_snapshot *s, struct selection *sel, int number);
void held_close(struct held_snapshot *s);

/* "on request", "a device had no memory": why it was taken. */
const char *held_why(const struct mt_hold_head *head);

struct held_question {
	char *site;     /* "train.py:12 train", as frame_place() says it; allocated. NULL: nothing is asked */
	uint32_t below; /* instead of blocks of that site those that this call made (id of the merged tree); 0 = none */
	bool device;    /* of devices' memory, else of the host's */
	bool known;     /* all below is the answer */
	struct holder holder;
	uint64_t of_bytes; /* of that site in that process that were alive */
	uint32_t pid, why; /* of the snapshot; enum mt_hold_why */
	uint64_t ns;
	char *name; /* "__main__.history (list, 990 items)" */
};

/* Answers what can be answered from the snapshots of the selection's processes, each from one of a failure rather than
 * one of the end. Makes passes of its own. 0 or an error; held_fini() in any case. */
int held_find(const struct selection *sel, struct held_question *questions, size_t count);
void held_fini(struct held_question *questions, size_t count);

/* The same of the worst that leaks shows: as many questions as its list is long, allocated. */
int held_of_leaks(const struct leaks *l, struct held_question **out);

/* held_moments.c. Whose snapshot said who holds what, in --by holder. */
struct held_seen {
	const struct process *process;
	int number; /* from 0 */
	uint32_t why;
	uint64_t ns;
};

struct held_seens {
	struct held_seen *list;
	size_t count, room;
};

/* Puts owners by holder in place of what each moment has: of each block that was alive the object that held it in that
 * snapshot of its process that is nearest in time. What no snapshot tells of has rows of its own, so that the sum is as
 * before. The model has kept its blocks (query.keep_blocks). 0 or an error; free(seen->list) in any case. */
int held_moments(const struct selection *sel, struct moments *m, struct held_seens *seen);

/* How many processes of the selection have a snapshot; an error below 0. */
int held_processes(const struct selection *sel);
/* An error where none has one. */
int held_check(const struct selection *sel);

/* One of a failure or a mark rather than of the end, when much is gone. */
int held_best(const struct held_snapshot *s);

/* The ids of those with the most in their best snapshot, the largest first: how many, or an error below 0. */
int held_largest(const struct selection *sel, unsigned *ids, int most);

/* A process of the selection in a pass of its own, whatever time is selected. */
struct held_pass {
	struct options untimed;
	struct selection sel;
	struct held_snapshot held;
};

/* How many snapshots the process of this id has, as held_heads(). Then held_open(&p->held, &p->sel, number);
 * held_pass_close() in any case. */
int held_pass_heads(struct held_pass *p, const struct selection *sel, unsigned id);
void held_pass_close(struct held_pass *p);

/* held_parts.c. All that a snapshot's process had, by kind of memory and device, as --device says. */
struct held_part {
	unsigned kind;                     /* enum model_kind, or HOLDERS_SMALL */
	const struct model_device *device; /* NULL = the host's */
	struct holders *holders;
};

struct held_parts {
	struct held_part *list;
	size_t count, room;
};

/* Behind held_open(). 0 or an error; held_parts_free() in any case. */
int held_parts_find(struct held_parts *parts, const struct held_snapshot *s, const struct selection *sel);
void held_parts_free(struct held_parts *parts);

/* Each part of the best snapshots of those processes that have the most, `most` of them: each is a pass over the
 * events. */
int held_each_part(const struct selection *sel, int most,
		   void (*f)(void *arg, const struct held_pass *p, const struct held_part *part), void *arg);

/* Adds "`name`: 6.64 GiB of 6.64 GiB; also held by ..."; names stay the question's. */
void held_say(const struct held_question *q, struct reasons *evidence);

#endif
