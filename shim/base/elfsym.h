/*
 * Symbols of loaded modules, read from the modules' own tables. dlsym, dlvsym and dlopen would wait for whoever is
 * loading something, whose constructors may be waiting for us; they drop the error that the program has yet to ask
 * dlerror for; and they allocate. Here nothing is taken but the loader's short lock on its list, under which no code of
 * others runs.
 */
#ifndef MT_BASE_ELFSYM_H
#define MT_BASE_ELFSYM_H

#include <link.h>
#include <stdint.h>

struct mt_symbols {
	const ElfW(Sym) * table;
	const char *names;
	const uint32_t *gnu_hash;
	const uint32_t *hash;          /* the old kind, when there is no other */
	const ElfW(Versym) * versions; /* of each symbol, or NULL */
	const ElfW(Verdef) * defined;  /* the versions it defines, or NULL */
	const char *soname;            /* or NULL */
	struct {
		const ElfW(Rela) * rows;
		size_t count;
	} relocations[2]; /* those of the PLT are the second */
	size_t relative;  /* how many of the first table's rows, at its beginning, name no symbol */
	uintptr_t bias;
};

/* Zero if the module has no table of exported symbols. */
int mt_symbols_of(const struct dl_phdr_info *info, struct mt_symbols *out);

/* The same of a dynamic section, NULL = none, and the module's bias. */
int mt_symbols_of_module(const ElfW(Dyn) * dynamic, uintptr_t bias, struct mt_symbols *out);

/* Address of a symbol this module defines, or NULL. Of several versions the default one. */
void *mt_symbols_find(const struct mt_symbols *s, const char *name);

/* The same of one version or, in a module without versions, of any; MT_GLIBC: of any version that begins with it, and
 * never without one. NULL = of any version. */
#define MT_GLIBC "GLIBC_"
void *mt_symbols_find_version(const struct mt_symbols *s, const char *name, const char *version);

/* Nonzero if the module defines `name` there, in whichever version. */
int mt_symbols_defines(const struct mt_symbols *s, const char *name, const void *address);

/* The end of a symbol's code, and *start; both 0 = this module does not define it. */
uint64_t mt_symbols_extent(const struct mt_symbols *s, const char *name, uint64_t *start);

/* The program segment that holds p, or NULL. */
const ElfW(Phdr) * mt_symbols_segment(const struct dl_phdr_info *info, const void *p);

#endif
