/* Lists of the report that are as long as a run is wide: those of which there are too many for a page are cut, and it
 * is told what was. */
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 16 };

struct ranked {
	size_t index;
	double worth;
};

static int by_worth(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->worth != y->worth)
		return x->worth < y->worth ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static int by_index(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	return (x->index > y->index) - (x->index < y->index);
}

static double number_at(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static double worth_of_phase(const json_t *phase)
{
	return number_at(phase, "busy_s");
}

static double worth_of_share(const json_t *process)
{
	return number_at(process, "bytes");
}

/* The `most` with the greatest worth, in their order. How many are not among them. */
static size_t cut(json_t *o, const char *key, size_t most, double (*worth)(const json_t *))
{
	json_t *list = json_object_get(o, key), *kept = json_array();
	const size_t count = json_array_size(list);
	struct ranked *all = count > most ? calloc(count, sizeof(*all)) : NULL;
	for (size_t i = 0; all && i < count; i++)
		all[i] = (struct ranked){ i, worth(json_array_get(list, i)) };
	if (all) {
		qsort(all, count, sizeof(*all), by_worth);
		qsort(all, most, sizeof(*all), by_index);
		for (size_t i = 0; i < most; i++)
			json_array_append(kept, json_array_get(list, all[i].index));
		json_object_set(o, key, kept);
	}
	const size_t left_out = all ? count - most : 0;
	free(all);
	json_decref(kept);
	return left_out;
}

/* Those that failed, and the largest. */
static double worth_of_device(const struct model_device *d)
{
	const struct model_totals *pool = &d->layer[LAYER_POOL], *all = &d->layer[LAYER_MEMORY];
	return d->oom_count ? INFINITY : (double)(pool->peak_bytes > all->peak_bytes ? pool : all)->peak_bytes;
}

/* The `most` that are worth most are marked. Frees the list. NULL when there is no memory. */
static bool *best(struct ranked *all, size_t count, size_t most, size_t things)
{
	bool *marked = calloc(things + 1, sizeof(*marked));
	if (all && count > most)
		qsort(all, count, sizeof(*all), by_worth);
	for (size_t i = 0; all && marked && i < count && i < most; i++)
		marked[all[i].index] = true;
	free(all);
	return marked;
}

bool *page_devices(const struct selection *sel)
{
	const unsigned count = model_devices(sel->model);
	struct ranked *all = calloc(count + 1ul, sizeof(*all));
	size_t n = 0;
	for (unsigned i = 0; all && i < count; i++)
		if (selection_has_device(sel, i))
			all[n++] = (struct ranked){ i, worth_of_device(model_device(sel->model, i)) };
	return best(all, n, MOST_DEVICES, count);
}

static bool ended_well(const struct report *r, const struct process *p)
{
	const struct host_memory *host = r->analysis.host;
	return (!host || host_process(host, p->id)->oom_killed == HOST_NOT_KILLED) && p->exit_kind != MT_EXIT_SIGNAL &&
	       (p->exit_kind != MT_EXIT_CODE || p->exit_code == 0);
}

/* The program that the page names, and who did not end well, are looked for. */
static double worth_of_process(const struct report *r, const struct model_process *m, const struct process *own)
{
	double bytes = 0;
	for (int kind = 0; kind < MODEL_KINDS; kind++)
		bytes += (double)m->kind[kind].peak_bytes;
	return m->process == own || !ended_well(r, m->process) ? INFINITY : bytes;
}

bool *page_processes(const struct report *r, size_t most, size_t *left_out)
{
	const struct selection *sel = r->selection;
	const unsigned count = reader_processes(sel->reader);
	const struct process *own = report_main_program(r);
	struct ranked *all = calloc(count + 1ul, sizeof(*all));
	size_t n = 0;
	for (unsigned id = 0; all && id < count; id++)
		if (selection_has(sel, reader_process(sel->reader, id)))
			all[n++] = (struct ranked){ id, worth_of_process(r, model_process(sel->model, id), own) };
	*left_out = n > most ? n - most : 0;
	return best(all, n, most, count);
}

static size_t cut_devices(json_t *report, const struct selection *sel, const bool *shown)
{
	json_t *list = json_object_get(report, "devices");
	const size_t before = json_array_size(list);
	size_t at = 0;
	for (unsigned i = 0; i < model_devices(sel->model); i++)
		if (shown[i])
			at++;
		else if (selection_has_device(sel, i))
			json_array_remove(list, at);
	return before - json_array_size(list);
}

void page_lists_cut(json_t *o, json_t *report, const struct selection *sel, const bool *shown, size_t most)
{
	const json_t *list = json_object_get(report, "devices");
	size_t shares = 0;
	const size_t devices = cut_devices(report, sel, shown);
	const size_t phases = cut(report, "phases", most, worth_of_phase);
	for (size_t i = 0; i < json_array_size(list); i++)
		shares += cut(json_array_get(list, i), "processes", most, worth_of_share);
	json_object_set_new(o, "devices_left_out", json_bytes(devices));
	json_object_set_new(o, "phases_left_out", json_bytes(phases));
	json_object_set_new(o, "device_processes_left_out", json_bytes(shares));
}
