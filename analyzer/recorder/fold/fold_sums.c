/* What is left out of each stack: count, bytes, how many were temporary. */
#include "analyzer/recorder/fold/fold_window_internal.h"

#include "analyzer/util/vec.h"

static uint64_t sum_hash(const struct sum *s)
{
	uint64_t h = ((uint64_t)s->node << 32 | s->node2) * 0x9E3779B97F4A7C15ull;
	h ^= (s->size << 24 ^ (uint64_t)s->thread << 10 ^ s->hook ^ (uint64_t)(s->device << 8 | s->what) << 40) *
	     0xD6E8FEB86659FD93ull;
	h ^= h >> 32;
	return h * 0x9E3779B97F4A7C15ull;
}

static bool same_sum(const struct sum *a, const struct sum *b)
{
	return a->node == b->node && a->node2 == b->node2 && a->thread == b->thread && a->hook == b->hook &&
	       a->size == b->size && a->what == b->what && a->device == b->device;
}

static uint64_t hash_of_sum(const void *list, uint32_t number)
{
	return sum_hash((const struct sum *)list + number - 1);
}

int sums_add(struct sums *t, const struct sum *more)
{
	uint64_t hash = sum_hash(more);
	if (hash_index_is_full(&t->index, t->count) && hash_index_grow(&t->index, t->list, t->count, hash_of_sum))
		return -MT_EMEMORY;
	size_t at = hash_index_home(&t->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&t->index, hash, &at)); at = hash_index_after(&t->index, at)) {
		struct sum *s = &t->list[n - 1];
		if (!same_sum(s, more))
			continue;
		s->count += more->count;
		s->bytes += more->bytes;
		s->temporary += more->temporary;
		return 0;
	}
	int e = vec_reserve_raw(t->list, t->room, t->count + 1);
	if (e)
		return e;
	t->list[t->count++] = *more;
	hash_index_set(&t->index, at, t->count, hash);
	return 0;
}

void sums_clear(struct sums *t)
{
	t->count = 0;
	hash_index_clear(&t->index);
}

void sums_fini(struct sums *t)
{
	free(t->list);
	hash_index_fini(&t->index);
}
