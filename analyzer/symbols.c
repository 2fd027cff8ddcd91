/*
 * libdwfl finds the pieces (separate debug files by build id or .gnu_debuglink, .gnu_debugdata) and is then left
 * alone: its look-ups are linear in the number of symbols, and libtorch_cpu has 450,000. Functions with DWARF
 * come from dwarf.c; the others from symbol_table.c, and those that strip took the symbol of from symbol_parts.c.
 */
#include "analyzer/symbols.h"

#include "analyzer/dwarf.h"
#include "analyzer/error.h"
#include "analyzer/names.h"
#include "analyzer/symbol_parts.h"
#include "analyzer/symbol_table.h"
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

#define MAX_FRAMES MT_SYMBOLS_MAX_FRAMES

#define SERVERS "DEBUGINFOD_URLS"
#define DEBUG_PATH "MEMTRACE_DEBUG_PATH"

struct text {
	UT_hash_handle hh;
	char string[];
};

/* The names made from one symbol. */
struct name {
	UT_hash_handle hh;
	const char *function, *shown, *language;
	char symbol[];
};

struct place {
	UT_hash_handle hh;
	struct {
		struct symbol_module *module;
		uint64_t address;
	} key;
	bool told; /* by symbols_know() */
	size_t count;
	struct frame frames[];
};

struct symbol_module {
	UT_hash_handle hh;
	enum symbol_state state;
	bool wanted;               /* symbols_want() */
	uint64_t seen_ns;
	const char *path;
	bool open;                 /* all to `parts` are what the file is read with */
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct dwarf_index *dwarf; /* NULL: none */
	uint64_t dwarf_bias;       /* of addresses in a separate debug file */
	struct symbol_table *table; /* NULL: not wanted yet */
	struct symbol_parts *parts; /* the same */
	size_t key_bytes;
	size_t build_id_bytes;
	unsigned char key[]; /* build id, then path */
};

struct symbols {
	struct symbol_module *modules;
	struct place *places;
	struct name *names;
	struct text *texts;
	char *servers; /* DEBUGINFOD_URLS as it was */
	char *debug_path;
	Dwfl_Callbacks callbacks;
};

struct symbols *symbols_new(void)
{
	static char debug_path[] = ":.debug:/usr/lib/debug";
	struct symbols *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	const char *servers = getenv(SERVERS);
	s->servers = servers ? strdup(servers) : NULL;
	unsetenv(SERVERS); /* offline means offline: libdwfl would ask servers for each module */
	s->debug_path = getenv(DEBUG_PATH) ? getenv(DEBUG_PATH) : debug_path;
	s->callbacks = (Dwfl_Callbacks){
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &s->debug_path,
	};
	return s;
}

void symbols_use_servers(struct symbols *s)
{
	if (s->servers)
		setenv(SERVERS, s->servers, 1);
}

/* What was found stays. */
static void close_module(struct symbol_module *m)
{
	dwarf_index_free(m->dwarf);
	if (m->dwfl)
		dwfl_end(m->dwfl);
	symbol_parts_free(m->parts);
	symbol_table_free(m->table);
	m->dwarf = NULL;
	m->dwfl = NULL;
	m->module = NULL;
	m->table = NULL;
	m->parts = NULL;
	m->open = false;
}

static void module_free(struct symbol_module *m)
{
	close_module(m);
	free(m);
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	struct place *place, *next_place;
	HASH_ITER(hh, s->places, place, next_place) {
		HASH_DEL(s->places, place);
		free(place);
	}
	struct symbol_module *module, *next_module;
	HASH_ITER(hh, s->modules, module, next_module) {
		HASH_DEL(s->modules, module);
		module_free(module);
	}
	struct name *name, *next_name;
	HASH_ITER(hh, s->names, name, next_name) {
		HASH_DEL(s->names, name);
		free(name);
	}
	struct text *text, *next_text;
	HASH_ITER(hh, s->texts, text, next_text) {
		HASH_DEL(s->texts, text);
		free(text);
	}
	free(s->servers);
	free(s);
}

/* ---- strings ------------------------------------------------------------------------------------------- */

static const char *intern(struct symbols *s, const char *string)
{
	struct text *text;
	if (!string)
		return NULL;
	size_t n = strlen(string);
	HASH_FIND(hh, s->texts, string, n, text);
	if (text)
		return text->string;
	text = malloc(sizeof(*text) + n + 1);
	if (!text)
		return NULL;
	memcpy(text->string, string, n + 1);
	HASH_ADD_KEYPTR(hh, s->texts, text->string, n, text);
	return text->string;
}

