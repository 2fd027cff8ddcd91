/* What the commands that read a trace have in common: open it, narrow it down as the options say, run the model. */
#ifndef MT_REPORT_OPEN_H
#define MT_REPORT_OPEN_H

#include "analyzer/model/selection.h"

/* options_parse(), and the newest trace directory here where none is named. Of specs without OPTIONS_NO_DIRS. */
int open_options(const struct option_spec *spec, void *values, int argc, char **argv);

/* The moment in nanoseconds since the trace's start. WHEN_UNSET leaves *ns alone; WHEN_END is UINT64_MAX; WHEN_PEAK is
 * the command's business; steps, phases and failures are errors here, since they take a pass over the events. */
int open_resolve(const struct when *w, const struct reader *r, uint64_t *ns);

/* Opens the trace and picks processes and kinds. On error nothing is left open. */
int selection_open(struct selection *v, const struct options *o);
void selection_close(struct selection *v);

/* A whole command: parses argv into `values`, which begins with a struct options, opens the trace, calls f. Returns
 * what a command returns. */
int selection_command(const struct option_spec *spec, void *values, int argc, char **argv,
		      int (*f)(struct selection *v));
/* The rest of it, behind the options. */
int selection_answer(void *values, int (*f)(struct selection *v));

/* Completes the query by --from, --to, --at and --by, and runs the model. */
int selection_run(struct selection *v, struct model_query *q);

/* What stacks are called and are for: symbol files of the trace, and v->categories. selection_run() does it; for who
 * runs no model. */
int selection_names(struct selection *v);

/* For eyes: a line if anything is missing, so that figures are not all there is. */
void selection_print_missing(const struct selection *v);

/* selection_device.c. Of the --device that is a device: which one it is in this model; v->device. */
int selection_pick_device(struct selection *v);
/* The event at which the pass has to stop for --at oom[:N], from a pass of its own. */
int selection_find_oom(struct selection *v, const struct when *w, uint64_t *event, uint64_t *ns);

#endif
