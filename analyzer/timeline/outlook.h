/*
 * Will what grew go on growing? The one opinion that report, leaks and live have.
 *
 *   leaks     it grows by what a loop leaves of its work
 *   lasts     it has grown to the very end of a long run, that freed next to nothing else
 *   fills     it grew to the end of a short run that freed next to nothing else: a table that fills, or a leak that was
 *             seen too briefly
 *   gives way pages of files that are mapped and not written to: the kernel can drop them
 *   passes    on a device: blocks of requests that come faster than they go (lifetimes.h): few are older than earlier
 *             ones were when they were freed
 *   stopped   the loop that made it grow was over long before the process was: a warm-up, a load
 *
 * A program that fills a table for long can't be told from one that leaks by what it allocates; then the certainty is
 * medium at most.
 */
#ifndef MT_TIMELINE_OUTLOOK_H
#define MT_TIMELINE_OUTLOOK_H

#include "analyzer/timeline/timeline.h"

enum { OUTLOOK_STEPS = 20 }; /* of a loop that nobody marked: layers of one step recur, too */
#define OUTLOOK_LONG_S 20.0  /* growth that lasts as long is taken for a leak, whatever else the program does */

/* `g`: steady growth of memory of that kind, over the entries of `p`. `later`: bytes that it grew by after the last of
 * them. Lowers the certainty of `g` where the outlook is OUTLOOK_LASTS. */
enum outlook outlook_of(const struct timeline *c, const struct step_list *p, enum model_kind kind, struct growth *g,
			double later);

/* The same of a whole track. */
enum outlook outlook_of_track(const struct timeline *c, const struct step_list *p, const struct step_track *t,
			      struct growth *g);

/* Whether `grown` bytes of mappings are pages of files. Told by all that the process has mapped, since sites do not say
 * what they map. */
bool outlook_gives_way(const struct samples *samples, const struct model *m, const struct step_list *p, double grown);

/* How long it grew, in seconds. */
double outlook_lasted_s(const struct step_list *p, const struct growth *g);

/* The end of a sentence that begins "what grew did so": why it is no leak. The caller frees it. */
char *outlook_why_no_leak(enum outlook o, double lasted_s);

/* Whether steps are known to be steps: marked, of an optimizer, or each calls a whole model. */
bool outlook_steps_are_sure(const struct step_list *p);

#endif
