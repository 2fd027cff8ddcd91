/* What is asked of a pool, and its answer; printed by whatif_screen.c and whatif_json.c. */
#ifndef MT_WHATIF_WHATIF_INTERNAL_H
#define MT_WHATIF_WHATIF_INTERNAL_H

#include "analyzer/replay/pool/replay.h"
#include "analyzer/whatif/whatif_ahead.h"
#include "analyzer/whatif/whatif_change.h"
#include "analyzer/whatif/whatif_pool.h"

enum { WHATIF_MOST_CASES = 16 };

struct whatif_question {
	struct replay_case cases[WHATIF_MOST_CASES];
	size_t count;
	struct whatif_change *changes[2];
	char *names[2];
	struct whatif_ahead *ahead; /* NULL: not needed */
	/* the smallest device that would have done, of each pool: for the run itself, then for each case; NULL: too
	 * much work */
	uint64_t *least;
	size_t least_count; /* of each pool */
	bool complete;      /* nothing is known to be missing of the trace, but for what was folded */
};

/* Fills in the cases. 0 or -MT_E*; whatif_question_fini() in either case. */
int whatif_ask(struct whatif_question *q, struct selection *sel, const struct whatif_asked *o);
void whatif_question_fini(struct whatif_question *q);

/* Replays the run and the cases. 0 or -MT_E*: a misspelt line is no line that has nothing. */
int whatif_answer(struct replay *replay, struct reader *r, struct selection *sel, struct whatif_question *q);
int whatif_check_changes(const struct whatif_question *q, const struct replay *replay, const struct whatif_asked *o);

/* The smallest device that would have done, of the run (0) or of a case (from 1); 0 = not known. */
uint64_t whatif_least_of(const struct whatif_question *q, const struct replay *r, const struct replay_track *t,
			 size_t number);

/* Behind the request that failed last and is granted in all cases: what the device has left for the pool, with its
 * holes, and what the rest of that step needs, by how much of it changes. known: `left` is; rest_known: so are the
 * others. */
struct whatif_rest {
	bool known, rest_known;
	uint64_t left, least, most;
};

/* Every request is granted; or the last one, of which the run died. */
bool whatif_fits(const struct replay_track *t, const struct replay_outcome *o);

struct whatif_rest whatif_rest(const struct whatif_question *q, const struct replay_track *t);

/* "cuda:0", in `buffer`. */
const char *whatif_device_name(const struct replay_track *t, char *buffer, size_t size);

bool whatif_is_wanted(const struct selection *sel, const struct replay_track *t);

void whatif_print(const struct selection *sel, const struct replay *replay, const struct whatif_question *q);

/* 0 or -MT_E*. */
int whatif_print_json(const struct selection *sel, const struct replay *replay, const struct whatif_question *q);

#endif
