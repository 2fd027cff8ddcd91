/*
 * What dlsym.S asks, and which wrapper stands for which real function.
 *
 * A name of a hook table is looked up as the caller would: by handle, or in the global scope and then in the caller's
 * own (a Python extension and what it links are in no global scope). If it isn't there, dlsym.S jumps to the real
 * dlsym, so that dlerror says what it always says. RTLD_NEXT is for us only if the caller was loaded before us: another
 * tool's wrapper, or the program.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "shim/base/elfsearch.h"
#include "shim/base/elfsym.h"
#include "shim/base/libc.h"
#include "shim/base/state.h"
#include "shim/hooks/dlsym.h"
#include "shim/hooks/hooks.h"

/* What dlsym.S hands on to: the next one in the loader's order, which may be another tool's that has wrappers too. */
extern void *(*mt_next_dlsym)(void *handle, const char *name);
void *(*mt_next_dlsym)(void *handle, const char *name);

uint32_t mt_wrap_generation;
uint8_t mt_dlsym_waits;

#define BUCKETS 512u /* a power of two, more than there are rows */

static const struct mt_wrapped *buckets[BUCKETS];
static uint8_t filled; /* the buckets are */
static uint8_t used;   /* a slot has been filled, ever */

/* Called by dlsym.S. */
void *mt_dlsym_boot(void);
void *mt_dlsym_find(void *handle, const char *name, const void *caller);

void *mt_dlsym_boot(void)
{
	void *found = mt_libc()->dlsym(RTLD_NEXT, "dlsym");

	mt_next_dlsym = (void *(*)(void *, const char *))(uintptr_t)found;
	return found;
}

int mt_is_own(const void *p)
{
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	extern const char _end[] __attribute__((visibility("hidden")));

	return (const char *)p >= __ehdr_start && (const char *)p < _end;
}

/* ---- rows by name ---- */

static uint32_t hash_name(const char *s)
{
	uint32_t h = 0x811c9dc5u; /* FNV-1a */

	while (*s)
		h = (h ^ (uint8_t)*s++) * 0x01000193u;
	return h ^ h >> 15;
}

/* Threads that fill at once write the same. */
static void fill(void)
{
	MT_SET_EACH (mt_wrap_table, table)
		for (size_t i = 0; i < (*table)->count; i++) {
			const struct mt_wrapped *row = &(*table)->rows[i], *there;
			uint32_t at = hash_name(row->name);
			while ((there = __atomic_load_n(&buckets[at % BUCKETS], __ATOMIC_RELAXED)) && there != row)
				at++;
			__atomic_store_n(&buckets[at % BUCKETS], row, __ATOMIC_RELAXED);
		}
	__atomic_store_n(&filled, 1, __ATOMIC_RELEASE);
}

/* Like some name in a table? What most names are sorted out by, here and in dlsym.S. */
static int may_be_ours(const char *name)
{
	return (name[0] == 'c' && name[1] == 'u') || (name[0] == 'a' && name[1] == 'c') ||
	       (name[0] == 'h' && (name[1] == 'a' || name[1] == 'i')) || (name[0] == 'z' && name[1] == 'e') ||
	       (name[0] == 'G' && name[1] == 'e');
}

const struct mt_wrapped *mt_wrap_row(const char *name)
{
	const struct mt_wrapped *row;

	if (!may_be_ours(name))
		return NULL;
	if (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE))
		fill();
	for (uint32_t at = hash_name(name); (row = buckets[at % BUCKETS]) != NULL; at++)
		if (!strcmp(row->name, name))
			break;
	return row;
}

/* ---- instances ---- */

void *mt_wrap(const struct mt_wrapped *row, void *real)
{
	if (!real || mt_is_own(real))
		return real;
	__atomic_store_n(&used, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < MT_INSTANCES; i++)
		if (__atomic_load_n(&row->slots[i].real, __ATOMIC_RELAXED) == real)
			return row->entries[i];
	for (unsigned i = row->library->linked; i < MT_INSTANCES; i++) {
		void *empty = NULL;
		if (__atomic_compare_exchange_n(&row->slots[i].real, &empty, real, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED) ||
		    empty == real)
			return row->entries[i];
	}
	mt_process_lost(1); /* five copies of one library: this one's calls go unseen */
	return real;
}

void *mt_wrap_real(const void *p)
{
	if (!mt_is_own(p))
		return NULL;
	MT_SET_EACH (mt_wrap_table, table)
		for (size_t i = 0; i < (*table)->count * MT_INSTANCES; i++) {
			const struct mt_wrapped *row = &(*table)->rows[i / MT_INSTANCES];
			if (row->entries && row->entries[i % MT_INSTANCES] == p)
				return mt_slot_real(row, &row->slots[i % MT_INSTANCES], NULL);
		}
	return NULL;
}

/* What the reference would be bound to without us, as far as it can be told: another tool's function; the library's;
 * the caller's own; any. */
static void *find_linked(const struct mt_library *library, unsigned i, const char *name, const void *caller)
{
	const char *version = library->link[i].version;
	void *found = mt_symbols_search(MT_NEXT, NULL, name, version);

	if (!found)
		found = mt_symbols_search(MT_NAMED, library->link[i].soname, name, version);
	if (!found)
		found = mt_symbols_search(MT_PREFIX, library->prefix, name, version);
	if (!found)
		found = mt_symbols_search(MT_AROUND, caller, name, version);
	return found ? found : mt_symbols_search(MT_ANY, NULL, name, version);
}

