/* Figures of a device or a host that the rules of verdicts are asked about, and what they say of them. */
#ifndef MT_TEST_VERDICTS_H
#define MT_TEST_VERDICTS_H

#include "analyzer/diagnosis/verdicts.h"
#include "tests/unit/test.h"

#include <math.h>

#define MIB  1048576ull
#define GIB  1073741824ull
#define G(x) ((uint64_t)((x) * 1073741824.0))

static struct evidence_device device;
static struct evidence evidence;
static struct verdicts found;
static struct evidence_neighbour neighbours[3];
static struct evidence_growth growths[6];
static struct evidence_phase phases[6];
static struct evidence_copies copies[1];
static struct evidence_part parts[3];

/* A device whose request the driver refused, with everything known and nothing else wrong. */
static inline void begin(double total, double request, double free_gib, double allocated, double reserved)
{
	verdicts_fini(&found);
	memset(neighbours, 0, sizeof(neighbours));
	memset(growths, 0, sizeof(growths));
	memset(phases, 0, sizeof(phases));
	memset(copies, 0, sizeof(copies));
	memset(parts, 0, sizeof(parts));
	evidence = evidence_none();
	device = evidence_device_none();
	device.name = "cuda:0";
	device.total = G(total);
	device.free = G(free_gib);
	device.request.failed = request > 0;
	device.request.pid = 100;
	device.request.bytes = device.request.block_bytes = G(request);
	device.request.rise = device.request.bytes; /* nothing more in this step */
	device.request.driver_failures = 2;
	device.request.failures = 1;
	device.request.outcome = FAILURE_FATAL;
	device.pool.known = true;
	device.pool.allocated = G(allocated);
	device.pool.reserved = G(reserved);
	device.pool.largest_hole = (G(reserved) - G(allocated)) / 2;
	device.own_other = G(0.3);
	device.neighbours_known = true;
	device.growth_known = true;
	device.copies_known = true;
	device.steps = 200;
	evidence.devices.items = &device;
	evidence.devices.count = 1;
}

static inline void neighbour(int i, uint32_t pid, double gib, double before)
{
	neighbours[i] = (struct evidence_neighbour){
		.pid = pid, .bytes = G(gib), .bytes_before = G(before), .pool_unused = EVIDENCE_UNKNOWN
	};
	device.neighbours.items = neighbours;
	device.neighbours.count = (size_t)i + 1;
}

static inline void growth(int i, enum growth_kind kind, enum growth_certainty certainty, double gib)
{
	growths[i] = (struct evidence_growth){ .site = "train.py:73 save",
					       .sites = 1,
					       .fit = { kind, certainty },
					       .bytes = G(gib),
					       .per_step = 7e6,
					       .outlook = kind == GROWTH_SATURATING ? OUTLOOK_STOPPED : OUTLOOK_LEAKS,
					       .works = kind != GROWTH_SATURATING };
	device.growth.items = growths;
	device.growth.count = (size_t)i + 1;
}

static inline void phase(int i, const char *name, uint32_t pid, double begin_gib, double peak, bool failing)
{
	phases[i] =
		(struct evidence_phase){ name, pid, G(begin_gib), G(peak), 0, 0, failing, 1, false, false, 0, false };
	device.phases.items = phases;
	device.phases.count = (size_t)i + 1;
}

static inline void copied(double each, unsigned count, unsigned blocks)
{
	copies[0] = (struct evidence_copies){ .bytes = G(each),
					      .extra_bytes = G(each * (count - 1)),
					      .count = count,
					      .blocks = blocks,
					      .owners = { "run.py:10 load", "run.py:20 load" } };
	device.copies.items = copies;
	device.copies.count = 1;
}

static inline void judge(void)
{
	verdicts_fini(&found);
	verdicts_find(&found, &evidence);
	for (size_t i = 0; i < found.held_count; i++)
		CHECK(found.held[i].confidence > 0 && found.held[i].confidence <= 1);
}

static inline const struct verdict *of_kind(const struct verdict *list, size_t count, enum verdict_kind kind)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].kind == kind)
			return &list[i];
	return NULL;
}

static inline const struct verdict *held(enum verdict_kind kind)
{
	return of_kind(found.held, found.held_count, kind);
}

static inline bool out(enum verdict_kind kind)
{
	return of_kind(found.ruled_out, found.ruled_out_count, kind) != NULL;
}

static inline bool only(enum verdict_kind kind)
{
	return found.held_count == 1 && held(kind) && held(kind)->evidence.count;
}

/* Are the figures of `expected` that are not 0 those? Where a figure is summed up from parts of a GiB a byte may be
 * cut. */
