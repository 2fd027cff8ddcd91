#include "analyzer/report/json/json_devices.h"

#include "analyzer/diagnosis/diagnosis.h"
#include "analyzer/report/json/json.h"
#include "analyzer/util/output.h"

#include <string.h>

static json_t *json_known(uint64_t figure)
{
	return figure == MODEL_UNKNOWN ? json_null() : json_bytes(figure);
}

static double fragmentation(uint64_t allocated, uint64_t reserved)
{
	return reserved > allocated ? 1.0 - (double)allocated / (double)reserved : 0;
}

/* ---- ledger ---------------------------------------------------------------------------------------------- */

/* {"at_s", "total", "pool_allocated", ...}. */
static json_t *json_ledger(const struct device_ledger *l)
{
	json_t *o = json_object(), *parts = json_array();
	json_object_set_new(o, "at_s", json_seconds(l->ns));
	json_object_set_new(o, "total", json_known(l->total));
	json_object_set_new(o, "pool_allocated", json_bytes(l->pool_allocated));
	json_object_set_new(o, "pool_free", json_bytes(l->pool_free));
	json_object_set_new(o, "other_own", json_bytes(l->other_own));
	json_object_set_new(o, "other_processes", json_known(l->other_processes));
	json_object_set_new(o, "free", json_known(l->free));
	json_object_set_new(o, "unexplained", l->explained ? json_integer(l->unexplained) : json_null());
	json_object_set_new(o, "unmapped", json_bytes(l->unmapped));
	json_object_set_new(o, "graphs_reserved", json_bytes(l->graphs_reserved));
	json_object_set_new(o, "graphs_allocated", json_bytes(l->graphs_allocated));
	for (unsigned i = 0; i < l->part_count; i++) {
		json_t *part = json_object();
		json_object_set_new(part, "name", json_text(l->parts[i].name ? l->parts[i].name : "program"));
		json_object_set_new(part, "bytes", json_bytes(l->parts[i].bytes));
		json_object_set_new(part, "pid", json_integer(l->parts[i].process->pid));
		json_array_append_new(parts, part);
	}
	json_object_set_new(o, "other_own_parts", parts);
	return o;
}

static json_t *json_ledger_processes(const struct device_ledger *l)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < l->process_count; i++) {
		const struct device_ledger_process *p = &l->processes[i];
		json_t *o = json_object();
		json_object_set_new(o, "pid", json_integer(p->pid));
		json_object_set_new(o, "id", p->process ? json_integer(p->process->id) : json_null());
		json_object_set_new(o, "name", json_text(p->process ? p->process->program : p->name));
		json_object_set_new(o, "bytes", json_bytes(p->bytes));
		json_object_set_new(o, "traced", json_boolean(p->process != NULL));
		json_object_set_new(o, "guessed", json_boolean(p->guessed));
		json_object_set_new(o, "since_s", json_seconds(p->since_ns));
		json_object_set_new(o, "before", json_boolean(p->before));
		json_object_set_new(o, "pool_allocated", p->process ? json_bytes(p->pool_allocated) : json_null());
		json_object_set_new(o, "pool_free", p->process ? json_bytes(p->pool_free) : json_null());
		json_object_set_new(o, "pool_partly_seen", json_boolean(p->partly_seen));
		json_object_set_new(o, "graphs_free", p->process ? json_bytes(p->graphs_free) : json_null());
		json_object_set_new(o, "other", p->process ? json_bytes(p->other) : json_null());
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_ledger_at(struct diagnosis *diagnosis, const struct model_device *d, const struct model_moment *at,
			      json_t **processes)
{
	const struct device_ledger *l = diagnosis_ledger(diagnosis, d, at);
	if (processes)
		*processes = l ? json_ledger_processes(l) : json_array();
	return l ? json_ledger(l) : NULL;
}

/* ---- step and phase -------------------------------------------------------------------------------------- */

struct context {
	const struct selection *selection;
	const struct timeline *timeline;
	struct diagnosis *diagnosis;
};

/* The number of the step at that moment: of joined ones by their share of time. */
bool json_devices_step(const struct timeline *timeline, const struct model_oom *oom, uint64_t *number)
{
	const struct step_list *steps = timeline ? timeline_step_list(timeline, oom->process) : NULL;
	return steps && step_number_at(steps, oom->at.ns, number);
}

/* The innermost range that the program marked, else the line of its script. */
static json_t *json_phase(const struct context *c, const struct model_oom *oom)
{
	const struct phases *all = c->timeline ? timeline_phases(c->timeline) : NULL;
	const struct phase *best = NULL;
	for (size_t i = 0; all && i < phases_count(all); i++) {
		const struct phase *p = phases_get(all, i);
		if (p->process->id != oom->process || p->begin_ns > oom->at.ns || p->end_ns < oom->at.ns)
			continue;
		if (!best || (p->source != PHASE_LINE) >= (best->source != PHASE_LINE))
			best = p;
	}
	return json_text(best ? best->name : NULL);
}

/* ---- failures -------------------------------------------------------------------------------------------- */

static json_t *json_event_stack(const struct selection *sel, const struct process *p, uint32_t node, uint32_t node2)
{
	return json_stack(sel->stacks, stacks_of(sel->stacks, p, node, node2), selection_flags(sel->options));
}

static json_t *json_refusals(const struct selection *sel, const struct model_oom *oom, const struct process *p)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < oom->refusal_count; i++) {
		const struct model_refusal *r = &oom->refusals[i];
		json_t *o = json_object();
		json_object_set_new(o, "time_s", json_seconds(r->ns));
		json_object_set_new(o, "bytes", json_bytes(r->bytes));
		json_object_set_new(o, "function", json_text(process_hook(p, r->hook)));
		json_object_set_new(o, "status", json_integer(r->status));
		json_object_set_new(o, "stack", json_event_stack(sel, p, r->node, r->node2));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_graphs(const struct model_pools *p)
{
	if (!p->reserved)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "captures", json_integer(p->captures));
	json_object_set_new(o, "pools", json_integer(p->pools));
	json_object_set_new(o, "reserved_bytes", json_bytes(p->reserved));
	json_object_set_new(o, "allocated_bytes", json_bytes(p->allocated));
	json_object_set_new(o, "largest_hole_bytes", json_known(p->largest_hole));
	json_object_set_new(o, "free_segment_bytes", json_known(p->idle));
	return o;
}

