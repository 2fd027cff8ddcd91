#include <string.h>

#include "shim/elfsym.h"

/* glibc has relocated the addresses in most dynamic sections, but not those it must not write to. */
static const void *address_of(const struct mt_symbols *s, uintptr_t value)
{
	return (const void *)(value < s->bias ? value + s->bias : value);
}

int mt_symbols_of(const struct dl_phdr_info *info, struct mt_symbols *s)
{
	const ElfW(Dyn) *dyn = NULL;

	memset(s, 0, sizeof(*s));
	s->bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(s->bias + info->dlpi_phdr[i].p_vaddr);
	for (; dyn && dyn->d_tag != DT_NULL; dyn++)
		switch (dyn->d_tag) {
		case DT_SYMTAB:   s->table = address_of(s, dyn->d_un.d_ptr); break;
		case DT_STRTAB:   s->names = address_of(s, dyn->d_un.d_ptr); break;
		case DT_GNU_HASH: s->gnu_hash = address_of(s, dyn->d_un.d_ptr); break;
		case DT_HASH:     s->hash = address_of(s, dyn->d_un.d_ptr); break;
		}
	return s->table && s->names && (s->gnu_hash || s->hash);
}

static int is_named(const struct mt_symbols *s, uint32_t i, const char *name)
{
	return s->table[i].st_shndx != SHN_UNDEF && !strcmp(s->names + s->table[i].st_name, name);
}

/* The table is: buckets, first symbol, bloom words, shift; the bloom filter; the buckets; a chain of hashes from
 * the first symbol on, whose lowest bit ends each bucket's. */
static uint32_t find_gnu(const struct mt_symbols *s, const char *name)
{
	const uint32_t *head = s->gnu_hash, *buckets, *chain;
	const ElfW(Addr) *bloom = (const void *)(head + 4);
	const unsigned bits = sizeof(*bloom) * 8;
	uint32_t h = 5381, i;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		h = h * 33 + *c;
	if (!head[0] || !head[2] || !(bloom[h / bits % head[2]] >> h % bits & bloom[h / bits % head[2]] >> (h >> head[3]) % bits & 1))
		return 0;
	buckets = (const uint32_t *)(bloom + head[2]);
	chain = buckets + head[0];
	i = buckets[h % head[0]];
	if (i < head[1])
		return 0;
	for (;; i++) {
		uint32_t hash = chain[i - head[1]];
		if ((hash | 1) == (h | 1) && is_named(s, i, name))
			return i;
		if (hash & 1)
			return 0;
	}
}

static uint32_t find_linear(const struct mt_symbols *s, const char *name)
{
	for (uint32_t i = 1; i < s->hash[1]; i++)
		if (is_named(s, i, name))
			return i;
	return 0;
}

static uint32_t find(const struct mt_symbols *s, const char *name)
{
	return s->gnu_hash ? find_gnu(s, name) : find_linear(s, name);
}

void *mt_symbols_find(const struct mt_symbols *s, const char *name)
{
	uint32_t i = find(s, name);

	return i ? (void *)(s->bias + s->table[i].st_value) : NULL;
}

uint64_t mt_symbols_extent(const struct mt_symbols *s, const char *name, uint64_t *start)
{
	uint32_t i = find(s, name);

	*start = i ? s->bias + s->table[i].st_value : 0;
	return i ? *start + s->table[i].st_size : 0;
}
