/*
 * A module's PT_GNU_EH_FRAME segment starts with a sorted table (function, FDE); a module that was linked without the
 * table is searched from the front of .eh_frame. The module itself is found by glibc's _dl_find_object, which
 * takes no lock; before glibc 2.35 by a list of our own, made by dl_iterate_phdr at the start and again
 * whenever a pc is in none of the known modules and the loader says that it has loaded something since.
 */
#include <link.h>
#include <stddef.h>

#include "shim/base/elfsearch.h"
#include "shim/base/elfsym.h"
#include "shim/base/libc.h"
#include "shim/base/tables.h"
#include "shim/stack/ehframe.h"

struct module {
	uint64_t start, end;
	const uint8_t *hdr; /* .eh_frame_hdr, or NULL */
};

/* As glibc declares it; declared here so that the shim builds with, and needs, older ones too. */
struct found_object {
	unsigned long long flags;
	void *start, *end;
	void *link_map;
	void *eh_frame;
	unsigned long long reserved[7];
};

static int (*find_object)(void *, struct found_object *);

/* ---- our own list, for glibc before 2.35 ---- */

#define MAX_WITH_TABLES 2048

static struct module *modules; /* MAX_WITH_TABLES */
static uint32_t module_count;
static uint64_t loads_seen;   /* dlpi_adds + dlpi_subs when the list was made */
static uint32_t list_version; /* odd while the list is being made */

void mt_ehframe_tables(struct mt_tables *t)
{
	modules = mt_tables_take(t, MAX_WITH_TABLES * sizeof(*modules));
}

static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct module *m = &modules[module_count];

	(void)arg;
	if (module_count == MAX_WITH_TABLES || size < offsetof(struct dl_phdr_info, dlpi_tls_modid))
		return 1;
	loads_seen = info->dlpi_adds + info->dlpi_subs;
	*m = (struct module){ .start = UINT64_MAX };
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + ph->p_vaddr;
		if (ph->p_type == PT_GNU_EH_FRAME)
			m->hdr = (const uint8_t *)(uintptr_t)at;
		if (ph->p_type != PT_LOAD)
			continue;
		m->start = at < m->start ? at : m->start;
		m->end = at + ph->p_memsz > m->end ? at + ph->p_memsz : m->end;
	}
	module_count += m->end != 0;
	return 0;
}

static int ask_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
	if (size >= offsetof(struct dl_phdr_info, dlpi_tls_modid))
		*(uint64_t *)loads = info->dlpi_adds + info->dlpi_subs;
	return 1;
}

