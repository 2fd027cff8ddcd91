/* Sums of a process and its host, and what of its books all kinds of memory share. */
#include "analyzer/model/process_memory.h"

#include "analyzer/util/minmax.h"

#include <math.h>

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
					   .before = memory->before && site->node2 == memory->before,
					   .ns = ns };
	memory->model->query.on_change(memory->model->query.arg, &told);
}

/* See model_site.sampled. */
static uint64_t sampled(const struct process_memory *memory, const struct mt_event *s)
{
	const struct process *p = memory->seen.process;
	if (s->kind != MT_ALLOC || s->size >= p->sample_bytes || memory->pooled)
		return 0;
	if (process_is_picked(p))
		return s->size ? s->size : 1;
	if (p->stacks != MT_STACKS_SAMPLE)
		return 0;
	const struct mt_node *n = process_node(p, s->node);
	if (!n)
		return 0; /* the call tree was full: nothing is known of any stack */
	return n->flags & MT_NODE_CALLER ? MODEL_UNSAMPLED : s->size ? s->size : 1;
}

int64_t process_memory_site(struct process_memory *memory, enum model_kind kind, const struct mt_event *s,
			    uint32_t thread)
{
	const uint64_t sample = sampled(memory, s);
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

/* ---- picked blocks ---------------------------------------------------------------------------------------- */

struct process_memory_weight process_memory_weigh_picked(const struct process_memory *memory, const struct block *b)
{
	const uint64_t mean = memory->seen.process->sample_bytes;
	if (b->site != BLOCK_NO_SITE && !site_table_key(&memory->sites, b->site).sampled)
		return (struct process_memory_weight){ b->size, 1 };
	return (struct process_memory_weight){ estimate_bytes_of(b->size, mean),
					       estimate_blocks_of(b->size, mean, b->addr ^ b->ns << 20) };
}

void model_add_picked(const struct model_site *site, const struct process *p, uint64_t bytes, struct estimate *of_bytes,
		      struct estimate *of_blocks)
{
	if (!site->sampled || !process_is_picked(p))
		return;
	const uint64_t n = bytes / estimate_bytes_of(site->sampled, p->sample_bytes);
	estimate_add_bytes(of_bytes, site->sampled, n, p->sample_bytes);
	estimate_add_blocks(of_blocks, site->sampled, n, p->sample_bytes);
}

static void set_range(uint64_t bytes, const struct estimate *e, struct estimate_range r, uint64_t *low, uint64_t *high)
{
	*low = less(bytes, (uint64_t)llround(e->sum - r.low));
	*high = bytes + (uint64_t)llround(r.high - e->sum);
}

void process_memory_add_ranges(const struct process_memory *memory, struct process_memory_ranges *r)
{
	struct estimate blocks = { 0 };
	const struct process *p = memory->seen.process;
	if (!process_is_picked(p))
		return;
	r->looks += (double)memory->seen.events;
	r->any = true;
	r->mean = fmax(r->mean, (double)p->sample_bytes);
	for (size_t i = 0; i < memory->sites.site_count; i++) {
		const struct model_site *s = &memory->sites.sites[i];
		if (s->kind != MODEL_HEAP)
			continue;
		model_add_picked(s, p, s->live_bytes, &r->live, &blocks);
		model_add_picked(s, p, s->peak_bytes, &r->peak, &blocks);
		model_add_picked(s, p, s->host_peak_bytes, &r->host_peak, &blocks);
	}
}

void process_memory_set_ranges(const struct process_memory_ranges *r, const struct estimate *peak,
			       struct model_totals *t)
{
	t->estimated = r->any;
	if (!r->any)
		return;
	set_range(t->live_bytes, &r->live, estimate_range(&r->live, INFINITY), &t->live_low, &t->live_high);
	if (!(r->live.sum > 0)) /* no sample: so much there may be all the same, (0 - Y)^2 <= Z^2 * S * Y */
		t->live_high += (uint64_t)(ESTIMATE_Z * ESTIMATE_Z * r->mean);
	set_range(t->peak_bytes, peak, estimate_range_of_highest(peak, r->looks), &t->peak_low, &t->peak_high);
}