static inline bool same_figures(const struct figures *figures, const struct figures *expected)
{
	static const struct figures none;
	static const struct {
		size_t offset, size;
		enum { WHOLE, REAL, WORDS, OTHER } how;
	} rows[] = {
#define HOW(type)          _Generic((type), uint64_t: WHOLE, double: REAL, const char *: WORDS, default: OTHER)
#define FIGURE(name, unit) { offsetof(struct figures, name), sizeof(none.name), HOW(none.name) },
#include "analyzer/diagnosis/reasons.def"
#undef HOW
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const void *is = (const char *)figures + rows[i].offset;
		const void *shall = (const char *)expected + rows[i].offset;
		const char *const *a = is, *const *b = shall;
		if (!memcmp(shall, (const char *)&none + rows[i].offset, rows[i].size))
			continue;
		if (rows[i].how == WHOLE   ? llabs((long long)(*(const uint64_t *)is - *(const uint64_t *)shall)) > 2
		    : rows[i].how == REAL  ? fabs(*(const double *)is - *(const double *)shall) > 0.05
		    : rows[i].how == WORDS ? !*a || strcmp(*a, *b)
					   : memcmp(is, shall, rows[i].size))
			return false;
	}
	return true;
}

/* Is that among a verdict's evidence or advice? */
static inline bool said(const struct verdict *v, enum reason_kind reason, const struct figures *figures)
{
	for (size_t i = 0; v && i < v->evidence.count + v->advice.count; i++) {
		const struct reason *r =
			i < v->evidence.count ? &v->evidence.items[i] : &v->advice.items[i - v->evidence.count];
		if (r->kind == reason && same_figures(&r->figures, figures))
			return true;
	}
	return false;
}

static inline bool show(bool good, const struct verdict *v)
{
	char *evidence = v ? reasons_text(&v->evidence) : NULL, *advice = v ? reasons_text(&v->advice) : NULL;
	if (!good)
		printf("# evidence \"%s\", advice \"%s\"\n", evidence ? evidence : "", advice ? advice : "");
	free(evidence);
	free(advice);
	return good;
}

static inline const struct verdict *held_or_fact(enum verdict_kind kind)
{
	const struct verdict *fact = of_kind(found.facts, found.fact_count, kind);
	return fact ? fact : held(kind);
}

static inline bool says(enum verdict_kind kind, enum reason_kind reason, const struct figures *figures)
{
	const struct verdict *v = held_or_fact(kind);
	return show(said(v, reason, figures), v);
}

static inline bool lacks(enum verdict_kind kind, enum reason_kind reason)
{
	const struct verdict *v = held_or_fact(kind);
	return show(v && !said(v, reason, &(struct figures){ 0 }), v);
}

static inline bool ruled_out_as(enum verdict_kind kind, enum reason_kind reason, const struct figures *figures)
{
	const struct verdict *v = of_kind(found.ruled_out, found.ruled_out_count, kind);
	return show(said(v, reason, figures), v);
}

static inline bool ruled_out_without(enum verdict_kind kind, enum reason_kind reason)
{
	const struct verdict *v = of_kind(found.ruled_out, found.ruled_out_count, kind);
	return show(v && !said(v, reason, &(struct figures){ 0 }), v);
}

/* SAYS(CAPACITY, short_by, .missing = G(4)): it holds, and says that with these figures. LACKS(): it holds, and does
 * not say that. WHY_NOT(): it is ruled out by that. */
#define FIGURES(...)               (&(struct figures){ .none = 0, __VA_ARGS__ })
#define SAYS(kind, reason, ...)    says(VERDICT_##kind, REASON_##reason, FIGURES(__VA_ARGS__))
#define LACKS(kind, reason)        lacks(VERDICT_##kind, REASON_##reason)
#define WHY_NOT(kind, reason, ...) ruled_out_as(VERDICT_##kind, REASON_##reason, FIGURES(__VA_ARGS__))

static inline void host(double memory, double available, double swap, double anon)
{
	begin(24, 0, 20, 1, 1);
	evidence.devices.count = 0;
	evidence.host.sampled = true;
	evidence.host.memory = G(memory);
	evidence.host.available_min = G(available);
	evidence.host.swap_start = 0;
	evidence.host.swap_peak = G(swap);
	evidence.host.swap_total = G(4);
	evidence.host.anon = G(anon);
	evidence.host.file = G(1);
	evidence.host.rss_anon = G(anon);
	evidence.host.live = evidence.host.live_peak = G(anon * 0.95);
	evidence.host.kept = G(anon * 0.05);
	evidence.host.growth_known = true;
}

static inline void host_growth(enum growth_kind kind, double gib)
{
	growth(0, kind, CERTAINTY_HIGH, gib);
	evidence.host.growth.items = growths;
	evidence.host.growth.count = 1;
}

#endif