void *mt_slot_find(const struct mt_wrapped *row, struct mt_slot *slot, const void *caller)
{
	unsigned i = (unsigned)(slot - row->slots);
	void *real = i < row->library->linked ? find_linked(row->library, i, row->name, caller) : NULL;

	if (real) {
		__atomic_store_n(&used, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&slot->real, real, __ATOMIC_RELAXED);
	}
	return real;
}

void *mt_library_symbol(const struct mt_library *library, const char *name)
{
	void *found = NULL;

	for (unsigned i = 0; i < library->linked && !found; i++)
		found = mt_symbols_search(MT_NAMED, library->link[i].soname, name, NULL);
	if (!found)
		found = mt_symbols_search(MT_NEXT, NULL, name, NULL);
	return found ? found : mt_symbols_search(MT_PREFIX, library->prefix, name, NULL);
}

int mt_asked_find(struct mt_asked *a)
{
	uint32_t now = __atomic_load_n(&mt_wrap_generation, __ATOMIC_RELAXED) + 1;

	if (__atomic_load_n(&a->missing, __ATOMIC_RELAXED) > 100)
		return 0;
	if (!mt_library_symbol(a->library, a->name)) {
		__atomic_add_fetch(&a->missing, 1, __ATOMIC_RELAXED);
		return 0;
	}
	a->look_up();
	__atomic_store_n(&a->when, now, __ATOMIC_RELEASE);
	return 1;
}

/* ---- dlsym ---- */

/* The text of the thread's last error is freed by the second call. */
static void drop_error(void)
{
	mt_libc()->dlerror();
	mt_libc()->dlerror();
}

/* What we look up for the program's own call of dlsym leaves no error behind, and what it allocates is not the
 * program's. An older error's text is: it is freed where that is seen. */
#define QUIETLY(expression) \
	({ \
		int kept = errno; \
		__typeof__(expression) result; \
		drop_error(); \
		result = (expression); \
		drop_error(); \
		errno = kept; \
		result; \
	})

static void *symbol(void *handle, const char *name)
{
	void *found = mt_libc()->dlsym(handle, name);

	return mt_is_own(found) ? NULL : found;
}

/* The global scope, and what the caller's object sees beyond it: its own dependencies. */
static void *find_default(const void *caller, const char *name)
{
	void *found = symbol(RTLD_DEFAULT, name), *handle;
	Dl_info info;

	if (found || !mt_libc()->dladdr(caller, &info) || !info.dli_fname ||
	    !(handle = mt_libc()->dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)))
		return found;
	found = symbol(handle, name);
	mt_libc()->dlclose(handle);
	return found;
}

/* Returns 1 at the caller's object, 2 at ours, whichever is first in the loader's order. */
static int is_either(struct dl_phdr_info *info, size_t size, void *caller)
{
	(void)size;
	return mt_symbols_segment(info, caller)                               ? 1
	       : mt_symbols_segment(info, (const void *)(uintptr_t)is_either) ? 2
									      : 0;
}

static void *find_next(const void *caller, const char *name)
{
	return mt_libc()->dl_iterate_phdr(is_either, (void *)(uintptr_t)caller) == 1 ? symbol(RTLD_NEXT, name) : NULL;
}

/* As it would be found by this caller. */
static void *find_for(void *handle, const char *name, const void *caller)
{
	if (handle == RTLD_NEXT)
		return QUIETLY(find_next(caller, name));
	return handle == RTLD_DEFAULT ? QUIETLY(find_default(caller, name)) : QUIETLY(mt_next_dlsym(handle, name));
}

void *mt_dlsym_find(void *handle, const char *name, const void *caller)
{
	const struct mt_wrapped *row = mt_wrap_row(name);

	if (!(mt_real.dlclose || mt_boot()) || !(mt_next_dlsym || mt_dlsym_boot()))
		return NULL;
	MT_SET_EACH (mt_dlsym_look, at)
		(*at)->look();
	return row ? mt_wrap(row, find_for(handle, name, caller)) : NULL;
}

/* ---- libraries that went away ---- */

static int count_unloaded(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	*(unsigned long long *)out = info->dlpi_subs;
	return 1;
}

static int covers(struct dl_phdr_info *info, size_t size, void *p)
{
	(void)size;
	return mt_symbols_segment(info, p) != NULL;
}

int mt_library_has_gone(unsigned long long *seen)
{
	unsigned long long now = 0;

	mt_libc()->dl_iterate_phdr(count_unloaded, &now);
	return __atomic_exchange_n(seen, now, __ATOMIC_RELAXED) != now;
}

void mt_wrap_forget(void)
{
	static unsigned long long seen;

	if (!__atomic_load_n(&used, __ATOMIC_RELAXED) || !mt_library_has_gone(&seen))
		return;
	MT_SET_EACH (mt_wrap_table, table)
		for (size_t i = 0; i < (*table)->count * MT_INSTANCES; i++) {
			struct mt_slot *slot = &(*table)->rows[i / MT_INSTANCES].slots[i % MT_INSTANCES];
			void *real = __atomic_load_n(&slot->real, __ATOMIC_RELAXED);
			if (real && !mt_libc()->dl_iterate_phdr(covers, real)) {
				__atomic_store_n(&slot->real, NULL, __ATOMIC_RELAXED);
				__atomic_add_fetch(&mt_wrap_generation, 1, __ATOMIC_RELAXED);
			}
		}
}
