/*
 * What grows, judged once for all who print it: report, leaks, the page, exports to CI.
 *
 * Sites are looked at as of the end of their track (cohorts.h): what a program frees as it ends was alive until then,
 * and what grew behind an earlier peak is there as well.
 */
#ifndef MT_DIAGNOSIS_GROWTH_FINDINGS_H
#define MT_DIAGNOSIS_GROWTH_FINDINGS_H

#include "analyzer/diagnosis/growth/owner_growth.h"

/* One owner on one kind of memory. */
struct owner_finding {
	const struct owner *owner; /* its bytes are those at the track's end */
	enum model_kind kind;
	uint32_t device; /* MODEL_NO_DEVICE of the host */
	uint64_t all;    /* bytes of its kind on the device at the tracks' ends */
	struct owner_growth growth;
	/* no small part of what there is of its kind on the device, with all that grows at its pace: else it is in no
	 * verdict */
	bool is_part;
};

/* All that a process has of a kind on a device, but for what is folded (imported modules, say): that is start-up. */
struct track_finding {
	struct growth_place place;
	const struct step_list *steps; /* of the process, and ... */
	const struct step_track *track;
	bool has_pool;  /* device memory that a pool lies in: the pool keeps what it once had, its blocks tell */
	uint64_t bytes; /* at the track's end, in all */
	struct owner_growth growth;
	struct growth rise; /* of one that goes on: owner_growth_rise() */
};

struct findings {
	struct track_finding *tracks; /* of those with COHORTS_LEAST or more */
	size_t track_count, track_room;
	struct owner_finding *list; /* of each kind and device the largest first */
	size_t count;
	/* of owners of one kind on one device that grow at the same pace, what is folded apart: 1 to that */
	unsigned groups;
	/* state: what the list points to */
	struct model_site *sites;
	size_t site_count, site_room;
	struct owners **owners;
	size_t owners_count, owners_room;
};

/* Of all processes, kinds and devices of the selection; `by` and `fold` as of struct owners_query. 0 or -MT_E*; after
 * an error it is empty. */
int findings_make(struct findings *f, struct timeline *timeline, const struct selection *sel, enum by by,
		  owners_fold *fold);
void findings_fini(struct findings *f);

/* Only the tracks of a process, of what has been seen so far. Asks the selection for model, reader and stacks alone;
 * `samples` may be NULL. 0 or -MT_E*. */
int findings_add_tracks(struct findings *f, const struct timeline *timeline, const struct samples *samples,
			const struct selection *sel, const struct step_list *steps, owners_fold *fold);

/* NULL: it has less than COHORTS_LEAST. */
const struct track_finding *findings_track(const struct findings *f, const struct growth_place *place);

/* Whether the steps on a device tell what the next one needs. Turns of a loop that nobody marked may be layers of one
 * step: where hardly anything is freed from one to the next, they don't. */
bool findings_steps_tell(const struct findings *f, const struct step_list *steps, uint32_t device);

/* steps_rise(), and unknown, too, where the steps don't tell. */
struct steps_rise findings_rise(const struct findings *f, const struct timeline *timeline, unsigned process,
				uint32_t device, uint64_t ns);

/* The finding of the same owner (of the same query but for what is measured), of the device on which it grew most;
 * NULL: there is none. */
const struct owner_finding *findings_find(const struct findings *f, enum model_kind kind, const struct owner *o);

/* What lets the largest container of that process grow, whose own block is made anew larger: a list's items, a dict's
 * table. It may hold small objects, which lie in Python's arenas. NULL = none is large enough. */
const struct owner_finding *findings_container(const struct findings *f, unsigned process);

/* On how many devices the same owner grew in the same way. 1 on the host. */
unsigned findings_devices(const struct findings *f, const struct owner_finding *one);

#endif
