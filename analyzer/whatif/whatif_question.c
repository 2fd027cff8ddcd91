#include "analyzer/whatif/whatif_internal.h"
#include "analyzer/replay/pool/least.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAK            "leak:"
#define MOST_LEAST_WORK 4e5 /* requests times cases: of more it is looked for of the run alone, or not at all */

uint64_t whatif_least_of(const struct whatif_question *q, const struct replay *r, const struct replay_track *t,
			 size_t number)
{
	return number < q->least_count ? q->least[(size_t)(t - r->tracks) * q->least_count + number] : 0;
}

static struct replay_case *add_case(struct whatif_question *q, const char *name, const struct whatif_asked *o)
{
	struct replay_case *c = &q->cases[q->count++];
	*c = (struct replay_case){ .name = name, .own = true, .device_bytes = o->device_bytes };
	return c;
}

static int set_conf(struct replay_case *c, const char *conf)
{
	struct cuda_pool_settings settings = CUDA_POOL_DEFAULTS;
	c->own = !conf;
	c->conf = conf;
	return conf ? replay_settings(&settings, conf, 0, true) : 0;
}

/* The run's own setting, or --alloc-conf, with other requests. */
static int add_change(struct whatif_question *q, size_t i, char *name, const struct whatif_asked *o)
{
	struct replay_case *c = add_case(q, name, o);
	q->names[i] = name;
	c->factor = whatif_factor;
	c->factor_arg = q->changes[i];
	return name ? set_conf(c, o->conf) : error_memory();
}

/* "leak:2": of which blocks. */
static int without_leak(struct whatif_question *q, struct selection *sel, const char *number)
{
	char *end;
	const unsigned long n = strtoul(number, &end, 10);
	uint32_t *stacks = NULL;
	size_t count = 0;
	if (end == number || *end)
		return error_set(MT_EUSAGE, "--without", ERROR_NO_OFFSET, LEAK "%s: it is like leak:1", number);
	int e = whatif_ahead_new(&q->ahead, sel, false);
	if (!e)
		e = whatif_leak(q->ahead, n, &stacks, &count);
	if (!e)
		return whatif_without_stacks(&q->changes[0], sel, stacks, count, false);
	free(stacks);
	return e;
}

static int without_copies(struct whatif_question *q, struct selection *sel)
{
	uint32_t *calls = NULL;
	size_t count = 0;
	int e = whatif_ahead_new(&q->ahead, sel, true);
	if (!e)
		e = whatif_copies(q->ahead, &calls, &count);
	if (!e)
		return whatif_without_stacks(&q->changes[0], sel, calls, count, true);
	free(calls);
	return e;
}

static int leave_out(struct whatif_question *q, struct selection *sel, const char *what)
{
	if (!strcmp(what, "copies"))
		return without_copies(q, sel);
	if (!strncmp(what, LEAK, strlen(LEAK)))
		return without_leak(q, sel, what + strlen(LEAK));
	return whatif_without(&q->changes[0], sel, what);
}

static int ask_changes(struct whatif_question *q, struct selection *sel, const struct whatif_asked *o)
{
	int e = 0;
	if (o->without && o->scale)
		return error_set(MT_EUSAGE, "whatif", ERROR_NO_OFFSET, "--without and --scale: one of them");
	if (o->without) {
		e = leave_out(q, sel, o->without);
		return e ? e : add_change(q, 0, output_format("without %s", o->without), o);
	}
	const bool batch = whatif_is_batch(o->scale);
	for (size_t i = 0; i < 1u + batch && !e; i++) {
		e = whatif_scale(&q->changes[i], sel, o->scale, i == 0);
		if (!e)
			e = add_change(q, i,
				       output_format("%s%s", o->scale,
						     !batch ? ""
						     : i    ? ", at most"
							    : ", at least"),
				       o);
	}
	return e;
}

int whatif_ask(struct whatif_question *q, struct selection *sel, const struct whatif_asked *o)
{
	if (o->without || o->scale)
		return ask_changes(q, sel, o);
	int e = o->conf ? set_conf(add_case(q, o->conf, o), o->conf) : 0;
	if (!e && !o->conf && o->device_bytes)
		add_case(q, "as it was", o);
	for (size_t i = 0; !o->conf && !e && i < replay_usual_count; i++)
		e = set_conf(add_case(q, replay_usual[i], o), replay_usual[i]);
	return e;
}

void whatif_question_fini(struct whatif_question *q)
{
	for (size_t i = 0; i < sizeof(q->names) / sizeof(q->names[0]); i++) {
		whatif_change_free(q->changes[i]);
		free(q->names[i]);
	}
	whatif_ahead_free(q->ahead);
	free(q->least);
}

