/* A rank is its processes: what its launcher started, and what those started, which have the same variables. */
#include "analyzer/model/selection/main_process.h"
#include "analyzer/reduce/reduce_internal.h"
#include "analyzer/util/error.h"

#include <stdlib.h>

static size_t rank_find(struct reduce_ranks *r, int64_t rank)
{
	size_t i = 0;
	while (i < r->count && r->items[i].rank != rank)
		i++;
	if (i == r->count)
		r->items[r->count++].rank = rank;
	return i;
}

/* Devices first: what a rank is about. */
static uint64_t weight(const struct model *m, const struct process *p)
{
	const struct model_process *mp = model_process(m, p->id);
	uint64_t device = mp->kind[MODEL_DEVICE].peak_bytes, pool = mp->kind[MODEL_POOL].peak_bytes, host = 0;
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		host = mp->kind[kind].peak_bytes > host ? mp->kind[kind].peak_bytes : host;
	device = device > pool ? device : pool;
	return device ? (device | 1ull << 62) : host;
}

/* The one with the most, and what it became by exec, whose end is the rank's. */
static void pick_main(struct reduce_rank *k, const struct model *m)
{
	for (size_t i = 0; i < k->count; i++)
		if (!k->main || weight(m, k->items[i]) > weight(m, k->main))
			k->main = k->items[i];
	for (size_t i = 0; i < k->count; i++)
		if (process_goes_on_as(k->main, k->items[i]))
			k->main = k->items[i];
}

static int by_rank(const void *a, const void *b)
{
	const struct reduce_rank *x = a, *y = b;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

int ranks_find(struct reduce_ranks *r, const struct selection *sel)
{
	unsigned n = reader_processes(sel->reader);
	*r = (struct reduce_ranks){ .items = calloc(n + 1ul, sizeof(*r->items)),
				    .of = calloc(n + 1ul, sizeof(*r->of)) };
	if (!r->items || !r->of)
		return error_memory();
	for (unsigned id = 0; id < n; id++)
		rank_find(r, reader_process(sel->reader, id)->rank);
	qsort(r->items, r->count, sizeof(*r->items), by_rank);
	for (unsigned id = 0; id < n; id++) {
		const struct process *p = reader_process(sel->reader, id);
		struct reduce_rank *k = &r->items[r->of[id] = (unsigned)rank_find(r, p->rank)];
		if (!k->items && !(k->items = calloc(n, sizeof(const struct process *))))
			return error_memory();
		k->items[k->count++] = p;
	}
	for (size_t i = 0; i < r->count; i++) {
		pick_main(&r->items[i], sel->model);
		r->items[i].launcher = r->items[i].rank == PROCESS_NO_RANK && r->count > 1;
	}
	return 0;
}

void ranks_fini(struct reduce_ranks *r)
{
	for (size_t i = 0; r->items && i < r->count; i++)
		free(r->items[i].items);
	free(r->items);
	free(r->of);
	*r = (struct reduce_ranks){ 0 };
}
