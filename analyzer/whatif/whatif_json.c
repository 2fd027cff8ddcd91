#include "analyzer/report/json/json.h"
#include "analyzer/whatif/whatif_internal.h"

#include <math.h>

static json_t *json_moment(const struct selection *sel, const struct replay_track *t, const struct replay_moment *m)
{
	if (!m->request)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "request", json_bytes(m->request));
	json_object_set_new(o, "bytes", json_bytes(m->bytes));
	json_object_set_new(o, "at_s", json_seconds(m->ns));
	json_object_set_new(o, "stack",
			    json_stack(sel->stacks, stacks_of(sel->stacks, t->process, m->node, m->node2),
				       selection_flags(sel->options)));
	return o;
}

static json_t *json_finite(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *json_growth(const struct whatif_question *q, const struct replay_track *t,
			   const struct replay_outcome *r)
{
	if (!q->ahead || q->changes[0] || !whatif_fits(t, r))
		return json_null();
	const struct whatif_growth g = whatif_growth_of(q->ahead, t, r);
	if (!g.grows)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "by", json_text(g.stepped ? "step" : "second"));
	json_object_set_new(o, "bytes", json_finite(g.rate));
	json_object_set_new(o, "until", json_finite(g.until.ever ? g.until.x : INFINITY));
	json_object_set_new(o, "until_low", json_finite(g.until.ever ? g.until.low : INFINITY));
	json_object_set_new(o, "until_high", json_finite(g.until.ever ? g.until.high : INFINITY));
	return o;
}

static json_t *json_replayed(const struct selection *sel, const struct replay_track *t, const struct replay_outcome *r)
{
	json_t *o = json_object();
	json_object_set_new(o, "most_reserved_bytes", json_bytes(r->figures.most_reserved));
	json_object_set_new(o, "most_used_bytes", json_bytes(r->figures.most_used));
	json_object_set_new(o, "most_requested_bytes", json_bytes(r->figures.most_requested));
	json_object_set_new(o, "retries", json_bytes(r->figures.retries));
	json_object_set_new(o, "refused", json_moment(sel, t, &r->refused));
	return o;
}

/* Of the run itself (no name) nothing is refused that was granted then. */
static json_t *json_outcome(const struct selection *sel, const struct whatif_question *q, const struct replay_track *t,
			    const char *name, const struct replay_outcome *r, uint64_t least)
{
	json_t *o = json_replayed(sel, t, r);
	json_object_set_new(o, "least_device_bytes", least ? json_bytes(least) : json_null());
	if (!name) {
		json_object_del(o, "refused");
		return o;
	}
	json_object_set_new(o, "goes_on", json_growth(q, t, r));
	json_object_set_new(o, "setting", json_text(name));
	json_object_set_new(o, "changed", json_bytes(r->changed));
	json_object_set_new(o, "granted_count", json_bytes(r->granted_count));
	json_object_set_new(o, "granted", json_moment(sel, t, &r->granted));
	return o;
}

static json_t *json_track(const struct selection *sel, const struct replay *r, const struct replay_track *t,
			  const struct whatif_question *q)
{
	json_t *o = json_object(), *list = json_array();
	char name[32];
	json_object_set_new(o, "pid", json_integer(t->process->pid));
	json_object_set_new(o, "process", json_text(t->process->program));
	json_object_set_new(o, "device", json_text(whatif_device_name(t, name, sizeof(name))));
	json_object_set_new(o, "requests", json_bytes(t->requests));
	json_object_set_new(o, "requests_refused", json_bytes(t->refused));
	json_object_set_new(o, "outside_bytes", json_bytes(t->outside));
	json_object_set_new(o, "unknown_sizes", json_bytes(t->unknown_sizes));
	json_object_set_new(o, "most_unknown_bytes", json_bytes(t->most_unknown));
	json_object_set_new(o, "switches", json_bytes(t->switches));
	json_object_set_new(o, "held_count", json_bytes(t->held_count));
	json_object_set_new(o, "most_held_bytes", json_bytes(t->most_held));
	json_object_set_new(o, "most_used_bytes", t->unmodelled ? json_null() : json_bytes(t->most_used));
	json_object_set_new(o, "most_requested_bytes", t->unmodelled ? json_null() : json_bytes(t->most_requested));
	json_object_set_new(o, "most_requested_low_bytes",
			    t->unmodelled ? json_null() : json_bytes(t->most_requested_low));
	json_object_set_new(o, "not_modelled", t->unmodelled ? json_text(t->unmodelled) : json_null());
	json_object_set_new(o, "framework", json_text(framework_name(t->framework.kind)));
	json_object_set_new(o, "framework_version",
			    *t->framework.version ? json_text(t->framework.version) : json_null());
	json_object_set_new(o, "differs", json_moment(sel, t, &t->differs));
	const bool known = !t->differs.request && !t->unmodelled;
	json_object_set_new(o, "run",
			    known ? json_outcome(sel, q, t, NULL, &t->run, whatif_least_of(q, r, t, 0)) : json_null());
	for (size_t i = 0; i < q->count && known; i++) {
		json_t *setting =
			json_outcome(sel, q, t, q->cases[i].name, &t->outcomes[i], whatif_least_of(q, r, t, i + 1));
		json_object_set_new(setting, "low",
				    t->outcomes_low ? json_replayed(sel, t, &t->outcomes_low[i]) : json_null());
		json_array_append_new(list, setting);
	}
	const struct whatif_rest rest = known ? whatif_rest(q, t) : (struct whatif_rest){ 0 };
	json_object_set_new(o, "left_bytes", rest.known ? json_bytes(rest.left) : json_null());
	json_object_set_new(o, "rest_of_step_low_bytes", rest.rest_known ? json_bytes(rest.least) : json_null());
	json_object_set_new(o, "rest_of_step_bytes", rest.rest_known ? json_bytes(rest.most) : json_null());
	json_object_set_new(o, "settings", list);
	return o;
}

int whatif_print_json(const struct selection *sel, const struct replay *replay, const struct whatif_question *q)
{
	json_t *root = json_object(), *list = json_array();
	for (size_t i = 0; i < replay->count; i++)
		if (whatif_is_wanted(sel, &replay->tracks[i]))
			json_array_append_new(list, json_track(sel, replay, &replay->tracks[i], q));
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(q->complete));
	json_object_set_new(root, "folded", json_boolean(replay->folded));
	json_object_set_new(root, "pools", list);
	return json_print(root);
}
