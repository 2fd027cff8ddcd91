/*
 * How a run went: steps, phases, growth. Two passes over the trace: the first looks on while the selection's own model
 * runs (or has one of its own), the second cuts time by what the first found.
 *
 *   struct timeline *timeline = timeline_new();
 *   timeline_attach(timeline, &query); selection_run(v, &query); timeline_run(timeline, v);
 *   or, without a model at hand, timeline_make(&timeline, v);
 *   timeline_step_list(timeline, id), timeline_phases(timeline), timeline_growth(...) ...
 *   timeline_free(timeline);                                                  before selection_close()
 */
#ifndef MT_TIMELINE_TIMELINE_H
#define MT_TIMELINE_TIMELINE_H

#include "analyzer/model/selection/selection.h"
#include "analyzer/reader/samples.h"
#include "analyzer/timeline/cohorts.h"
#include "analyzer/timeline/growth.h"
#include "analyzer/timeline/phases.h"
#include "analyzer/timeline/steps.h"

struct timeline;

struct timeline *timeline_new(void);
/* Of a kept analysis (analysis/index.h). 0 or an error. */
int timeline_resume(struct timeline *timeline);
void timeline_free(struct timeline *timeline);

/* Adds the timeline's own callbacks to the query. Those that it has already are called first. */
void timeline_attach(struct timeline *timeline, struct model_query *q);

enum { TIMELINE_WATCHERS = 2 };

/* Adds callbacks to the second pass, like those of a model's query: TIMELINE_WATCHERS at most. on_event hears of marks,
 * or of `every` event. */
void timeline_watch(struct timeline *timeline, bool every,
		    void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
				     uint32_t thread),
		    void (*on_change)(void *arg, const struct model_change *c), void *arg);

/* Makes the query's pass the second one, for a program that still runs: in on_idle timeline_step_list() is what is
 * known so far. timeline_finish() when no more events come. */
void timeline_attach_second(struct timeline *timeline, struct model_query *q);
void timeline_finish(struct timeline *timeline);

/* From now on timeline_growth() takes into account what the model knows of lost events. timeline_run() does this with
 * the selection's model. */
void timeline_doubt(struct timeline *timeline, const struct model *m);

/* cohorts_find_arenas() of Python's arenas, in what the passes have seen so far. findings_make() calls it. */
void timeline_find_arenas(struct timeline *timeline, const struct model *m, const struct reader *r,
			  struct stacks *stacks);

/* The second pass. 0 or -MT_E*. */
int timeline_run(struct timeline *timeline, const struct selection *sel);

/* Both passes. */
int timeline_make(struct timeline **out, const struct selection *sel);

const struct step_list *timeline_step_list(const struct timeline *timeline,
					   unsigned process); /* NULL: it did nothing */
const struct phases *timeline_phases(const struct timeline *timeline);
const struct steps *timeline_steps(const struct timeline *timeline);
const struct cohorts *timeline_cohorts(const struct timeline *timeline);

/* Those that are there now: timeline_run() does this itself. */
void timeline_read_samples(struct timeline *timeline, struct reader *r);
const struct samples *timeline_samples(const struct timeline *timeline); /* NULL: none could be read */

/* The process whose steps stand for the run: by how its steps are known, then by its memory. NULL: no process has
 * steps. */
const struct step_list *timeline_main(const struct timeline *timeline, const struct selection *sel);

/* Place, low and high point of each entry that is whole, into room for p->count; of time windows the last is left out.
 * Returns how many. */
size_t timeline_points(const struct step_list *steps, const struct step_track *t, double *x, double *low, double *high);

/* Whether steps are known to be steps: marked, of an optimizer, or each calls a whole model. */
bool timeline_steps_are_sure(const struct step_list *steps);
enum { TIMELINE_SURE_STEPS = 20 }; /* of a loop that nobody marked: so many are work, and not layers of one step */

/* How the low points of one track rise: shape and rate. Whether that goes on owner_growth.h tells. */
struct growth timeline_growth(const struct step_list *steps, const struct step_track *t);

/* How far steps usually rise above their low points: the median of the last ones. */
double timeline_amplitude(const struct step_list *steps, const struct step_track *t);

/* Of the single steps, in seconds: what all took together, by how many there were. 0 without steps. */
double timeline_period(const struct step_list *steps);

/* When a step (first to last moment) or a phase was. 0, or -MT_EUSAGE: there is none such. `text` is for the message.
 * */
int timeline_step_time(const struct timeline *timeline, const struct selection *sel, uint64_t number, const char *text,
		       uint64_t *begin, uint64_t *end);
int timeline_phase_time(const struct timeline *timeline, const struct selection *sel, const char *name,
			const char *text, uint64_t *begin, uint64_t *peak, uint64_t *end);

/* "marks", "nvtx", "mstx" or "inferred". */
const char *timeline_source(enum loop_source source);

/* The tracks' name in JSON: "host" for the heap, "map", "pinned", "cuda:0", "cuda:0 pool". Into the caller's buffer. */
const char *timeline_track_name(const struct selection *sel, const struct process *p, uint32_t kind, uint32_t device,
				char *out, size_t size);

#endif
