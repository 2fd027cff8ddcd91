#include "analyzer/diagnosis/ledger/device_ledger.h"

#include "analyzer/util/vec.h"

#define LEDGER_CONTEXTS (1ll << 30) /* more than those of the first processes take */

static bool known(uint64_t figure)
{
	return figure != MODEL_UNKNOWN;
}

const struct model_moment *device_ledger_moment(const struct model_device *d, const struct model_oom **oom)
{
	const struct model_oom *last = d->oom_count ? &d->oom[d->oom_count - 1] : NULL;
	if (oom)
		*oom = last;
	return last ? &last->at : &d->peak;
}

/* ---- processes ------------------------------------------------------------------------------------------- */

static int take_traced(struct device_ledger *l, const struct model *m, const struct reader *r)
{
	for (unsigned i = 0; i < l->at->part_count; i++) {
		const struct model_part *part = &l->at->parts[i];
		const struct process *p = reader_process(r, part->process);
		const struct model_share *share = model_share(m, l->device->index, part->process);
		struct device_ledger_process *row = device_ledger_add_process(l, p, p->pid, p->name);
		if (!row)
			return error_memory();
		row->bytes = part->layer[LAYER_MEMORY];
		row->pool_allocated = part->layer[LAYER_POOL];
		row->pool_free = part->layer[LAYER_RESERVED] > row->pool_allocated
					 ? part->layer[LAYER_RESERVED] - row->pool_allocated
					 : 0;
		row->graphs_free = part->layer[LAYER_PRIVATE] > part->layer[LAYER_PRIVATE_POOL]
					   ? part->layer[LAYER_PRIVATE] - part->layer[LAYER_PRIVATE_POOL]
					   : 0;
		row->graphs_free = row->graphs_free < row->pool_free ? row->graphs_free : row->pool_free;
		row->other = part->layer[LAYER_MEMORY] > part->layer[LAYER_RESERVED]
				     ? part->layer[LAYER_MEMORY] - part->layer[LAYER_RESERVED]
				     : 0;
		row->partly_seen = share && share->partly_seen;
		row->since_ns = share ? share->first_ns : l->ns;
	}
	return 0;
}

static int larger_process(const void *a, const void *b)
{
	const struct device_ledger_process *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : (x->pid > y->pid) - (x->pid < y->pid);
}

/* ---- who has what lies outside segments ------------------------------------------------------------------ */

static const struct {
	const char *library, *name;
} libraries[] = {
	{ "libnccl", "NCCL" },
	{ "libcublas", "cuBLAS" },
	{ "libcudnn", "cuDNN" },
	{ "libcusparse", "cuSPARSE" },
	{ "libcusolver", "cuSOLVER" },
	{ "libcufft", "cuFFT" },
	{ "libcurand", "cuRAND" },
	{ "libnvshmem", "NVSHMEM" },
	{ "libhccl", "HCCL" },
	{ "libopapi", "CANN operators" },
	{ "libge_", "GE" },
	{ "libatb", "ATB" },
	{ "libtriton", "Triton" },
	{ "libcupy", "CuPy" },
};

const char *device_ledger_library(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (!strncmp(base, libraries[i].library, strlen(libraries[i].library)))
			return libraries[i].name;
	return NULL;
}

/* The first library with a name from the inside; else NULL, the program's own. */
static const char *caller_of(struct stacks *stacks, const struct process *p, const struct model_site *s)
{
	const char *name = NULL;
	for (struct stack_walk w = { .next = stacks_of(stacks, p, s->node, s->node2) };
	     !name && stack_step(stacks, &w);)
		if (w.frame->library)
			name = device_ledger_library(w.frame->library);
	return name;
}

