#include "analyzer/live/live_print.h"

#include "analyzer/report/json/json.h"
#include "analyzer/util/system/new_file.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

double live_percent(const struct gauge *g)
{
	return g->total > 0 ? 100 * g->used / g->total : 0;
}

int live_level(const struct gauge *g, const struct live_levels *levels)
{
	return live_percent(g) >= levels->second ? 2 : live_percent(g) >= levels->first ? 1 : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

static json_t *json_gauges(const struct live *l, const struct live_levels *levels)
{
	static const char *const names[] = { "none", "warning", "alert" };
	json_t *list = json_array();
	for (size_t i = 0; i < l->gauge_count; i++) {
		const struct gauge *g = &l->gauges[i];
		json_t *o = json_object();
		json_object_set_new(o, "name", json_text(g->name));
		json_object_set_new(o, "uuid", strcmp(g->name, g->key) ? json_text(g->key) : json_null());
		json_object_set_new(o, "used_bytes", json_bytes((uint64_t)g->used));
		json_object_set_new(o, "total_bytes", json_bytes((uint64_t)g->total));
		json_object_set_new(o, "level", json_text(names[live_level(g, levels)]));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_processes(const struct live *l)
{
	json_t *list = json_array();
	for (size_t i = 0; i < l->process_count; i++) {
		const struct shown_process *p = &l->processes[i];
		json_t *o = json_object();
		json_object_set_new(o, "id", json_integer(p->id));
		json_object_set_new(o, "pid", json_integer(p->pid));
		json_object_set_new(o, "name", json_text(p->name));
		json_object_set_new(o, "rank", json_rank(p->rank));
		json_object_set_new(o, "running", json_boolean(p->running));
		json_object_set_new(o, "heap_bytes", json_bytes(p->heap));
		json_object_set_new(o, "map_bytes", json_bytes(p->map));
		json_object_set_new(o, "pinned_bytes", json_bytes(p->pinned));
		json_object_set_new(o, "device_bytes", json_bytes(p->device));
		json_object_set_new(o, "resident_bytes", p->running ? json_bytes(p->rss) : json_null());
		json_object_set_new(o, "swap_bytes", p->running ? json_bytes(p->swap) : json_null());
		json_array_append_new(list, o);
	}
	return list;
}

int live_print_json(const struct live *l, const struct live_levels *levels)
{
	json_t *o = json_object();
	json_object_set_new(o, "version", json_integer(1));
	json_object_set_new(o, "time_s", json_seconds(l->age_ns));
	json_object_set_new(o, "running", json_boolean(l->running));
	json_object_set_new(o, "heap_bytes", json_bytes(l->heap));
	json_object_set_new(o, "heap_estimated", json_boolean(l->picked));
	json_object_set_new(o, "heap_error_bytes", l->picked ? json_bytes(live_heap_error(l)) : json_null());
	json_object_set_new(o, "heap_min_bytes", json_bytes(l->lost ? l->heap_min : l->heap));
	json_object_set_new(o, "map_bytes", json_bytes(l->map));
	json_object_set_new(o, "pinned_bytes", json_bytes(l->pinned));
	json_object_set_new(o, "device_bytes", json_bytes(l->device));
	json_object_set_new(o, "pool_bytes", json_bytes(l->pool));
	json_object_set_new(o, "pool_reserved_bytes", json_bytes(l->pool_reserved));
	json_object_set_new(o, "resident_bytes", l->running ? json_bytes(l->rss) : json_null());
	json_object_set_new(o, "swap_bytes", l->running ? json_bytes(l->swap) : json_null());
	json_object_set_new(o, "steps", json_bytes(l->steps));
	json_object_set_new(o, "lost_events", l->lost == UINT64_MAX ? json_null() : json_bytes(l->lost));
	json_object_set_new(o, "growth", *l->growth ? json_text(l->growth) : json_null());
	json_object_set_new(o, "growth_pid", l->growth_pid ? json_integer(l->growth_pid) : json_null());
	json_object_set_new(o, "growth_bytes_per_step", json_real_or_null(l->growth_stepped, l->growth_rate));
	json_object_set_new(o, "growth_bytes_per_s", json_real_or_null(!l->growth_stepped, l->growth_rate));
	json_object_set_new(o, "runs_out_at_step", json_real_or_null(l->growth_stepped, l->runs_out));
	json_object_set_new(o, "runs_out_at_s", json_real_or_null(!l->growth_stepped, l->runs_out));
	json_object_set_new(o, "gauges", json_gauges(l, levels));
	json_object_set_new(o, "processes", json_processes(l));
	json_object_set_new(o, "processes_total", json_bytes(l->process_all));
	return json_print_line(o);
}

/* ---- OpenMetrics ----------------------------------------------------------------------------------------- */

static void print_family(const char *name, const char *type, const char *unit, const char *help)
{
	print("# TYPE memtrace_%s %s\n", name, type);
	if (*unit)
		print("# UNIT memtrace_%s %s\n", name, unit);
	print("# HELP memtrace_%s %s\n", name, help);
}

/* print() leaves no end of a line in it. */
static void print_label(const char *before, const char *name, const char *text)
{
	print("%s%s=\"", before, name);
	for (size_t n; *text; text += n) {
		n = strcspn(text, "\\\"");
		print("%.*s", (int)n, text);
		if (text[n])
			print("\\%c", text[n++]);
	}
	print("\"");
}

struct per_process {
	const char *name, *help;
	size_t offset; /* in struct shown_process */
	bool running;  /* what has ended has none */
};

static const struct per_process values[] = {
	{ "heap_bytes", "Live bytes of the malloc family.", offsetof(struct shown_process, heap), false },
	{ "mapped_bytes", "Live bytes of mappings.", offsetof(struct shown_process, map), false },
	{ "pinned_bytes", "Live bytes of host memory that a driver locked.", offsetof(struct shown_process, pinned),
	  false },
	{ "device_bytes", "Bytes that drivers of devices charged.", offsetof(struct shown_process, device), false },
	{ "resident_bytes", "Resident memory.", offsetof(struct shown_process, rss), true },
	{ "swap_bytes", "Swapped out.", offsetof(struct shown_process, swap), true },
};

static void print_processes(const struct live *l, const struct per_process *v)
{
	print_family(v->name, "gauge", "bytes", v->help);
	for (size_t i = 0; i < l->process_count; i++) {
		const struct shown_process *p = &l->processes[i];
		if (v->running && !p->running)
			continue;
		print("memtrace_%s{pid=\"%u\"", v->name, p->pid);
		print_label(",", "process", p->name);
		print(",id=\"%u\",rank=\"", p->id);
		if (p->rank != PROCESS_NO_RANK)
			print("%" PRId64, p->rank);
		print("\"} %" PRIu64 "\n", *(const uint64_t *)(const void *)((const char *)p + v->offset));
	}
}

static void print_gauges(const struct live *l, const char *name, const char *help, bool total)
{
	print_family(name, "gauge", "bytes", help);
	for (size_t i = 0; i < l->gauge_count; i++) {
		const struct gauge *g = &l->gauges[i];
		print("memtrace_%s{", name);
		print_label("", "device", g->name);
		print_label(",", "uuid", strcmp(g->name, g->key) ? g->key : "");
		print("} %" PRIu64 "\n", (uint64_t)(total ? g->total : g->used));
	}
}

static void print_openmetrics(const struct live *l)
{
	for (size_t i = 0; l->modelled && i < sizeof(values) / sizeof(*values); i++)
		print_processes(l, &values[i]);
	print_gauges(l, "used_bytes", "Memory in use, of a device, the control group or the machine.", false);
	print_gauges(l, "capacity_bytes", "All memory there is of it.", true);
	print_family("steps", "counter", "", "Steps of the training loop.");
	print("memtrace_steps_total %" PRIu64 "\n", l->steps);
	print_family("running", "gauge", "", "Whether the program runs.");
	print("memtrace_running %u\n", l->running);
	print_family("last_event_seconds", "gauge", "seconds", "Time of the latest event since the start.");
	print("memtrace_last_event_seconds %.3f\n", (double)l->age_ns / 1e9);
	if (l->lost != UINT64_MAX) {
		print_family("lost_events", "counter", "", "Events that were lost.");
		print("memtrace_lost_events_total %" PRIu64 "\n", l->lost);
	}
	print("# EOF\n");
}

int live_write_openmetrics(const struct live *l, const char *path)
{
	struct new_file file;
	int e = new_file_open(&file, path);
	if (e < 0)
		return e;
	FILE *before = print_into(file.file);
	print_openmetrics(l);
	print_into(before);
	return new_file_close(&file, true);
}
