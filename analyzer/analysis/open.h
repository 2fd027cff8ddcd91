/* What the commands that read a trace have in common: open it, narrow it down as the options say, run the model. */
#ifndef MT_ANALYSIS_OPEN_H
#define MT_ANALYSIS_OPEN_H

#include "analyzer/model/selection/selection.h"

/* open_trace.c. Makes the dirs of the options those of single traces: a packed file of several stands for all of them,
 * and without a word on the command line it is the newest trace here. 0 or -MT_E*. */
int open_settle_dirs(struct options *o);

/* options_parse(); where the command line names no trace, the newest one in the working directory is taken. For specs
 * without OPTIONS_NO_DIRS. Returns as options_parse(). */
int open_options(const struct option_spec *spec, void *values, int argc, char **argv);

/* Turns a moment of the options into nanoseconds since the trace's start. WHEN_UNSET leaves *ns alone, WHEN_END gives
 * UINT64_MAX, WHEN_PEAK is left to the command. Steps, phases and failures are errors here, as finding them takes a
 * pass over the events. 0 or -MT_EUSAGE. */
int open_resolve(const struct when *w, const struct reader *r, uint64_t *ns);

/* Opens the trace and picks processes and kinds. On error nothing is left open. */
int selection_open(struct selection *sel, const struct options *o);
void selection_close(struct selection *sel);

/* A whole command: parses argv into `values`, which begins with a struct options, opens the trace, calls f. Returns
 * what a command returns. */
int selection_command(const struct option_spec *spec, void *values, int argc, char **argv,
		      int (*f)(struct selection *sel));
/* The same after the options: opens the trace, calls f, closes it. */
int selection_answer(const struct option_spec *spec, void *values, int (*f)(struct selection *sel));

/* Completes the query by --from, --to, --at and --by, and runs the model. */
int selection_run(struct selection *sel, struct model_query *q);

/* pass.c. Runs the model, and shows progress. 0 or -MT_E*. */
int open_pass(struct reader *r, struct model **m, struct model_query *q);
/* Another pass over the same trace, with a reader and a model of its own: the caller's, also after an error. */
int selection_run_again(const struct selection *sel, struct reader **r, struct model **m, struct model_query *q);

/* Reads what names stacks and says what they are for: symbol files of the trace, and v->categories. selection_run()
 * does that too; this is for commands that run no model. 0 or -MT_E*. */
int selection_names(struct selection *sel);

/* What of the program is in the trace, to be freed: "IMPORTED from FILE, a memory snapshot of PyTorch's; unknown: the
 * host's memory, ...", "pid 7 was recorded from 2 s to its end; it was attached to, ..."; NULL = all, or no memory.
 * Brief: not of a program that begins recording by itself, and knows that it did. */
char *selection_parts(const struct selection *sel, bool brief);

/* Kinds of memory that are known of any of its processes: enum mt_import_has. */
uint32_t selection_has_kinds(const struct selection *sel);

/* Prints that, briefly. */
void selection_print_parts(const struct selection *sel);

/* Prints that, and a line for people if data is missing, so that figures may be too small. */
void selection_print_missing(const struct selection *sel);

/* selection_device.c. Finds the device that --device names in the model, for v->device. 0 or -MT_EUSAGE. */
int selection_pick_device(struct selection *sel);
/* For --at oom[:N]: at which event a pass has to stop, and when that is. Makes a pass of its own. 0 or -MT_E*. */
int selection_find_oom(struct selection *sel, const struct when *w, uint64_t *event, uint64_t *ns);

#endif
