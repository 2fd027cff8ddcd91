#include "analyzer/model/site_table.h"

#include "analyzer/util/blocks.h"
#include "analyzer/util/vec.h"

enum { LEAST_STALE = 1024 };

void peak_sum_restart(struct peak_sum *t, uint64_t ns)
{
	const struct model_totals old = t->totals;
	t->totals = (struct model_totals){
		.live_bytes = old.live_bytes,
		.live_blocks = old.live_blocks,
		.inherited_bytes = old.inherited_bytes,
		.inherited_blocks = old.inherited_blocks,
		.peak_bytes = old.live_bytes,
		.peak_blocks = old.live_blocks,
		.peak_ns = ns,
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
	return h * 0x9E3779B97F4A7C15ull;
}

static bool is_plain(const struct site_key *key)
{
	return key->kind == MODEL_HEAP && !key->split && !key->sampled && key->device == MODEL_NO_DEVICE;
}

struct site_key site_table_key(const struct site_table *t, uint32_t site)
{
	if (t->known)
		return site_table_key(t->known, site);
	const struct site_origin *o = &t->origins[site];
	struct site_key key = { .node = o->node, .node2 = o->node2, .kind = MODEL_HEAP, .device = MODEL_NO_DEVICE };
	if (o->figures & SITE_ODD) {
		const struct model_site *s = &t->sites[(o->figures & SITE_FIGURES) - 1];
		key.split = s->split;
		key.kind = s->kind;
		key.device = s->device;
		key.sampled = s->sampled;
	}
	return key;
}

static bool same(const struct site_table *t, uint32_t site, const struct site_key *key)
{
	const struct site_origin *o = &t->origins[site];
	if (o->node != key->node || o->node2 != key->node2)
		return false;
	if (!(o->figures & SITE_ODD))
		return is_plain(key);
	const struct model_site *s = &t->sites[(o->figures & SITE_FIGURES) - 1];
	return s->split == key->split && s->kind == key->kind && s->device == key->device && s->sampled == key->sampled;
}

static uint64_t hash_of_site(const void *table, uint32_t number)
{
	const struct site_key key = site_table_key(table, number - 1);
	return hash(&key);
}

/* ---- figures --------------------------------------------------------------------------------------------- */

static bool is_plain_site(const struct site_table *t, const struct model_site *s)
{
	return s->kind == MODEL_HEAP && !(t->origins[s->number].figures & SITE_ODD);
}

void site_table_close_plain(struct site_table *t, struct model_site *s)
{
	if (!is_plain_site(t, s))
		return;
	t->origins[s->number].figures = SITE_AGAIN;
	*s = (struct model_site){ .kind = MODEL_KINDS, .node = t->unused };
	t->unused = (uint32_t)(s - t->sites) + 1;
}

/* Those that were only kept for a peak that is no longer the latest. */
static size_t close_stale(struct site_table *t, uint64_t number, uint64_t host_number)
{
	size_t before = 0;
	for (size_t i = 0; i < t->site_count; i++) {
		struct model_site *s = &t->sites[i];
		if (s->kind != MODEL_HEAP || s->live_blocks || s->live_bytes)
			continue;
		site_table_touch(s, number, host_number);
		site_table_close(t, s);
		before += s->kind == MODEL_KINDS;
	}
	return before;
}

static int make_room(struct site_table *t, bool heap, uint64_t number, uint64_t host_number)
{
	if (t->unused || t->site_count < t->site_room)
		return 0;
	/* Without a peak so far nothing is stale; and behind the pass nobody says which is the latest. */
	if (heap && number && t->site_count >= LEAST_STALE && close_stale(t, number, host_number) > t->site_count / 8)
		return 0;
	return vec_resize(t->sites, t->site_room, t->site_room + t->site_room / 4 + 64);
}

static struct model_site *new_figures(struct site_table *t, const struct site_key *key, uint32_t site, uint64_t number,
				      uint64_t host_number)
{
	if (make_room(t, key->kind == MODEL_HEAP, number, host_number))
		return NULL;
	struct model_site *s = t->unused ? &t->sites[t->unused - 1] : &t->sites[t->site_count++];
	if (t->unused)
		t->unused = s->node;
	*s = (struct model_site){
		.number = site,
		.process = key->process,
		.node = key->node,
		.node2 = key->node2,
		.split = key->split,
		.kind = (uint8_t)key->kind,
		.device = key->device,
		.sampled = key->sampled,
		.peak_stamp = (uint32_t)number,
		.host_stamp = (uint32_t)host_number,
	};
	s->allocations = t->origins[site].figures == SITE_AGAIN;
	t->origins[site].figures = (uint32_t)(s - t->sites) + 1;
	return s;
}

struct model_site *site_table_open_new(struct site_table *t, uint32_t process, uint32_t site, uint64_t number,
				       uint64_t host_number)
{
	struct site_key key = site_table_key(t, site);
	key.process = process;
	return new_figures(t, &key, site, number, host_number);
}

/* Each goes to where it belongs, and what was there to where that one was. */
static void sort_figures(struct site_table *t)
{
	size_t to = 0;
	for (size_t n = 0; n < t->count; n++) {
		uint32_t odd = t->origins[n].figures & SITE_ODD, at = t->origins[n].figures & SITE_FIGURES;
		if (!at--)
			continue;
		if (at != to) {
			struct model_site other = t->sites[to];
			t->sites[to] = t->sites[at];
			t->sites[at] = other;
			if (other.kind != MODEL_KINDS)
				t->origins[other.number].figures =
					(at + 1) | (t->origins[other.number].figures & SITE_ODD);
			t->origins[n].figures = (uint32_t)(to + 1) | odd;
		}
		to++;
	}
	t->site_count = to;
	t->unused = 0;
}

int site_table_settle(struct site_table *t, uint32_t process)
{
	for (size_t n = 0; n < t->count && !t->numbers_only; n++) {
		struct site_origin *o = &t->origins[n];
		if (!o->temporary)
			continue;
		struct model_site *s = site_table_open(t, process, (uint32_t)n, 0, 0);
		if (!s)
			return -MT_EMEMORY;
		s->temporary = t->origins[n].temporary;
	}
	if (!t->numbers_only)
		sort_figures(t);
	return 0;
}

void site_table_drop_empty(struct site_table *t)
{
	size_t to = 0;
	for (size_t i = 0; i < t->site_count; i++) {
		struct model_site *s = &t->sites[i];
		struct site_origin *o = &t->origins[s->number];
		bool empty = !s->live_blocks && !s->peak_blocks && !s->host_peak_blocks && !s->temporary &&
			     is_plain_site(t, s);
		o->figures = empty ? 0 : (uint32_t)(to + 1) | (o->figures & ~SITE_FIGURES);
		if (empty)
			continue;
		if (t->oldest_ns)
			t->oldest_ns[to] = t->oldest_ns[i];
		if (t->doubts)
			t->doubts[to] = t->doubts[i];
		t->sites[to++] = *s;
	}
	t->site_count = to;
	vec_resize(t->sites, t->site_room, to + 1); /* it only gets smaller */
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

static int64_t add(struct site_table *t, const struct site_key *key, uint64_t number, uint64_t host_number)
{
	if (t->count == t->room && vec_resize(t->origins, t->room, t->room + t->room / 4 + 64))
		return -MT_EMEMORY;
	t->origins[t->count] = (struct site_origin){ .node = key->node, .node2 = key->node2 };
	if (!is_plain(key)) {
		if (!new_figures(t, key, (uint32_t)t->count, number, host_number))
			return -MT_EMEMORY;
		t->origins[t->count].figures |= SITE_ODD;
	}
	return (int64_t)t->count++;
}

/* Its number + 1; 0 = it is not there, and *at is the free slot where it would be. */
static uint32_t find(const struct site_table *t, const struct site_key *key, uint64_t h, size_t *at)
{
	uint32_t n;
	*at = hash_index_home(&t->index, h);
	while ((n = hash_index_candidate(&t->index, h, at)) && !same(t, n - 1, key))
		*at = hash_index_after(&t->index, *at);
	return n;
}

static int64_t known_site(const struct site_table *t, const struct site_key *key)
{
	size_t at;
	uint32_t n = t->index.slots ? find(t, key, hash(key), &at) : 0;
	return n ? n - 1 : BLOCK_NO_SITE;
}

int64_t site_table_site(struct site_table *t, const struct site_key *key, uint64_t number, uint64_t host_number)
{
	if (t->known)
		return known_site(t->known, key);
	if (hash_index_is_full(&t->index, t->count)) {
		int e = hash_index_grow(&t->index, t, t->count, hash_of_site);
		if (e)
			return e;
	}
	uint64_t h = hash(key);
	size_t at;
	uint32_t known = find(t, key, h, &at);
	if (known)
		return known - 1;
	int64_t n = add(t, key, number, host_number);
	if (n >= 0)
		hash_index_set(&t->index, at, (size_t)n + 1, h);
	return n;
}

int64_t site_table_plain_anew(struct site_table *t, uint32_t process, uint32_t node, uint32_t node2)
{
	enum { WORTH_IT = 8 * SITE_RECENT };
	const struct site_key key = {
		.process = process, .node = node, .node2 = node2, .kind = MODEL_HEAP, .device = MODEL_NO_DEVICE
	};
	if (!t->recent && ++t->looks == WORTH_IT)
		t->recent = calloc(SITE_RECENT, sizeof(*t->recent)); /* without it is slower only */
	return site_table_site(t, &key, 0, 0);
}

void site_table_rest(struct site_table *t)
{
	free(t->recent);
	t->recent = NULL;
	t->looks = 0;
}

static uint64_t heap_hash(uint32_t node, uint32_t node2)
{
	struct site_key key = { .node = node, .node2 = node2, .kind = MODEL_HEAP, .device = MODEL_NO_DEVICE };
	return hash(&key);
}

void site_table_prefetch(const struct site_table *t, uint32_t node, uint32_t node2)
{
	t = t->known ? t->known : t;
	if (t->index.slots)
		__builtin_prefetch(&t->index.slots[hash_index_home(&t->index, heap_hash(node, node2))]);
}

void site_table_prefetch_found(const struct site_table *t, uint32_t node, uint32_t node2)
{
	t = t->known ? t->known : t;
	if (!t->index.slots)
		return;
	uint64_t h = heap_hash(node, node2);
	size_t at = hash_index_home(&t->index, h);
	uint32_t n = hash_index_candidate(&t->index, h, &at);
	if (n)
		site_table_prefetch_site(t, n - 1);
}

void site_table_fini(struct site_table *t)
{
	free(t->sites);
	free(t->origins);
	free(t->oldest_ns);
	free(t->doubts);
	free(t->recent);
	hash_index_fini(&t->index);
	*t = (struct site_table){ 0 };
}

void peak_sum_add(struct model_totals *to, const struct model_totals *t)
{
	to->allocations += t->allocations;
	to->frees += t->frees;
	to->allocated_bytes += t->allocated_bytes;
	to->live_bytes += t->live_bytes;
	to->live_blocks += t->live_blocks;
	to->temporary += t->temporary;
	to->failed += t->failed;
	to->trials += t->trials;
	to->missed_frees += t->missed_frees;
	to->missed_bytes += t->missed_bytes;
	to->doubt_bytes += t->doubt_bytes;
	to->doubt_blocks += t->doubt_blocks;
	to->unknown_frees += t->unknown_frees;
	if (t->failed_bytes_max > to->failed_bytes_max)
		to->failed_bytes_max = t->failed_bytes_max;
}
