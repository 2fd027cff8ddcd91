/* What was alive at the end and what grows, by owner: what memtrace leaks shows and checks. */
#ifndef MT_DIAGNOSIS_GROWTH_LEAKS_H
#define MT_DIAGNOSIS_GROWTH_LEAKS_H

#include "analyzer/diagnosis/growth/findings.h"
#include "analyzer/diagnosis/growth/growth_matters.h"
#include "analyzer/diagnosis/growth/owner_growth.h"
#include "analyzer/diagnosis/growth/suppressions.h"
#include "analyzer/diagnosis/growth/process_piles.h"
#include "analyzer/diagnosis/growth/shm_growth.h"

/* An owner with what is known about it. */
struct leak {
	const struct owner *owner;
	enum model_kind kind;
	uint64_t bytes, blocks;         /* alive at the end: 0 of one that only grew while the program ran */
	uint64_t bytes_min, blocks_min; /* at least, if lost events freed all that they can have (loss_doubt.h) */
	uint64_t unproven;              /* it would have grown by so much, but lost events may have made it */
	uint64_t oldest_ns;             /* when its oldest live block was allocated; UINT64_MAX = none */
	const struct owner_growth *owner_growth; /* NULL: it does not grow */
	const struct owner_finding *finding;     /* NULL: there is none */
	const char *benign;                      /* why it is no leak, or NULL */
	const char *suppressed;                  /* by that pattern of the user's, or NULL */
};

struct leaks {
	struct selection *selection;
	struct timeline *timeline;
	struct suppress *suppress;
	struct findings *findings;
	struct findings own_findings; /* where they are not the caller's */
	struct owners *live[MODEL_KINDS];
	struct leak *list; /* the worst first */
	size_t count;
	struct growth_scale scale;
	unsigned groups;                /* of owners that grow at the same pace: 1 to that */
	uint64_t bytes, blocks;         /* of the heap, without benign and suppressed ones */
	uint64_t bytes_min, blocks_min; /* at least; the same where nothing was lost */
	uint64_t lost;                  /* events of these processes; UINT64_MAX = nobody knows how many */
	uint64_t unproven;              /* of all sites, without benign and suppressed ones */
	uint64_t benign_bytes, benign_blocks;
	uint64_t suppressed_bytes, suppressed_blocks;
	struct pile pile;     /* .count 0: no processes pile up */
	struct shm_maker shm; /* who makes files in /dev/shm, which are no site's; the caller's to find */
	uint64_t in_use;      /* of the heap, in processes that did not exit by themselves: killed, or running */
};

/* Behind selection_run() and timeline_run(). Takes over timeline and suppress, also when it fails. `findings`: by site,
 * of the diagnosis, which must outlive the result; NULL = none are there. */
int leaks_init(struct leaks *l, struct selection *sel, struct timeline *timeline, struct suppress *suppress,
	       struct findings *findings);
void leaks_fini(struct leaks *l);

bool leak_grows(const struct leak *leak);  /* and goes on */
bool leak_leaks(const struct leak *leak);  /* ... while other memory is freed */
bool leak_counts(const struct leak *leak); /* neither benign nor suppressed */

/* Sites that leak at the same pace, without suppressed ones. */
struct leak_group {
	const struct leak *most; /* the one that grew most, whose shape is that of all; NULL: there are none */
	size_t sites;
	double bytes;       /* grown by, together */
	double rate, error; /* a step or second, together */
	double per_second;
	struct forecast forecast;        /* of all memory of that kind */
	enum growth_certainty certainty; /* of the surest */
	bool little;                     /* on the host: too little or uncertain for a verdict (growth_matters.h) */
};

struct leak_group leaks_group(const struct leaks *l, unsigned group);

#endif
