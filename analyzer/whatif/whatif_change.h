/* What memtrace whatif leaves out or makes larger: --without and --scale. */
#ifndef MT_WHATIF_WHATIF_CHANGE_H
#define MT_WHATIF_WHATIF_CHANGE_H

#include "analyzer/model/selection/selection.h"
#include "analyzer/replay/pool/replay.h"

struct whatif_change;

/* A change to the requests of a run. `*out` is freed by whatif_change_free(), also after an error; the selection is
 * borrowed. 0, -MT_EUSAGE or -MT_EMEMORY. */

/* Leaves out requests with one of these stacks (ids of the merged tree); `calls`: also those with a stack that leads on
 * from one of them. Takes over `stacks`. */
int whatif_without_stacks(struct whatif_change **out, struct selection *sel, uint32_t *stacks, size_t count,
			  bool calls);

/* For --without and --scale. `text` is FILE:LINE or a regular expression, which chooses requests by their frames; for
 * --scale "=FACTOR" follows, or it is "batch=FACTOR". Of a batch only bounds are known: with `least` only the requests
 * grow that surely do, else all that may. */
int whatif_without(struct whatif_change **out, struct selection *sel, const char *text);
int whatif_scale(struct whatif_change **out, struct selection *sel, const char *text, bool least);
bool whatif_is_batch(const char *text); /* "batch=..." */
void whatif_change_free(struct whatif_change *c);

/* So many times the bytes; left out: 1, since of others nothing changes. */
double whatif_change_factor(const struct whatif_change *c);

/* For replay_case.factor; its arg is the struct whatif_change. */
replay_factor whatif_factor;

#endif
