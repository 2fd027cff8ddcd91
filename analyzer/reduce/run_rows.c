/* What a rank was, how it ended, and the verdicts on it. */
#include "analyzer/reduce/reduce_internal.h"
#include "analyzer/report/json/json.h"
#include "analyzer/util/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_TEXT = 200, COMMAND_TEXT = 500, EVIDENCE_TEXT = 1000, NO_RANK_KNOWN = -2 };

json_t *reduce_wall(const struct reduction *r, uint64_t ns)
{
	return json_bytes(reader_origin_real_ns(r->selection->reader) + ns);
}

static uint64_t highest(const struct model_series *const *series, size_t count, uint64_t *low)
{
	uint64_t most = 0;
	*low = 0;
	for (uint32_t at = 0; at < MODEL_TIMELINE_BUCKETS; at++) {
		uint64_t high = 0, last = 0;
		for (size_t i = 0; i < count; i++)
			if (at >= series[i]->first && at - series[i]->first < series[i]->count) {
				high += series[i]->buckets[at - series[i]->first].high;
				last += series[i]->buckets[at - series[i]->first].last;
			}
		most = high > most ? high : most;
		*low = last > *low ? last : *low;
	}
	return most;
}

struct reduce_peak reduce_peak_of(const struct model *m, const struct model_series *const *series,
				  const uint64_t *peaks, size_t count)
{
	(void)m;
	uint64_t low, most = 0, sum = 0;
	for (size_t i = 0; i < count; i++) {
		most = peaks[i] > most ? peaks[i] : most;
		sum += peaks[i];
	}
	if (count <= 1)
		return (struct reduce_peak){ most, most };
	uint64_t high = highest(series, count, &low);
	high = high > most ? high : most;
	return (struct reduce_peak){ high < sum ? high : sum, low > most ? low : most };
}

/* Of all processes of the trace on one machine the model knows the peak of the sum. */
static struct reduce_peak host_peak(const struct reduction *r, const struct reduce_rank *k, enum model_kind kind)
{
	const struct model *m = r->selection->model;
	if (r->ranks.count == 1 && reader_hosts(r->selection->reader) == 1) {
		uint64_t peak = model_totals(m, kind).peak_bytes;
		return (struct reduce_peak){ peak, peak };
	}
	const struct model_series **series = calloc(k->count + 1, sizeof(*series));
	uint64_t *peaks = calloc(k->count + 1, sizeof(*peaks));
	for (size_t i = 0; series && peaks && i < k->count; i++) {
		const struct model_process *mp = model_process(m, k->items[i]->id);
		series[i] = &mp->timeline[kind];
		peaks[i] = mp->kind[kind].peak_bytes;
	}
	struct reduce_peak p = series && peaks ? reduce_peak_of(m, series, peaks, k->count) : (struct reduce_peak){ 0 };
	free(series);
	free(peaks);
	return p;
}

static void put_memory(json_t *o, const struct reduction *r, const struct reduce_rank *k)
{
	static const uint32_t import_kinds[MODEL_HOST_KINDS] = {
		[MODEL_HEAP] = MT_IMPORT_HEAP, [MODEL_MAP] = MT_IMPORT_MAPPINGS, [MODEL_PINNED] = MT_IMPORT_PINNED
	};
	char key[32];
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++) {
		struct reduce_peak p = host_peak(r, k, kind);
		uint64_t end = 0;
		uint32_t has = 0;
		for (size_t i = 0; i < k->count; i++) {
			end += model_process(r->selection->model, k->items[i]->id)->kind[kind].live_bytes;
			has |= k->items[i]->imported_has;
		}
		const bool said = has & import_kinds[kind];
		snprintf(key, sizeof(key), "%s_peak", kind_name(kind));
		json_object_set_new(o, key, said ? json_bytes(p.high) : json_null());
		snprintf(key, sizeof(key), "%s_peak_low", kind_name(kind));
		json_object_set_new(o, key, said ? json_bytes(p.low) : json_null());
		snprintf(key, sizeof(key), "%s_end", kind_name(kind));
		json_object_set_new(o, key, said ? json_bytes(end) : json_null());
	}
}

static json_t *known(uint64_t value)
{
	return value == HOST_KILL_UNKNOWN ? json_null() : json_bytes(value);
}

static void put_machine(json_t *o, const struct reduction *r, const struct reduce_rank *k)
{
	static const char *const kills[] = {
		[HOST_NOT_KILLED] = "no", [HOST_MAYBE_KILLED] = "likely", [HOST_KILLED] = "yes"
	};
	const struct host_facts *f = host_facts(r->analysis.host);
	const struct host_ledger *l = host_ledger(r->analysis.host);
	const struct host_process *h = host_process(r->analysis.host, k->main->id);
	uint64_t memory = f->sampled ? f->memory : k->main->host->memory_bytes;
	json_object_set_new(o, "oom_killed", json_string(kills[h->oom_killed]));
	json_object_set_new(o, "rss_peak", known(h->rss_peak));
	json_object_set_new(o, "memory", memory ? known(memory) : json_null());
	json_object_set_new(o, "memory_limit", f->sampled ? known(f->limit) : json_null());
	json_object_set_new(o, "memory_used", l->known ? json_bytes(l->used) : json_null());
}

