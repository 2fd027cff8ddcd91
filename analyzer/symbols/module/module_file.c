/*
 * libdwfl finds the pieces (separate debug files by build id or .gnu_debuglink, .gnu_debugdata) and is then left
 * alone: its look-ups are linear in the number of symbols, and libtorch_cpu has 450,000. Functions with DWARF
 * come from debug_lines.c; the others from symbol_table.c, and those that strip took the symbol of from
 * stripped_code.c.
 */
#include "analyzer/symbols/module/module_file.h"

#include "analyzer/symbols/module/debug_lines.h"
#include "analyzer/symbols/module/demangle.h"
#include "analyzer/symbols/module/stripped_code.h"
#include "analyzer/symbols/module/symbol_table.h"
#include "format/format.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#define DEBUG_PATH "MEMTRACE_DEBUG_PATH"

/* What a symbol is called. */
struct name {
	UT_hash_handle hh;
	char *function; /* NULL: the symbol itself */
	const char *language;
	char symbol[];
};

struct module_files {
	struct name *names;
	char *debug_path;
	Dwfl_Callbacks callbacks;
};

struct module_file {
	struct module_files *files;
	int fd;
	struct stat st; /* as it was when it was opened */
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct debug_lines_index *dwarf; /* NULL: none */
	uint64_t dwarf_bias;             /* of addresses in a separate debug file */
	struct symbol_table *table;      /* NULL: not wanted yet */
	struct symbol_parts *parts;      /* the same */
	char path[];
};

struct module_files *module_files_new(void)
{
	static char debug_path[] = ":.debug:/usr/lib/debug";
	struct module_files *files = calloc(1, sizeof(*files));
	if (!files)
		return NULL;
	files->debug_path = getenv(DEBUG_PATH) ? getenv(DEBUG_PATH) : debug_path;
	files->callbacks = (Dwfl_Callbacks){
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &files->debug_path,
	};
	return files;
}

void module_files_free(struct module_files *files)
{
	struct name *name, *next;
	if (!files)
		return;
	HASH_ITER(hh, files->names, name, next)
	{
		HASH_DEL(files->names, name);
		free(name->function);
		free(name);
	}
	free(files);
}

/* ---- names --------------------------------------------------------------------------------------------- */

static const struct name *name_of(struct module_files *files, const char *symbol)
{
	struct name *name;
	size_t n = strlen(symbol);
	HASH_FIND(hh, files->names, symbol, n, name);
	if (name)
		return name;
	name = calloc(1, sizeof(*name) + n + 1);
	if (!name)
		return NULL;
	memcpy(name->symbol, symbol, n + 1);
	name->function = name_demangle(symbol);
	name->language = name->function ? name_language(symbol) : NULL;
	HASH_ADD_KEYPTR(hh, files->names, name->symbol, n, name);
	return name;
}

static void put_name(struct frame *frame, const struct name *name)
{
	if (!name)
		return;
	frame->function = name->function ? name->function : name->symbol;
	if (name->language)
		frame->language = name->language;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static bool is_as_recorded(const struct module_id *id, Elf *elf, const struct stat *st)
{
	const void *own;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &own);
	if (id->build_id_bytes || (n > 0 && !id->any_build_id))
		return n > 0 && (size_t)n == id->build_id_bytes && memcmp(own, id->build_id, (size_t)n) == 0;
	uint64_t modified = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
	return id->seen_ns == 0 || modified <= id->seen_ns;
}

static enum symbol_state check(const struct module_id *id, int fd, const struct stat *st)
{
	enum symbol_state state = SYMBOLS_REPLACED;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && is_as_recorded(id, elf, st))
		state = SYMBOLS_READ;
	elf_end(elf);
	return state;
}

static void load_dwarf(struct module_file *m)
{
	Dwarf_Addr bias = 0;
	Dwarf *dwarf = dwfl_module_getdwarf(m->module, &bias);
	if (!dwarf)
		return;
	m->dwarf = debug_lines_index_new(dwarf);
	m->dwarf_bias = bias;
}

/* libdwfl closes the descriptor that it is given. */
static void load(struct module_file *m)
{
	int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	m->dwfl = fd >= 0 ? dwfl_begin(&m->files->callbacks) : NULL;
	m->module = m->dwfl ? dwfl_report_elf(m->dwfl, m->path, m->path, fd, 0, true) : NULL;
	if (!m->module && fd >= 0)
		close(fd);
	if (!m->module)
		return;
	dwfl_report_end(m->dwfl, NULL, NULL);
	load_dwarf(m);
}

