#include "analyzer/diagnosis/growth/growth_matters.h"

#include "analyzer/util/minmax.h"

static uint64_t last_of(const struct sample_subject *d, unsigned field)
{
	const bool known = d->known >> field & 1 && d->last[field].value;
	return known ? d->last[field].value : UINT64_MAX;
}

static uint64_t bound_of(const struct reader_host *host, const struct samples *samples)
{
	uint64_t bound = host && host->memory_bytes ? host->memory_bytes : UINT64_MAX;
	for (unsigned i = 0; samples && i < samples_subjects(samples); i++) {
		const struct sample_subject *d = samples_subject(samples, i);
		if (!host || d->host->index != host->index)
			continue;
		if (d->kind == MT_SUBJECT_MACHINE)
			bound = lower(bound, last_of(d, MT_MACHINE_total));
		else if (d->kind == MT_SUBJECT_CGROUP)
			bound = lower(bound, last_of(d, MT_CGROUP_limit));
	}
	return bound;
}

struct growth_scale growth_scale_of(const struct model *m, const struct reader_host *host,
				    const struct samples *samples)
{
	return (struct growth_scale){ model_peak(m, MODEL_HEAP), bound_of(host, samples), 0 };
}

static bool is_notable(double bytes, uint64_t of)
{
	return of != UINT64_MAX && bytes >= GROWTH_NOTABLE * (double)of;
}

bool growth_is_noise(const struct growth_scale *s, double bytes)
{
	return bytes < GROWTH_NOISE_BYTES && !is_notable(bytes, s->heap_peak);
}

bool growth_matters(const struct growth_scale *s, double bytes, bool foreseen)
{
	const double all = s->leaking > bytes ? s->leaking : bytes;
	const bool costs = (all >= GROWTH_LEAST_BYTES && is_notable(all, s->heap_peak)) || is_notable(all, s->bound);
	return bytes >= GROWTH_NOTABLE * all && (foreseen || costs);
}