static json_t *command_of(const struct process *p)
{
	char text[COMMAND_TEXT + 64] = "";
	size_t n = 0;
	for (unsigned i = 0; i < p->argc && n < COMMAND_TEXT; i++) {
		int wrote = snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "", p->argv[i]);
		n += wrote > 0 ? (size_t)wrote : 0;
		n = n < sizeof(text) ? n : sizeof(text) - 1;
	}
	return rows_text(text, COMMAND_TEXT);
}

static void put_identity(json_t *o, const struct process *p)
{
	json_object_set_new(o, "rank", json_rank(p->rank));
	json_object_set_new(o, "local_rank", json_rank(p->local_rank));
	json_object_set_new(o, "group_rank", json_rank(p->group_rank));
	json_object_set_new(o, "world_size", json_rank(p->world_size));
	json_object_set_new(o, "job", rows_text(p->job, NAME_TEXT));
	json_object_set_new(o, "tags", rows_text(p->tags, NAME_TEXT));
	json_object_set_new(o, "host", rows_text(p->host->name, NAME_TEXT));
	json_object_set_new(o, "pid", json_integer(p->pid));
	json_object_set_new(o, "program", rows_text(p->program, NAME_TEXT));
	json_object_set_new(o, "command", command_of(p));
}

static void put_end(json_t *o, const struct reduction *r, const struct process *p)
{
	static const char *const states[] = {
		[PROCESS_RUNNING] = "running", [PROCESS_ENDED] = "ended", [PROCESS_GONE] = "gone"
	};
	bool has_code = p->exit_kind == MT_EXIT_CODE || p->exit_kind == MT_EXIT_SIGNAL;
	json_object_set_new(o, "start_ns", reduce_wall(r, p->start_ns));
	json_object_set_new(o, "end_ns", reduce_wall(r, p->end_ns));
	json_object_set_new(o, "end_error_ns",
			    p->state == PROCESS_ENDED && p->exit_kind ? json_integer(0) : json_null());
	json_object_set_new(o, "state", json_string(states[p->state]));
	json_object_set_new(o, "exit_kind", json_string(exit_name(p->exit_kind)));
	json_object_set_new(o, "exit_code", has_code ? json_integer(p->exit_code) : json_null());
	json_object_set_new(o, "cut_off", json_boolean(p->cut_off && p->state != PROCESS_RUNNING));
}

static void put_losses(json_t *o, const struct reduction *r, const struct reduce_rank *k)
{
	const struct losses *all = &r->analysis.losses;
	uint64_t lost = 0, skipped = 0, cut = 0, missed = 0, folded = 0, events = 0, threads = 0, stops = 0;
	for (size_t i = 0; i < k->count; i++) {
		const struct process *p = k->items[i];
		const struct model_process *m = model_process(r->selection->model, p->id);
		lost += p->lost_events > m->lost_events ? p->lost_events : m->lost_events;
		skipped += p->skipped_slots;
		cut += p->truncated_stacks;
		stops += p->stops;
		threads += p->threads;
		events += m->events;
		folded += m->fold.blocks;
		for (int kind = 0; kind < MODEL_KINDS; kind++)
			missed += p->stops ? 0 : m->kind[kind].missed_frees;
	}
	const char *damage = NULL;
	for (unsigned i = 0; !damage && i < reader_notes(r->selection->reader); i++)
		if (reader_note(r->selection->reader, i)->code != MT_OK)
			damage = reader_note(r->selection->reader, i)->text;
	json_object_set_new(o, "processes", json_integer((json_int_t)k->count));
	json_object_set_new(o, "threads", json_bytes(threads));
	json_object_set_new(o, "events", json_bytes(events));
	json_object_set_new(o, "complete", json_boolean(all->complete));
	json_object_set_new(o, "folded_blocks", json_bytes(folded));
	json_object_set_new(o, "lost_events", json_bytes(lost));
	json_object_set_new(o, "skipped_slots", json_bytes(skipped));
	json_object_set_new(o, "unrecorded", json_bytes(all->unrecorded));
	json_object_set_new(o, "truncated_stacks", json_bytes(cut));
	json_object_set_new(o, "missed_frees", json_bytes(missed));
	json_object_set_new(o, "stops", json_bytes(stops));
	json_object_set_new(o, "damage", rows_text(damage, NAME_TEXT));
}

