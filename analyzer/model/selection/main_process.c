#include "analyzer/model/selection/main_process.h"

#include <signal.h>
#include <stdlib.h>

#define SHORT_NS      1000000000ull
#define NOTHING_BYTES (1ull << 20)

bool process_was_short(const struct process *p)
{
	bool killed = p->exit_kind == MT_EXIT_SIGNAL ? p->exit_code != SIGPIPE : p->state == PROCESS_GONE;
	return !killed && p->end_ns - p->start_ns < SHORT_NS;
}

static uint64_t most_bytes(const struct model_process *m)
{
	uint64_t most = 0;
	for (int kind = 0; kind < MODEL_KINDS; kind++)
		most = m->kind[kind].peak_bytes > most ? m->kind[kind].peak_bytes : most;
	return most;
}

bool process_is_momentary(const struct model_process *m)
{
	return process_was_short(m->process) && most_bytes(m) < NOTHING_BYTES && !m->kind[MODEL_DEVICE].peak_bytes &&
	       !m->kind[MODEL_POOL].peak_bytes;
}

bool process_goes_on_as(const struct process *p, const struct process *next)
{
	return next->creator == p && next->pid == p->pid && next->origin == MT_ORIGIN_EXEC;
}

/* Of whom it descends. Creators have lower ids. */
static unsigned root_of(const struct process *p)
{
	while (p->creator)
		p = p->creator;
	return p->id;
}

const struct process *main_process(const struct model *m, const struct reader *r)
{
	unsigned count = reader_processes(r), best = 0;
	uint64_t *most = calloc(count + 1ul, sizeof(*most));
	for (unsigned id = 0; most && id < count; id++) {
		uint64_t bytes = most_bytes(model_process(m, id)), *root = &most[root_of(reader_process(r, id))];
		*root = bytes > *root ? bytes : *root;
	}
	for (unsigned id = 0; most && id < count; id++)
		best = most[id] > most[best] ? id : best;
	free(most);
	const struct process *p = count ? reader_process(r, best) : NULL;
	for (unsigned id = best + 1; id < count; id++)
		p = process_goes_on_as(p, reader_process(r, id)) ? reader_process(r, id) : p;
	return p;
}