static json_t *json_oom(const struct context *c, const struct model_device *d, const struct model_oom *oom)
{
	const struct selection *sel = c->selection;
	static const char *const outcomes[] = {
		[OUTCOME_UNKNOWN] = "unknown", [OUTCOME_CAUGHT] = "caught", [OUTCOME_FATAL] = "fatal"
	};
	const struct process *p = reader_process(sel->reader, oom->process);
	json_t *o = json_object();
	json_object_set_new(o, "time_s", json_seconds(oom->at.ns));
	json_object_set_new(o, "pid", json_integer(p->pid));
	json_object_set_new(o, "id", json_integer(p->id));
	json_object_set_new(o, "source", json_string(oom->pool ? "pool" : "driver"));
	json_object_set_new(o, "requested_bytes", json_bytes(oom->requested_bytes));
	json_object_set_new(o, "requested_error_bytes", json_bytes(oom->requested_error));
	json_object_set_new(o, "block_bytes", oom->block_bytes ? json_bytes(oom->block_bytes) : json_null());
	json_object_set_new(o, "free_bytes", json_known(oom->at.free_bytes));
	json_object_set_new(o, "total_bytes", json_known(oom->at.total_bytes));
	json_object_set_new(o, "reserved_bytes", json_bytes(oom->reserved_bytes));
	json_object_set_new(o, "allocated_bytes", json_bytes(oom->allocated_bytes));
	json_object_set_new(o, "largest_hole_bytes", json_known(oom->largest_hole_bytes));
	json_object_set_new(o, "free_segment_bytes", json_known(oom->whole_free_bytes));
	json_object_set_new(o, "capturing", json_boolean(oom->capturing));
	json_object_set_new(o, "usable_hole_bytes", json_known(oom->usable.largest_hole));
	json_object_set_new(o, "usable_unused_bytes", json_bytes(oom->usable.reserved - oom->usable.allocated));
	json_object_set_new(o, "graphs", json_graphs(&oom->graphs));
	json_object_set_new(o, "limit_bytes", oom->limit_bytes ? json_bytes(oom->limit_bytes) : json_null());
	json_object_set_new(o, "retries", json_integer(oom->retries));
	json_object_set_new(o, "outcome", json_string(outcomes[oom->outcome]));
	uint64_t step;
	json_object_set_new(o, "step", json_devices_step(c->timeline, oom, &step) ? json_bytes(step) : json_null());
	json_object_set_new(o, "phase", json_phase(c, oom));
	json_object_set_new(o, "verdict", json_null());
	json_object_set_new(o, "ledger", json_ledger_at(c->diagnosis, d, &oom->at, NULL));
	json_object_set_new(o, "refusals", json_refusals(sel, oom, p));
	json_object_set_new(o, "stack", json_event_stack(sel, p, oom->node, oom->node2));
	return o;
}

static json_t *json_ooms(const struct context *c, const struct model_device *d)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < d->oom_count; i++)
		json_array_append_new(list, json_oom(c, d, &d->oom[i]));
	return list;
}

