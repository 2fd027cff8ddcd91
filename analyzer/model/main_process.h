/* Which processes matter: a script runs cut, date and sed beside the program that it is about. */
#ifndef MT_MODEL_MAIN_PROCESS_H
#define MT_MODEL_MAIN_PROCESS_H

#include "analyzer/model/model.h"

/* It lived for a moment (below a second) and held nothing: no device memory, less than 1 MiB of anything else. Not what
 * was killed, unless since nobody read its output any more. */
bool process_was_short(const struct process *p);
bool process_is_momentary(const struct model_process *m);

/* The one that the trace is about: of those that no traced process started, what the one became (wrappers exec it) that
 * had the most memory at once, with all that it started. NULL: there are none. */
const struct process *main_process(const struct model *m, const struct reader *r);

/* The same process goes on as another program. */
bool process_goes_on_as(const struct process *p, const struct process *next);

#endif
