#include "shim/base/elfsym.h"
#include "shim/base/libc.h"

/* Where the loader tells debuggers of its list: data, so nobody's code is asked. glibc has the first, musl the
 * other. */
extern struct r_debug _r_debug __attribute__((weak));
extern struct r_debug *_dl_debug_addr __attribute__((weak));

struct mt_libc mt_libc_found;
uint8_t mt_libc_known;
static uint8_t sanitized;

static const struct link_map *first_module(void)
{
	const struct r_debug *debug = &_r_debug ? &_r_debug : &_dl_debug_addr ? _dl_debug_addr : NULL;

	return debug ? debug->r_map : NULL;
}

/* Of glibc a definition has a version that nobody else uses; of musl, which has none, it is where the list is. */
static int may_be_libc(const struct mt_symbols *s)
{
	return &_r_debug ? s->defined != NULL : mt_symbols_find(s, "_dl_debug_addr") == (void *)&_dl_debug_addr;
}

static void find_in(const struct mt_symbols *s, struct mt_libc *found)
{
	const char *version = &_r_debug ? MT_GLIBC : NULL;

#define LIBC(type, name, params) \
	if (!found->name) \
		found->name = (type(*) params)(uintptr_t)mt_symbols_find_version(s, #name, version);
#include "shim/base/libc.def"
#undef LIBC
}

/* Is there the start of a run time with interceptors of its own? The one for undefined behaviour has none. Before
 * us (in the program, as clang links it) it gets the program's calls first, and we only what it passes on. */
static int sanitizer_follows(const struct link_map *modules)
{
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	static const char *const starts[] = { "__asan_init",   "__tsan_init",    "__lsan_init",  "__msan_init",
					      "__hwasan_init", "__memprof_init", "__dfsan_init", "__rtsan_init" };
	const struct link_map *m = modules;
	struct mt_symbols s;

	while (m && m->l_addr != (uintptr_t)__ehdr_start)
		m = m->l_next;
	for (; m; m = m->l_next)
		if (mt_symbols_of_module(m->l_ld, m->l_addr, &s))
			for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
				if (mt_symbols_find(&s, starts[i]))
					return 1;
	return 0;
}

void mt_libc_find(void)
{
	const struct link_map *modules = first_module();
	struct mt_libc found = { .clone = NULL };
	struct mt_symbols s;

	for (const struct link_map *m = modules; m; m = m->l_next)
		if (mt_symbols_of_module(m->l_ld, m->l_addr, &s) && may_be_libc(&s))
			find_in(&s, &found);
	mt_libc_found = found;
	sanitized = (uint8_t)sanitizer_follows(modules);
	__atomic_store_n(&mt_libc_known, 1, __ATOMIC_RELEASE);
}

int mt_libc_is_sanitized(void)
{
	mt_libc();
	return sanitized;
}
