/* Who has what of a device at one moment. */
#include "analyzer/model/device.h"

#include "analyzer/util/vec.h"

static int by_site(const void *a, const void *b)
{
	const struct model_outside *x = a, *y = b;
	uint64_t p = (uint64_t)x->process << 32 | x->site, q = (uint64_t)y->process << 32 | y->site;
	return (p > q) - (p < q);
}

static int by_bytes(const void *a, const void *b)
{
	const struct model_outside *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : by_site(a, b);
}

void moment_merge_sites(struct model_moment *at)
{
	unsigned n = 0;
	if (at->outside_count)
		qsort(at->outside, at->outside_count, sizeof(*at->outside), by_site);
	for (unsigned i = 0; i < at->outside_count; i++)
		if (n && !by_site(&at->outside[n - 1], &at->outside[i]))
			at->outside[n - 1].bytes += at->outside[i].bytes;
		else
			at->outside[n++] = at->outside[i];
	at->outside_count = n;
	if (n)
		qsort(at->outside, n, sizeof(*at->outside), by_bytes);
}

void moment_fini(struct model_moment *at)
{
	free(at->parts);
	free(at->outside);
	at->parts = NULL;
	at->outside = NULL;
	at->part_count = at->outside_count = 0;
}

static int add_outside(const struct share *s, struct model_moment *at, size_t *room, uint32_t site, uint64_t bytes)
{
	if (at->outside_count && at->outside[at->outside_count - 1].site == site &&
	    at->outside[at->outside_count - 1].process == s->seen.process->id) {
		at->outside[at->outside_count - 1].bytes += bytes;
		return 0;
	}
	int e = vec_reserve_raw(at->outside, *room, at->outside_count + 1ul);
	if (!e)
		at->outside[at->outside_count++] = (struct model_outside){ s->seen.process->id, site, bytes };
	return e;
}

/* What a share has outside segments. */
static int take_outside(const struct share *s, struct model_moment *at, size_t *room)
{
	const struct process_devices *b = s->memory->devices;
	const struct blocks *arrays = &s->space[SPACE_ARRAY];
	int e = 0;
	for (size_t i = 0; i < s->extent_count && !e; i++)
		if (s->extent[i].used && !s->extent[i].pool && s->extent[i].bytes)
			e = add_outside(s, at, room, s->extent[i].site, s->extent[i].bytes);
	for (size_t i = 0; arrays->entries && i <= arrays->mask && !e; i++)
		if (arrays->entries[i].addr)
			e = add_outside(s, at, room, arrays->entries[i].site, arrays->entries[i].size);
	for (size_t i = 0; i < b->physical_count && !e; i++)
		if (b->physical[i].used && b->physical[i].share == s && !b->physical[i].maps)
			e = add_outside(s, at, room, b->physical[i].site, b->physical[i].size);
	return e;
}

static int take_parts(const struct device *d, struct model_moment *at)
{
	size_t room = 0;
	int e = 0;
	at->parts = calloc(d->share_count + 1, sizeof(*at->parts));
	if (!at->parts)
		return error_memory();
	for (size_t i = 0; i < d->share_count && !e; i++) {
		const struct share *s = d->shares[i];
		if (s->memory->seen.ended ||
		    !(s->layer[LAYER_MEMORY].totals.live_bytes | s->layer[LAYER_POOL].totals.live_bytes))
			continue;
		struct model_part *part = &at->parts[at->part_count++];
		part->process = s->seen.process->id;
		for (int k = 0; k < MODEL_LAYERS; k++)
			part->layer[k] = s->layer[k].totals.live_bytes;
		e = take_outside(s, at, &room);
	}
	return e;
}

int device_moment(const struct device *d, struct model_moment *at, uint64_t ns, uint64_t event)
{
	moment_fini(at);
	*at = (struct model_moment){ .ns = ns,
				     .event = event,
				     .free_bytes = MODEL_UNKNOWN,
				     .total_bytes = d->seen.total_bytes ? d->seen.total_bytes : MODEL_UNKNOWN };
	for (int k = 0; k < MODEL_LAYERS; k++)
		at->layer[k] = d->layer[k].totals.live_bytes;
	int e = take_parts(d, at);
	moment_merge_sites(at);
	return e;
}