static const char *intern_and_free(struct symbols *s, char *string)
{
	const char *kept = intern(s, string);
	free(string);
	return kept;
}

static const struct name *name_of(struct symbols *s, const char *symbol)
{
	struct name *name;
	size_t n = strlen(symbol);
	HASH_FIND(hh, s->names, symbol, n, name);
	if (name)
		return name;
	name = calloc(1, sizeof(*name) + n + 1);
	if (!name)
		return NULL;
	memcpy(name->symbol, symbol, n + 1);
	char *demangled = name_demangle(symbol);
	name->function = intern(s, demangled ? demangled : symbol);
	name->shown = intern_and_free(s, name_shorten(demangled ? demangled : symbol));
	name->language = demangled ? name_language(symbol) : NULL;
	free(demangled);
	HASH_ADD_KEYPTR(hh, s->names, name->symbol, n, name);
	return name;
}

static void put_name(struct frame *frame, const struct name *name)
{
	if (!name)
		return;
	frame->function = name->function;
	frame->name = name->shown;
	if (name->language)
		frame->language = name->language;
}

static void set_name(struct symbols *s, struct frame *frame, const char *symbol)
{
	put_name(frame, symbol ? name_of(s, symbol) : NULL);
}

/* ---- modules ------------------------------------------------------------------------------------------- */

struct symbol_module *symbols_module(struct symbols *s, const struct module_id *id)
{
	size_t path_bytes = strlen(id->path) + 1, n = id->build_id_bytes + path_bytes;
	struct symbol_module *m = calloc(1, sizeof(*m) + n), *known;
	if (!m)
		return NULL;
	if (id->build_id_bytes)
		memcpy(m->key, id->build_id, id->build_id_bytes);
	memcpy(m->key + id->build_id_bytes, id->path, path_bytes);
	HASH_FIND(hh, s->modules, m->key, n, known);
	if (known) {
		if (!known->seen_ns) /* so far only told of */
			known->seen_ns = id->seen_ns;
		free(m);
		return known;
	}
	m->path = (const char *)m->key + id->build_id_bytes;
	m->key_bytes = n;
	m->build_id_bytes = id->build_id_bytes;
	m->seen_ns = id->seen_ns;
	HASH_ADD_KEYPTR(hh, s->modules, m->key, n, m);
	return m;
}

enum symbol_state symbols_state(const struct symbol_module *m)
{
	return m->state;
}

struct module_id symbols_id(const struct symbol_module *m)
{
	return (struct module_id){ m->path, m->key, m->build_id_bytes, m->seen_ns };
}

void symbols_want(struct symbol_module *m)
{
	m->wanted = true;
}

bool symbols_wanted(const struct symbol_module *m)
{
	return m->wanted;
}

const char *symbols_path(const struct symbol_module *m)
{
	return m->path;
}

struct symbol_module *symbols_next(const struct symbols *s, const struct symbol_module *m)
{
	return m ? m->hh.next : s->modules;
}

/* A regular file, or -1. A path from a trace may name anything, also a pipe that would block. */
static int open_module(const char *path, struct stat *st)
{
	if (path[0] != '/')
		return -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_as_recorded(const struct symbol_module *m, Elf *elf, const struct stat *st)
{
	const void *id;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &id);
	if (n > 0 || m->build_id_bytes)
		return n > 0 && (size_t)n == m->build_id_bytes && memcmp(id, m->key, (size_t)n) == 0;
	uint64_t modified = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
	return m->seen_ns == 0 || modified <= m->seen_ns;
}

/* Takes fd. */
static enum symbol_state check_module(const struct symbol_module *m, int fd, const struct stat *st)
{
	enum symbol_state state = SYMBOLS_REPLACED;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && is_as_recorded(m, elf, st))
		state = SYMBOLS_READ;
	elf_end(elf);
	close(fd);
	return state;
}

static void load_dwarf(struct symbol_module *m)
{
	Dwarf_Addr bias = 0;
	Dwarf *dwarf = dwfl_module_getdwarf(m->module, &bias);
	if (!dwarf)
		return;
	m->dwarf = dwarf_index_new(dwarf);
	m->dwarf_bias = bias;
}

