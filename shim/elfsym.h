/* Symbols of a loaded module, read from its own tables: dlsym takes locks and must not be called inside an
 * allocation. */
#ifndef MT_ELFSYM_H
#define MT_ELFSYM_H

#include <link.h>
#include <stdint.h>

struct mt_symbols {
	const ElfW(Sym) *table;
	const char *names;
	const uint32_t *gnu_hash;
	const uint32_t *hash; /* the old kind, when there is no other */
	uintptr_t bias;
};

/* Zero if the module has no table of exported symbols. */
int mt_symbols_of(const struct dl_phdr_info *info, struct mt_symbols *out);

/* Address of a symbol this module defines, or NULL. */
void *mt_symbols_find(const struct mt_symbols *s, const char *name);

/* Its end and *start, or both 0. */
uint64_t mt_symbols_extent(const struct mt_symbols *s, const char *name, uint64_t *start);

#endif
