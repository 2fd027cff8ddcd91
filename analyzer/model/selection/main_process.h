/* Which processes matter: a script runs cut, date and sed beside the program that it is about. */
#ifndef MT_MODEL_SELECTION_MAIN_PROCESS_H
#define MT_MODEL_SELECTION_MAIN_PROCESS_H

#include "analyzer/model/model.h"

/* It lived for less than a second, and was not killed. (SIGPIPE does not count: nobody read its output any more.) */
bool process_was_short(const struct process *p);
/* The same, and it held nothing: no device memory, and less than 1 MiB of anything else. */
bool process_is_momentary(const struct model_process *m);

/* The process that the trace is about. It is one that no traced process started (or what it became by exec, as wrappers
 * do): the one that had, with all that it started, the most memory at one moment. NULL: there are no processes. */
const struct process *main_process(const struct model *m, const struct reader *r);

/* The same process goes on as another program. */
bool process_goes_on_as(const struct process *p, const struct process *next);

#endif
