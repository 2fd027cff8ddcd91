#include "analyzer/help/version.h"
#include "analyzer/util/print.h"
#include "format/format.h"
#include "format/version.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include <jansson.h>
#include <link.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

/* ---- the build id: the GNU note of this program's own file ------------------------------------------------- */

struct own_note {
	const unsigned char *bytes; /* borrowed from the mapped program; NULL = it has none */
	size_t count;
};

static size_t padded(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

static void look_into(const char *at, const char *end, struct own_note *found)
{
	while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *head = (const void *)at;
		const char *name = at + sizeof(*head), *bytes = name + padded(head->n_namesz);
		if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			*found = (struct own_note){ (const unsigned char *)bytes, head->n_descsz };
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

static void print_build_id(void)
{
	struct own_note id = { NULL, 0 };
	dl_iterate_phdr(find_build_id, &id);
	print("  build id      ");
	for (size_t i = 0; i < id.count; i++)
		print("%02x", id.bytes[i]);
	print("%s\n", id.count ? "" : "none");
}

/* ---- libraries --------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "another machine"
#endif

static void print_machine(void)
{
#ifdef __GLIBC__
	print("  machine       " MACHINE ", glibc %s\n", gnu_get_libc_version());
#else
	print("  machine       " MACHINE ", not glibc\n");
#endif
}

/* A shared library's functions are in another file than we are. */
static int find_library(struct dl_phdr_info *info, size_t size, void *name)
{
	(void)size;
	const char *base = strrchr(info->dlpi_name, '/');
	return base && !strncmp(base + 1, name, strlen(name));
}

static void print_library(const char *name, const char *version, char *file)
{
	print("  %-13s %s, %s\n", name, version,
	      dl_iterate_phdr(find_library, file) ? "the system's library" : "built in");
}

void version_print(void)
{
	print("memtrace " MEMTRACE_VERSION "\n");
	print_build_id();
	print("  reads         trace format %d\n", MT_VERSION);
	print_machine();
	print_library("libdw", dwfl_version(NULL), "libdw");
	print_library("zstd", ZSTD_versionString(), "libzstd");
	print_library("zlib", zlibVersion(), "libz.");
	print_library("jansson", jansson_version_str(), "libjansson");
}
