#include "shim/process/relocate.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "shim/arch/arch.h"
#include "shim/base/elfsearch.h"
#include "shim/base/elfsym.h"
#include "shim/base/libc.h"
#include "shim/base/lines.h"
#include "shim/base/sys.h"
#include "shim/hooks/dlsym.h"
#include "shim/host/new.h"
#include "shim/python/peek.h"

#define MOST_RANGES 65536u
#define SLOTS       65536u /* a power of two; half of them are used at most */
#define KNOWN       512u
#define BUFFER      (64u << 10)
#define LINKS       (1024 / sizeof(void *)) /* words of a struct link_map that may hold what we look for */

uint8_t mt_relocated;

static uint32_t busy;
static unsigned long long seen_adds; /* of the loader, at the last look */

/* ---- what may be written ---- */

struct range {
	uintptr_t start, end;
	int prot;
};

static struct range *ranges; /* sorted; while a look is under way */
static uint32_t range_count;

static int prot_of(const char *text)
{
	return (text[0] == 'r' ? PROT_READ : 0) | (text[1] == 'w' ? PROT_WRITE : 0) | (text[2] == 'x' ? PROT_EXEC : 0);
}

static bool read_ranges(void)
{
	char *buffer = mt_sys_pages(BUFFER), line[96];
	struct mt_lines lines;

	ranges = buffer ? mt_sys_pages(MOST_RANGES * sizeof(*ranges)) : NULL;
	range_count = 0;
	if (ranges) {
		lines = mt_lines_open("/proc/self/maps", buffer, BUFFER);
		while (range_count < MOST_RANGES && mt_lines_next(&lines, line, sizeof(line))) {
			const char *at;
			uint64_t start = mt_number(line, &at, 16), end = *at == '-' ? mt_number(at + 1, &at, 16) : 0;
			if (*at == ' ')
				ranges[range_count++] = (struct range){ start, end, prot_of(at + 1) };
		}
		mt_lines_close(&lines);
	}
	if (buffer)
		mt_sys_unmap(buffer, BUFFER);
	return range_count != 0;
}

static void drop_ranges(void)
{
	if (ranges)
		mt_sys_unmap(ranges, MOST_RANGES * sizeof(*ranges));
	ranges = NULL;
}

