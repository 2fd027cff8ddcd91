#include "analyzer/model/heap_footprint.h"

#include "analyzer/util/minmax.h"

#include <stdlib.h>
#include <string.h>

#define MIB_BITS   20
#define PART_BITS  26           /* 64 MiB: a word of bits */
#define MOST_PARTS (1u << 18)   /* 16 TiB; a trace that has more of them is damaged */
#define MOST_BYTES (1ull << 32) /* of one block: a larger one has a mapping of its own */

static struct heap_footprint_part *find(struct heap_footprint_part *parts, size_t mask, uint64_t key)
{
	size_t i = (size_t)(key * 0x9E3779B97F4A7C15ull >> 32) & mask;
	while (parts[i].mask && parts[i].key != key)
		i = (i + 1) & mask;
	return &parts[i];
}

static bool grow(struct heap_footprint *f)
{
	size_t mask = f->parts ? 2 * f->mask + 1 : 15;
	struct heap_footprint_part *parts = f->count < MOST_PARTS ? calloc(mask + 1, sizeof(*parts)) : NULL;
	f->unknown = !parts;
	if (!parts)
		return false;
	for (size_t i = 0; f->parts && i <= f->mask; i++)
		if (f->parts[i].mask)
			*find(parts, mask, f->parts[i].key) = f->parts[i];
	free(f->parts);
	f->parts = parts;
	f->mask = mask;
	return true;
}

/* Both in one part. */
static void add_bits(struct heap_footprint *f, uint64_t first, uint64_t last)
{
	if (f->count * 2 >= f->mask && !grow(f))
		return;
	struct heap_footprint_part *p = find(f->parts, f->mask, first >> 6);
	const uint64_t bits = (~0ull >> (63 - (last & 63))) & (~0ull << (first & 63)), more = bits & ~p->mask;
	f->count += p->mask == 0;
	p->key = first >> 6;
	p->mask |= bits;
	f->bytes += (uint64_t)__builtin_popcountll(more) << MIB_BITS;
}

void heap_footprint_add(struct heap_footprint *f, uint64_t addr, uint64_t size)
{
	const uint64_t last = (addr + (size ? lower(size, MOST_BYTES) - 1 : 0)) >> MIB_BITS;
	for (uint64_t mib = addr >> MIB_BITS; !f->unknown && mib <= last; mib = (mib | 63) + 1)
		add_bits(f, mib, lower(last, mib | 63));
	f->last = last + 1;
}

void heap_footprint_copy(struct heap_footprint *to, const struct heap_footprint *from)
{
	*to = *from;
	to->parts = from->parts ? malloc((from->mask + 1) * sizeof(*to->parts)) : NULL;
	to->unknown |= from->parts && !to->parts;
	if (to->parts)
		memcpy(to->parts, from->parts, (from->mask + 1) * sizeof(*to->parts));
	else
		to->mask = to->count = 0;
}

void heap_footprint_fini(struct heap_footprint *f)
{
	free(f->parts);
	*f = (struct heap_footprint){ 0 };
}
