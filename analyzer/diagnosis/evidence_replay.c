#include "analyzer/diagnosis/evidence_replay.h"

#include "analyzer/replay/pool/replay.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <string.h>

#define MUCH_UNUSED 0.3 /* of what is reserved, where nothing failed */
#define MOST_WORK   2e7 /* requests times cases */

static bool is_worth_it(const struct evidence_device *e)
{
	const uint64_t unused = less(e->pool.reserved, e->pool.allocated);
	if (!e->pool.known || e->pool.driver_pool || e->pool.partly_seen)
		return false;
	if (!e->request.failed)
		return (double)unused >= MUCH_UNUSED * (double)e->pool.reserved;
	return unused > 0 && (e->request.caller != CALLER_POOL || e->free + unused >= e->request.bytes);
}

/* The settings that are not the run's own, on top of them; the last one is no setting. */
static size_t make_cases(struct replay_case cases[EVIDENCE_SETTINGS + 1], const struct evidence_device *e)
{
	size_t count = 0;
	for (size_t i = 0; i < replay_usual_count && count < EVIDENCE_SETTINGS; i++)
		cases[count++] = (struct replay_case){ .name = replay_usual[i], .own = true, .conf = replay_usual[i] };
	if (e->pool.graphs.capturing)
		cases[count++] = (struct replay_case){ .own = true, .empty_before_captures = true };
	return count;
}

static struct evidence_setting *setting_named(struct evidence_replay *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->settings[i].name, name))
			return &r->settings[i];
	r->settings[r->count] = (struct evidence_setting){ .name = name, .fits = true, .spare = UINT64_MAX };
	return &r->settings[r->count++];
}

/* torch_npu ends with an error where these are set together. */
static bool is_refused(const struct replay_track *t, const struct cuda_pool_settings *s)
{
	return t->framework.kind == FRAMEWORK_TORCH_NPU && s->expandable &&
	       (s->max_split_bytes != UINT64_MAX || s->gc_threshold > 0);
}

/* Of one more pool on the device. */
static void add_outcome(struct evidence_replay *r, const struct replay_track *t, const struct replay_case *c,
			const struct replay_outcome *o, bool failed)
{
	const bool fits = failed ? o->failure.reached && o->failure.granted : !o->refused.request;
	if (!c->name) {
		r->emptied_known = true;
		r->emptied_fits = fits;
		return;
	}
	struct cuda_pool_settings settings;
	if (replay_case_settings(t, c, 0, &settings) || replay_same_settings(&settings, &t->settings) ||
	    is_refused(t, &settings))
		return;
	struct evidence_setting *s = setting_named(r, c->name);
	s->fits &= fits;
	s->spare = o->failure.spare < s->spare ? o->failure.spare : s->spare;
	s->unused = o->failure.unused > s->unused ? o->failure.unused : s->unused;
	s->reserved += o->figures.most_reserved;
}

static void judge(struct evidence_replay *r, const struct replay *replay, const struct replay_case *cases,
		  const struct model_device *d, bool failed)
{
	bool any = false, exact = true;
	for (size_t i = 0; i < replay->count; i++) {
		const struct replay_track *t = &replay->tracks[i];
		if (!t->device || strcmp(t->device->uuid, d->uuid))
			continue;
		any = true;
		exact &= !t->differs.request && !t->unmodelled;
		r->reserved += t->run.figures.most_reserved;
		r->cached += t->run.failure.cached;
		r->sizes_unknown |= t->unknown_sizes > 0;
		for (size_t k = 0; k < replay->case_count; k++)
			add_outcome(r, t, &cases[k], &t->outcomes[k], failed);
	}
	r->known = any && exact;
}

int evidence_replay_device(struct diagnosis *diagnosis, struct evidence_device *e, const struct model_device *d,
			   const struct model_oom *oom)
{
	struct replay_case cases[EVIDENCE_SETTINGS + 1];
	const struct replay_query q = { .cases = cases,
					.case_count = make_cases(cases, e),
					.only = oom ? reader_process(diagnosis->selection->reader, oom->process) : NULL,
					.failure_ns = oom ? oom->at.ns : 0,
					.no_files = diagnosis->selection->options->no_debug_files,
					.most_work = (uint64_t)MOST_WORK,
					.on_progress = output_progress };
	struct replay replay;
	struct reader *r = NULL;
	if (!is_worth_it(e))
		return 0;
	int error = reader_open_again(&r, diagnosis->selection->reader);
	if (error < 0)
		return error;
	error = replay_run(&replay, r, &q);
	if (!error)
		judge(&e->pool.replay, &replay, cases, d, oom != NULL);
	output_progress_end();
	replay_fini(&replay);
	reader_close(r);
	return error;
}