/* -1: nothing is mapped there. */
static int protection(uintptr_t at)
{
	uint32_t low = 0, high = range_count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (ranges[mid].end <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low < range_count && ranges[low].start <= at ? ranges[low].prot : -1;
}

static bool store(uintptr_t at, void *value)
{
	uintptr_t page = mt_libc()->getauxval(AT_PAGESZ), start = at & -page;
	int prot = protection(at);

	if (prot < 0 || at & (sizeof(void *) - 1))
		return false;
	if (!(prot & PROT_WRITE) && mt_sys_failed(MT_SYS3(SYS_mprotect, start, page, prot | PROT_WRITE)))
		return false;
	/* threads are calling through it */
	__atomic_store_n((void **)at, value, __ATOMIC_RELEASE);
	if (!(prot & PROT_WRITE))
		MT_SYS3(SYS_mprotect, start, page, prot);
	return true;
}

/* ---- what words had ---- */

static struct slot {
	uintptr_t at;
	void *old; /* the function, also where the word led to the loader, which would have bound it */
} *slots;          /* SLOTS, by a hash of `at` */
static uint32_t slot_count;

static struct slot *slot_of(uintptr_t at)
{
	uint32_t i = (uint32_t)(at >> 3) * 0x9e3779b1u;

	for (i ^= i >> 15; slots[i % SLOTS].at && slots[i % SLOTS].at != at; i++)
		;
	return &slots[i % SLOTS];
}

static void remember(uintptr_t at, void *old)
{
	struct slot *s;

	if (!slots && !(slots = mt_sys_pages(SLOTS * sizeof(*slots))))
		return;
	s = slot_of(at);
	if (!s->at && slot_count < SLOTS / 2) {
		slot_count++;
		*s = (struct slot){ at, old };
	}
}

/* ---- one look over all modules ---- */

/* Which hook a function of another module stands for. */
struct known {
	void *function;
	const char *name; /* ours */
	void *hook;
};

struct look {
	bool undo;
	uint32_t index, words;
	struct mt_symbols own, program; /* program.table NULL: it exports nothing */
	struct known known[KNOWN];
};

/* The version that a reference asks for, or NULL. */
static const char *wanted_version(const struct dl_phdr_info *info, const struct mt_symbols *s, uint32_t symbol)
{
	const ElfW(Verneed) *need = NULL;
	unsigned index = s->versions ? s->versions[symbol] & 0x7fff : 0;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			for (const ElfW(Dyn) *d = (const void *)(s->bias + info->dlpi_phdr[i].p_vaddr); d->d_tag; d++)
				if (d->d_tag == DT_VERNEED)
					need = (const void *)(d->d_un.d_ptr < s->bias ? d->d_un.d_ptr + s->bias
										      : d->d_un.d_ptr);
	for (; need && index > 1; need = need->vn_next ? (const void *)((const char *)need + need->vn_next) : NULL) {
		const ElfW(Vernaux) *aux = (const void *)((const char *)need + need->vn_aux);
		for (unsigned n = need->vn_cnt; n--; aux = (const void *)((const char *)aux + aux->vna_next))
			if ((aux->vna_other & 0x7fff) == index)
				return s->names + aux->vna_name;
	}
	return NULL;
}

/* What the loader would have bound the reference to, of ours. */
static void *hook_for(struct look *l, const struct dl_phdr_info *info, const struct mt_symbols *s, uint32_t symbol)
{
	const char *name = s->names + s->table[symbol].st_name, *version;
	void *hook = mt_symbols_find(&l->own, name);

	if (!hook) {
		version = wanted_version(info, s, symbol);
		hook = mt_symbols_find_version(&l->own, name, version ? version : "MEMTRACE_HOOKS");
	}
	/* the program's own comes before any library's */
	return hook && l->program.table && mt_symbols_find(&l->program, name) ? NULL : hook;
}

struct asked {
	const void *function;
	const char *name;
	int defines;
};

static int visit_defining(struct dl_phdr_info *info, size_t size, void *data)
{
	struct asked *a = data;
	struct mt_symbols s;

	(void)size;
	if (!mt_symbols_segment(info, a->function))
		return 0;
	a->defines = mt_symbols_of(info, &s) && mt_symbols_defines(&s, a->name, a->function);
	return 1;
}

/* Is it a definition of that name, of whichever module and version? */
static bool is_definition(struct look *l, const char *name, void *function, void *hook)
{
	struct asked a = { function, name, 0 };
	struct known *k = &l->known[((uintptr_t)function >> 4 ^ (uintptr_t)hook >> 4) % KNOWN];

	if (k->function == function && k->hook == hook)
		return k->name != NULL;
	mt_libc()->dl_iterate_phdr(visit_defining, &a);
	*k = (struct known){ function, a.defines ? name : NULL, hook };
	return a.defines;
}

/* A word of the procedure linkage table that leads to the loader, through the module's own code. */
static bool is_unbound(const struct dl_phdr_info *info, const ElfW(Sym) * symbol, const void *value)
{
	const ElfW(Phdr) *segment = mt_symbols_segment(info, value);

	return symbol->st_shndx == SHN_UNDEF && segment && segment->p_flags & PF_X;
}

static void *function_of(const char *name)
{
	return mt_symbols_search(MT_ANY, NULL, name, NULL);
}

static void rewrite(struct look *l, const struct dl_phdr_info *info, const struct mt_symbols *s, const ElfW(Rela) * r,
		    bool plt)
{
	uint32_t symbol = (uint32_t)ELF64_R_SYM(r->r_info);
	uintptr_t at = s->bias + r->r_offset;
	void *hook = r->r_addend && !plt ? NULL : hook_for(l, info, s, symbol), *value, *old;

	if (!hook || protection(at) < 0)
		return;
	value = __atomic_load_n((void **)at, __ATOMIC_RELAXED);
	if (value == hook)
		l->words++;
	if (!value || value == hook || mt_is_own(value))
		return;
	old = value;
	if (plt && is_unbound(info, &s->table[symbol], value))
		old = function_of(s->names + s->table[symbol].st_name);
	else if (!is_definition(l, s->names + s->table[symbol].st_name, value, hook))
		return;
	if (old && store(at, hook)) {
		remember(at, old);
		l->words++;
	}
}

static void restore(const struct mt_symbols *s, const ElfW(Rela) * r)
{
	uintptr_t at = s->bias + r->r_offset;
	void *value = protection(at) < 0 ? NULL : __atomic_load_n((void **)at, __ATOMIC_RELAXED), *old;
	struct slot *slot = slots && mt_is_own(value) ? slot_of(at) : NULL;

	if (!mt_is_own(value))
		return;
	old = slot && slot->at ? slot->old : function_of(s->names + s->table[ELF64_R_SYM(r->r_info)].st_name);
	if (old)
		store(at, old);
}

/* The loader makes the relocated words read-only when it is done with a module. */
static bool is_ready(const struct dl_phdr_info *info)
{
	uintptr_t page = mt_libc()->getauxval(AT_PAGESZ);

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = (info->dlpi_addr + ph->p_vaddr) & -page,
			  end = (info->dlpi_addr + ph->p_vaddr + ph->p_memsz) & -page;
		if (ph->p_type == PT_GNU_RELRO && start < end)
			return !(protection(start) & PROT_WRITE);
	}
	return true;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct look *l = data;
	struct mt_symbols s;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
		seen_adds = info->dlpi_adds;
	l->index++;
	if (mt_symbols_segment(info, (const void *)(uintptr_t)visit) || !mt_symbols_of(info, &s))
		return 0;
	if (l->index == 1)
		l->program = s;
	if (!is_ready(info))
		return 0;
	for (int t = 0; t < 2; t++)
		for (size_t i = t ? 0 : s.relative; i < s.relocations[t].count; i++) {
			const ElfW(Rela) *r = &s.relocations[t].rows[i];
			if (!mt_arch_is_address((uint32_t)ELF64_R_TYPE(r->r_info)))
				continue;
			if (l->undo)
				restore(&s, r);
			else
				rewrite(l, info, &s, r, t == 1);
		}
	return 0;
}

