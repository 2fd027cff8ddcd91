/* What was alive at the end and what grows, by owner: what memtrace leaks shows and checks. */
#ifndef MT_ANALYZER_LEAKS_H
#define MT_ANALYZER_LEAKS_H

#include "analyzer/suppress.h"
#include "analyzer/trend.h"

/* An owner with what is known about it. */
struct leak {
	const struct owner *owner;
	enum model_kind kind;
	uint64_t bytes, blocks;    /* alive at the end: 0 of one that only grew while the program ran */
	uint64_t oldest_ns;        /* when its oldest live block was allocated; UINT64_MAX = none */
	struct trend *trend;       /* NULL: it does not grow */
	const char *benign;        /* why it is no leak, or NULL */
	const char *suppressed;    /* by that pattern of the user's, or NULL */
};

struct leaks {
	struct view *view;
	struct course *course;
	struct suppress *suppress;
	struct sites *live[MODEL_KINDS], *peak[MODEL_KINDS];
	struct leak *list;         /* the worst first */
	size_t count;
	uint64_t bytes, blocks;    /* of the heap, without benign and suppressed ones */
	uint64_t benign_bytes, benign_blocks;
	uint64_t suppressed_bytes, suppressed_blocks;
	uint64_t in_use;           /* of the heap, in processes that did not exit by themselves: killed, or running */
};

/* Behind view_run() and course_run(). Takes over course and suppress, also when it fails. */
int leaks_init(struct leaks *l, struct view *v, struct course *course, struct suppress *suppress);
void leaks_fini(struct leaks *l);

bool leak_is_steady(const struct leak *leak);
bool leak_counts(const struct leak *leak); /* neither benign nor suppressed */

/* The fastest growth of any site that counts, and whether any process has steps. */
double leaks_fastest_per_second(const struct leaks *l);
double leaks_fastest_per_step(const struct leaks *l, bool *stepped);

#endif
