/* The report: its data, and its forms: screen, JSON, Markdown, findings for CI. */
#ifndef MT_REPORT_SCREEN_REPORT_H
#define MT_REPORT_SCREEN_REPORT_H

#include "analyzer/model/selection/main_process.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/report/ci/ci.h"
#include "analyzer/analysis/held.h"

#include <jansson.h>

/* The figures of memtrace leaks, in bytes. */
struct report_leaks {
	bool known;
	uint64_t alive;     /* heap alive at the end, without what libraries and interpreter keep */
	uint64_t alive_min; /* the part of `alive` that is sure: all of it unless events were lost */
	uint64_t unproven;  /* growth that may only be due to lost events */
	uint64_t in_use;    /* the part of all that in processes that were killed or still run */
};

struct report {
	const struct selection *selection;
	struct analysis analysis;
	struct owners *owners[MODEL_HOST_KINDS]; /* at the peak; NULL = not wanted */
	uint64_t arenas_after;                   /* bytes of Python's arenas among them that imports did not map */
	struct owners *temporary;                /* of blocks freed by the next event of their thread */
	struct owners *survivors;                /* of heap that was alive when processes exited by themselves */
	bool brief;                              /* the summary, without --all: parts print less */
	struct report_leaks leaks;               /* known only if nothing is wrong */
	struct held_question *held; /* by verdict that holds, by fact, then of the line that the headline says grew */
	size_t held_count;
	const struct copy_set *copies;     /* that the verdict `copies` is about; NULL = there is none */
	struct held_question *copies_held; /* by owner of these */
	const bool *listed;                /* processes in the JSON, by id; NULL = all. Borrowed */
};

#define REPORT_MAPS           2   /* how many of the largest mappings are shown */
#define REPORT_WIDE           100 /* columns of a screen: with fewer more is wrapped, with more lines are longer */
#define REPORT_MOST_RULED_OUT 5   /* causes that are named as ruled out */

/* Fills in all of *r but `brief`. `more` (enum analysis_want, or'ed) asks for more than a report needs. 0 or -MT_E*;
 * report_fini() in either case, before selection_close(). */
int report_make(struct report *r, struct selection *sel, unsigned more);
void report_fini(struct report *r);

/* report_options of cmd_report.c. */
struct report_options {
	struct options common;
	bool all;
	const char *format; /* "markdown", one of ci.def, or NULL */
};

/* The process that the title names. NULL = there is none. */
static inline const struct process *report_main_program(const struct report *r)
{
	return main_process(r->selection->model, r->selection->reader);
}

/* report_screen.c: how many processes there are, however often they became other programs, as the table of processes
 * counts them. */
unsigned report_process_count(const struct selection *sel);

/* All report_print_*() below print a part of the screen and return how many lines it took; `room` is how many there
 * are. A part that has nothing to say prints nothing. */

/* report_held.c: asks who holds what verdicts and the headline are about, and puts it into the verdicts' advice. 0 or
 * an error; report_held_fini() in any case. */
int report_find_held(struct report *r);
void report_held_fini(struct report *r);

/* report_headline.c: the line that its headline says grew, allocated; NULL = none. */
char *report_grown_site(const struct report *r, bool *device);

/* report_headline.c: the most important fact of a run without a failure; and commands to go on with, ready to be
 * typed. */
unsigned report_print_headline(const struct report *r, unsigned room);
unsigned report_print_more(const struct report *r, unsigned room);

/* HOST: the ledger of the machine's memory, and the processes in it. */
/* Was the memory of the processes looked at when the run ended? */
bool report_knows_end(const struct report *r);
unsigned report_print_host(const struct report *r, unsigned room);

/* Processes that the kernel killed, or may have killed, as memory ran out: how many, and lines on them. */
unsigned report_kills(const struct report *r);
unsigned report_print_kills(const struct report *r);

/* report_tables.c: processes, and who owned the memory. */
unsigned report_print_processes(const struct report *r);
unsigned report_print_heap_owners(const struct report *r, unsigned room);
unsigned report_print_device_owners(const struct report *r, unsigned room);
unsigned report_print_other_owners(const struct report *r, unsigned room);

/* report_devices.c; each part begins with an empty line: failures; the ledger of a device at the failure, or of the
 * fullest one at its peak; all devices; their processes over time. */
unsigned report_print_ooms(const struct report *r, unsigned room);
unsigned report_print_ledger(const struct report *r, unsigned room);
unsigned report_print_devices(const struct report *r);
unsigned report_print_device_times(const struct report *r);

/* "GPU 0": a device as process `p` numbers it; NULL = as the first process that uses it. Allocated. */
char *report_device_title(const struct selection *sel, const struct model_device *d, const struct process *p);

/* report_nearly_full.c: devices, a control group or the machine that came close to being full though nothing failed.
 * The levels, as parts of the whole, are those of memtrace live. Prints the fullest one. */
#define REPORT_WARNING 0.85
#define REPORT_ALERT   0.9
unsigned report_print_full(const struct report *r);
bool report_is_full(const struct report *r); /* of devices alone, as others may use the rest of the host */
json_t *report_json_full(const struct report *r);
struct reclaimed;
json_t *reclaimed_json(const struct reclaimed *f); /* a value, or NULL = no memory */

/* The command line in at most `columns`, its paths without their folders. Allocated. */
char *report_command(const struct process *p, int columns);

/* report_growth.c: steps, phases, growth. Prints nothing if nothing grows. */
unsigned report_print_growth(const struct report *r);
void report_json_timeline(json_t *o, const struct selection *sel, const struct analysis *a);

/* report_verdicts.c. Whether something failed, was killed, or a verdict holds. */
bool report_is_trouble(const struct report *r);
/* The device on which something is wrong; NULL = nothing is, or only on the host. */
const struct evidence_device *report_device(const struct report *r);
/* Why a verdict holds, or what a fact says; its device in front where the screen is about another. Allocated, or NULL.
 */
char *report_evidence(const struct report *r, const struct verdict *v);
unsigned report_print_causes(const struct report *r, unsigned room);
unsigned report_print_facts(const struct report *r, unsigned room); /* growth that accuses nobody */
unsigned report_print_alive(const struct report *r, unsigned room);

/* The device, or host, that the screen is about: where the failure or the first cause is, else the device with the most
 * memory in use, else the host. */
const struct diagnosis_space *report_main_space(const struct report *r);
/* report_headline.c. The memory that the first words are about: that failed, else of the first verdict, else that grew,
 * else whose peak is named. */
struct report_memory {
	enum model_kind kind;
	uint32_t device; /* MODEL_NO_DEVICE of the host */
};
struct report_memory report_first_memory(const struct report *r);
unsigned report_print_phases(const struct report *r, unsigned room);
unsigned report_print_advice(const struct report *r, unsigned room);
unsigned report_print_unknown(const struct report *r, unsigned room);

void report_print(const struct report *r);
int report_print_json(const struct report *r); /* 0 or -MT_E* */
json_t *report_json(const struct report *r);   /* what that prints; NULL = no memory */

/* report_markdown.c: the most important parts, as Markdown. 0 or -MT_E*. */
int report_print_markdown(const struct report *r);

/* report_ci.c: adds what failed, and why, as findings. 0 or -MT_E*. */
int report_add_findings(const struct report *r, struct ci *ci);

/* A list with the names of the reasons in `why` (enum mt_loss, or'ed). */
json_t *report_json_reasons(uint32_t why);

#endif
