/* Sums of a process and its host, and what of its books all kinds of memory share. */
#include "analyzer/model/process_memory.h"

void process_memory_change_site(struct process_memory *a, struct change c, uint64_t number, uint64_t host_number)
{
	struct model_site *s = site_table_open(&a->sites, a->seen.process->id, c.site, number, host_number);
	if (!s)
		return;
	site_table_touch(s, number, host_number);
	s->live_bytes += (uint64_t)c.bytes;
	s->live_blocks += (uint32_t)c.blocks;
	site_table_close(&a->sites, s);
}

void peak_sum_change(struct peak_sum *t, struct change c, uint64_t ns)
{
	if (c.bytes >= 0)
		peak_sum_rise(t, (uint64_t)c.bytes, ns);
	else
		peak_sum_drop(t, (uint64_t)-c.bytes);
	t->totals.live_blocks += (uint64_t)c.blocks;
}

/* *told has what only the caller knows. */
void process_memory_describe_change(const struct process_memory *a, struct model_change *told, const struct change *c,
				    uint64_t ns)
{
	const struct site_key site =
		c->site == BLOCK_NO_SITE ? (struct site_key){ 0 } : site_table_key(&a->sites, c->site);
	told->model = a->model;
	told->process = a->seen.process;
	told->kind = c->kind;
	told->site = c->site;
	told->node = site.node;
	told->node2 = site.node2;
	told->thread = c->thread;
	told->addr = c->addr;
	told->bytes = c->bytes;
	told->blocks = c->blocks;
	told->made_ns = c->made_ns;
	told->moves = a->moves;
	told->ns = ns;
	a->model->query.on_change(a->model->query.arg, told);
}

/* Everything but sites, and the settling before. */
static void change_sums(struct process_memory *a, struct change c, bool hidden, uint64_t ns)
{
	struct peak_sum *own = &a->kind[c.kind], *host = &a->host->kind[c.kind];
	const uint64_t left_out = c.kind == MODEL_POOL ? a->left_out : 0;
	uint64_t before = own->totals.live_bytes + left_out, host_before = host->totals.live_bytes + left_out;
	peak_sum_change(own, c, ns);
	peak_sum_change(host, c, ns);
	if (!a->model->from_reached || hidden)
		return;
	series_note(&a->seen.timeline[c.kind], &a->model->timeline, before, own->totals.live_bytes + left_out,
		    own->totals.live_blocks);
	series_note(&a->host->timeline[c.kind], &a->model->timeline, host_before, host->totals.live_bytes + left_out,
		    host->totals.live_blocks);
}

static void settle(struct process_memory *a, const struct change *c)
{
	if (c->bytes > 0)
		return;
	peak_sum_settle(&a->kind[c->kind]);
	peak_sum_settle(&a->host->kind[c->kind]);
}

void process_memory_change_sums(struct process_memory *a, struct change c, bool hidden, uint64_t ns)
{
	settle(a, &c);
	change_sums(a, c, hidden, ns);
}

void process_memory_change(struct process_memory *a, struct change c, uint64_t ns)
{
	if (!a->model->query.numbers) {
		/* before the site is touched: the number it is compared with must be that of the peak that ends here */
		settle(a, &c);
		if (c.site != BLOCK_NO_SITE)
			process_memory_change_site(a, c, a->kind[c.kind].number, a->host->kind[c.kind].number);
		change_sums(a, c, false, ns);
	}
	if (a->model->query.on_change)
		process_memory_describe_change(a, &(struct model_change){ .device = MODEL_NO_DEVICE }, &c, ns);
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

int64_t process_memory_site(struct process_memory *a, enum model_kind kind, const struct mt_event *s, uint32_t thread)
{
	struct site_key key = { .process = a->seen.process->id,
				.node = s->node,
				.node2 = s->node2,
				.kind = kind,
				.device = MODEL_NO_DEVICE,
				.sampled = sampled(a->seen.process, s) };
	if (a->model->query.split == MODEL_SPLIT_THREAD)
		key.split = thread;
	else if (a->model->query.split == MODEL_SPLIT_SIZE)
		key.split = process_memory_bin(s->size);
	return site_table_site(&a->sites, &key, a->kind[kind].number, a->host->kind[kind].number);
}

void process_memory_note_age(struct process_memory *a, uint32_t site, uint64_t ns)
{
	const struct model_site *s = site == BLOCK_NO_SITE ? NULL : site_table_figures(&a->sites, site);
	uint64_t *oldest = s ? &a->sites.oldest_ns[s - a->sites.sites] : NULL;
	if (oldest && (!*oldest || ns < *oldest))
		*oldest = ns ? ns : 1;
}

uint64_t process_memory_lost(const struct process_memory *a)
{
	const struct process *p = a->seen.process;
	if (p->off)
		return UINT64_MAX;
	return (p->lost_events > a->lost ? p->lost_events : a->lost) + p->skipped_slots;
}