static void load_module(struct symbols *s, struct symbol_module *m)
{
	struct stat st;
	int fd = open_module(m->path, &st);
	m->state = fd < 0 ? SYMBOLS_MISSING : check_module(m, fd, &st);
	if (m->state != SYMBOLS_READ)
		return;
	m->open = true;
	m->dwfl = dwfl_begin(&s->callbacks);
	if (!m->dwfl)
		return;
	m->module = dwfl_report_elf(m->dwfl, m->path, m->path, -1, 0, true);
	dwfl_report_end(m->dwfl, NULL, NULL);
	if (m->module)
		load_dwarf(m);
}

/* ---- look-up ------------------------------------------------------------------------------------------- */

static const char *language_name(int code)
{
	switch (code) {
	case 0: return NULL;
	case DW_LANG_C: case DW_LANG_C89: case DW_LANG_C99: case DW_LANG_C11: return "c";
	case DW_LANG_C_plus_plus: case DW_LANG_C_plus_plus_03: case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14: return "c++";
	case DW_LANG_Rust: return "rust";
	case DW_LANG_Fortran77: case DW_LANG_Fortran90: case DW_LANG_Fortran95: case DW_LANG_Fortran03:
	case DW_LANG_Fortran08: return "fortran";
	case DW_LANG_Go: return "go";
	case DW_LANG_D: return "d";
	case DW_LANG_Ada83: case DW_LANG_Ada95: return "ada";
	case DW_LANG_Mips_Assembler: return "assembly";
	}
	return NULL;
}

static void set_source(struct symbols *s, struct frame *frame, const struct source *source)
{
	frame->language = language_name(source->language);
	frame->file = intern(s, source->file);
	frame->line = source->line;
	frame->inlined = source->inlined;
	set_name(s, frame, source->linkage ? source->linkage : source->name);
}

/* Lambdas and local functions have no linkage name in DWARF, so a symbol says more than its bare "operator()". */
static bool wants_symbol(const struct frame *frame, const struct source *source)
{
	return !frame->function || (!source->linkage && !source->inlined && frame->language &&
				    strcmp(frame->language, "c") != 0);
}

static const struct name *part_at(struct symbols *s, struct symbol_module *m, uint64_t address)
{
	if (!m->parts && m->table && m->module)
		m->parts = symbol_parts_new(m->module, m->table, m->path);
	const char *symbol = m->parts ? symbol_parts_find(m->parts, address) : NULL;
	return symbol ? name_of(s, symbol) : NULL;
}

/* What the module's symbol table says; the names made of a symbol are kept with it. */
static const struct name *symbol_at(struct symbols *s, struct symbol_module *m, uint64_t address)
{
	const void **kept;
	if (!m->table)
		m->table = symbol_table_new(m->module);
	const char *symbol = m->table ? symbol_table_find(m->table, address, &kept) : NULL;
	if (symbol && !*kept)
		*kept = name_of(s, symbol);
	return symbol ? *kept : part_at(s, m, address);
}

static size_t resolve(struct symbols *s, struct symbol_module *m, uint64_t address, struct frame *frames)
{
	struct source sources[MAX_FRAMES] = { 0 };
	size_t count = m->dwarf ? dwarf_find(m->dwarf, address - m->dwarf_bias, sources, MAX_FRAMES) : 0;
	for (size_t i = 0; i < count; i++)
		set_source(s, &frames[i], &sources[i]);
	size_t last = count ? count - 1 : 0;
	if (wants_symbol(&frames[last], &sources[last]))
		put_name(&frames[last], symbol_at(s, m, address));
	return last + 1;
}

static void open_if_closed(struct symbols *s, struct symbol_module *m)
{
	if (m->state == SYMBOLS_UNREAD || (m->state == SYMBOLS_READ && !m->open))
		load_module(s, m);
}

static size_t look_up(struct symbols *s, struct symbol_module *m, uint64_t address, struct frame *frames)
{
	size_t count = 1;
	if (m)
		open_if_closed(s, m);
	if (m && m->state == SYMBOLS_READ)
		count = resolve(s, m, address, frames);
	for (size_t i = 0; i < count; i++) {
		frames[i].library = m ? m->path : NULL;
		frames[i].offset = address;
	}
	return count;
}

static struct place *place_add(struct symbols *s, struct symbol_module *m, uint64_t address, const struct frame *frames,
			       size_t count)
{
	struct place *place = calloc(1, sizeof(*place) + count * sizeof(*frames));
	if (!place)
		return NULL;
	place->key.module = m;
	place->key.address = address;
	place->count = count;
	memcpy(place->frames, frames, count * sizeof(*frames));
	HASH_ADD(hh, s->places, key, sizeof(place->key), place);
	return place;
}

