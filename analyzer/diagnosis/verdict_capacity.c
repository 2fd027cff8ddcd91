#include "analyzer/diagnosis/verdict_capacity.h"

#include "analyzer/util/output.h"

#define KEPT_BLOCKS       16 /* of one size, by one line that holds most of what they are for: something keeps them */
#define KEPT_PART         0.75
#define STEP_NOTABLE_RISE 0.05 /* of the device */
#define LARGER_INPUT      1.5  /* times what any step before needed */

static bool grows(const struct evidence_device *d)
{
	for (size_t i = 0; i < d->growth.count; i++)
		if (evidence_is_leak(&d->growth.items[i]))
			return true;
	return false;
}

/* Far larger than all that went well, and not because something grew. */
static bool is_this_input(const struct evidence_device *d)
{
	return evidence_known(d->most_before) && d->most_before && !grows(d) &&
	       (double)(d->pool.allocated + d->request.bytes) >= LARGER_INPUT * (double)d->most_before;
}

/* From step to step, by what would have been enough. */
static bool needs_more(const struct evidence_device *d)
{
	return evidence_known(d->step_first) && !grows(d) &&
	       (double)less(d->step_latest, d->step_first) >= STEP_NOTABLE_RISE * (double)evidence_or(d->total, 0);
}

char *capacity_advice(const struct evidence_device *d, uint64_t missing)
{
	static const struct {
		enum category category;
		const char *are, *way;
	} ways[] = {
		{ CATEGORY_activations, "activations",
		  "smaller batch, shorter input, activation checkpointing, or a larger device" },
		{ CATEGORY_parameters, "parameters",
		  "smaller model or type, or parts of it on other devices or the host" },
		{ CATEGORY_gradients, "gradients", "shard them, or a smaller model or larger device" },
		{ CATEGORY_optimizer, "the optimizer's", "shard or offload its state, or use one that needs less" },
		{ CATEGORY_checkpoint, "a checkpoint's",
		  "load it to the host (map_location=\"cpu\"), drop it once copied" },
		{ CATEGORY_workspace, "workspaces",
		  "cuBLAS keeps one for each stream that it served: CUBLAS_WORKSPACE_CONFIG=:16:8 makes them small, "
		  "or use fewer streams" },
		{ CATEGORY_kv_cache, "the KV cache's", "fewer or shorter sequences at once, or a larger device" },
	};
	const char *site = d->holder.site ? d->holder.site : "?";
	const bool models = d->most_for == CATEGORY_parameters || d->most_for == CATEGORY_gradients ||
			    d->most_for == CATEGORY_optimizer;
	if (is_this_input(d))
		return output_format(
			"need at least %s less. It is this input: no step before needed more than %s (%s holds %s now): split it, shorten it, "
			"or a larger device",
			BYTES(missing), BYTES(d->most_before), site, BYTES(d->holder.bytes));
	if (needs_more(d))
		return output_format(
			"need at least %s less. Each step needs more than those before, %s at first and %s lately (%s holds %s now): a limit for "
			"what grows from step to step, or a larger device",
			BYTES(missing), BYTES(d->step_first), BYTES(d->step_latest), site, BYTES(d->holder.bytes));
	const struct evidence_growth *passing = evidence_largest(d->growth.items, d->growth.count, OUTLOOK_NEEDS_MORE);
	if (passing)
		return output_format(
			"need at least %s less. %s took %s more than before, for what comes faster than it goes: fewer or shorter at once "
			"(a limit, a queue), or a larger device",
			BYTES(missing), passing->site ? passing->site : site, BYTES(passing->bytes));
	if (!models && d->most_for != CATEGORY_workspace && d->holder.each && d->holder.blocks >= KEPT_BLOCKS &&
	    (double)d->holder.bytes >= KEPT_PART * (double)d->most_for_bytes)
		return output_format(
			"need at least %s less. %s holds most, %s blocks of %s: find what keeps them (a list, a cache)",
			BYTES(missing), site, COUNT(d->holder.blocks), BYTES(d->holder.each));
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (ways[i].category == d->most_for && d->most_for_bytes)
			return output_format(
				"need at least %s less. Most are %s (%s); of all kinds %s holds most (%s): %s",
				BYTES(missing), ways[i].are, BYTES(d->most_for_bytes), site, BYTES(d->holder.bytes),
				ways[i].way);
	if (!d->holder.site)
		return output_format(
			"need at least %s less: a smaller batch or model, activation checkpointing, offloading, or a larger device",
			BYTES(missing));
	return output_format(
		"need at least %s less. %s holds most, %s in %s block%s: if it must hold all that, a larger device",
		BYTES(missing), site, BYTES(d->holder.bytes), COUNT(d->holder.blocks),
		d->holder.blocks == 1 ? "" : "s");
}
