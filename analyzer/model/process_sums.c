/* Sums of a process and its host, and what of its books all kinds of memory share. */
#include "analyzer/model/process_memory.h"

void process_memory_describe_change(const struct process_memory *memory, const struct change *c, uint32_t device,
				    uint64_t device_bytes, uint64_t ns)
{
	const struct site_origin none = { 0 },
				 *site = c->site == BLOCK_NO_SITE ? &none : site_table_origin(&memory->sites, c->site);
	const struct model_change told = { .model = memory->model,
					   .process = memory->seen.process,
					   .kind = c->kind,
					   .site = c->site,
					   .node = site->node,
					   .node2 = site->node2,
					   .thread = c->thread,
					   .addr = c->addr,
					   .bytes = c->bytes,
					   .blocks = c->blocks,
					   .device = device,
					   .device_bytes = device_bytes,
					   .made_ns = c->made_ns,
					   .moves = memory->moves,
					   .ns = ns };
	memory->model->query.on_change(memory->model->query.arg, &told);
}

/* See model_site.sampled. */
static uint64_t sampled(const struct process *p, const struct mt_event *s)
{
	if (p->stacks != MT_STACKS_SAMPLE || s->kind != MT_ALLOC || s->size >= p->sample_bytes)
		return 0;
	const struct mt_node *n = process_node(p, s->node);
	if (!n)
		return 0; /* the call tree was full: nothing is known of any stack */
	return n->flags & MT_NODE_CALLER ? MODEL_UNSAMPLED : s->size ? s->size : 1;
}

int64_t process_memory_site(struct process_memory *memory, enum model_kind kind, const struct mt_event *s,
			    uint32_t thread)
{
	const uint64_t sample = sampled(memory->seen.process, s);
	if (kind == MODEL_HEAP && !sample && memory->model->query.split == MODEL_SPLIT_NONE)
		return site_table_plain(&memory->sites, memory->seen.process->id, s->node, s->node2);
	struct site_key key = { .process = memory->seen.process->id,
				.node = s->node,
				.node2 = s->node2,
				.kind = kind,
				.device = MODEL_NO_DEVICE,
				.sampled = sample };
	if (memory->model->query.split == MODEL_SPLIT_THREAD)
		key.split = thread;
	else if (memory->model->query.split == MODEL_SPLIT_SIZE)
		key.split = process_memory_bin(s->size);
	return site_table_site(&memory->sites, &key, memory->kind[kind].number, memory->host->kind[kind].number);
}

void process_memory_note_age(struct process_memory *memory, uint32_t site, uint64_t ns)
{
	const struct model_site *s = site == BLOCK_NO_SITE ? NULL : site_table_figures(&memory->sites, site);
	uint64_t *oldest = s ? &memory->sites.oldest_ns[s - memory->sites.sites] : NULL;
	if (oldest && (!*oldest || ns < *oldest))
		*oldest = ns ? ns : 1;
}

uint64_t process_memory_lost(const struct process_memory *memory)
{
	const struct process *p = memory->seen.process;
	if (p->off)
		return UINT64_MAX;
	return (p->lost_events > memory->lost ? p->lost_events : memory->lost) + p->skipped_slots;
}
