/*
 * The C library's own functions, for what the shim asks for itself.
 *
 * A call by name goes to whoever defines the name first: the interceptor of a sanitizer, which may not be ready and
 * calls NULL, or reports what we do as the program's doing; a preloaded library, which counts, redirects or prints.
 * So none is made. The functions are found in the list of modules that the loader keeps for debuggers, which takes no
 * call at all. What only works on memory is in byname.c, the rest are system calls (sys.h).
 *
 * What a hook calls on behalf of the program is another matter (mt_real in hooks.h): that is the next one's of the
 * name.
 */
#ifndef MT_BASE_LIBC_H
#define MT_BASE_LIBC_H

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct mt_libc {
#define LIBC(type, name, params) type(*name) params;
#include "shim/base/libc.def"
#undef LIBC
};

extern struct mt_libc mt_libc_found;
extern uint8_t mt_libc_known;

/* Finds them. Async-signal-safe; threads that do it at once write the same. */
void mt_libc_find(void);

/* A function that this C library lacks is NULL: on_exit and __register_atfork of musl, fstat of glibc before 2.33. */
static inline const struct mt_libc *mt_libc(void)
{
	/* acquire pairs with the release in mt_libc_find() */
	if (__builtin_expect(!__atomic_load_n(&mt_libc_known, __ATOMIC_ACQUIRE), 0))
		mt_libc_find();
	return &mt_libc_found;
}

/* Nonzero if a sanitizer's library was loaded with the program and comes after us, so that its interceptors are called
 * by our hooks. */
int mt_libc_is_sanitized(void);

#endif
