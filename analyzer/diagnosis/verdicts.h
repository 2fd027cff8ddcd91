/*
 * Why it failed, or will: evidence in, verdicts out. A verdict always has its evidence; one that does not hold is
 * listed with what rules it out, and where a figure is missing that is said.
 *
 *   struct verdicts v;
 *   int e = verdicts_find(&v, &evidence);
 *   ... v.held[0] ... verdicts_fini(&v);
 */
#ifndef MT_DIAGNOSIS_VERDICTS_H
#define MT_DIAGNOSIS_VERDICTS_H

#include "analyzer/diagnosis/evidence.h"
#include "analyzer/diagnosis/reasons.h"

enum verdict_kind {
#define VERDICT(kind, name, device, host, traits, unknown) VERDICT_##kind,
#include "analyzer/diagnosis/verdicts.def"
#undef VERDICT
	VERDICT_KINDS
};

/* What else is to be minded of a kind. */
enum verdict_trait {
	VERDICT_ADDS_UP = 1,        /* it rests on what events added up to, which lost ones may have made */
	VERDICT_SHOWS_PHASES = 2,   /* a device's phases are worth showing */
	VERDICT_OF_ADDED = 4,       /* and the highest are those that added most, whatever was there before them */
	VERDICT_BESIDE_DEVICES = 8, /* that the host is ruled out is also said where the trouble is a device's */
	VERDICT_TELLS_GROWTH = 16,  /* it says of each site whether it grows, and what its advice mends is mended on the
				     * host and on devices at once */
	VERDICT_IS_FACT = 32,       /* it accuses nobody: listed apart, and no trouble by itself */
};

enum verdict_status { STATUS_OK = 0, STATUS_PROBLEM, STATUS_INCONCLUSIVE };

/* How sure a rule is. */
enum confidence {
#define CONFIDENCE(name, value, reason) CONFIDENCE_##name,
#include "analyzer/diagnosis/confidences.def"
#undef CONFIDENCE
};

/* What a rule says. */
enum finding {
	FINDING_NONE = 0, /* it is not about this situation */
	FINDING_HOLDS,
	FINDING_RULED_OUT, /* `evidence` says why */
	FINDING_UNKNOWN,   /* `evidence` says what is missing */
};

enum { VERDICT_SITES = 4 };

struct verdict {
	enum verdict_kind kind;
	const struct evidence_device *device; /* NULL = the host */
	uint64_t bytes;                       /* that it is about, and ranked by */
	double confidence;                    /* 0..1 */
	const struct evidence_growth *growth; /* the largest that it is about, borrowed; NULL = it is about no growth */
	struct reasons evidence;              /* of a FINDING_UNKNOWN what is missing */
	struct reasons advice;                /* empty: there is none */
	const char *sites[VERDICT_SITES];     /* borrowed from the evidence; NULL at the end if fewer */
	bool shown;                           /* its first advice was replayed, and is enough */
	bool beside;                          /* of somewhere else than the device whose memory ended the program */
};

/* The rules are ready for other orders: each looks at nothing but the evidence. `out` is zero but for kind and device.
 * */
typedef enum finding verdict_rule(const struct evidence *e, const struct evidence_device *d, struct verdict *out);

struct verdicts {
	enum verdict_status status;
	struct verdict *held, *facts, *ruled_out, *unknown;
	size_t held_count, fact_count, ruled_out_count, unknown_count;
};

int verdicts_find(struct verdicts *v, const struct evidence *e);
void verdicts_fini(struct verdicts *v);

/* A process died of a request that was refused, or perhaps of its runtime's own limit. */
bool verdicts_died(const struct evidence *e);

/* Allocators keep so much that it is a verdict. */
bool verdicts_keeps_much(const struct evidence_host *h);

const char *verdict_name(enum verdict_kind kind);  /* "other_process" */
const char *verdict_title(enum verdict_kind kind); /* "other process" */
/* Of one that is ruled out: a trace can't tell. */
bool verdict_is_open(const struct verdict *v);
/* "no leak"; "leak?" if it is open. Allocated. */
char *verdict_denial(const struct verdict *v);
/* Has the kind that trait? */
bool verdict_has(enum verdict_kind kind, enum verdict_trait trait);
/* What is not known where one of that kind holds, or NULL. */
const char *verdict_unknown(enum verdict_kind kind);

const char *status_name(enum verdict_status status);
/* 0..1 */
static inline double confidence_value(enum confidence c)
{
	static const double values[] = {
#define CONFIDENCE(name, value, reason) value,
#include "analyzer/diagnosis/confidences.def"
#undef CONFIDENCE
	};
	return values[c];
}

static inline enum growth_certainty verdict_certainty(double confidence)
{
	return confidence >= 0.8 ? CERTAINTY_HIGH : confidence >= 0.55 ? CERTAINTY_MEDIUM : CERTAINTY_LOW;
}

#define RULE(function) verdict_rule function;
#define NO_RULE
#define VERDICT(kind, name, device, host, traits, unknown) device host
#include "analyzer/diagnosis/verdicts.def"
#undef VERDICT
#undef NO_RULE
#undef RULE

/* Fills in evidence, advice and sites. */
void copies_describe(const struct evidence_copies *c, struct verdict *out);

#endif
