#include "analyzer/diagnosis/evidence_replay.h"

#include "analyzer/replay/replay.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <string.h>

static bool is_worth_it(const struct evidence_device *e, const struct model_device *d)
{
	const uint64_t unused = e->pool.reserved > e->pool.allocated ? e->pool.reserved - e->pool.allocated : 0;
	return d->backend == MT_BACKEND_CUDA && e->request.caller == CALLER_POOL && e->pool.known &&
	       !e->pool.expandable && !e->pool.driver_pool && unused >= e->request.block_bytes;
}

static void judge(struct evidence_pool *pool, const struct replay_track *t, const struct model_oom *oom)
{
	const struct replay_outcome *o = t->outcomes;
	if (t->differs.request)
		return; /* not modelled */
	pool->expanded.known = true;
	pool->expanded.fits = !o->refused.request && o->granted.ns >= oom->at.ns;
	pool->expanded.spare = o->spare;
}

int evidence_replay_device(struct diagnosis *x, struct evidence_device *e, const struct model_device *d,
			   const struct model_oom *oom)
{
	static const struct replay_case expandable = { .name = "expandable_segments:True",
						       .own = true,
						       .expandable = true };
	const struct process *p = reader_process(x->selection->reader, oom->process);
	const struct replay_query q = {
		.cases = &expandable, .case_count = 1, .only = p, .on_progress = output_progress
	};
	struct replay replay;
	struct reader *r = NULL;
	if (!is_worth_it(e, d))
		return 0;
	int error = reader_again(&r, x->selection->reader);
	if (error < 0)
		return error;
	error = replay_run(&replay, r, &q);
	for (size_t i = 0; i < replay.count && !error; i++) {
		const struct process_device *on = replay.tracks[i].device;
		if (on && !strcmp(on->uuid, d->uuid))
			judge(&e->pool, &replay.tracks[i], oom);
	}
	output_progress_end();
	replay_fini(&replay);
	reader_close(r);
	return error;
}
