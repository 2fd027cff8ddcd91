/*
 * How a run went: steps, phases, growth. Two passes over the trace: the first looks on while the view's own model runs (or has one
 * of its own), the second cuts time by what the first found.
 *
 *   struct course *c = course_new();
 *   course_attach(c, &query); view_run(v, &query); course_run(c, v);        or, without a model at hand, course_make(&c, v)
 *   ... course_pace(c, id), course_phases(c), course_growth(...) ...
 *   course_free(c);                                                         before view_close()
 */
#ifndef MT_ANALYZER_COURSE_H
#define MT_ANALYZER_COURSE_H

#include "analyzer/growth.h"
#include "analyzer/phases.h"
#include "analyzer/samples.h"
#include "analyzer/steps.h"
#include "analyzer/view.h"
#include "analyzer/work.h"

struct course;

struct course *course_new(void);
void course_free(struct course *c);

/* Has the query's pass watched; what it calls already is called before. */
void course_attach(struct course *c, struct model_query *q);

/* Whom the second pass calls beside the course: as the query of a model does. */
void course_watch(struct course *c, void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
						     uint32_t thread),
		  void (*on_change)(void *arg, const struct model_change *c), void *arg);

/* Has a pass of one's own, of a program that runs, be the second: in its on_idle course_pace() is as far as that. course_finish()
 * when nothing more comes. */
void course_attach_second(struct course *c, struct model_query *q);
void course_finish(struct course *c);

/* What the model knows of lost events is heeded by course_growth() from now on. course_run() does so with the view's. */
void course_doubt(struct course *c, const struct model *m);

/* The second pass. 0 or -MT_E*. */
int course_run(struct course *c, const struct view *v);

/* Both passes. */
int course_make(struct course **out, const struct view *v);

const struct pace *course_pace(const struct course *c, unsigned process); /* NULL: it did nothing */
const struct phases *course_phases(const struct course *c);
const struct steps *course_steps(const struct course *c);
const struct work *course_work(const struct course *c);
const struct samples *course_samples(const struct course *c); /* NULL: none could be read */

/* The process whose steps stand for the run: by how its steps are known, then by its memory. NULL: no process has steps. */
const struct pace *course_main(const struct course *c, const struct view *v);

/* Place, low and high point of each entry that is whole, into room for p->count; of time windows the last is left out. Returns how
 * many. */
size_t course_points(const struct pace *p, const struct step_track *t, double *x, double *low, double *high);

/* Whether what grew is what single steps need, as that grew itself (inputs get longer by plan): hardly any of it is older than a step
 * (`kept`, of steps_site_kept()), and how far steps rise grew by more. */
bool course_is_needed(const struct pace *p, const struct step_track *t, const struct growth *g, double kept);

/* Growth of the low points of one track, but for what steps need themselves. */
struct growth course_growth(const struct pace *p, const struct step_track *t);

/* How far steps usually rise above their low points: the median of the last ones. */
double course_amplitude(const struct pace *p, const struct step_track *t);

/* Of the single steps, in seconds; 0 without steps: the usual one, and by how many there were in all of their time (some take much longer). */
double course_period(const struct pace *p);
double course_mean_period(const struct pace *p);

/* When a step (first to last moment) or a phase was. 0, or -MT_EUSAGE: there is none such. `text` is for the message. */
int course_step_time(const struct course *c, const struct view *v, uint64_t number, const char *text, uint64_t *begin, uint64_t *end);
int course_phase_time(const struct course *c, const struct view *v, const char *name, const char *text, uint64_t *begin,
		      uint64_t *peak, uint64_t *end);

/* "marks", "nvtx", "mstx" or "inferred". */
const char *course_source(enum rhythm_source source);

/* The tracks' name in JSON: "host" for the heap, "map", "pinned", "cuda:0", "cuda:0 pool". Into the caller's buffer. */
const char *course_track_name(const struct view *v, const struct process *p, uint32_t kind, uint32_t device, char *out, size_t size);

#endif
