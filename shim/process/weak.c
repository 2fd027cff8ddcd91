/*
 * `if (cuMemAlloc_v2)`: a weak reference is how a program that was linked without CUDA's driver or CANN asks whether
 * they are there. The loader binds it to our export of that name, since such references have no version that would tell
 * what they mean. Where no module but us defines the name, the words that hold our address are made 0 again, before the
 * program begins.
 *
 * It is not done in modules that are loaded later: they are met when they are already running, between the question and
 * the call maybe.
 */
#include <sys/auxv.h>
#include <sys/mman.h>

#include "shim/arch/arch.h"
#include "shim/base/elfsearch.h"
#include "shim/base/elfsym.h"
#include "shim/base/libc.h"
#include "shim/base/sys.h"
#include "shim/hooks/dlsym.h"
#include "shim/host/new.h"
#include "shim/process/weak.h"

/* Has the loader made the page read-only after the relocation? As it does: whole pages, rounded down at either end. */
static int is_locked(const struct dl_phdr_info *info, uintptr_t at, uintptr_t page)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;
		if (ph->p_type == PT_GNU_RELRO && at >= (start & -page) && at < ((start + ph->p_memsz) & -page))
			return 1;
	}
	return 0;
}

static void clear_word(const struct dl_phdr_info *info, uintptr_t at)
{
	uintptr_t page = mt_libc()->getauxval(AT_PAGESZ), start = at & -page;
	int locked = is_locked(info, at, page);

	if (locked && mt_sys_failed(MT_SYS3(SYS_mprotect, start, page, PROT_READ | PROT_WRITE)))
		return;
	*(uintptr_t *)at = 0;
	if (locked)
		MT_SYS3(SYS_mprotect, start, page, PROT_READ);
}

static int is_in_vain(const struct mt_symbols *s, const ElfW(Sym) * sym)
{
	const char *name = s->names + sym->st_name;

	return sym->st_shndx == SHN_UNDEF && ELF64_ST_BIND(sym->st_info) == STB_WEAK &&
	       (mt_wrap_row(name) || mt_new_is(name)) && !mt_symbols_search(MT_ANY, NULL, name, NULL);
}

static int visit(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct mt_symbols s;

	(void)size;
	(void)unused;
	if (mt_symbols_segment(info, (const void *)(uintptr_t)visit) || !mt_symbols_of(info, &s))
		return 0;
	for (int t = 0; t < 2; t++)
		for (size_t i = t ? 0 : s.relative; i < s.relocations[t].count; i++) {
			const ElfW(Rela) *r = &s.relocations[t].rows[i];
			uintptr_t at = s.bias + r->r_offset;
			if (mt_arch_is_address((uint32_t)ELF64_R_TYPE(r->r_info)) && mt_is_own(*(void **)at) &&
			    is_in_vain(&s, &s.table[ELF64_R_SYM(r->r_info)]))
				clear_word(info, at);
		}
	return 0;
}

void mt_weak_boot(void)
{
	mt_libc()->dl_iterate_phdr(visit, NULL);
}
