#include "analyzer/analysis/open.h"

#include "analyzer/analysis/newest_trace.h"
#include "analyzer/reader/files/packed.h"
#include "analyzer/util/error.h"
#include "analyzer/util/memory/memory.h"
#include "analyzer/util/print.h"

#include <stdlib.h>
#include <string.h>

#define HOST_KINDS (1u << MODEL_HEAP | 1u << MODEL_MAP)

/* A packed file of several traces stands for all of them. */
static int unfold_packed(struct options *o)
{
	int total = 0, n;
	for (int i = 0; i < o->ndirs; i++, total += n > 1 ? n : 1)
		if ((n = packed_traces(o->dirs[i])) < 0)
			return n;
	const char **dirs = total == o->ndirs ? NULL : calloc((size_t)total + 1, sizeof(*dirs));
	if (!dirs)
		return total == o->ndirs ? 0 : error_memory();
	for (int i = 0, at = 0; i < o->ndirs; i++) {
		n = packed_traces(o->dirs[i]);
		for (int k = 0; k < n; k++)
			dirs[at++] = packed_trace(o->dirs[i], k);
		if (n <= 0)
			dirs[at++] = o->dirs[i];
	}
	free(o->dirs);
	o->dirs = dirs;
	o->ndirs = total;
	return 0;
}

int open_settle_dirs(struct options *o)
{
	unsigned passed;
	if (o->ndirs)
		return unfold_packed(o);
	o->newest = newest_trace(&passed);
	if (!o->newest)
		return error_set(MT_ENOTRACE, ".", ERROR_NO_OFFSET, "no memtrace directory here");
	if (passed)
		print_error("memtrace: reading %s; %u newer %s of short commands\n", o->newest, passed,
			    passed == 1 ? "is" : "are");
	o->dirs[o->ndirs++] = o->newest;
	return 0;
}

int open_options(const struct option_spec *spec, void *values, int argc, char **argv)
{
	int e = options_parse(spec, values, argc, argv);
	if (!e && (e = open_settle_dirs(values)) < 0)
		options_free(values);
	return e;
}

static int pick_kinds(struct selection *sel)
{
	const char *device = sel->options->device;
	if (!device) {
		sel->kinds = HOST_KINDS;
		return 0;
	}
	if (!strcmp(device, "host") || !strcmp(device, "heap"))
		sel->kinds = 1u << MODEL_HEAP;
	else if (!strcmp(device, "map"))
		sel->kinds = 1u << MODEL_MAP;
	else if (!strcmp(device, "pinned"))
		sel->kinds = 1u << MODEL_PINNED;
	else
		sel->kinds = 1u << MODEL_DEVICE | 1u << MODEL_POOL;
	return 0;
}

static int pick_processes(struct selection *sel)
{
	unsigned count = reader_processes(sel->reader);
	const char *what = sel->options->process;
	sel->selected = count;
	if (!what)
		return 0;
	sel->processes = calloc(count + 1, sizeof(*sel->processes));
	if (!sel->processes)
		return error_memory();
	sel->selected = 0;
	for (unsigned id = 0; (id = reader_find(sel->reader, what, id)) < count; id++) {
		sel->processes[id] = true;
		sel->selected++;
	}
	if (sel->selected == 0)
		return reader_no_such_process(sel->reader, what);
	return 0;
}

static int make_stacks(struct selection *sel)
{
	sel->stacks = stacks_new();
	if (!sel->stacks)
		return error_memory();
	if (sel->options->no_debug_files)
		symbols_open_none(stacks_symbols(sel->stacks));
	else
		symbols_prepare(stacks_symbols(sel->stacks));
	return 0;
}

int selection_open(struct selection *sel, const struct options *o)
{
	const bool before = mem_use(mem_has(sel));
	*sel = (struct selection){ .options = o, .by = o->by, .device = MODEL_NO_DEVICE };
	if (o->by == BY_UNSET)
		sel->by = o->json ? BY_STACK : BY_SITE;
	int e = pick_kinds(sel);
	if (e == 0)
		e = make_stacks(sel);
	if (e == 0)
		e = reader_open(&sel->reader, o->dirs, o->ndirs, o->force ? READER_FORCE : 0);
	if (e == 0)
		e = pick_processes(sel);
	mem_use(before);
	if (e < 0)
		selection_close(sel);
	return e;
}

void selection_close(struct selection *sel)
{
	categories_free(sel->categories);
	stacks_free(sel->stacks);
	model_free(sel->model);
	reader_close(sel->reader);
	free(sel->processes);
	*sel = (struct selection){ 0 };
}