static int find_own(struct dl_phdr_info *info, size_t size, void *own)
{
	(void)size;
	return mt_symbols_segment(info, (const void *)(uintptr_t)find_own) != NULL && mt_symbols_of(info, own);
}

/* Returns the number of words, or -1: it is not to be done now. */
static int64_t look(bool undo)
{
	struct look *l;
	uint32_t no = 0;
	int64_t words = -1;
	uint64_t signals;

	if (mt_sys_quiet() || !__atomic_compare_exchange_n(&busy, &no, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return -1;
	mt_sys_block_signals(&signals);
	l = mt_sys_pages(sizeof(*l));
	if (l) {
		l->undo = undo;
		if (mt_libc()->dl_iterate_phdr(find_own, &l->own) && read_ranges()) {
			mt_libc()->dl_iterate_phdr(visit, l);
			words = l->words;
		}
		drop_ranges();
		mt_sys_unmap(l, sizeof(*l));
	}
	mt_sys_restore_signals(&signals);
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return words;
}

/* ---- the loader's list of global modules ---- */

struct scope {
	struct link_map **list;
	uint32_t count;
};

static struct link_map *own_map, *main_map;
static struct scope *scope; /* in main_map; NULL = not recognized */

static void find_maps(void)
{
	extern struct r_debug _r_debug __attribute__((weak));
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));

	main_map = &_r_debug ? _r_debug.r_map : NULL;
	for (own_map = main_map; own_map && own_map->l_addr != (uintptr_t)__ehdr_start; own_map = own_map->l_next)
		;
}

/* A pointer to modules, of which the program is the first and we are one, and how many they are. */
static bool is_scope(const struct scope *s)
{
	struct link_map *first = NULL, *second = NULL, *last = NULL;

	return s->count >= 3 && s->count < 65536 && mt_peek_plausible((uintptr_t)s->list) &&
	       mt_peek_copy(&first, (uintptr_t)&s->list[0], sizeof(first)) && first == main_map &&
	       mt_peek_copy(&second, (uintptr_t)&s->list[1], sizeof(second)) &&
	       mt_peek_copy(&last, (uintptr_t)&s->list[s->count - 1], sizeof(last)) &&
	       (last == own_map || second == own_map);
}

static struct scope *find_scope(void)
{
	uintptr_t words[LINKS];
	size_t i = sizeof(struct link_map) / sizeof(void *);

	if (!own_map || !mt_peek_copy(words, (uintptr_t)main_map, sizeof(words)))
		return NULL;
	for (; i + 1 < LINKS; i++) {
		struct scope s = { (struct link_map **)words[i], (uint32_t)words[i + 1] };
		if (is_scope(&s))
			return (struct scope *)((uintptr_t *)main_map + i);
	}
	return NULL;
}

/* To the second place. Threads that search the list at that moment go upwards, and so do the others: none is missed. */
static void move_up(void)
{
	Dl_info self;
	void *handle;

	find_maps();
	if (!own_map || !mt_libc()->dladdr((const void *)(uintptr_t)move_up, &self))
		return;
	handle = mt_libc()->dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
	if (!handle)
		return;
	scope = find_scope();
	if (!scope || scope->list[1] == own_map)
		return;
	for (uint32_t i = scope->count - 1; i > 1; i--)
		__atomic_store_n(&scope->list[i], scope->list[i - 1], __ATOMIC_RELEASE);
	__atomic_store_n(&scope->list[1], own_map, __ATOMIC_RELEASE);
}

/* ---- what others call ---- */

static void set(uint8_t on)
{
	__atomic_store_n(&mt_relocated, on, __ATOMIC_RELEASE);
	__atomic_store_n(&mt_dlsym_waits, on && !scope, __ATOMIC_RELEASE);
}

uint32_t mt_relocate(void)
{
	int64_t words;

	if (!scope)
		move_up();
	words = look(false);
	if (words > 0)
		set(1);
	return words > 0 ? (uint32_t)words : 0;
}

void mt_relocate_undo(void)
{
	if (__atomic_load_n(&mt_relocated, __ATOMIC_RELAXED) && look(true) >= 0)
		set(0);
}

static int count_adds(struct dl_phdr_info *info, size_t size, void *adds)
{
	(void)size;
	*(unsigned long long *)adds = info->dlpi_adds;
	return 1;
}

void mt_relocate_later(void)
{
	unsigned long long adds = 0;

	if (!__atomic_load_n(&mt_dlsym_waits, __ATOMIC_ACQUIRE))
		return;
	mt_libc()->dl_iterate_phdr(count_adds, &adds);
	if (adds != seen_adds)
		look(false);
}

static const struct mt_dlsym_look at_dlsym = { mt_relocate_later };
MT_SET_ADD(mt_dlsym_look, at_dlsym);
