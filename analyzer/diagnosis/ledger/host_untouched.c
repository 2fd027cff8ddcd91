/* What is live but in nobody's memory, as a program may ask for more than it ever writes to. Large mappings say how
 * much of them is resident; what of that address space was live the model says. A part of host_memory.c. */
#include "analyzer/diagnosis/ledger/host_memory_internal.h"

#include "analyzer/util/error.h"

#include <stdlib.h>
#include <string.h>

struct found {
	struct model_stretch stretch;
	unsigned subject;
};

static int compare(const void *a, const void *b)
{
	const struct model_stretch *x = &((const struct found *)a)->stretch, *y = &((const struct found *)b)->stretch;
	return x->process != y->process ? (x->process > y->process) - (x->process < y->process)
					: (x->start > y->start) - (x->start < y->start);
}

static size_t find_mappings(const struct host_memory *s, struct found *out)
{
	size_t n = 0;
	for (unsigned i = 0;
	     (i = samples_find(s->samples, MT_SUBJECT_MAPPING, s->host, i)) < samples_subjects(s->samples); i++) {
		const struct sample_subject *d = samples_subject(s->samples, i);
		const struct sample_state *x = &s->states[i];
		const struct process *p = x->last_ns && !x->gone && !strncmp(d->text, "[anon", 5)
						  ? samples_process(s->samples, d, s->ns)
						  : NULL;
		if (p)
			out[n++] = (struct found){ { .process = p->id,
						     .start = d->address,
						     .end = d->address + known_or(x, MT_MAPPING_size, 0) },
						   i };
	}
	qsort(out, n, sizeof(*out), compare);
	return n;
}

int host_memory_make_stretches(struct host_memory *s)
{
	size_t room = samples_subjects(s->samples) + 1ul;
	struct found *found = calloc(room, sizeof(*found));
	s->stretches = calloc(room, sizeof(*s->stretches));
	s->stretch_subjects = calloc(room, sizeof(*s->stretch_subjects));
	int e = found && s->stretches && s->stretch_subjects ? 0 : error_memory();
	size_t n = e ? 0 : find_mappings(s, found);
	for (size_t i = 0; i < n; i++) {
		s->stretches[i] = found[i].stretch;
		if (i && s->stretches[i - 1].process == found[i].stretch.process) /* looked at at two moments */
			s->stretches[i - 1].end = lower(s->stretches[i - 1].end, found[i].stretch.start);
		s->stretch_subjects[i] = found[i].subject;
	}
	s->stretch_count = n;
	free(found);
	return e;
}

/* What became resident since mappings were looked at is what was allocated since, and the rest of it was touched in
 * them; either may be otherwise. */
int host_memory_set_untouched(const struct host_memory *s, const struct model *m, const struct sample_subject *process,
			      struct host_process *out)
{
	uint64_t most = 0, least = 0, ns = 0;
	struct sample_state then;
	for (size_t i = 0; i < s->stretch_count; i++) {
		const struct sample_state *x = &s->states[s->stretch_subjects[i]];
		uint64_t there = known_or(x, MT_MAPPING_rss, 0) + known_or(x, MT_MAPPING_swap, 0),
			 live = s->stretches[i].live;
		if (s->stretches[i].process != out->process->id)
			continue;
		most += lower(live, less(known_or(x, MT_MAPPING_size, 0), there));
		least += less(live, there);
		ns = x->last_ns > ns ? x->last_ns : ns;
	}
	if (!most)
		return 0;
	int e = samples_at(s->samples, ns, process->index, &then);
	uint64_t more = e || out->anon == HOST_KILL_UNKNOWN
				? 0
				: less(out->anon, known_or(&then, MT_PROCESS_rss_anon, out->anon));
	uint64_t allocated =
		less(out->live_heap, model_at(m, &model_process(m, out->process->id)->timeline[MODEL_HEAP], ns).last);
	out->untouched = less(most, less(more, allocated));
	out->untouched_error = higher(most - out->untouched, less(out->untouched, less(least, more)));
	return e;
}
