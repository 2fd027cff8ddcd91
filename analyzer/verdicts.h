/*
 * Why it failed, or will: evidence in, verdicts out. A verdict always has its evidence as text; one that does not hold is
 * listed with what rules it out, and where a figure is missing that is said.
 *
 *   struct verdicts v;
 *   int e = verdicts_find(&v, &evidence);
 *   ... v.held[0] ... verdicts_fini(&v);
 */
#ifndef MT_VERDICTS_H
#define MT_VERDICTS_H

#include "analyzer/evidence.h"

enum verdict_kind {
#define VERDICT(kind, name, device, host, adds_up) VERDICT_##kind,
#include "analyzer/verdicts.def"
#undef VERDICT
	VERDICT_KINDS
};

enum verdict_status { STATUS_OK = 0, STATUS_PROBLEM, STATUS_INCONCLUSIVE };

/* What a rule says. */
enum finding {
	FINDING_NONE = 0,   /* it is not about this situation */
	FINDING_HOLDS,
	FINDING_RULED_OUT,  /* `evidence` says why */
	FINDING_UNKNOWN,    /* `evidence` says what is missing */
};

enum { VERDICT_SITES = 4 };

struct verdict {
	enum verdict_kind kind;
	const struct evidence_device *device; /* NULL = the host */
	uint64_t bytes;       /* that it is about, and ranked by */
	double confidence;    /* 0..1 */
	char *evidence;       /* a sentence; of a FINDING_UNKNOWN what is missing */
	char *advice;         /* or NULL */
	const char *sites[VERDICT_SITES]; /* borrowed from the evidence; NULL at the end if fewer */
};

/* The rules are ready for other orders: each looks at nothing but the evidence. `out` is zero but for kind and device. */
typedef enum finding verdict_rule(const struct evidence *e, const struct evidence_device *d, struct verdict *out);

struct verdicts {
	enum verdict_status status;
	struct verdict *held, *ruled_out, *unknown;
	size_t held_count, ruled_out_count, unknown_count;
};

int verdicts_find(struct verdicts *v, const struct evidence *e);
void verdicts_fini(struct verdicts *v);

/* A process died of a request that was refused, or perhaps of its runtime's own limit. */
bool verdicts_died(const struct evidence *e);

const char *verdict_name(enum verdict_kind kind);  /* "other_process" */
const char *verdict_title(enum verdict_kind kind); /* "other process" */
const char *status_name(enum verdict_status status);
enum growth_certainty verdict_certainty(double confidence);

/* verdict_device.c */
verdict_rule device_limit, device_leak, device_copies, device_other_process, device_phase_peak, device_fragmentation,
	device_retained, device_outside_pool, device_capacity;
/* The evidence of copies, allocated; fills in advice and sites. */
char *copies_evidence(const struct evidence_copies *c, struct verdict *out);
/* verdict_host.c */
verdict_rule host_limit, host_leak, host_copies, host_retained, host_pressure, host_files_left, host_processes;

#endif
