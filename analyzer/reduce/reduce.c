#include "analyzer/reduce/reduce_internal.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "format/version.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct reduce_bounds most = { .sites = 2000, .frames = 48, .buckets = 256, .steps = 512, .ooms = 99 };

enum { REDUCE_LEAST_PART = 1, REDUCE_MOST_PART = 256 };

static size_t part_of(size_t all, unsigned part, size_t least)
{
	return all / part > least ? all / part : least;
}

static void set_bounds(struct reduction *r, unsigned part)
{
	r->part = part;
	r->bounds = (struct reduce_bounds){
		.sites = part_of(most.sites, part, 8),
		.frames = part_of(most.frames, part, 6),
		.buckets = part_of(most.buckets, part, 8),
		.steps = part_of(most.steps, part, 8),
		.ooms = part_of(most.ooms, part, 4),
	};
}

static uint64_t count_events(const struct selection *sel)
{
	uint64_t n = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++)
		n += model_process(sel->model, id)->events;
	return n;
}

static void put_head(struct reduction *r)
{
	const struct selection *sel = r->selection;
	const struct process *first = reader_processes(sel->reader) ? reader_process(sel->reader, 0) : NULL;
	const char *host = first ? first->host->name : "";
	char id[160];
	snprintf(id, sizeof(id), "%.100s-%016" PRIx64 "-%" PRIu32, host, reader_origin_real_ns(sel->reader),
		 first ? first->pid : 0);
	json_t *o = json_object();
	json_object_set_new(o, "version", json_integer(REDUCE_VERSION));
	json_object_set_new(o, "memtrace", json_string(MEMTRACE_VERSION));
	json_object_set_new(o, "trace", rows_text(base_name(options_shown(sel->options, 0)), 200));
	json_object_set_new(o, "id", json_text(id));
	json_object_set_new(o, "processes", json_integer(reader_processes(sel->reader)));
	json_object_set_new(o, "events", json_bytes(count_events(sel)));
	json_object_set_new(o, "bounds", json_integer(r->part));
	rows_put(&r->rows, TABLE_reduction, o);
}

static int write_rows(struct reduction *r)
{
	int e = rows_begin(&r->rows);
	if (e < 0)
		return e;
	stack_names_unmark(r->names);
	put_head(r);
	run_rows_put(r);
	device_rows_put(r);
	sites_put(r);
	time_rows_put(r);
	stack_names_put(r->names, &r->rows, r->bounds.frames);
	return rows_end(&r->rows);
}

/* With less and less of what is small, until it fits. */
static int write_within(struct reduction *r)
{
	int e = 0;
	for (unsigned part = REDUCE_LEAST_PART; part <= REDUCE_MOST_PART; part *= 2) {
		set_bounds(r, part);
		e = write_rows(r);
		if (e < 0 || r->rows.count <= REDUCE_MOST)
			return e;
		free(r->rows.out);
	}
	return error_set(MT_ELARGE, options_shown(r->selection->options, 0), ERROR_NO_OFFSET,
			 "%zu ranks don't fit into a reduction", r->ranks.count);
}

int reduce(struct reduced *out, struct selection *sel)
{
	struct reduction r = { .selection = sel };
	int e = analysis_run(&r.analysis, sel, ANALYSIS_TIMELINE | ANALYSIS_HOST | ANALYSIS_DIAGNOSIS, NULL, NULL);
	if (e == 0)
		e = ranks_find(&r.ranks, sel);
	if (e == 0 && !(r.names = stack_names_new(sel->stacks)))
		e = error_memory();
	if (e == 0)
		e = sites_collect(&r);
	if (e == 0)
		e = write_within(&r);
	if (e == 0)
		*out = (struct reduced){ r.rows.out, r.rows.count, r.ranks.count, 0, count_events(sel) };
	for (size_t i = 0; e == 0 && i < r.ranks.count; i++)
		out->sites += sites_count(r.sites, i);
	sites_free(r.sites);
	stack_names_free(r.names);
	ranks_fini(&r.ranks);
	analysis_free(&r.analysis);
	return e;
}
