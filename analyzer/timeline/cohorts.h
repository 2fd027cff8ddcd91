/*
 * Cohorts: of each site, bytes by when they were made and when they were freed. Who goes on growing is told from these
 * alone (outlook.h).
 *
 * The clock is work, not time: half of it are the bytes that the process has made so far, half the number of blocks,
 * each as a part of all. So the same program gives the same cohorts on a busy machine, and neither one large load nor a
 * million small objects take all of it. What was left out (summed_work.h) is work like any other. The host's kinds of a
 * process have one clock, each device's another. It is cut into COHORTS equal stretches.
 *
 *   struct cohorts *c = cohorts_new();
 *   cohorts_count(c, change)                     for each change of a first pass: how much there will be
 *   cohorts_begin(c, false);
 *   cohorts_change(c, change, ...)               for each change of the second one
 *   ... cohorts_add_site(c, process, site, weight, &table) ...
 *
 * A track (what a process has of one kind on one device) is looked at as of its end: the moment within the last
 * thirty-second of the work at which it had most: since it made something, or, if it made nothing then (few mappings
 * are made), until it freed something. What a program frees as it ends was alive until then.
 *
 * A block that moves into a larger one (realloc, or a container that is made anew and copied) was born by what it has
 * grown: its bytes keep the cohorts that they were made in. A container fills its room until it moves again, so this
 * room counts as made over that stretch, not at once.
 *
 * Memory: 16 bytes for each pair (made, freed) of a site in which something lived for longer than a stretch; nothing
 * for sites whose blocks all went within theirs.
 */
#ifndef MT_TIMELINE_COHORTS_H
#define MT_TIMELINE_COHORTS_H

#include "analyzer/model/model.h"
#include "analyzer/timeline/summed_work.h"

enum { COHORTS = 64 };
enum { COHORTS_LEAST = 65536 }; /* bytes alive: what has less is not worth a look ... */
enum { COHORTS_PICKED = 8 };    /* ... nor what has fewer blocks, where only picked ones were recorded */

struct cohorts;

struct cohorts *cohorts_new(void); /* NULL: no memory */
void cohorts_free(struct cohorts *c);

void cohorts_count(struct cohorts *c, const struct model_change *change);
/* In both passes: the second one knows who is alive, and may see more. */
void cohorts_left_out(struct cohorts *c, const struct model_left_out *l);
/* Called again it does nothing. `goes_on`: more may come than the first pass has seen, so tracks of processes that run
 * have no end. */
void cohorts_begin(struct cohorts *c, bool goes_on);
/* When the running step and the one before it began, 0 without steps. A stretch begins with a step where one begins in
 * time. What is younger than both and is replaced by something larger is what steps need, and no container. */
void cohorts_change(struct cohorts *c, const struct model_change *change, uint64_t step_ns, uint64_t before_ns);

/* Bytes and blocks of one site, or of several added up. Ages are in stretches. */
struct cohort_table {
	double alive[COHORTS], blocks[COHORTS]; /* at the track's end, by the stretch in which they were made */
	/* bytes, part of alive: of a container's room, which counts as filled as fast as before; no event shows it */
	double assumed[COHORTS];
	/* bytes, part of alive: of stacks that have made one block in all. No loop's */
	double single[COHORTS];
	double died[COHORTS][COHORTS]; /* bytes: [made][freed], made < freed */
	double passing;                /* bytes that were made and freed within one stretch */
	unsigned since; /* the run is looked at from this stretch on, plus 1; 0 = from where there is something */
};

/* Adds what the site has, times `weight`. */
void cohorts_add_site(const struct cohorts *c, unsigned process, uint32_t site, double weight, struct cohort_table *t);
/* Adds all that the process has of that kind on that device. */
void cohorts_add_track(const struct cohorts *c, unsigned process, enum model_kind kind, uint32_t device,
		       struct cohort_table *t);

/* The clock of a kind on a device, up to the track's end. */
struct cohort_clock {
	unsigned count;             /* of stretches; the last one is not whole. 0: nothing is known */
	uint64_t begin_ns[COHORTS]; /* of each stretch */
	uint64_t end_ns;            /* of the track */
	double least;               /* bytes alive: what has less is not worth a look */
	/* in each stretch, of all kinds of this clock; and what of it is alive at the end */
	struct cohort_sum made[COHORTS], kept[COHORTS];
	/* the same of what the process made on devices meanwhile: cohorts_add_devices() */
	struct cohort_sum made_on_devices[COHORTS], kept_on_devices[COHORTS];
};

/* Finds the sites whose mappings are arenas, which a runtime fills with small objects: from then on each mapping counts
 * as the objects that it has room for. As one block, it would be less than the few blocks around it that are freed. */
typedef bool cohorts_is_arena(void *arg, unsigned process, uint32_t site);
void cohorts_find_arenas(struct cohorts *c, unsigned process, cohorts_is_arena *is, void *arg);

struct cohort_clock cohorts_clock(const struct cohorts *c, unsigned process, enum model_kind kind, uint32_t device);
/* Fills in what the process made on devices; the clock is that of one of its kinds of the host's memory. */
void cohorts_add_devices(const struct cohorts *c, unsigned process, struct cohort_clock *clock);

/* Bytes of a track at its end. */
uint64_t cohorts_track_live(const struct cohorts *c, unsigned process, enum model_kind kind, uint32_t device);

/* The last end of a process's tracks: what comes behind only cleans up. UINT64_MAX = unknown. */
uint64_t cohorts_end_ns(const struct cohorts *c, unsigned process);

/* The sites that hold most at their track's end, by their number in the process, the largest first: how many. */
size_t cohorts_largest(const struct cohorts *c, unsigned process, uint32_t *sites, size_t most);

/* Sites of the process have smaller numbers than this. */
uint32_t cohorts_sites(const struct cohorts *c, unsigned process);
/* Whether something of the site lived for longer than a stretch, or is alive. */
bool cohorts_has(const struct cohorts *c, unsigned process, uint32_t site);
/* Bytes of a site at its track's end, and the number of blocks (may be NULL). */
uint64_t cohorts_live(const struct cohorts *c, unsigned process, uint32_t site, uint32_t *blocks);

#endif