/* One thread at a time makes the list; another one, or a signal handler in the middle of it, does without. */
static void list_refresh(void)
{
	uint32_t even = __atomic_load_n(&list_version, __ATOMIC_RELAXED) & ~1u;
	uint64_t loads = 0;

	mt_libc()->dl_iterate_phdr(ask_loads, &loads);
	if (loads == __atomic_load_n(&loads_seen, __ATOMIC_RELAXED) && module_count)
		return;
	if (!__atomic_compare_exchange_n(&list_version, &even, even + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return;
	module_count = 0;
	mt_libc()->dl_iterate_phdr(add_module, NULL);
	__atomic_store_n(&list_version, even + 2, __ATOMIC_RELEASE);
}

/* A reader takes the list only if it was whole before and after (pairs with list_refresh). The list isn't
 * sorted: a few hundred modules are compared once per new pc. */
static bool list_find(struct mt_eh_scratch *s, uint64_t pc)
{
	uint32_t version = __atomic_load_n(&list_version, __ATOMIC_ACQUIRE);
	bool found = false;

	for (uint32_t i = 0, n = module_count; i < n && i < MAX_WITH_TABLES && !found; i++) {
		s->start = modules[i].start;
		s->end = modules[i].end;
		s->hdr = modules[i].hdr;
		found = pc >= s->start && pc < s->end;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return found && !(version & 1) && version == __atomic_load_n(&list_version, __ATOMIC_RELAXED);
}

/* ---- modules ---- */

static bool find_module(struct mt_eh_scratch *s, uint64_t pc)
{
	struct found_object *o = (struct found_object *)s->object;

	_Static_assert(sizeof(*o) <= sizeof(s->object), "room for glibc's answer");
	if (!find_object)
		return list_find(s, pc);
	if (find_object((void *)(uintptr_t)pc, o))
		return false;
	s->start = (uintptr_t)o->start;
	s->end = (uintptr_t)o->end;
	s->hdr = o->eh_frame;
	return true;
}

/* The code of a C library that has no tables. */
static uint64_t bare_start, bare_end;

static void look_at_libc(void)
{
	static struct mt_eh_scratch s;
	uint64_t begin = (uintptr_t)mt_symbols_search(MT_ANY, NULL, "__libc_start_main", NULL);

	if (begin && mt_ehframe_find(&s, begin) == MT_EH_UNCOVERED) {
		bare_start = s.start;
		bare_end = s.end;
	}
}

bool mt_ehframe_in_bare_libc(uint64_t pc)
{
	return pc - bare_start < bare_end - bare_start;
}

void mt_ehframe_boot(void)
{
	find_object = (int (*)(void *, struct found_object *))(uintptr_t)mt_symbols_search(MT_ANY, NULL,
											   "_dl_find_object", MT_GLIBC);
	if (!find_object)
		list_refresh();
	look_at_libc();
}

void mt_ehframe_pretend_old(void)
{
	find_object = NULL;
	list_refresh();
}

void mt_ehframe_forget(void)
{
	if (!find_object)
		list_refresh();
}

bool mt_ehframe_in_module(struct mt_eh_scratch *s, uint64_t pc)
{
	return find_module(s, pc);
}

bool mt_ehframe_may_be_module(uint64_t pc)
{
	struct found_object o;

	return !find_object || find_object((void *)(uintptr_t)pc, &o) == 0;
}

/* ---- entries ---- */

/* The CIE: what all FDEs that point to it have in common. */
static __attribute__((noinline)) bool read_cie(struct mt_eh_scratch *s, const uint8_t *at, bool *augmented)
{
	struct mt_fde *f = &s->fde;
	struct mt_dwarf *d = &s->d;
	uint64_t length, n;
	const char *aug;
	uint8_t version;

	*d = (struct mt_dwarf){ at, (const uint8_t *)(uintptr_t)s->end };
	length = mt_dwarf_uint(d, 4);
	if (length >= 0xfffffff0u || length > (uint64_t)(d->end - d->p) || mt_dwarf_uint(d, 4) != 0)
		return false;
	d->end = at + 4 + length;
	version = (uint8_t)mt_dwarf_uint(d, 1);
	aug = (const char *)d->p;
	while (mt_dwarf_uint(d, 1))
		;
	f->code_align = mt_dwarf_uleb(d);
	f->data_align = mt_dwarf_sleb(d);
	f->ra = (uint32_t)(version == 1 ? mt_dwarf_uint(d, 1) : mt_dwarf_uleb(d));
	f->pc_enc = 0;
	f->signal = false;
	*augmented = aug[0] == 'z';
	if (!*augmented && aug[0])
		return false;
	n = *augmented ? mt_dwarf_uleb(d) : 0;
	f->initial = *d;
	mt_dwarf_skip(&f->initial, n);
	for (; *aug; aug++) {
		if (*aug == 'R')
			f->pc_enc = (uint8_t)mt_dwarf_uint(d, 1);
		else if (*aug == 'L')
			mt_dwarf_skip(d, 1);
		else if (*aug == 'P')
			mt_dwarf_pointer(d, (uint8_t)mt_dwarf_uint(d, 1), NULL);
		else if (*aug == 'S')
			f->signal = true;
	}
	return d->p <= f->initial.p;
}

/* The FDE at `at`; false if it is none, is damaged, or does not cover pc. */
static __attribute__((noinline)) bool read_fde(struct mt_eh_scratch *s, const uint8_t *at, uint64_t pc)
{
	struct mt_fde *f = &s->fde;
	struct mt_dwarf *d = &f->code;
	uint64_t length;
	const uint8_t *cie;
	bool augmented;

	*d = (struct mt_dwarf){ at, (const uint8_t *)(uintptr_t)s->end };
	length = mt_dwarf_uint(d, 4);
	if (length == 0 || length >= 0xfffffff0u || length > (uint64_t)(d->end - d->p))
		return false;
	d->end = d->p + length;
	cie = d->p;
	cie -= mt_dwarf_uint(d, 4);
	if (cie == at + 4 || (uintptr_t)cie < s->start || !read_cie(s, cie, &augmented))
		return false;
	f->start = mt_dwarf_pointer(d, f->pc_enc, NULL);
	f->end = f->start + mt_dwarf_plain(d, f->pc_enc & 0x0f);
	if (augmented)
		mt_dwarf_skip(d, mt_dwarf_uleb(d));
	return pc >= f->start && pc < f->end;
}

static int32_t table_at(const uint8_t *table, uint64_t i)
{
	int32_t v;

	__builtin_memcpy(&v, table + i * 4, 4);
	return v;
}

/* Last entry of the sorted table that starts at or before pc. */
static const uint8_t *search_table(const uint8_t *hdr, const uint8_t *table, uint64_t count, uint64_t pc)
{
	int64_t want = (int64_t)(pc - (uintptr_t)hdr);
	uint64_t low = 0, high = count;

	while (high - low > 1) {
		uint64_t mid = (low + high) / 2;
		if (table_at(table, mid * 2) <= want)
			low = mid;
		else
			high = mid;
	}
	return hdr + table_at(table, low * 2 + 1);
}

static bool scan_all(struct mt_eh_scratch *m, const uint8_t *at, uint64_t pc)
{
	struct mt_dwarf d = { at, (const uint8_t *)(uintptr_t)m->end };

	while (d.p < d.end) {
		const uint8_t *entry = d.p;
		uint64_t length = mt_dwarf_uint(&d, 4);
		if (length == 0 || length >= 0xfffffff0u)
			return false;
		if (read_fde(m, entry, pc))
			return true;
		mt_dwarf_skip(&d, length);
	}
	return false;
}

/* The module is known. */
static bool find_entry(struct mt_eh_scratch *s, uint64_t pc)
{
	const uint8_t *hdr = s->hdr, *frames;
	struct mt_dwarf *d = &s->d;
	uint64_t count;

	if (!hdr || hdr[0] != 1)
		return false;
	*d = (struct mt_dwarf){ hdr + 4, (const uint8_t *)(uintptr_t)s->end };
	frames = (const uint8_t *)(uintptr_t)mt_dwarf_pointer(d, hdr[1], hdr);
	count = mt_dwarf_pointer(d, hdr[2], hdr);
	if (hdr[3] == (MT_PE_DATAREL | MT_PE_SDATA4) && count && count <= (uint64_t)(d->end - d->p) / 8)
		return read_fde(s, search_table(hdr, d->p, count, pc), pc);
	return frames && scan_all(s, frames, pc);
}

enum mt_eh mt_ehframe_find(struct mt_eh_scratch *s, uint64_t pc)
{
	bool known = find_module(s, pc);

	if (!known && !find_object) {
		list_refresh();
		known = find_module(s, pc);
	}
	if (!known)
		return MT_EH_NO_MODULE;
	return find_entry(s, pc) ? MT_EH_FOUND : MT_EH_UNCOVERED;
}