static void put_steps(json_t *o, const struct reduction *r, const struct reduce_rank *k)
{
	const struct step_list *step_list = timeline_step_list(r->analysis.timeline, k->main->id);
	bool steps = step_list && step_list->source != LOOP_NONE;
	json_object_set_new(o, "steps", steps ? json_bytes(step_list->total) : json_null());
	json_object_set_new(o, "step_s", steps ? json_real(timeline_period(step_list)) : json_null());
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

/* The only rank that uses the device, or the one whose request failed. Ranks' index; -1: several. */
static int rank_of_device(const struct reduction *r, const struct evidence_device *d)
{
	const struct diagnosis *diagnosis = r->analysis.diagnosis;
	const struct model_device *device =
		model_device(r->selection->model, (uint32_t)(d - diagnosis->evidence.devices.items));
	const struct model_oom *failure = diagnosis_failure(device);
	int found = failure ? (int)r->ranks.of[failure->process] : -1;
	for (unsigned i = 0; !failure && i < device->share_count; i++) {
		int of = (int)r->ranks.of[device->shares[i]->process->id];
		if (found >= 0 && found != of)
			return -1;
		found = of;
	}
	return found;
}

static int rank_of_pid(const struct reduction *r, uint32_t pid)
{
	for (unsigned id = 0; pid && id < reader_processes(r->selection->reader); id++)
		if (reader_process(r->selection->reader, id)->pid == pid)
			return (int)r->ranks.of[id];
	return -1;
}

static int rank_of_verdict(const struct reduction *r, const struct verdict *v)
{
	const struct evidence_host *h = &r->analysis.diagnosis->evidence.host;
	if (r->ranks.count == 1)
		return 0;
	if (v->device)
		return rank_of_device(r, v->device);
	for (size_t i = 0; v->sites[0] && i < h->growth.count; i++)
		if (!strcmp(h->growth.items[i].site, v->sites[0]))
			return rank_of_pid(r, h->growth.items[i].pid);
	return -1;
}

static void put_first_verdict(json_t *o, const struct reduction *r, size_t rank)
{
	const struct verdicts *all = &r->analysis.diagnosis->verdicts;
	json_object_set_new(o, "status", json_string(status_name(all->status)));
	for (size_t i = 0; i < all->held_count; i++) {
		const struct verdict *v = &all->held[i];
		if (rank_of_verdict(r, v) != (int)rank)
			continue;
		json_object_set_new(o, "verdict", json_string(verdict_name(v->kind)));
		json_object_set_new(o, "certainty", json_string(certainty_name(verdict_certainty(v->confidence))));
		json_object_set_new(o, "confidence", json_real(v->confidence));
		return;
	}
}

static json_t *sentence(const struct reasons *why)
{
	char *text = reasons_text(why);
	json_t *out = rows_text(text, EVIDENCE_TEXT);
	free(text);
	return out;
}

static void put_verdict(struct reduction *r, const struct verdict *v)
{
	int of = rank_of_verdict(r, v);
	json_t *o = json_object(), *sites = json_array();
	json_object_set_new(o, "rank", of < 0 ? json_null() : json_rank(r->ranks.items[of].rank));
	json_object_set_new(o, "kind", json_string(verdict_name(v->kind)));
	json_object_set_new(o, "device", json_string(v->device ? v->device->name : "host"));
	json_object_set_new(o, "bytes", json_bytes(v->bytes));
	json_object_set_new(o, "confidence", json_real(v->confidence));
	json_object_set_new(o, "certainty", json_string(certainty_name(verdict_certainty(v->confidence))));
	json_object_set_new(o, "evidence", sentence(&v->evidence));
	json_object_set_new(o, "advice", sentence(&v->advice));
	for (int i = 0; i < VERDICT_SITES && v->sites[i]; i++)
		json_array_append_new(sites, rows_text(v->sites[i], NAME_TEXT));
	json_object_set_new(o, "sites", sites);
	rows_put(&r->rows, TABLE_verdict, o);
}

void run_rows_put(struct reduction *r)
{
	static const char *const modes[] = {
		[MT_STACKS_NONE] = "none", [MT_STACKS_ALL] = "all", [MT_STACKS_SAMPLE] = "sample"
	};
	const struct verdicts *all = &r->analysis.diagnosis->verdicts;
	for (size_t i = 0; i < r->ranks.count; i++) {
		const struct reduce_rank *k = &r->ranks.items[i];
		json_t *o = json_object();
		put_identity(o, k->main);
		json_object_set_new(o, "launcher", json_boolean(k->launcher));
		put_end(o, r, k->main);
		put_first_verdict(o, r, i);
		put_memory(o, r, k);
		put_machine(o, r, k);
		put_steps(o, r, k);
		put_losses(o, r, k);
		json_object_set_new(o, "stacks",
				    k->main->stacks < sizeof(modes) / sizeof(*modes)
					    ? json_string(modes[k->main->stacks])
					    : json_null());
		json_object_set_new(o, "site_count", json_bytes(sites_count(r->sites, i)));
		rows_put(&r->rows, TABLE_run, o);
	}
	for (size_t i = 0; i < all->held_count; i++)
		put_verdict(r, &all->held[i]);
}
