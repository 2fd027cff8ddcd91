/* Which owners grow, by how much a step, of what shape, and when memory ends. */
#ifndef MT_ANALYZER_TREND_H
#define MT_ANALYZER_TREND_H

#include "analyzer/course.h"
#include "analyzer/forecast.h"
#include "analyzer/outlook.h"

enum trend_how { TREND_UNCLEAR = 0, TREND_MORE_BLOCKS, TREND_BIGGER_BLOCKS };

/* How one owner's live bytes went in the process where it grows most. */
struct trend {
	enum outlook outlook;       /* OUTLOOK_NONE: it does not grow steadily */
	double lasted_s;            /* while it grew */
	struct growth growth;       /* its x: steps, or seconds where there are none */
	uint32_t process;           /* id */
	bool stepped;               /* x is steps */
	double period_s;            /* of a step, by time */
	unsigned growing;           /* processes it leaks in; 1 where it leaks in none. Together: */
	double all_bytes, all_per_second;
	double blocks_per_x;        /* more blocks, a step or a second */
	double mean_block_bytes;    /* of what was added; 0 = unknown */
	enum trend_how how;
	struct forecast forecast;   /* .ever false: no limit is known, or it is not reached */
	unsigned group;             /* owners that grow at the same pace have the same, from 1 on; 0 = it does not grow */
	size_t points;
	double x[STEPS_BUCKETS], bytes[STEPS_BUCKETS];
};

/* Of an owner's members; .growth.kind is none if they don't grow, or if lost events may have made it (.growth.unproven). */
void trend_of(struct trend *t, const struct course *c, const struct view *v, const struct owner *o);

/* Its growth goes on: outlook.h. */
bool trend_leaks(const struct trend *t);

double trend_per_second(const struct trend *t);
double trend_acceleration_per_s2(const struct trend *t);

/* Numbers the groups of `count` trends. */
void trend_group(struct trend **list, size_t count);

/* When a track meets its limit, in the track's own bytes: of a device what other processes and, of its pool, what lies outside the
 * pool leave of it; of the host what the control group or the machine had left at the end of the last of the pace's entries.
 * Nothing that was seen after that entry is used: of a copy of a pace with fewer entries it is what could be told then.
 * *limit is infinite if it is unknown. */
struct forecast trend_forecast(const struct course *c, const struct view *v, const struct pace *p, const struct step_track *t,
			       const struct growth *g, double *limit);

/* The same with a limit of one's own; its high points are the track's. */
struct forecast trend_ahead(const struct pace *p, const struct step_track *t, const struct growth *g, struct forecast_room room);

#endif