/* ---- device ---------------------------------------------------------------------------------------------- */

static json_t *json_aliases(const struct model_device *d)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < d->share_count; i++) {
		const struct model_share *s = d->shares[i];
		char *text = output_format("%u:%s:%u", s->process->pid, model_device_prefix(d->backend), s->ordinal);
		json_array_append_new(list, json_text(text));
		free(text);
	}
	return list;
}

static json_t *json_pool(const struct model_device *d, const struct model_moment *at)
{
	const struct model_totals *pool = &d->layer[LAYER_POOL], *reserved = &d->layer[LAYER_RESERVED];
	if (!pool->allocations && !pool->live_blocks && !pool->peak_bytes)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "peak_allocated_bytes", json_bytes(pool->peak_bytes));
	json_object_set_new(o, "peak_allocated_s", json_seconds(pool->peak_ns));
	json_object_set_new(o, "peak_reserved_bytes", json_bytes(reserved->peak_bytes));
	json_object_set_new(o, "allocations", json_bytes(pool->allocations));
	json_object_set_new(o, "frees", json_bytes(pool->frees));
	json_object_set_new(o, "allocated_bytes", json_bytes(pool->allocated_bytes));
	json_object_set_new(o, "live_bytes", json_bytes(pool->live_bytes));
	json_object_set_new(o, "live_blocks", json_bytes(pool->live_blocks));
	json_object_set_new(o, "reserved_bytes", json_bytes(reserved->live_bytes));
	json_object_set_new(o, "segments", json_bytes(reserved->live_blocks));
	json_object_set_new(o, "segment_allocations", json_bytes(reserved->allocations));
	json_object_set_new(o, "segment_frees", json_bytes(reserved->frees));
	json_object_set_new(o, "graphs_peak_reserved_bytes", json_bytes(d->layer[LAYER_PRIVATE].peak_bytes));
	json_object_set_new(o, "graphs_reserved_bytes", json_bytes(d->layer[LAYER_PRIVATE].live_bytes));
	json_object_set_new(o, "graphs_live_bytes", json_bytes(d->layer[LAYER_PRIVATE_POOL].live_bytes));
	json_object_set_new(o, "fragmentation",
			    json_real(fragmentation(at->layer[LAYER_POOL], at->layer[LAYER_RESERVED])));
	return o;
}

static json_t *json_device(const struct context *c, const struct model_device *d)
{
	const struct model_totals *t = &d->layer[LAYER_MEMORY];
	const struct model_moment *at = device_ledger_moment(d, NULL);
	json_t *o = json_object(), *processes = NULL;
	json_object_set_new(o, "name", json_text(d->name));
	json_object_set_new(o, "uuid", json_text(d->uuid));
	json_object_set_new(o, "model", json_text(d->model));
	json_object_set_new(o, "hostname", json_text(d->host->name));
	json_object_set_new(o, "aliases", json_aliases(d));
	json_object_set_new(o, "total_bytes", d->total_bytes ? json_bytes(d->total_bytes) : json_null());
	json_object_set_new(o, "peak_bytes", json_bytes(t->peak_bytes));
	json_object_set_new(o, "peak_s", json_seconds(t->peak_ns));
	json_object_set_new(o, "live_bytes", json_bytes(t->live_bytes));
	json_object_set_new(o, "live_blocks", json_bytes(t->live_blocks));
	json_object_set_new(o, "allocations", json_bytes(t->allocations));
	json_object_set_new(o, "frees", json_bytes(t->frees));
	json_object_set_new(o, "failed", json_bytes(t->failed));
	json_object_set_new(o, "missed_frees", json_bytes(t->missed_frees));
	json_object_set_new(o, "unknown_frees", json_bytes(t->unknown_frees));
	json_object_set_new(o, "pool", json_pool(d, at));
	json_object_set_new(o, "ledger", json_ledger_at(c->diagnosis, d, at, &processes));
	json_object_set_new(o, "processes", processes);
	json_object_set_new(o, "num_ooms", json_bytes(d->ooms));
	json_object_set_new(o, "retries", json_bytes(d->retries));
	json_object_set_new(o, "ooms", json_ooms(c, d));
	json_object_set_new(o, "ooms_left_out", json_bytes(d->ooms > d->oom_count ? d->ooms - d->oom_count : 0));
	return o;
}

json_t *json_devices(const struct selection *sel, const struct timeline *timeline, struct diagnosis *diagnosis)
{
	const struct context c = { sel, timeline, diagnosis };
	json_t *list = json_array();
	for (unsigned i = 0; i < model_devices(sel->model); i++)
		if (selection_has_device(sel, i))
			json_array_append_new(list, json_device(&c, model_device(sel->model, i)));
	return list;
}
