/* The report as JSON: the schema of the command line's documentation, also where this version has nothing to say. The
 * key "host" is the memory of the host; its name is "hostname". */
#include "analyzer/diagnosis/ledger/managed_heaps.h"
#include "analyzer/analysis/open.h"
#include "analyzer/diagnosis/own_allocator.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/json/json_devices.h"
#include "analyzer/report/json/json_diagnosis.h"
#include "analyzer/report/json/json_host.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/timeline/reclaimed.h"

#include <string.h>

#define DEFAULT_SITES 20

static json_t *json_exit(const struct process *p)
{
	bool has_code = p->exit_kind == MT_EXIT_CODE || p->exit_kind == MT_EXIT_SIGNAL;
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string(exit_name(p->exit_kind)));
	json_object_set_new(o, "code", has_code ? json_integer(p->exit_code) : json_null());
	return o;
}

static json_t *json_command(const struct process *p)
{
	json_t *words = json_array();
	for (unsigned i = 0; p && i < p->argc; i++)
		json_array_append_new(words, json_text(p->argv[i]));
	return words;
}

static json_t *json_map(const struct model_totals *t, uint64_t given)
{
	json_t *o = json_totals(t);
	json_object_set_new(o, "given_back_bytes", json_bytes(given));
	json_object_set_new(o, "failed_trials", json_bytes(t->trials));
	return o;
}

static json_t *json_own_allocator(const struct report *r, const struct model_process *m)
{
	const struct own_allocator own = own_allocator_find(r->selection, timeline_samples(r->analysis.timeline), m);
	json_t *o = own.bytes ? json_object() : json_null();
	if (!own.bytes)
		return o;
	json_object_set_new(o, "mapped_bytes", json_bytes(own.bytes));
	json_object_set_new(o, "resident_bytes", json_bytes(own.resident));
	json_object_set_new(o, "function", json_text(own.frame ? own.frame->function : NULL));
	json_object_set_new(o, "library", json_text(own.library));
	json_object_set_new(o, "setting", json_text(own.setting));
	return o;
}

/* Null: from its start to its end. */
static json_t *json_recorded(const struct process *p)
{
	json_t *o = p->recorded_ticks || process_was_stopped(p) ? json_object() : json_null();
	uint64_t from = p->recorded_ticks ? p->recorded_ticks : p->start_ticks;
	if (json_is_null(o))
		return o;
	json_object_set_new(o, "from_s", json_seconds(process_ns(p, from)));
	json_object_set_new(o, "to_s", json_seconds(p->stopped_ticks ? process_ns(p, p->stopped_ticks) : p->end_ns));
	json_object_set_new(o, "attached", json_boolean(p->attached != MT_ATTACHED_NOT));
	json_object_set_new(o, "stops", json_integer(p->stops));
	json_object_set_new(o, "stopped_s",
			    json_seconds(process_ns(p, p->start_ticks + p->gap_ticks) - process_ns(p, p->start_ticks)));
	return o;
}

/* Which blocks have events, from when on. */
static json_t *json_record(const struct process *p)
{
	static const char *const names[] = { "all", "young", "auto", "sampled" };
	json_t *o = json_object(), *changes = json_array();
	for (unsigned i = 0; i < p->mode_count; i++) {
		json_t *change = json_object();
		json_object_set_new(change, "from_s", json_seconds(process_ns(p, p->modes[i].ticks)));
		json_object_set_new(change, "mode", json_string(names[p->modes[i].record]));
		json_array_append_new(changes, change);
	}
	json_object_set_new(o, "mode", json_string(names[p->record]));
	json_object_set_new(o, "changes", changes);
	return o;
}

static json_t *json_host_pool(const struct model_host_pool *p)
{
	if (!p->reserved_peak_bytes)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "framework", json_string("TensorFlow"));
	json_object_set_new(o, "segments", json_integer(p->segments));
	json_object_set_new(o, "reserved_bytes", json_bytes(p->reserved_bytes));
	json_object_set_new(o, "reserved_peak_bytes", json_bytes(p->reserved_peak_bytes));
	json_object_set_new(o, "in_use_bytes", json_bytes(p->in_use_bytes));
	json_object_set_new(o, "in_use_peak_bytes", json_bytes(p->in_use_peak_bytes));
	json_object_set_new(o, "in_use_blocks", json_integer(p->in_use_blocks));
	json_object_set_new(o, "allocations", json_integer(p->allocations));
	return o;
}

