#include "analyzer/diagnosis/verdict_capacity.h"

#include <string.h>

#define KEPT_BLOCKS       16 /* of one size, by one line that holds most of what they are for: something keeps them */
#define KEPT_PART         0.75
#define STEP_NOTABLE_RISE 0.05 /* of the device */
#define LEAST_FORWARD     8    /* steps without a backward pass: it is no training that has not come to one yet */
#define LARGER_INPUT      1.5  /* times what any step before needed */

static bool grows(const struct evidence_device *d)
{
	for (size_t i = 0; i < d->growth.count; i++)
		if (evidence_is_leak(&d->growth.items[i]))
			return true;
	return false;
}

/* Far larger than all that went well, and not because something grew, nor for a model's state that is still to come. */
static bool is_this_input(const struct evidence_device *d)
{
	return evidence_known(d->most_before) && d->most_before && !grows(d) && !d->request.ahead &&
	       (double)(d->pool.allocated + d->request.bytes) >= LARGER_INPUT * (double)d->most_before;
}

/* From step to step, by what would have been enough. */
static bool needs_more(const struct evidence_device *d)
{
	return evidence_known(d->step_first) && !grows(d) &&
	       (double)less(d->step_latest, d->step_first) >= STEP_NOTABLE_RISE * (double)evidence_or(d->total, 0);
}

static bool is_models(const struct evidence_device *d)
{
	return d->most_for == CATEGORY_parameters || d->most_for == CATEGORY_gradients ||
	       d->most_for == CATEGORY_optimizer;
}

/* Of the line that holds most; NULL = it has none. */
static const struct evidence_growth *holders_backlog(const struct evidence_device *d)
{
	const struct evidence_growth *g = evidence_largest(d->growth.items, d->growth.count, OUTLOOK_BACKLOG);
	return g && g->site && d->holder.site && !strcmp(g->site, d->holder.site) ? g : NULL;
}

bool capacity_is_kept(const struct evidence_device *d)
{
	return !is_models(d) && d->most_for != CATEGORY_workspace && d->holder.each &&
	       d->holder.blocks >= KEPT_BLOCKS && (double)d->holder.bytes >= KEPT_PART * (double)d->most_for_bytes;
}

void capacity_advise(const struct evidence_device *d, uint64_t missing, enum reason_kind need, struct reasons *advice)
{
	static const enum reason_kind ways[] = {
		[CATEGORY_activations] = REASON_most_activations, [CATEGORY_parameters] = REASON_most_parameters,
		[CATEGORY_gradients] = REASON_most_gradients,     [CATEGORY_optimizer] = REASON_most_optimizer,
		[CATEGORY_checkpoint] = REASON_most_checkpoint,   [CATEGORY_workspace] = REASON_most_workspaces,
		[CATEGORY_kv_cache] = REASON_most_kv_cache,
	};
	const char *site = d->holder.site;
	const struct evidence_growth *passing = evidence_largest(d->growth.items, d->growth.count, OUTLOOK_NEEDS_MORE);
	const struct evidence_growth *backlog = holders_backlog(d);
	reasons_add(advice, need, &(struct figures){ .missing = missing });
	if (!evidence_known(d->request.rise))
		SAY(advice, and_what_comes);
	if (d->never_backward && d->steps >= LEAST_FORWARD && d->most_for == CATEGORY_activations && !d->no_graph)
		SAY(advice, never_backward, .steps = d->steps, .bytes = d->most_for_bytes);
	if (backlog)
		SAY(advice, backlog_waits, .site = backlog->site, .bytes = backlog->bytes);
	else if (is_this_input(d))
		SAY(advice, this_input, .first = d->most_before, .site = site, .bytes = d->holder.bytes);
	else if (needs_more(d))
		SAY(advice, steps_need_more, .first = d->step_first, .latest = d->step_latest, .site = site,
		    .bytes = d->holder.bytes);
	else if (passing)
		SAY(advice, comes_faster, .site = passing->site ? passing->site : site, .bytes = passing->bytes);
	else if (capacity_is_kept(d))
		SAY(advice, keeps_blocks, .site = site, .blocks = d->holder.blocks, .each = d->holder.each);
	else if (d->most_for < sizeof(ways) / sizeof(*ways) && ways[d->most_for] && d->most_for_bytes)
		reasons_add(advice, ways[d->most_for],
			    &(struct figures){ .used = d->most_for_bytes, .site = site, .bytes = d->holder.bytes });
	else if (!site)
		SAY(advice, smaller_batch);
	else if (d->holder.blocks == 1)
		SAY(advice, holds_one_block, .site = site, .bytes = d->holder.bytes);
	else
		SAY(advice, holds_blocks, .site = site, .bytes = d->holder.bytes, .blocks = d->holder.blocks);
}
