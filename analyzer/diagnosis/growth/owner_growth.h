/* Which owners grow, by how much a step, of what shape, and when memory ends. */
#ifndef MT_DIAGNOSIS_GROWTH_OWNER_GROWTH_H
#define MT_DIAGNOSIS_GROWTH_OWNER_GROWTH_H

#include "analyzer/diagnosis/growth/forecast.h"
#include "analyzer/diagnosis/growth/outlook.h"
#include "analyzer/timeline/timeline.h"

enum owner_growth_how { OWNER_GROWTH_UNCLEAR = 0, OWNER_GROWTH_MORE_BLOCKS, OWNER_GROWTH_BIGGER_BLOCKS };

/* How one owner's live bytes went in the process where it grows most. */
struct owner_growth {
	enum outlook outlook;             /* whether it goes on; NONE: there is next to nothing */
	double rise;                      /* bytes: see outlook.h */
	struct growth growth;             /* its x: steps, or seconds where there are none */
	uint32_t process;                 /* id */
	bool beside_steps;                /* there are some, but most of it came before them or behind them */
	double period_s;                  /* of a step, by time */
	unsigned growing;                 /* number of processes in which it leaks; 1 where it leaks in none */
	double all_bytes, all_per_second; /* growth in all of these together */
	double blocks_per_x;              /* more blocks, a step or a second */
	double mean_block_bytes;          /* of what was added; 0 = unknown */
	enum owner_growth_how how;
	struct forecast forecast; /* .ever false: no limit is known, or it is not reached */
	unsigned group; /* owners that grow at the same pace have the same number, from 1 on; 0 = it does not grow */
	size_t points;
	double x[COHORTS], bytes[COHORTS]; /* what stays for good, by when it was made: added up */
	/* STOPPED, after many cohorts: when nearly all of it was there, and how much came in the second half of its
	 * process's time */
	uint64_t stopped_ns;
	double late_bytes;
};

/* What is judged: the memory of one kind on one device in one process. */
struct growth_place {
	uint32_t process;
	enum model_kind kind;
	uint32_t device;
};

/* The judgement of some of its sites, added up in `table`. `doubt`: bytes of them that lost events may have made.
 * Without the forecast, so that it can be asked in the middle of a pass; `samples` may be NULL. */
void owner_growth_judge(struct owner_growth *t, const struct timeline *timeline, const struct model *m,
			const struct samples *samples, const struct growth_place *of, const struct cohort_table *table,
			double doubt);

/* In a runtime's own heap its outlook would be another one, so its stack must be looked up. */
bool owner_growth_may_be_collected(const struct owner_growth *t, enum model_kind kind);

/* Corrects the outlook of one that may be collected, if a runtime with a collector allocated at `stack` (0: no stack).
 * What is freed in that runtime's mappings is not seen, and its own blocks of malloc's heap go with these (COLLECTED).
 * Others are freed when the collector runs, so their age tells of no backlog. */
void owner_growth_collect(struct owner_growth *t, enum model_kind kind, const struct selection *sel, uint32_t stack);

/* Of an owner's members; .growth.kind is none if they don't grow, or if lost events may have made it
 * (.growth.unproven). */
void owner_growth_of(struct owner_growth *t, const struct timeline *timeline, const struct selection *sel,
		     const struct owner *o);

/* A leak before what else goes on, and that before what does not; then by bytes. */
bool owner_growth_grew_more(const struct owner_growth *a, const struct owner_growth *b);

/* Of one site by itself: it goes on growing. */
bool owner_growth_goes_on(const struct timeline *timeline, const struct selection *sel, const struct model_site *site);

/* How a track that goes on growing rises, as it is shown: by the low points of its steps or seconds where these rise
 * steadily, else as it was judged. In its unit, and brief if it is. `judged` is of that track. What is forecast rests
 * on low points. */
struct growth owner_growth_rise(const struct step_list *steps, const struct step_track *t,
				const struct owner_growth *judged);

/* Which part of what `whole` has grown by it has made, since both grow. Both are of one track. */
double owner_growth_part(const struct owner_growth *t, const struct owner_growth *whole);
/* It is that part of what rises so. */
void owner_growth_rise_with(struct owner_growth *t, const struct growth *rise, double part);

double owner_growth_per_second(const struct owner_growth *t);
double owner_growth_acceleration_per_s2(const struct owner_growth *t);

/* Of two of the same kind on the same device: both go on, at the same pace. */
bool owner_growth_in_step(const struct owner_growth *a, const struct owner_growth *b);

/* When a track meets its limit. *limit: bytes that the track can have; infinite if it is unknown. On a device other
 * processes' memory is taken off, and for the pool also what lies outside of it. On the host it is what the control
 * group or the machine had left at the end of the last of the list's steps. Nothing that was seen after that step is
 * used: for a copy of the list with fewer steps the result is what could be said at that time. */
struct forecast owner_growth_forecast(const struct timeline *timeline, const struct selection *sel,
				      const struct step_list *steps, const struct step_track *t, const struct growth *g,
				      double *limit);

/* The same of all memory of that kind in a process, which is what the user will see end. *all: how it grows. .ever is
 * false where it does not grow steadily. */
struct forecast owner_growth_forecast_all(const struct timeline *timeline, const struct selection *sel,
					  uint32_t process, enum model_kind kind, uint32_t device, struct growth *all);

/* The first one with the limit in `room`; its high points are set from the track. None if the unit of `g` is not the
 * list's. */
struct forecast owner_growth_forecast_to(const struct step_list *steps, const struct step_track *t,
					 const struct growth *g, struct forecast_room room);

#endif