/* Null: it was recorded. */
static json_t *json_imported(const struct process *p)
{
	json_t *o = *p->imported ? json_object() : json_null();
	if (json_is_null(o))
		return o;
	json_object_set_new(o, "what", json_text(p->imported));
	json_object_set_new(o, "file", json_text(p->imported_file));
	json_object_set_new(o, "unknown", json_text(p->imported_lacks));
	return o;
}

static json_t *json_process(const struct report *r, const struct model_process *m)
{
	const struct process *p = m->process;
	json_t *o = json_object();
	json_object_set_new(o, "id", json_integer(p->id));
	json_object_set_new(o, "hostname", json_text(p->host->name));
	json_object_set_new(o, "pid", json_integer(p->pid));
	json_object_set_new(o, "ppid", json_integer(p->ppid));
	json_object_set_new(o, "image", json_integer(p->image));
	json_object_set_new(o, "name", json_text(p->program));
	json_object_set_new(o, "rank", json_rank(p->rank));
	json_object_set_new(o, "local_rank", json_rank(p->local_rank));
	json_object_set_new(o, "group_rank", json_rank(p->group_rank));
	json_object_set_new(o, "world_size", json_rank(p->world_size));
	json_object_set_new(o, "job", *p->job ? json_text(p->job) : json_null());
	json_object_set_new(o, "tags", *p->tags ? json_text(p->tags) : json_null());
	json_object_set_new(o, "command", json_command(p));
	json_object_set_new(o, "start_s", json_seconds(p->start_ns));
	json_object_set_new(o, "end_s", json_seconds(p->end_ns));
	json_object_set_new(o, "state",
			    json_string(p->state == PROCESS_RUNNING ? "running"
					: p->state == PROCESS_ENDED ? "ended"
								    : "gone"));
	json_object_set_new(o, "exit", json_exit(p));
	json_object_set_new(o, "recorded", json_recorded(p));
	json_object_set_new(o, "imported", json_imported(p));
	struct reclaimed freed;
	const bool heap = p->imported_has & MT_IMPORT_HEAP, maps = p->imported_has & MT_IMPORT_MAPPINGS,
		   pinned = p->imported_has & MT_IMPORT_PINNED;
	json_t *host = heap ? json_totals(&m->kind[MODEL_HEAP]) : json_null();
	if (heap)
		json_object_set_new(host, "estimated", json_estimated(&m->kind[MODEL_HEAP]));
	if (heap)
		json_object_set_new(host, "freed_since_peak",
				    reclaimed_process(r->selection, p, &freed) ? reclaimed_json(&freed) : json_null());
	json_object_set_new(o, "host", host);
	json_object_set_new(o, "map", maps ? json_map(&m->kind[MODEL_MAP], m->map_given_bytes) : json_null());
	json_object_set_new(o, "pinned", pinned ? json_totals(&m->kind[MODEL_PINNED]) : json_null());
	json_object_set_new(o, "registered_bytes", pinned ? json_bytes(m->registered_bytes) : json_null());
	json_object_set_new(o, "pool", json_host_pool(&m->pool));
	json_object_set_new(o, "folded", json_fold(&m->fold));
	json_object_set_new(o, "young", json_young(&m->fold));
	json_object_set_new(o, "record", json_record(p));
	json_object_set_new(o, "own_allocator", json_own_allocator(r, m));
	json_system_process(o, r->analysis.host, p);
	json_object_set_new(o, "threads", json_integer(p->threads));
	return o;
}

static json_t *json_processes(const struct report *r)
{
	const struct selection *sel = r->selection;
	json_t *list = json_array();
	for (unsigned id = 0; id < reader_processes(sel->reader); id++)
		if (selection_has(sel, reader_process(sel->reader, id)) && (!r->listed || r->listed[id]))
			json_array_append_new(list, json_process(r, model_process(sel->model, id)));
	return list;
}

