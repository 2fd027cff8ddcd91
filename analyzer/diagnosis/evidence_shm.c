#include "analyzer/diagnosis/evidence_shm.h"

#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"

#include <math.h>
#include <string.h>

#define LEAST_FILES 8
#define SPAN        0.5  /* of the time since the first file: then it is no start-up */
#define STAYS       0.75 /* of what was made by then, or more, was there at once */

static const char *line_of(struct diagnosis *diagnosis, const struct model_shm_maker *m)
{
	const struct process *p = reader_process(diagnosis->selection->reader, m->process);
	const uint32_t stack = m->node ? stacks_of(diagnosis->selection->stacks, p, m->node, m->node2) : 0;
	return stack ? diagnosis_call(diagnosis, stack) : p->name;
}

/* To one of the same line, or as another. */
static void add(struct evidence_shm *list, size_t *count, const struct evidence_shm *one)
{
	size_t i = 0;
	while (i < *count && strcmp(list[i].site, one->site) != 0)
		i++;
	if (i == *count) {
		list[(*count)++] = *one;
		return;
	}
	struct evidence_shm *s = &list[i];
	if (one->most > s->most) {
		s->pid = one->pid;
		s->most = one->most;
	}
	s->processes++;
	s->files += one->files;
	s->bytes += one->bytes;
	s->first_ns = lower(s->first_ns, one->first_ns);
	s->last_ns = higher(s->last_ns, one->last_ns);
}

int evidence_shm(struct diagnosis *diagnosis)
{
	const struct model_shm_maker *makers;
	const size_t all = model_shm_makers(diagnosis->selection->model, &makers);
	struct evidence_shm *list = diagnosis_alloc(diagnosis, all * sizeof(*list)), *most = NULL;
	size_t count = 0;
	if (!list)
		return error_memory();
	for (size_t i = 0; i < all; i++)
		add(list, &count,
		    &(struct evidence_shm){
			    .site = line_of(diagnosis, &makers[i]),
			    .pid = reader_process(diagnosis->selection->reader, makers[i].process)->pid,
			    .processes = 1,
			    .files = makers[i].all.files,
			    .bytes = makers[i].all.bytes,
			    .most = makers[i].all.bytes,
			    .first_ns = makers[i].first_ns,
			    .last_ns = makers[i].all.ns,
		    });
	for (size_t i = 0; i < count; i++)
		most = !most || list[i].bytes > most->bytes ? &list[i] : most;
	if (most)
		diagnosis->evidence.host.shm = *most;
	return 0;
}

/* What a line had made by a moment, in all processes. */
static struct model_shm_made made_by(struct diagnosis *diagnosis, const char *site, uint64_t ns)
{
	const struct model_shm_maker *makers;
	const size_t count = model_shm_makers(diagnosis->selection->model, &makers);
	struct model_shm_made sum = { .ns = ns };
	for (size_t i = 0; i < count; i++) {
		if (strcmp(line_of(diagnosis, &makers[i]), site) != 0)
			continue;
		const struct model_shm_made one = model_shm_made_by(&makers[i], ns);
		sum.files += one.files;
		sum.bytes += one.bytes;
	}
	return sum;
}

/* Whether most of the files that were made so far were there. The last sample before the last file tells. If hardly any
 * file was made by then, since samples are rare on a busy machine, the sample with most bytes tells. */
static bool stays(struct diagnosis *diagnosis, const struct evidence_shm *s, struct host_moment most)
{
	struct host_moment seen = host_shm_at(diagnosis->system, s->last_ns);
	struct model_shm_made made = made_by(diagnosis, s->site, seen.ns);
	if (made.files < LEAST_FILES) {
		seen = most;
		made = made_by(diagnosis, s->site, seen.ns);
	}
	return made.files >= LEAST_FILES && (double)seen.bytes >= STAYS * (double)made.bytes;
}

struct evidence_growth evidence_shm_growth(struct diagnosis *diagnosis)
{
	const struct evidence_shm *s = &diagnosis->evidence.host.shm;
	const struct host_facts *f = diagnosis->system ? host_facts(diagnosis->system) : NULL;
	const double span = (double)(s->last_ns - s->first_ns),
		     spread = (double)less(f ? f->traced_end_ns : 0, s->first_ns);
	const struct growth files = { .kind = GROWTH_LINEAR, .certainty = CERTAINTY_MEDIUM, .lasted_s = span / 1e9 };
	const struct evidence_growth none = { 0 };
	if (!f || f->shm_peak == HOST_KILL_UNKNOWN || s->files < LEAST_FILES || span < SPAN * spread)
		return none;
	const struct host_moment most = { f->shm_peak_ns, less(f->shm_peak, f->shm_start) };
	if (!stays(diagnosis, s, most))
		return none;
	return (struct evidence_growth){
		.site = s->site,
		.of = "/dev/shm",
		.kind = MODEL_MAP,
		.in_files = true,
		.sites = 1,
		.site_bytes = s->bytes,
		.fit = { files.kind, files.certainty, 0 },
		.bytes = lower(s->bytes, most.bytes),
		.per_second = (double)s->bytes / span * 1e9,
		.block_bytes = s->bytes / s->files,
		.outlook = OUTLOOK_GROWS,
		.brief = growth_is_brief(&files),
		.lasted_s = files.lasted_s,
	};
}
