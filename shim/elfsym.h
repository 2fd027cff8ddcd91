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
	size_t relative;  /* how many of the first table's rows, at its beginning, name no symbol */
	uintptr_t bias;
};

/* Zero if the module has no table of exported symbols. */
int mt_symbols_of(const struct dl_phdr_info *info, struct mt_symbols *out);

/* The same of a dynamic section, NULL = none, and the module's bias. */
int mt_symbols_of_module(const ElfW(Dyn) * dynamic, uintptr_t bias, struct mt_symbols *out);

/* Address of a symbol this module defines, or NULL. Of several versions the default one. */
void *mt_symbols_find(const struct mt_symbols *s, const char *name);

/* The same of a version, as mt_symbols_search() takes it. */
void *mt_symbols_find_version(const struct mt_symbols *s, const char *name, const char *version);

/* Nonzero if the module defines `name` there, in whichever version. */
int mt_symbols_defines(const struct mt_symbols *s, const char *name, const void *address);

/* The end of a symbol's code, and *start; both 0 = this module does not define it. */
uint64_t mt_symbols_extent(const struct mt_symbols *s, const char *name, uint64_t *start);

/* ---- all modules ---- */

/* The program segment that holds p, or NULL. */
const ElfW(Phdr) * mt_symbols_segment(const struct dl_phdr_info *info, const void *p);

/* In which modules to look; never in the shim. */
enum mt_where {
	MT_BEFORE, /* those before the shim in the loader's order */
	/* those after the shim in the loader's order, as of the program's start: like RTLD_NEXT. All, if the shim was loaded
	 * later */
	MT_NEXT,
	MT_NAMED,  /* the one whose file or soname is `which` */
	MT_PREFIX, /* those whose file's name begins with `which` */
	MT_AROUND, /* the one that contains the address `which` */
	MT_ANY,
};

#define MT_GLIBC "GLIBC_"

/* The first definition of `name` there, or NULL. `version` NULL = of any version; else of that version or in a module
 * without versions; MT_GLIBC = of any version that begins with it. */
void *mt_symbols_search(enum mt_where where, const void *which, const char *name, const char *version);

/* The shim was loaded later than the program. Before any search but that which finds it out. */
void mt_symbols_late(void);

#endif