static struct place *place_find(const struct symbols *s, struct symbol_module *m, uint64_t address)
{
	struct place *place, key = { .key = { m, address } };
	HASH_FIND(hh, s->places, &key.key, sizeof(key.key), place);
	return place;
}

size_t symbols_find(struct symbols *s, struct symbol_module *m, uint64_t address, const struct frame **frames)
{
	static const struct frame unknown;
	struct place *place = place_find(s, m, address);
	if (!place) {
		struct frame found[MAX_FRAMES] = { 0 };
		size_t count = look_up(s, m, address, found);
		place = place_add(s, m, address, found, count);
	}
	*frames = place ? place->frames : &unknown;
	return place ? place->count : 1;
}

static int by_file(const void *a, const void *b)
{
	const struct symbol_place *x = a, *y = b;
	if (x->module != y->module)
		return (uintptr_t)x->module < (uintptr_t)y->module ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

static int by_unit(const void *a, const void *b)
{
	const struct symbol_place *x = a, *y = b;
	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* Unit after unit, since each is read for its first address, and not all can be kept: the linker may have mixed their functions.
 * `count` is the unit until the frames are known. */
static void sort_by_unit(const struct symbol_module *m, struct symbol_place *places, size_t count)
{
	for (size_t i = 0; i < count; i++)
		places[i].count = dwarf_unit(m->dwarf, places[i].address - m->dwarf_bias);
	qsort(places, count, sizeof(*places), by_unit);
}

static bool are_known(const struct symbols *s, const struct symbol_place *places, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!place_find(s, places[i].module, places[i].address))
			return false;
	return true;
}

/* All places of one module. */
static void look_through(struct symbols *s, struct symbol_place *places, size_t count)
{
	struct symbol_module *m = places->module;
	if (!are_known(s, places, count))
		open_if_closed(s, m);
	if (m->dwarf)
		sort_by_unit(m, places, count);
	for (size_t i = 0; i < count; i++) {
		bool leaves_unit = i + 1 < count && places[i + 1].count != places[i].count;
		places[i].count = (uint32_t)symbols_find(s, m, places[i].address, &places[i].frames);
		if (leaves_unit && m->dwarf && dwarf_is_large(m->dwarf))
			close_module(m);
	}
	close_module(m);
}

void symbols_look_ahead(struct symbols *s, struct symbol_place *places, size_t count)
{
	qsort(places, count, sizeof(*places), by_file);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && places[to].module == places[from].module; to++)
			;
		look_through(s, places + from, to - from);
	}
}

/* ---- symbols that travel ------------------------------------------------------------------------------- */

static struct frame own_frame(struct symbols *s, const struct symbol_module *m, uint64_t address, const struct frame *f)
{
	struct frame own = { .library = m->path, .offset = address, .line = f->line, .inlined = f->inlined };
	set_name(s, &own, f->function);
	own.file = intern(s, f->file);
	own.language = intern(s, f->language);
	return own;
}

int symbols_know(struct symbols *s, struct symbol_module *m, uint64_t address, const struct frame *frames, size_t count)
{
	struct frame own[MAX_FRAMES];
	struct place *place = place_find(s, m, address);
	if (count == 0 || count > MAX_FRAMES || (place && (place->told || m->state == SYMBOLS_READ)))
		return 0;
	if (place)
		HASH_DEL(s->places, place);
	free(place);
	for (size_t i = 0; i < count; i++)
		own[i] = own_frame(s, m, address, &frames[i]);
	place = place_add(s, m, address, own, count);
	if (!place)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	place->told = true;
	return 0;
}

static int by_module_and_address(const void *a, const void *b)
{
	const struct symbol_place *x = a, *y = b;
	const struct symbol_module *m = x->module, *n = y->module;
	if (m == n)
		return (x->address > y->address) - (x->address < y->address);
	int order = memcmp(m->key, n->key, m->key_bytes < n->key_bytes ? m->key_bytes : n->key_bytes);
	return order ? order : m->key_bytes < n->key_bytes ? -1 : 1;
}

int symbols_places(const struct symbols *s, struct symbol_place **places, size_t *count)
{
	*count = 0;
	*places = calloc(HASH_COUNT(s->places) + 1, sizeof(**places));
	if (!*places)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (const struct place *p = s->places; p; p = p->hh.next)
		if (p->key.module && (p->told || p->key.module->state == SYMBOLS_READ))
			(*places)[(*count)++] = (struct symbol_place){ p->key.module, p->key.address, p->frames, (uint32_t)p->count, 0 };
	qsort(*places, *count, sizeof(**places), by_module_and_address);
	return 0;
}
