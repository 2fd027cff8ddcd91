/* What is left out of each stack: count, bytes, how many were temporary. */
#include "analyzer/thin_own.h"

#include "analyzer/vec.h"

#include <string.h>

static uint64_t sum_hash(const struct sum *s)
{
	uint64_t h = ((uint64_t)s->node << 32 | s->node2) * 0x9E3779B97F4A7C15ull;
	h ^= (s->size << 24 ^ (uint64_t)s->thread << 10 ^ s->hook ^ (uint64_t)(s->device << 8 | s->what) << 40) * 0xD6E8FEB86659FD93ull;
	h ^= h >> 32;
	return h * 0x9E3779B97F4A7C15ull >> 20;
}

static bool same_sum(const struct sum *a, const struct sum *b)
{
	return a->node == b->node && a->node2 == b->node2 && a->thread == b->thread && a->hook == b->hook && a->size == b->size &&
	       a->what == b->what && a->device == b->device;
}

static int grow_index(struct sums *t)
{
	size_t mask = t->index ? 2 * t->mask + 1 : 1023;
	uint32_t *index = calloc(mask + 1, sizeof(*index));
	if (!index)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (uint32_t n = 0; n < t->count; n++) {
		size_t i = sum_hash(&t->list[n]) & mask;
		while (index[i])
			i = (i + 1) & mask;
		index[i] = n + 1;
	}
	free(t->index);
	t->index = index;
	t->mask = mask;
	return 0;
}

int sums_add(struct sums *t, const struct sum *more)
{
	if ((!t->index || t->count * 2 >= t->mask) && grow_index(t))
		return -MT_EMEMORY;
	size_t i = sum_hash(more) & t->mask;
	for (; t->index[i]; i = (i + 1) & t->mask) {
		struct sum *s = &t->list[t->index[i] - 1];
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
	t->index[i] = (uint32_t)t->count;
	return 0;
}

void sums_clear(struct sums *t)
{
	t->count = 0;
	if (t->index)
		memset(t->index, 0, (t->mask + 1) * sizeof(*t->index));
}

void sums_fini(struct sums *t)
{
	free(t->list);
	free(t->index);
}