static int larger_part(const void *a, const void *b)
{
	const struct device_ledger_part *x = a, *y = b;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Of one process: what each library asked for beside its segments, and the rest. */
static int take_outside_of(struct device_ledger *l, const struct model *m, struct stacks *stacks,
			   const struct device_ledger_process *row)
{
	uint64_t left = row->other;
	int e = 0;
	for (unsigned i = 0; i < l->at->outside_count && left && !e; i++) {
		const struct model_outside *o = &l->at->outside[i];
		uint64_t bytes = o->bytes < left ? o->bytes : left;
		if (o->process != row->process->id)
			continue;
		e = device_ledger_add_part(l, row->process,
					   caller_of(stacks, row->process, model_site(m, o->process, o->site)), bytes,
					   false);
		left -= bytes;
	}
	return e || !left ? e : device_ledger_add_part(l, row->process, NULL, left, false);
}

static int take_outside(struct device_ledger *l, const struct model *m, struct stacks *stacks)
{
	int e = 0;
	for (unsigned i = 0; i < l->process_count && !e; i++)
		if (l->processes[i].process)
			e = take_outside_of(l, m, stacks, &l->processes[i]);
	return e;
}

/* ---- all ------------------------------------------------------------------------------------------------- */

/*
 * Nobody lists the processes of an Ascend device. But what its driver said was used before any traced process had
 * memory belongs to others, all but the contexts that were made by then, for which LEDGER_CONTEXTS are left
 * unexplained; as far as it is still there. /
 */
static int take_used_before(struct device_ledger *l)
{
	uint64_t before = l->device->used_before;
	if (known(l->other_processes) || !known(before) || before <= LEDGER_CONTEXTS || !known(l->total) ||
	    !known(l->free))
		return 0;
	int64_t there =
		(int64_t)(l->total - l->free - l->pool_allocated - l->pool_free - l->other_own) - LEDGER_CONTEXTS;
	uint64_t bytes = before - LEDGER_CONTEXTS < (uint64_t)there ? before - LEDGER_CONTEXTS : (uint64_t)there;
	if (there <= 0)
		return 0;
	struct device_ledger_process *row = device_ledger_add_process(l, NULL, 0, "in use before");
	if (!row)
		return error_memory();
	row->bytes = bytes;
	row->before = true;
	l->other_processes = bytes;
	l->by_use = true;
	return 0;
}

static int make(struct device_ledger *l, const struct model *m, const struct reader *r, const struct samples *samples,
		struct stacks *stacks)
{
	const struct model_moment *at = l->at;
	l->ns = at->ns;
	l->total = at->total_bytes;
	l->free = at->free_bytes;
	l->pool_allocated = at->layer[LAYER_POOL];
	l->pool_reserved = at->layer[LAYER_RESERVED];
	l->graphs_reserved = at->layer[LAYER_PRIVATE];
	l->graphs_allocated = at->layer[LAYER_PRIVATE_POOL];
	l->unmapped = at->layer[LAYER_UNMAPPED];
	l->other_processes = MODEL_UNKNOWN;
	l->pool_free = l->pool_reserved > l->pool_allocated ? l->pool_reserved - l->pool_allocated : 0;
	l->other_own = at->layer[LAYER_MEMORY] > l->pool_reserved ? at->layer[LAYER_MEMORY] - l->pool_reserved : 0;
	int e = take_traced(l, m, r);
	if (!e)
		e = take_outside(l, m, stacks);
	if (!e && samples)
		e = device_ledger_take_samples(l, m, samples);
	if (!e)
		e = take_used_before(l);
	l->explained = known(l->total) && known(l->free);
	if (l->explained)
		l->unexplained = (int64_t)(l->total - l->free - device_ledger_known(l));
	if (l->process_count)
		qsort(l->processes, l->process_count, sizeof(*l->processes), larger_process);
	if (l->part_count)
		qsort(l->parts, l->part_count, sizeof(*l->parts), larger_part);
	return e;
}

int device_ledger_make(struct device_ledger *l, const struct model *m, const struct reader *r,
		       const struct samples *samples, struct stacks *stacks, const struct model_device *d,
		       const struct model_moment *at)
{
	*l = (struct device_ledger){ .device = d, .at = at };
	return make(l, m, r, samples, stacks);
}

/* ---- at any time ----------------------------------------------------------------------------------------- */

static uint64_t highest_before(const struct model *m, const struct model_series *s, uint64_t ns)
{
	uint64_t width = model_timeline_width_ns(m);
	return model_at(m, s, ns > width ? ns - width : 0).high;
}

int device_ledger_make_then(struct device_ledger *l, const struct model *m, const struct reader *r,
			    const struct samples *samples, struct stacks *stacks, const struct model_device *d,
			    uint64_t ns)
{
	struct model_moment *at = &l->own;
	*l = (struct device_ledger){ .device = d, .at = at, .then = true };
	*at = (struct model_moment){ .ns = ns,
				     .free_bytes = MODEL_UNKNOWN,
				     .total_bytes = d->total_bytes ? d->total_bytes : MODEL_UNKNOWN };
	at->parts = calloc(d->share_count + 1ul, sizeof(*at->parts));
	if (!at->parts)
		return error_memory();
	for (int layer = 0; layer < MODEL_LAYERS; layer++)
		at->layer[layer] = highest_before(m, &d->timeline[layer], ns);
	for (unsigned i = 0; i < d->share_count; i++) {
		struct model_part *part = &at->parts[at->part_count];
		*part = (struct model_part){ .process = d->shares[i]->process->id };
		for (int layer = 0; layer < MODEL_LAYERS; layer++)
			part->layer[layer] = highest_before(m, &d->shares[i]->timeline[layer], ns);
		at->part_count += part->layer[LAYER_MEMORY] > 0;
	}
	return make(l, m, r, samples, stacks);
}

void device_ledger_fini(struct device_ledger *l)
{
	free(l->processes);
	free(l->parts);
	free(l->own.parts);
	*l = (struct device_ledger){ 0 };
}
