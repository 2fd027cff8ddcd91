/* What memtrace whatif leaves out or makes larger: --without and --scale. */
#ifndef MT_COMMANDS_WHATIF_CHANGE_H
#define MT_COMMANDS_WHATIF_CHANGE_H

#include "analyzer/model/selection.h"
#include "analyzer/replay/replay.h"

struct whatif_change;

/* Those of these stacks (whole) for --without; `calls`: and of all that lead on from them. Takes them over. */
int whatif_without_stacks(struct whatif_change **out, struct selection *v, uint32_t *stacks, size_t count, bool calls);

/* `text` is FILE:LINE, which is compared, or a regex for --without; with "=FACTOR" behind it, or "batch=FACTOR", for
 * --scale. `batch` has two ends: `least` what surely grows, else all that may. The selection is borrowed. 0 or
 * -MT_EUSAGE. */
int whatif_without(struct whatif_change **out, struct selection *v, const char *text);
int whatif_scale(struct whatif_change **out, struct selection *v, const char *text, bool least);
bool whatif_is_batch(const char *text);
void whatif_change_free(struct whatif_change *c);

/* For replay_case.factor, whose arg is the change. */
replay_factor whatif_factor;

#endif
