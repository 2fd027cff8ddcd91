#include <stdlib.h>
#include <string.h>

#include "shim/base/elfsearch.h"
#include "shim/base/elfsym.h"
#include "shim/base/libc.h"
#include "shim/hooks/dlsym.h"
#include "shim/hooks/hooks.h"
#include "shim/host/heap.h"
#include "shim/host/new.h"

static void *real[MT_NEW_ROWS]; /* of rows whose entry leads to our hook */

/* ---- operators of the allocator that serves malloc ---- */

#define CALL(type, symbol, params, args) ((type(*) params)(uintptr_t)real[MT_NEW_ROW_##symbol]) args

/* An exception goes through these without a word: then nothing was allocated. */
#define NEW(symbol, version, name, params, args) \
	static void *hook_##symbol params \
	{ \
		void *p; \
		if (mt_heap_passes(MT_CALLER)) \
			return CALL(void *, symbol, params, args); \
		p = MT_REAL(CALL(void *, symbol, params, args)); \
		mt_heap_note(MT_HOOK_##symbol, p, n, MT_CALLER, MT_FRAME); \
		return p; \
	}
#define DELETE(symbol, version, name, params, args) \
	static void hook_##symbol params \
	{ \
		MT_FREE_BY(MT_HOOK_##symbol, p, MT_CALLER, CALL(void, symbol, params, args)); \
	}
#include "shim/hooks/hooks_new.def"
#undef NEW
#undef DELETE

/* Of a reference that nobody meant to be followed: no library has the operator. */
static void *plain(size_t n)
{
	return malloc(n);
}
static void *aligned(size_t n, size_t align)
{
	return aligned_alloc(align, n);
}

#define NEW(symbol, version, name, params, args) \
	{ #symbol, (void *)hook_##symbol, \
	  _Generic(hook_##symbol, \
		  void *(*)(size_t): (void *)plain, \
		  void *(*)(size_t, const void *): (void *)plain, \
		  default: (void *)aligned) },
#define DELETE(symbol, version, name, params, args) { #symbol, (void *)hook_##symbol, (void *)free },
static const struct {
	const char *name;
	void *hook, *fallback;
} rows[MT_NEW_ROWS] = {
#include "shim/hooks/hooks_new.def"
};
#undef NEW
#undef DELETE

int mt_new_is(const char *name)
{
	size_t i = 0;

	if (name[0] != '_' || name[1] != 'Z')
		return 0;
	while (i < MT_NEW_ROWS && strcmp(rows[i].name, name) != 0)
		i++;
	return i < MT_NEW_ROWS;
}

/* ---- operators of a module's own ---- */

/* Where no library that was there at the start has operators, as under Python, each module finds those that it would
 * find without us: its own, or those of a library that came with it. They are kept by module, and modules by pages of
 * their code. A module is not unloaded while it is calling; mt_new_forget() drops it behind that. */
#define MODULES 256u
#define PAGES   4096u
static struct module {
	uintptr_t start, end;
	void *to[MT_NEW_ROWS];
	uint8_t taken;
} modules[MODULES];
static uint64_t pages[PAGES]; /* page << 8 | index */
static uint8_t used;          /* an operator was looked up for its caller's library */

static struct module *by_page(uintptr_t caller)
{
	uint64_t word = __atomic_load_n(&pages[(caller >> 12) % PAGES], __ATOMIC_ACQUIRE);

	return word >> 8 == caller >> 12 ? &modules[word & 255] : NULL;
}

static int has(const struct module *m, uintptr_t at)
{
	uintptr_t start = __atomic_load_n(&m->start, __ATOMIC_ACQUIRE);

	return start && at - start < m->end - start;
}

static int find_code(struct dl_phdr_info *info, size_t size, void *data)
{
	struct module *out = data;
	const ElfW(Phdr) *ph = mt_symbols_segment(info, (const void *)out->end);

	(void)size;
	if (!ph)
		return 0;
	out->start = info->dlpi_addr + ph->p_vaddr;
	out->end = out->start + ph->p_memsz;
	return 1;
}

static struct module *add_module(uintptr_t caller)
{
	struct module found = { .end = caller };

	if (!mt_libc()->dl_iterate_phdr(find_code, &found))
		return NULL;
	for (size_t i = 0; i < MODULES; i++) {
		struct module *m = &modules[i];
		uint8_t no = 0;
		if (!__atomic_compare_exchange_n(&m->taken, &no, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		m->end = found.end;
		__atomic_store_n(&m->start, found.start, __ATOMIC_RELEASE);
		return m;
	}
	return NULL;
}

static struct module *module_of(uintptr_t caller)
{
	struct module *m = NULL;

	for (size_t i = 0; i < MODULES && !m; i++)
		m = has(&modules[i], caller) ? &modules[i] : NULL;
	if (!m)
		m = add_module(caller);
	if (m)
		__atomic_store_n(&pages[(caller >> 12) % PAGES], caller >> 12 << 8 | (uint64_t)(m - modules),
				 __ATOMIC_RELEASE);
	return m;
}

static int covers(struct dl_phdr_info *info, size_t size, void *p)
{
	(void)size;
	return mt_symbols_segment(info, p) != NULL;
}

static void forget_module(struct module *m)
{
	for (size_t i = 0; i < PAGES; i++)
		if (pages[i] && (pages[i] & 255) == (uint64_t)(m - modules))
			__atomic_store_n(&pages[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->start, 0, __ATOMIC_RELEASE);
	for (size_t i = 0; i < MT_NEW_ROWS; i++)
		__atomic_store_n(&m->to[i], NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&m->taken, 0, __ATOMIC_RELEASE);
}

void mt_new_forget(void)
{
	static unsigned long long seen;

	if (!__atomic_load_n(&used, __ATOMIC_RELAXED) || !mt_library_has_gone(&seen))
		return;
	for (size_t i = 0; i < MODULES; i++) {
		uintptr_t start = __atomic_load_n(&modules[i].start, __ATOMIC_ACQUIRE);
		if (start && !mt_libc()->dl_iterate_phdr(covers, (void *)start))
			forget_module(&modules[i]);
	}
}

static void *find_at(const char *name, const void *caller)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1", "libc++.so.1" };
	void *found = mt_symbols_search(MT_AROUND, caller, name, NULL);

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && !found; i++)
		found = mt_symbols_search(MT_NAMED, libraries[i], name, NULL);
	return found ? found : mt_symbols_search(MT_ANY, NULL, name, NULL);
}

static void *find_own(unsigned row, const void *caller)
{
	void *to = find_at(rows[row].name, caller);
	struct module *m;

	if (!to)
		return rows[row].fallback;
	__atomic_store_n(&used, 1, __ATOMIC_RELAXED);
	m = module_of((uintptr_t)caller);
	if (m)
		__atomic_store_n(&m->to[row], to, __ATOMIC_RELAXED);
	return to;
}

/* ---- where an entry leads ---- */

/* What was there at the start is what everybody finds, and stays. */
static void *settle(unsigned row, void *next)
{
	void *to = next;

	mt_boot_allocator();
	if (mt_allocator_has(next)) {
		__atomic_store_n(&real[row], next, __ATOMIC_RELEASE);
		to = rows[row].hook;
	}
	__atomic_store_n(&mt_new_to[row], to, __ATOMIC_RELEASE);
	return to;
}

static void *find_next(unsigned row)
{
	static uint8_t absent[MT_NEW_ROWS];
	void *next;

	if (__atomic_load_n(&absent[row], __ATOMIC_RELAXED) || !(mt_real.malloc || mt_boot()))
		return NULL;
	next = mt_symbols_search(MT_NEXT, NULL, rows[row].name, NULL);
	__atomic_store_n(&absent[row], !next, __ATOMIC_RELAXED);
	return next;
}

void *mt_new_find(unsigned row, const void *caller)
{
	const struct module *m = by_page((uintptr_t)caller);
	void *to = m ? __atomic_load_n(&m->to[row], __ATOMIC_RELAXED) : NULL;

	if (to)
		return to;
	to = find_next(row);
	return to ? settle(row, to) : find_own(row, caller);
}
