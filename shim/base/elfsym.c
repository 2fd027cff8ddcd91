#include <stdbool.h>
#include <string.h>

#include "shim/base/elfsym.h"

/* glibc has relocated the addresses in most dynamic sections, but not those it must not write to. */
static const void *address_of(const struct mt_symbols *s, uintptr_t value)
{
	return (const void *)(value < s->bias ? value + s->bias : value);
}

int mt_symbols_of(const struct dl_phdr_info *info, struct mt_symbols *s)
{
	const ElfW(Dyn) *dyn = NULL;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return mt_symbols_of_module(dyn, info->dlpi_addr, s);
}

int mt_symbols_of_module(const ElfW(Dyn) * dyn, uintptr_t bias, struct mt_symbols *s)
{
	uint64_t soname = 0;

	memset(s, 0, sizeof(*s));
	s->bias = bias;
	for (; dyn && dyn->d_tag != DT_NULL; dyn++)
		switch (dyn->d_tag) {
		case DT_SYMTAB:
			s->table = address_of(s, dyn->d_un.d_ptr);
			break;
		case DT_STRTAB:
			s->names = address_of(s, dyn->d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			s->gnu_hash = address_of(s, dyn->d_un.d_ptr);
			break;
		case DT_HASH:
			s->hash = address_of(s, dyn->d_un.d_ptr);
			break;
		case DT_VERSYM:
			s->versions = address_of(s, dyn->d_un.d_ptr);
			break;
		case DT_VERDEF:
			s->defined = address_of(s, dyn->d_un.d_ptr);
			break;
		case DT_SONAME:
			soname = dyn->d_un.d_val;
			break;
		case DT_RELA:
			s->relocations[0].rows = address_of(s, dyn->d_un.d_ptr);
			break;
		case DT_RELASZ:
			s->relocations[0].count = dyn->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_RELACOUNT:
			s->relative = dyn->d_un.d_val;
			break;
		case DT_JMPREL:
			s->relocations[1].rows = address_of(s, dyn->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			s->relocations[1].count = dyn->d_un.d_val / sizeof(ElfW(Rela));
			break;
		}
	s->soname = s->names && soname ? s->names + soname : NULL;
	return s->table && s->names && (s->gnu_hash || s->hash);
}

/* Name of a version that the module defines. */
static const char *version_name(const struct mt_symbols *s, unsigned index)
{
	const ElfW(Verdef) *def = s->defined;

	for (; def; def = def->vd_next ? (const void *)((const char *)def + def->vd_next) : NULL)
		if (def->vd_ndx == index)
			return s->names +
			       ((const ElfW(Verdaux) *)(const void *)((const char *)def + def->vd_aux))->vda_name;
	return "";
}

/* As the loader decides it for dlsym and dlvsym. */
static int has_version(const struct mt_symbols *s, uint32_t i, const char *version)
{
	enum { HIDDEN = 0x8000 };
	const char *own;

	if (!s->versions)
		return !version || strcmp(version, MT_GLIBC) != 0;
	if (!version)
		return !(s->versions[i] & HIDDEN);
	own = version_name(s, s->versions[i] & ~HIDDEN);
	return !strcmp(version, MT_GLIBC) ? !strncmp(own, MT_GLIBC, strlen(MT_GLIBC)) : !strcmp(own, version);
}

/* `address` NULL: of that version; else there, in any. */
static int is_it(const struct mt_symbols *s, uint32_t i, const char *name, const char *version, const void *address)
{
	const ElfW(Sym) *sym = &s->table[i];

	/* the address of an indirect function isn't known before somebody asks its resolver */
	return sym->st_shndx != SHN_UNDEF && (sym->st_info & 15) != STT_GNU_IFUNC &&
	       !strcmp(s->names + sym->st_name, name) &&
	       (address ? s->bias + sym->st_value == (uintptr_t)address : has_version(s, i, version));
}

/* The table is: buckets, first symbol, bloom words, shift; the bloom filter; the buckets; a chain of hashes from
 * the first symbol on, whose lowest bit ends each bucket's. */
static uint32_t find_gnu(const struct mt_symbols *s, const char *name, const char *version, const void *address)
{
	const uint32_t *head = s->gnu_hash, *buckets, *chain;
	const ElfW(Addr) *bloom = (const void *)(head + 4);
	const unsigned bits = sizeof(*bloom) * 8;
	uint32_t h = 5381, i;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		h = h * 33 + *c;
	if (!head[0] || !head[2] ||
	    !(bloom[h / bits % head[2]] >> h % bits & bloom[h / bits % head[2]] >> (h >> head[3]) % bits & 1))
		return 0;
	buckets = (const uint32_t *)(bloom + head[2]);
	chain = buckets + head[0];
	i = buckets[h % head[0]];
	if (i < head[1])
		return 0;
	for (;; i++) {
		uint32_t hash = chain[i - head[1]];
		if ((hash | 1) == (h | 1) && is_it(s, i, name, version, address))
			return i;
		if (hash & 1)
			return 0;
	}
}

static uint32_t find_linear(const struct mt_symbols *s, const char *name, const char *version, const void *address)
{
	for (uint32_t i = 1; i < s->hash[1]; i++)
		if (is_it(s, i, name, version, address))
			return i;
	return 0;
}

static uint32_t find(const struct mt_symbols *s, const char *name, const char *version)
{
	return s->gnu_hash ? find_gnu(s, name, version, NULL) : find_linear(s, name, version, NULL);
}

int mt_symbols_defines(const struct mt_symbols *s, const char *name, const void *address)
{
	return (s->gnu_hash ? find_gnu(s, name, NULL, address) : find_linear(s, name, NULL, address)) != 0;
}

static void *address_if(const struct mt_symbols *s, uint32_t i)
{
	return i ? (void *)(s->bias + s->table[i].st_value) : NULL;
}

void *mt_symbols_find(const struct mt_symbols *s, const char *name)
{
	return mt_symbols_find_version(s, name, NULL);
}

void *mt_symbols_find_version(const struct mt_symbols *s, const char *name, const char *version)
{
	return address_if(s, find(s, name, version));
}

uint64_t mt_symbols_extent(const struct mt_symbols *s, const char *name, uint64_t *start)
{
	uint32_t i = find(s, name, NULL);

	*start = (uintptr_t)address_if(s, i);
	return i ? *start + s->table[i].st_size : 0;
}

const ElfW(Phdr) * mt_symbols_segment(const struct dl_phdr_info *info, const void *p)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		if (ph->p_type == PT_LOAD && (uintptr_t)p - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
			return ph;
	}
	return NULL;
}
