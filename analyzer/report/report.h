/* The report: its data, and its two forms. */
#ifndef MT_REPORT_REPORT_H
#define MT_REPORT_REPORT_H

#include "analyzer/model/main_process.h"
#include "analyzer/report/analysis.h"
#include "analyzer/report/ci.h"

#include <jansson.h>

/* What memtrace leaks says. */
struct report_leaks {
	bool known;
	size_t sites;       /* that grow steadily ... */
	uint64_t grown;     /* ... by so much */
	uint64_t alive;     /* of the heap at the end, without what libraries and interpreter keep */
	uint64_t alive_min; /* at least: the same where nothing was lost */
	uint64_t unproven;  /* grew, if lost events did not make it */
	uint64_t in_use;    /* of all that, in processes that were killed or still run */
};

struct report {
	const struct selection *selection;
	struct analysis analysis;
	struct owners *owners[MODEL_HOST_KINDS]; /* at the peak; NULL = not wanted */
	uint64_t arenas_after;                   /* of Python's arenas in them what was not mapped by imports */
	struct owners *temporary;
	struct owners *survivors;  /* heap of processes that exited by themselves */
	bool brief;                /* the summary: parts print less */
	struct report_leaks leaks; /* known where nothing is wrong */
};

#define REPORT_MAPS 2 /* largest mappings that are shown */

/* Makes all of *r but `brief`, with what `more` (enum analysis_want) asks for beside what a report needs. 0 or -MT_E*;
 * report_fini() in either case, before selection_close(). */
int report_make(struct report *r, struct selection *v, unsigned more);
void report_fini(struct report *r);

/* report_options of cmd_report.c. */
struct report_options {
	struct options common;
	bool all;
	const char *format; /* "markdown", one of ci.def, or NULL */
};

/* The process that the title names. NULL: there is none. */
static inline const struct process *report_main_program(const struct report *r)
{
	return main_process(r->selection->model, r->selection->reader);
}

/* report_headline.c: the one thing to know where no failure says it; and what to ask next, in commands to be typed as
 * they are. */
unsigned report_print_headline(const struct report *r, unsigned room);
unsigned report_print_more(const struct report *r, unsigned room);

/* HOST: the ledger and the processes in memory. Returns its lines; `room` is how many there are. */
unsigned report_print_host(const struct report *r, unsigned room);

/* Processes that the kernel killed for want of memory, or may have. */
unsigned report_kills(const struct report *r);
unsigned report_print_kills(const struct report *r);

/* Parts of the screen; they return the lines they took. `room` is how many there are. */
unsigned report_print_processes(const struct report *r);
unsigned report_print_heap_owners(const struct report *r, unsigned room);
unsigned report_print_device_owners(const struct report *r, unsigned room);
unsigned report_print_other_owners(const struct report *r, unsigned room);

/* Of devices (report_devices.c): each begins with an empty line, or prints nothing. What failed; where the memory was
 * when it did, or at the peak of the fullest device; all devices; their processes over time. */
unsigned report_print_ooms(const struct report *r, unsigned room);
unsigned report_print_ledger(const struct report *r, unsigned room);
unsigned report_print_devices(const struct report *r);
unsigned report_print_device_times(const struct selection *v);

/* "GPU 0", as the process calls it; NULL = as the first one does. Allocated. */
char *report_device_title(const struct selection *v, const struct model_device *d, const struct process *p);

/* report_nearly_full.c: devices, a control group, the machine that had little left though nothing failed: the same two
 * levels as of memtrace live. Prints the fullest one. */
#define REPORT_WARNING 0.85
#define REPORT_ALERT   0.9
unsigned report_print_full(const struct report *r);
bool report_is_full(const struct report *r); /* a device; of the host others may have the rest */
json_t *report_json_full(const struct report *r);
struct reclaimed;
json_t *reclaimed_json(const struct reclaimed *f);

/* The command without the folders of what it names, so that it can be recognized in few columns. Allocated. */
char *report_command(const struct process *p, int columns);

/* report_growth.c: steps, phases, growth. Nothing is printed where nothing grows. */
unsigned report_print_growth(const struct report *r);
void report_json_timeline(json_t *o, const struct selection *v, const struct timeline *c);

/* report_verdicts.c. Something failed, was killed, or a verdict holds. */
bool report_is_trouble(const struct report *r);
/* The device on which something is wrong; NULL: all is well, or it is the host alone. */
const struct evidence_device *report_device(const struct report *r);
/* Each prints nothing where it has nothing to say. */
unsigned report_print_causes(const struct report *r, unsigned room);
unsigned report_print_alive(const struct report *r, unsigned room);

/* The one the screen is about: where the failure or the first cause is, else the device with the most, else the host.
 * */
const struct diagnosis_space *report_main_space(const struct report *r);
unsigned report_print_phases(const struct report *r, unsigned room);
unsigned report_print_advice(const struct report *r, unsigned room);
unsigned report_print_unknown(const struct report *r, unsigned room);

void report_print(const struct report *r);
json_t *report_json(const struct report *r);
int report_print_json(const struct report *r);
json_t *report_json(const struct report *r); /* what that prints; NULL when there is no memory */

/* report_markdown.c: the same, the most important of it. */
int report_print_markdown(const struct report *r);

/* report_ci.c: what failed, and why. 0 or -MT_E*. */
int report_add_findings(const struct report *r, struct ci *ci);

/* Names of what enum mt_loss says. */
json_t *report_json_reasons(uint32_t why);

#endif
