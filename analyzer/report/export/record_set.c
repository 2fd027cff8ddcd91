#include "analyzer/report/export/record_set.h"

#include "analyzer/util/vec.h"
#include "format/fnv.h"

uint64_t record_hash(const void *bytes, size_t size)
{
	const uint64_t h = mt_fnv_stir(mt_fnv(MT_FNV_START, bytes, size));
	return h ^ h >> 32;
}

static uint64_t hash_record(const void *set, uint32_t number)
{
	const struct record_set *s = set;
	return record_hash(s->records + (number - 1) * s->size, s->key);
}

uint32_t record_set_number(struct record_set *s, const void *record)
{
	if (hash_index_is_full(&s->index, s->count) && hash_index_grow(&s->index, s, s->count, hash_record))
		return 0;
	uint64_t hash = record_hash(record, s->key);
	size_t at = hash_index_home(&s->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&s->index, hash, &at)); at = hash_index_after(&s->index, at))
		if (!memcmp(s->records + (n - 1) * s->size, record, s->key))
			return n;
	if (vec_reserve_raw(s->records, s->room, (s->count + 1) * s->size))
		return 0;
	memcpy(s->records + s->count * s->size, record, s->size);
	hash_index_set(&s->index, at, ++s->count, hash);
	return (uint32_t)s->count;
}

void *record_set_at(const struct record_set *s, uint32_t number)
{
	return s->records + (number - 1) * s->size;
}

void record_set_fini(struct record_set *s)
{
	free(s->records);
	hash_index_fini(&s->index);
}
