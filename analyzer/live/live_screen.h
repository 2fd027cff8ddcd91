/* What memtrace live shows of a look: a screen, a line, warnings. Its JSON and metrics: live_print.h. */
#ifndef MT_LIVE_LIVE_SCREEN_H
#define MT_LIVE_LIVE_SCREEN_H

#include "analyzer/live/live_follow.h"
#include "analyzer/live/live_print.h"

/* On a terminal, which it clears. `dir`: the trace. */
void live_print_screen(const struct live *l, const char *dir, const struct live_levels *levels);

/* Elsewhere. */
void live_print_line(const struct live *l);

/* Warns of what reached a level, once for each level, and again only after it was below; silently if `quiet`. Returns
 * whether anything is at the second level. */
bool live_warn(struct live *l, const struct live_levels *levels, bool quiet);

#endif
