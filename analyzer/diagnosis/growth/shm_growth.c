#include "analyzer/diagnosis/growth/shm_growth.h"

#include "analyzer/diagnosis/ledger/host_memory.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_FILES 8
#define SPAN        0.5  /* of the time since the first file: then it is no start-up */
#define STAYS       0.75 /* of what was made by then, or more, was there at once */

struct search {
	const struct selection *sel;
	const struct host_memory *system;
	const struct model_shm_maker *makers;
	size_t count;
	char **lines; /* of the makers */
};

static char *line_of(const struct selection *sel, const struct model_shm_maker *m)
{
	const struct process *p = reader_process(sel->reader, m->process);
	const uint32_t stack = m->node ? stacks_of(sel->stacks, p, m->node, m->node2) : 0;
	if (!stack)
		return strdup(p->name);
	const struct frame *frame =
		stacks_site(sel->stacks, stacks_merged(sel->stacks, stack), selection_flags(sel->options)).frame;
	return frame ? frame_place(frame) : strdup("(no stack)");
}

/* To one of the same line, or as another. */
static void add(struct shm_maker *list, size_t *count, const struct shm_maker *one)
{
	size_t i = 0;
	while (i < *count && strcmp(list[i].site, one->site) != 0)
		i++;
	if (i == *count) {
		list[(*count)++] = *one;
		return;
	}
	struct shm_maker *m = &list[i];
	if (one->most > m->most) {
		m->pid = one->pid;
		m->most = one->most;
	}
	m->processes++;
	m->files += one->files;
	m->bytes += one->bytes;
	m->first_ns = lower(m->first_ns, one->first_ns);
	m->last_ns = higher(m->last_ns, one->last_ns);
}

/* The line that made most; files 0: there is none. */
static struct shm_maker largest(const struct search *s, struct shm_maker *list)
{
	struct shm_maker most = { 0 };
	size_t count = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct model_shm_maker *m = &s->makers[i];
		add(list, &count,
		    &(struct shm_maker){ .site = s->lines[i],
					 .pid = reader_process(s->sel->reader, m->process)->pid,
					 .processes = 1,
					 .files = m->all.files,
					 .bytes = m->all.bytes,
					 .most = m->all.bytes,
					 .first_ns = m->first_ns,
					 .last_ns = m->all.ns });
	}
	for (size_t i = 0; i < count; i++)
		most = list[i].bytes > most.bytes || !i ? list[i] : most;
	return most;
}

/* What a line had made by a moment, in all processes. */
static struct model_shm_made made_by(const struct search *s, const char *line, uint64_t ns)
{
	struct model_shm_made sum = { .ns = ns };
	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->lines[i], line) != 0)
			continue;
		const struct model_shm_made one = model_shm_made_by(&s->makers[i], ns);
		sum.files += one.files;
		sum.bytes += one.bytes;
	}
	return sum;
}

/* Whether most of the files that were made so far were there. The last sample before the last file tells. If hardly any
 * file was made by then, since samples are rare on a busy machine, the sample with most bytes tells. */
static bool stays(const struct search *s, const struct shm_maker *line, struct host_moment most)
{
	struct host_moment seen = host_shm_at(s->system, line->last_ns);
	struct model_shm_made made = made_by(s, line->site, seen.ns);
	if (made.files < LEAST_FILES) {
		seen = most;
		made = made_by(s, line->site, seen.ns);
	}
	return made.files >= LEAST_FILES && (double)seen.bytes >= STAYS * (double)made.bytes;
}

static void find_growth(const struct search *s, struct shm_maker *line)
{
	const struct host_facts *f = s->system ? host_facts(s->system) : NULL;
	const double span = (double)(line->last_ns - line->first_ns),
		     spread = (double)less(f ? f->traced_end_ns : 0, line->first_ns);
	if (!f || f->shm_peak == HOST_KILL_UNKNOWN || line->files < LEAST_FILES || span < SPAN * spread)
		return;
	const struct host_moment most = { f->shm_peak_ns, less(f->shm_peak, f->shm_start) };
	if (!stays(s, line, most))
		return;
	line->growing = lower(line->bytes, most.bytes);
	line->per_second = (double)line->bytes / span * 1e9;
}

int shm_maker_find(struct shm_maker *out, const struct selection *sel, const struct host_memory *system)
{
	struct search s = { .sel = sel, .system = system };
	s.count = model_shm_makers(sel->model, &s.makers);
	s.lines = calloc(s.count + 1, sizeof(*s.lines));
	struct shm_maker *list = calloc(s.count + 1, sizeof(*list));
	bool enough = s.lines && list;
	for (size_t i = 0; enough && i < s.count; i++)
		enough = (s.lines[i] = line_of(sel, &s.makers[i])) != NULL;
	*out = enough ? largest(&s, list) : (struct shm_maker){ 0 };
	if (out->files)
		find_growth(&s, out);
	if (out->site)
		out->site = strdup(out->site);
	enough = enough && (out->site || !out->files);
	for (size_t i = 0; s.lines && i < s.count; i++)
		free(s.lines[i]);
	free(s.lines);
	free(list);
	return enough ? 0 : error_memory();
}
