#include "analyzer/util/hash_index.h"

#include "analyzer/util/vec.h"

enum { LEAST_SLOTS = 256 };

int hash_index_grow(struct hash_index *x, const void *things, size_t count, hash_index_hash *hash)
{
	struct hash_index grown = { .mask = x->slots ? 2 * x->mask + 1 : LEAST_SLOTS - 1 };
	grown.slots = vec_calloc(grown.mask + 1, sizeof(*grown.slots));
	if (!grown.slots)
		return error_memory();
	for (size_t n = 1; n <= count; n++) {
		uint64_t h = hash(things, (uint32_t)n);
		size_t at = hash_index_home(&grown, h);
		while (grown.slots[at])
			at = hash_index_after(&grown, at);
		hash_index_set(&grown, at, n, h);
	}
	free(x->slots);
	*x = grown;
	return 0;
}

void hash_index_clear(struct hash_index *x)
{
	if (x->slots)
		memset(x->slots, 0, (x->mask + 1) * sizeof(*x->slots));
}

void hash_index_fini(struct hash_index *x)
{
	free(x->slots);
	*x = (struct hash_index){ 0 };
}
