/* A symbol by its name, in the modules that are loaded. How a module's own table is read: elfsym.h. */
#ifndef MT_BASE_ELFSEARCH_H
#define MT_BASE_ELFSEARCH_H

#include "shim/base/elfsym.h"

/* In which modules to look; never in the shim. */
enum mt_where {
	MT_BEFORE, /* those before the shim in the loader's order */
	/* those after the shim in the loader's order, as of the program's start: like RTLD_NEXT. All, if the shim was
	 * loaded later */
	MT_NEXT,
	MT_NAMED,  /* the one whose file or soname is `which` */
	MT_PREFIX, /* those whose file's name begins with `which` */
	MT_AROUND, /* the one that contains the address `which` */
	MT_ANY,
};

/* The first definition of `name` there, or NULL. `version` NULL = of any version; else of that version or in a module
 * without versions; MT_GLIBC = of any version that begins with it. */
void *mt_symbols_search(enum mt_where where, const void *which, const char *name, const char *version);

/* The shim was loaded later than the program. Before any search but that which finds it out. */
void mt_symbols_late(void);

#endif
