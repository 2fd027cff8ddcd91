/* The heap and the hash index against arrays that are searched and sorted. */
#include "tests/unit/test.h"

#include "analyzer/util/hash_index.h"
#include "analyzer/util/heap.h"

#include <stdlib.h>

struct thing {
	uint64_t key, order;
};

static bool comes_before(const struct thing *a, const struct thing *b)
{
	return a->key < b->key;
}

HEAP(things, struct thing, comes_before)

TEST(a_heap_gives_the_least_first)
{
	enum { COUNT = 1000 };
	static struct thing things[COUNT];
	struct thing *heap[COUNT];
	uint64_t before = 0, keys = 0, given = 0;
	size_t count = COUNT;
	for (size_t i = 0; i < COUNT; i++) {
		things[i] = (struct thing){ (i * 7919) % 503, i };
		heap[i] = &things[i];
		keys += things[i].key;
	}
	things_heap_make(heap, count);
	while (count) {
		CHECK(heap[0]->key >= before);
		before = heap[0]->key;
		if (heap[0]->order % 3 == 0) { /* comes again, later */
			heap[0]->order++;
			heap[0]->key += 5;
			keys += 5;
			things_heap_moved(heap, count);
			continue;
		}
		given += heap[0]->key;
		heap[0] = heap[--count];
		things_heap_moved(heap, count);
	}
	CHECK_EQ(given, keys);
}

TEST(a_heap_of_one_or_none)
{
	struct thing one = { 1, 1 };
	struct thing *heap[] = { &one };
	things_heap_make(heap, 0);
	things_heap_moved(heap, 0);
	things_heap_make(heap, 1);
	things_heap_moved(heap, 1);
	CHECK(heap[0] == &one);
}

static uint64_t good_hash(uint64_t key)
{
	uint64_t h = key * 0x9E3779B97F4A7C15ull;
	h ^= h >> 32;
	return h * 0xD6E8FEB86659FD93ull;
}

static uint64_t same_hash(uint64_t key)
{
	(void)key;
	return 0x123456789abcdef0ull;
}

static uint64_t (*hash_of)(uint64_t key);

static uint64_t hash_of_thing(const void *things, uint32_t number)
{
	return hash_of(((const uint64_t *)things)[number - 1]);
}

static uint32_t find(const struct hash_index *x, const uint64_t *keys, uint64_t key, size_t *at)
{
	uint32_t n;
	*at = hash_index_home(x, hash_of(key));
	while ((n = hash_index_candidate(x, hash_of(key), at)) && keys[n - 1] != key)
		*at = hash_index_after(x, *at);
	return n;
}

/* Every key gets the number of its first occurrence, however many there are. */
static void fill_and_find(uint64_t (*hash)(uint64_t), size_t count)
{
	struct hash_index x = { 0 };
	uint64_t *keys = calloc(count, sizeof(*keys));
	size_t at;
	hash_of = hash;
	for (size_t round = 0; round < 2; round++) {
		for (size_t i = 0; i < count; i++) {
			if (hash_index_is_full(&x, i))
				CHECK_EQ(hash_index_grow(&x, keys, i, hash_of_thing), 0);
			CHECK_EQ(find(&x, keys, i * 64 + 1, &at), 0);
			keys[i] = i * 64 + 1;
			hash_index_set(&x, at, i + 1, hash_of(keys[i]));
		}
		for (size_t i = 0; i < count; i++)
			CHECK_EQ(find(&x, keys, i * 64 + 1, &at), i + 1);
		CHECK_EQ(find(&x, keys, 2, &at), 0);
		hash_index_clear(&x);
	}
	hash_index_fini(&x);
	CHECK(!x.slots);
	free(keys);
}

TEST(an_index_finds_what_was_put)
{
	fill_and_find(good_hash, 100000);
}

TEST(an_index_finds_what_has_the_same_hash)
{
	fill_and_find(same_hash, 600);
}

TEST_MAIN
