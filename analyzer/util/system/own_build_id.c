#include "analyzer/util/system/own_build_id.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

static size_t padded(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

static void look_into(const char *at, const char *end, struct own_build_id *found)
{
	while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *head = (const void *)at;
		const char *name = at + sizeof(*head), *bytes = name + padded(head->n_namesz);
		if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			*found = (struct own_build_id){ (const unsigned char *)bytes, head->n_descsz };
		at = bytes + padded(head->n_descsz);
	}
}

/* The program comes first. */
static int find_build_id(struct dl_phdr_info *info, size_t size, void *found)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const char *at = (const char *)(uintptr_t)(info->dlpi_addr + p->p_vaddr);
		if (p->p_type == PT_NOTE)
			look_into(at, at + p->p_memsz, found);
	}
	return 1;
}

struct own_build_id own_build_id(void)
{
	struct own_build_id id = { NULL, 0 };
	dl_iterate_phdr(find_build_id, &id);
	return id;
}
