#include "analyzer/tally.h"

#include "analyzer/blocks.h"
#include "analyzer/vec.h"

void tally_restart(struct tally *t, uint64_t ns)
{
	const struct model_totals old = t->totals;
	t->totals = (struct model_totals){
		.live_bytes = old.live_bytes, .live_blocks = old.live_blocks,
		.inherited_bytes = old.inherited_bytes, .inherited_blocks = old.inherited_blocks,
		.peak_bytes = old.live_bytes, .peak_blocks = old.live_blocks, .peak_ns = ns,
	};
	t->rise_ns = ns;
	t->number++;
}

static uint64_t hash(const struct site_key *key)
{
	uint64_t h = ((uint64_t)key->node << 32 | key->node2) * 0x9E3779B97F4A7C15ull;
	h ^= ((uint64_t)key->split << 32 ^ (uint64_t)key->device << 8 ^ key->kind) * 0xD6E8FEB86659FD93ull;
	h ^= key->sampled * 0xC2B2AE3D27D4EB4Full;
	h ^= h >> 32;
	return h * 0x9E3779B97F4A7C15ull >> 20;
}

/* Tells most other keys apart without a look at their sites, which are far away. */
static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 12);
}

static bool same(const struct tally_sites *t, uint32_t site, const struct site_key *key)
{
	const struct site_key k = tally_key(t, site);
	return k.node == key->node && k.node2 == key->node2 && k.split == key->split && k.kind == key->kind &&
	       k.device == key->device && k.sampled == key->sampled;
}

static int grow(struct tally_sites *t)
{
	size_t mask = t->index ? 2 * t->mask + 1 : 255;
	struct tally_place *index = vec_calloc(mask + 1, sizeof(*index));
	if (!index)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (uint32_t n = 0; n < t->count; n++) {
		const struct site_key key = tally_key(t, n);
		uint64_t h = hash(&key);
		size_t i = h & mask;
		while (index[i].number)
			i = (i + 1) & mask;
		index[i] = (struct tally_place){ n + 1, tag_of(h) };
	}
	free(t->index);
	t->index = index;
	t->mask = mask;
	return 0;
}

static int64_t add(struct tally_sites *t, const struct site_key *key, uint64_t number, uint64_t host_number)
{
	int e = t->numbers_only ? vec_reserve_raw(t->keys, t->room, t->count + 1) : vec_reserve_raw(t->sites, t->room, t->count + 1);
	if (e)
		return e;
	if (t->numbers_only)
		t->keys[t->count] = *key;
	else
		t->sites[t->count] = (struct model_site){
			.process = key->process, .node = key->node, .node2 = key->node2, .split = key->split, .kind = (uint8_t)key->kind,
			.device = key->device, .sampled = key->sampled, .peak_stamp = (uint32_t)number, .host_stamp = (uint32_t)host_number,
		};
	return (int64_t)t->count++;
}

/* Its place in the index, or the empty one where it would be. */
static struct tally_place *find(const struct tally_sites *t, const struct site_key *key, uint64_t h)
{
	size_t i = h & t->mask;
	while (t->index[i].number && (t->index[i].tag != tag_of(h) || !same(t, t->index[i].number - 1, key)))
		i = (i + 1) & t->mask;
	return &t->index[i];
}

static int64_t known_site(const struct tally_sites *t, const struct site_key *key)
{
	const struct tally_place *p = t->index ? find(t, key, hash(key)) : NULL;
	return p && p->number ? p->number - 1 : BLOCK_NO_SITE;
}

int64_t tally_site(struct tally_sites *t, const struct site_key *key, uint64_t number, uint64_t host_number)
{
	if (t->known)
		return known_site(t->known, key);
	if (!t->index || t->count * 4 >= t->mask * 3) {
		int e = grow(t);
		if (e)
			return e;
	}
	uint64_t h = hash(key);
	struct tally_place *p = find(t, key, h);
	if (p->number)
		return p->number - 1;
	int64_t n = add(t, key, number, host_number);
	if (n >= 0)
		*p = (struct tally_place){ (uint32_t)n + 1, tag_of(h) };
	return n;
}

static uint64_t heap_hash(uint32_t node, uint32_t node2)
{
	struct site_key key = { .node = node, .node2 = node2, .kind = MODEL_HEAP, .device = MODEL_NO_DEVICE };
	return hash(&key);
}

void tally_prefetch(const struct tally_sites *t, uint32_t node, uint32_t node2)
{
	t = t->known ? t->known : t;
	if (t->index)
		__builtin_prefetch(&t->index[heap_hash(node, node2) & t->mask]);
}

void tally_prefetch_found(const struct tally_sites *t, uint32_t node, uint32_t node2)
{
	t = t->known ? t->known : t;
	uint64_t h = heap_hash(node, node2);
	size_t i = h & t->mask;
	while (t->index && t->index[i].number && t->index[i].tag != tag_of(h))
		i = (i + 1) & t->mask;
	if (t->index && t->index[i].number)
		tally_prefetch_site(t, t->index[i].number - 1);
}

void tally_sites_fini(struct tally_sites *t)
{
	free(t->sites);
	free(t->keys);
	free(t->oldest_ns);
	free(t->index);
	*t = (struct tally_sites){ 0 };
}

void tally_add(struct model_totals *to, const struct model_totals *t)
{
	to->allocations += t->allocations;
	to->frees += t->frees;
	to->allocated_bytes += t->allocated_bytes;
	to->live_bytes += t->live_bytes;
	to->live_blocks += t->live_blocks;
	to->temporary += t->temporary;
	to->failed += t->failed;
	to->missed_frees += t->missed_frees;
	to->unknown_frees += t->unknown_frees;
	if (t->failed_bytes_max > to->failed_bytes_max)
		to->failed_bytes_max = t->failed_bytes_max;
}
