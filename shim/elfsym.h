/*
 * Symbols of loaded modules, read from the modules' own tables. dlsym, dlvsym and dlopen would wait for whoever is
 * loading something, whose constructors may be waiting for us; they drop the error that the program has yet to ask
 * dlerror for; and they allocate. Here nothing is taken but the loader's short lock on its list, under which no code of
 * others runs.
 */
#ifndef MT_ELFSYM_H
#define MT_ELFSYM_H

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
	size_t relative;  /* so many of the first come first and name no symbol */
	uintptr_t bias;
};

/* Zero if the module has no table of exported symbols. */
int mt_symbols_of(const struct dl_phdr_info *info, struct mt_symbols *out);

/* Address of a symbol this module defines, or NULL. Of several versions the default one. */
void *mt_symbols_find(const struct mt_symbols *s, const char *name);

/* Its end and *start, or both 0. */
uint64_t mt_symbols_extent(const struct mt_symbols *s, const char *name, uint64_t *start);

/* ---- all modules ---- */

/* The program segment that holds p, or NULL. */
const ElfW(Phdr) * mt_symbols_segment(const struct dl_phdr_info *info, const void *p);

/* Which modules to look in; ours never is. */
enum mt_where {
	MT_NEXT,   /* those behind us in the loader's order that were there when the program started: as RTLD_NEXT */
	MT_NAMED,  /* the one whose file or soname is `which` */
	MT_PREFIX, /* those whose file's name begins with `which` */
	MT_AROUND, /* the one whose code `which` is */
	MT_ANY,
};

#define MT_GLIBC "GLIBC_"

/* The first definition of `name` there, or NULL. With a version: of that, or of a module that has no versions at all;
 * with MT_GLIBC of any version that begins so. */
void *mt_symbols_search(enum mt_where where, const void *which, const char *name, const char *version);

#endif