static json_t *json_unseen(const struct reader *reader)
{
	json_t *list = json_array();
	struct mt_unseen u;
	for (unsigned i = 0; reader_unseen(reader, i, &u); i++) {
		json_t *o = json_object();
		json_object_set_new(o, "pid", json_integer(u.pid));
		json_object_set_new(o, "path", json_text(u.path));
		json_object_set_new(o, "why", report_json_reasons(u.why));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_losses(const struct report *r)
{
	const struct losses *l = &r->analysis.losses;
	json_t *o = json_object();
	json_object_set_new(o, "events", json_bytes(l->events));
	json_object_set_new(o, "truncated_stacks", json_bytes(l->truncated_stacks));
	json_object_set_new(o, "unplaced_stacks", json_bytes(l->unplaced_stacks));
	json_object_set_new(o, "unwritten_bytes", json_bytes(l->unwritten_bytes));
	json_object_set_new(o, "missed_frees", json_bytes(l->missed_frees));
	json_object_set_new(o, "unrecorded_processes", json_bytes(l->unrecorded));
	json_object_set_new(o, "skipped_slots", json_bytes(l->skipped_slots));
	json_object_set_new(o, "events_why", report_json_reasons(l->events_why));
	json_object_set_new(o, "unrecorded_why", report_json_reasons(l->unrecorded_why));
	json_object_set_new(o, "unrecorded", json_unseen(r->selection->reader));
	return o;
}

static void set_sites(json_t *o, const struct report *r)
{
	json_t *list = json_array();
	size_t most = selection_rows(r->selection, DEFAULT_SITES), total = 0;
	uint64_t rest = 0;
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++) {
		const struct owners *s = r->owners[kind];
		for (size_t i = 0; s && i < s->count; i++, total++)
			if (i < most)
				json_array_append_new(list, json_owner(r->selection->stacks, &s->owners[i], kind,
								       selection_flags(r->selection->options)));
			else
				rest += s->owners[i].bytes;
	}
	size_t left_out = total - json_array_size(list);
	json_object_set_new(o, "by", json_string(selection_by_name(r->selection)));
	json_object_set_new(o, "sites", list);
	json_set_left_out(o, "sites", total, left_out, rest);
}

static void set_head(json_t *o, const struct report *r)
{
	const struct reader *reader = r->selection->reader;
	const struct process *first = reader_processes(reader) ? reader_process(reader, 0) : NULL;
	json_object_set_new(o, "version", json_integer(1));
	json_object_set_new(o, "status", json_string(status_name(r->analysis.diagnosis->verdicts.status)));
	json_object_set_new(o, "command", json_command(first));
	json_object_set_new(o, "hostname", json_text(reader_hosts(reader) ? reader_host(reader, 0)->name : NULL));
	json_object_set_new(o, "start", json_time(reader_origin_real_ns(reader)));
	json_object_set_new(o, "duration_s", json_seconds(reader_duration_ns(reader)));
	const struct model_fold fold = model_fold(r->selection->model);
	json_object_set_new(o, "complete", json_boolean(r->analysis.losses.complete));
	json_object_set_new(o, "folded", json_fold(&fold));
	json_object_set_new(o, "young", json_young(&fold));
}

/* A part of `live`. */
static void set_managed(json_t *ledger, const struct report *r)
{
	const struct managed_heaps m = managed_heaps_find(r->selection, r->analysis.host);
	if (!json_is_object(ledger))
		return;
	json_object_set_new(ledger, "managed", json_bytes(m.bytes));
	json_object_set_new(ledger, "managed_by", m.name ? json_text(m.name) : json_null());
}

static void set_why(json_t *o, const struct report *r)
{
	struct diagnosis *diagnosis = r->analysis.diagnosis;
	json_object_set_new(o, "categories", json_categories(diagnosis));
	json_object_set_new(o, "copies", json_copies(diagnosis, r->copies, r->copies_held));
	json_object_set_new(o, "copies_left_out", json_copies_left_out(diagnosis));
	json_object_set_new(o, "verdicts", json_verdicts(diagnosis, r->held));
	json_object_set_new(o, "facts",
			    json_facts(diagnosis, r->held ? r->held + diagnosis->verdicts.held_count : NULL));
	json_object_set_new(o, "ruled_out", json_ruled_out(diagnosis));
	json_object_set_new(o, "unknown", json_unknowns(diagnosis));
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	return text ? text : "";
}

static size_t device_of(const json_t *device, const struct diagnosis *diagnosis)
{
	size_t i = 0;
	while (i < diagnosis->evidence.devices.count &&
	       (strcmp(text_of(device, "name"), diagnosis->evidence.devices.items[i].name) ||
		strcmp(text_of(device, "uuid"), diagnosis->evidence.devices.items[i].uuid)))
		i++;
	return i;
}

static const char *first_verdict(const struct diagnosis *diagnosis, const struct evidence_device *d)
{
	for (size_t v = 0; v < diagnosis->verdicts.held_count; v++)
		if (diagnosis->verdicts.held[v].device == d)
			return verdict_name(diagnosis->verdicts.held[v].kind);
	return NULL;
}

/* The failure that is explained has the first of its device's verdicts. */
static void set_oom_verdicts(json_t *devices, const struct diagnosis *diagnosis)
{
	size_t i, k;
	json_t *device, *oom;
	json_array_foreach(devices, i, device)
	{
		size_t index = device_of(device, diagnosis);
		const struct model_oom *failure =
			index < diagnosis->evidence.devices.count
				? diagnosis_failure(model_device(diagnosis->selection->model, (uint32_t)index))
				: NULL;
		const char *kind = failure ? first_verdict(diagnosis, &diagnosis->evidence.devices.items[index]) : NULL;
		json_t *at = failure ? json_seconds(failure->at.ns) : NULL;
		json_array_foreach(json_object_get(device, "ooms"), k,
				   oom) if (kind && json_equal(at, json_object_get(oom, "time_s")))
			json_object_set_new(oom, "verdict", json_string(kind));
		json_decref(at);
	}
}

json_t *report_json(const struct report *r)
{
	const struct selection *sel = r->selection;
	struct model_totals heap = model_totals(sel->model, MODEL_HEAP), map = model_totals(sel->model, MODEL_MAP);
	struct model_totals pinned = model_totals(sel->model, MODEL_PINNED);
	json_t *o = json_object();
	set_head(o, r);
	json_object_set_new(o, "processes", json_processes(r));
	const uint32_t has = selection_has_kinds(sel);
	json_t *host = has & MT_IMPORT_HEAP ? json_totals(&heap) : json_null();
	if (has & MT_IMPORT_HEAP)
		json_object_set_new(host, "estimated", json_estimated(&heap));
	json_object_set_new(o, "host", host);
	json_object_set_new(o, "map",
			    has & MT_IMPORT_MAPPINGS ? json_map(&map, model_map_given_bytes(sel->model)) : json_null());
	json_object_set_new(o, "pinned", has & MT_IMPORT_PINNED ? json_totals(&pinned) : json_null());
	json_t *system = json_system(r->analysis.host);
	set_managed(json_object_get(system, "ledger"), r);
	json_object_set_new(system, "shm_maker", json_shm_maker(&r->analysis.diagnosis->evidence.host.shm));
	json_object_set_new(o, "system", system);
	json_t *devices = json_devices(sel, r->analysis.timeline, r->analysis.diagnosis);
	set_oom_verdicts(devices, r->analysis.diagnosis);
	json_object_set_new(o, "devices", devices);
	json_object_set_new(o, "nearly_full", report_json_full(r));
	report_json_timeline(o, sel, &r->analysis);
	set_why(o, r);
	json_object_set_new(o, "losses", json_losses(r));
	set_sites(o, r);
	json_object_set_new(o, "unread_files", json_unread(r->selection->stacks));
	return o;
}

int report_print_json(const struct report *r)
{
	return json_print(report_json(r));
}
