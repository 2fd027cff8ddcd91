#include "analyzer/help/version.h"
#include "analyzer/util/print.h"
#include "analyzer/util/system/own_build_id.h"
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

static void print_build_id(void)
{
	const struct own_build_id id = own_build_id();
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