/* A path from a trace may name anything; what is no regular file is not opened here (see symbol_worker.c). */
struct module_file *module_file_open(struct module_files *files, const struct module_id *id, enum symbol_state *state)
{
	struct stat st;
	size_t n = strlen(id->path) + 1;
	int fd = *id->path == '/' ? open(id->path, O_RDONLY | O_CLOEXEC) : -1;
	*state = fd < 0 || fstat(fd, &st) ? SYMBOLS_MISSING : check(id, fd, &st);
	struct module_file *m = *state == SYMBOLS_READ ? calloc(1, sizeof(*m) + n) : NULL;
	if (!m) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	m->files = files;
	m->fd = fd;
	m->st = st;
	memcpy(m->path, id->path, n);
	load(m);
	return m;
}

void module_file_close(struct module_file *m)
{
	if (!m)
		return;
	debug_lines_index_free(m->dwarf);
	if (m->dwfl)
		dwfl_end(m->dwfl);
	stripped_code_free(m->parts);
	symbol_table_free(m->table);
	close(m->fd);
	free(m);
}

bool module_file_is_unchanged(const struct module_file *m)
{
	struct stat now;
	return !fstat(m->fd, &now) && now.st_size == m->st.st_size && now.st_mtim.tv_sec == m->st.st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == m->st.st_mtim.tv_nsec;
}

uint32_t module_file_unit(const struct module_file *m, uint64_t address)
{
	return m->dwarf ? debug_lines_unit(m->dwarf, address - m->dwarf_bias) : UINT32_MAX;
}

bool module_file_is_large(const struct module_file *m)
{
	return m->dwarf && debug_lines_is_large(m->dwarf);
}

/* ---- look-up ------------------------------------------------------------------------------------------- */

static const char *language_name(int code)
{
	switch (code) {
	case 0:
		return NULL;
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return "c";
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return "c++";
	case DW_LANG_Rust:
		return "rust";
	case DW_LANG_Fortran77:
	case DW_LANG_Fortran90:
	case DW_LANG_Fortran95:
	case DW_LANG_Fortran03:
	case DW_LANG_Fortran08:
		return "fortran";
	case DW_LANG_Go:
		return "go";
	case DW_LANG_D:
		return "d";
	case DW_LANG_Ada83:
	case DW_LANG_Ada95:
		return "ada";
	case DW_LANG_Mips_Assembler:
		return "assembly";
	}
	return NULL;
}

static void set_source(struct module_files *files, struct frame *frame, const struct source *source)
{
	const char *symbol = source->linkage ? source->linkage : source->name;
	frame->language = language_name(source->language);
	frame->file = source->file;
	frame->line = source->line;
	frame->inlined = source->inlined;
	put_name(frame, symbol ? name_of(files, symbol) : NULL);
}

/* Lambdas and local functions have no linkage name in DWARF, so a symbol says more than its bare "operator()". */
static bool wants_symbol(const struct frame *frame, const struct source *source)
{
	return !frame->function ||
	       (!source->linkage && !source->inlined && frame->language && strcmp(frame->language, "c") != 0);
}

static const struct name *part_at(struct module_file *m, uint64_t address)
{
	if (!m->parts && m->table && m->module)
		m->parts = stripped_code_new(m->module, m->table, m->path);
	const char *symbol = m->parts ? stripped_code_find(m->parts, address) : NULL;
	return symbol ? name_of(m->files, symbol) : NULL;
}

/* What the module's symbol table says; the names made of a symbol are kept with it. */
static const struct name *symbol_at(struct module_file *m, uint64_t address)
{
	const void **kept;
	if (!m->table)
		m->table = symbol_table_new(m->module);
	const char *symbol = m->table ? symbol_table_find(m->table, address, &kept) : NULL;
	if (symbol && !*kept)
		*kept = name_of(m->files, symbol);
	return symbol ? *kept : part_at(m, address);
}

size_t module_file_find(struct module_file *m, uint64_t address, struct frame *frames, size_t max)
{
	struct source sources[MT_SYMBOLS_MAX_FRAMES] = { 0 };
	max = max < MT_SYMBOLS_MAX_FRAMES ? max : MT_SYMBOLS_MAX_FRAMES;
	memset(frames, 0, max * sizeof(*frames));
	size_t count = m->dwarf ? debug_lines_find(m->dwarf, address - m->dwarf_bias, sources, max) : 0;
	for (size_t i = 0; i < count; i++)
		set_source(m->files, &frames[i], &sources[i]);
	size_t last = count ? count - 1 : 0;
	if (wants_symbol(&frames[last], &sources[last]))
		put_name(&frames[last], symbol_at(m, address));
	return last + 1;
}