int whatif_check_changes(const struct whatif_question *q, const struct replay *replay, const struct whatif_asked *o)
{
	bool any = replay->count == 0 || !q->changes[0];
	for (size_t i = 0; i < replay->count; i++) {
		any |= replay->tracks[i].differs.request > 0 || replay->tracks[i].unmodelled;
		for (size_t k = 0; k < q->count; k++)
			any |= replay->tracks[i].outcomes[k].changed > 0;
	}
	return any ? 0
		   : error_set(MT_EUSAGE, o->without ? "--without" : "--scale", ERROR_NO_OFFSET,
			       "%s: no request of the pool was made there", o->without ? o->without : o->scale);
}

const char *whatif_device_name(const struct replay_track *t, char *buffer, size_t size)
{
	snprintf(buffer, size, "%s:%u", model_device_prefix(t->device ? t->device->backend : MT_BACKEND_CUDA),
		 t->device ? t->device->ordinal : 0);
	return buffer;
}

bool whatif_is_wanted(const struct selection *sel, const struct replay_track *t)
{
	char name[32];
	const char *device = sel->options->device;
	return selection_has(sel, t->process) &&
	       (!device || !strcmp(device, whatif_device_name(t, name, sizeof(name))) ||
		(t->device && !strcmp(device, t->device->uuid)));
}

bool whatif_fits(const struct replay_track *t, const struct replay_outcome *o)
{
	return !o->refused.request &&
	       (o->granted_count >= t->refused || (o->granted.request && o->granted.request == t->requests));
}

struct whatif_rest whatif_rest(const struct whatif_question *q, const struct replay_track *t)
{
	struct whatif_rest r = { .known = q->count > 0, .left = UINT64_MAX };
	for (size_t i = 0; i < q->count; i++) {
		const struct replay_outcome *o = &t->outcomes[i];
		r.known &= o->granted.request && !o->refused.request && o->room != UINT64_MAX;
		r.left = lower(r.left, less(o->room, o->figures.most_used));
	}
	const struct steps_rise rest =
		r.known && q->ahead ? whatif_rest_of_step(q->ahead, t) : (struct steps_rise){ UINT64_MAX, UINT64_MAX };
	if (rest.scaled == UINT64_MAX || !q->changes[0])
		return r;
	const double all = (double)rest.scaled * whatif_change_factor(q->changes[0]);
	r.rest_known = true;
	r.least = (uint64_t)fmin(all, (double)rest.unscaled);
	r.most = (uint64_t)fmax(all, (double)rest.unscaled);
	return r;
}

/* The run itself first, then the smallest devices, then the cases. */
static int find_least(struct replay *replay, const struct reader *r, const struct replay_query *query,
		      struct whatif_question *q)
{
	struct replay_case cases[WHATIF_MOST_CASES + 1] = { { .own = true } };
	struct replay_query all = *query;
	uint64_t requests = 0;
	for (size_t i = 0; i < replay->count; i++)
		requests += replay->tracks[i].requests;
	size_t count = (double)requests * (double)(q->count + 1) <= MOST_LEAST_WORK ? q->count + 1
		       : (double)requests <= MOST_LEAST_WORK                        ? 1
										    : 0;
	memcpy(cases + 1, q->cases, q->count * sizeof(*cases));
	all.cases = cases;
	q->least = calloc(count * replay->count + 1, sizeof(*q->least));
	q->least_count = q->least ? count : 0;
	return !q->least ? error_memory() : count ? replay_least(replay, r, &all, count, q->least) : 0;
}

/* A run in which something failed may have gone on. */
static int look_ahead(const struct replay *replay, struct selection *sel, struct whatif_question *q)
{
	bool any = false;
	for (size_t i = 0; i < replay->count; i++)
		any |= replay->tracks[i].refused && !replay->tracks[i].differs.request;
	return any && !q->ahead ? whatif_ahead_new(&q->ahead, sel, false) : 0;
}

static void show_progress(double done, uint64_t events)
{
	output_progress_of("replaying", events, "events", done);
}

int whatif_answer(struct replay *replay, struct reader *r, struct selection *sel, struct whatif_question *q)
{
	struct replay_query query = { .no_files = sel->options->no_debug_files, .on_progress = output_progress };
	int e = replay_run(replay, r, &query);
	query.on_progress = show_progress;
	query.cases = q->cases;
	query.case_count = q->count;
	if (!e)
		e = find_least(replay, r, &query, q);
	if (!e)
		e = replay_more(replay, r, &query);
	return e ? e : look_ahead(replay, sel, q);
}
