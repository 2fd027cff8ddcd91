#include "analyzer/symbols/module/symbols.h"

#include "analyzer/symbols/module/demangle.h"
#include "analyzer/symbols/module/symbol_answer.h"
#include "analyzer/symbols/module/symbol_cache.h"
#include "analyzer/symbols/module/symbol_worker.h"
#include "analyzer/util/error.h"
#include "format/format.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define MAX_FRAMES MT_SYMBOLS_MAX_FRAMES

#define SERVERS "DEBUGINFOD_URLS"

struct text {
	UT_hash_handle hh;
	char string[];
};

#define NAME_BYTES 64 /* of a program, as it was called */

/* A file that the worker asked for. */
struct opened {
	UT_hash_handle hh;
	struct symbol_opened file; /* path: the one below */
	char path[];
};

/* The short form of a function's name. */
struct name {
	UT_hash_handle hh;
	const char *shown;
	char function[];
};

struct place {
	UT_hash_handle hh;
	struct {
		struct symbol_module *module;
		uint64_t address;
	} key;
	bool told; /* by symbols_add_known() */
	size_t count;
	struct frame frames[];
};

struct symbol_module {
	UT_hash_handle hh;
	enum symbol_state state;
	bool wanted; /* symbols_mark_used() */
	bool cache_is_open;
	struct symbol_cache *cache; /* NULL: none */
	uint64_t seen_ns;
	bool any_build_id;
	const char *path;
	char *shown; /* as frames show it: the path, or with another name; has room for NAME_BYTES more */
	bool named;
	const char *why; /* of SYMBOLS_GIVEN_UP */
	size_t key_bytes;
	size_t build_id_bytes;
	unsigned char key[]; /* build id, then path; then what is shown */
};

struct symbols {
	struct symbol_module *modules;
	struct place *places;
	struct name *names;
	struct text *texts;
	struct opened *opened; /* by path */
	struct symbol_worker *worker;
	bool open_none;
	const char *cache; /* MEMTRACE_SYMBOL_CACHE, a folder; NULL: none */
	char *servers;     /* DEBUGINFOD_URLS as it was */
};

static void find_cache(struct symbols *s)
{
	s->cache = getenv(SYMBOL_CACHE_SETTING);
	if (s->cache && !*s->cache)
		s->cache = NULL;
}

struct symbols *symbols_new(void)
{
	struct symbols *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->worker = symbol_worker_new();
	if (!s->worker) {
		free(s);
		return NULL;
	}
	const char *servers = getenv(SERVERS);
	s->servers = servers ? strdup(servers) : NULL;
	unsetenv(SERVERS); /* offline means offline: libdwfl would ask servers for each module */
	find_cache(s);
	return s;
}

/* What they have may be another thing tomorrow, so then nothing is kept. */
void symbols_use_servers(struct symbols *s)
{
	if (!s->servers)
		return;
	setenv(SERVERS, s->servers, 1);
	s->cache = NULL;
}

void symbols_prepare(struct symbols *s)
{
	symbol_worker_start(s->worker);
}

void symbols_open_none(struct symbols *s)
{
	s->open_none = true;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	struct place *place, *next_place;
	HASH_ITER(hh, s->places, place, next_place)
	{
		HASH_DEL(s->places, place);
		free(place);
	}
	struct symbol_module *module, *next_module;
	HASH_ITER(hh, s->modules, module, next_module)
	{
		HASH_DEL(s->modules, module);
		symbol_cache_close(module->cache);
		free(module);
	}
	struct opened *opened, *next_opened;
	HASH_ITER(hh, s->opened, opened, next_opened)
	{
		HASH_DEL(s->opened, opened);
		free(opened);
	}
	struct name *name, *next_name;
	HASH_ITER(hh, s->names, name, next_name)
	{
		HASH_DEL(s->names, name);
		free(name);
	}
	struct text *text, *next_text;
	HASH_ITER(hh, s->texts, text, next_text)
	{
		HASH_DEL(s->texts, text);
		free(text);
	}
	symbol_worker_free(s->worker);
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

static const struct name *name_of(struct symbols *s, const char *function)
{
	struct name *name;
	size_t n = strlen(function);
	HASH_FIND(hh, s->names, function, n, name);
	if (name)
		return name;
	name = calloc(1, sizeof(*name) + n + 1);
	if (!name)
		return NULL;
	memcpy(name->function, function, n + 1);
	char *shown = name_shorten(function);
	name->shown = intern(s, shown);
	free(shown);
	HASH_ADD_KEYPTR(hh, s->names, name->function, n, name);
	return name;
}

/* Of a frame from elsewhere. */
static struct frame own_frame(struct symbols *s, const struct symbol_module *m, uint64_t address, const struct frame *f)
{
	struct frame own = { .library = m->shown, .offset = address, .line = f->line, .inlined = f->inlined };
	const struct name *name = f->function ? name_of(s, f->function) : NULL;
	own.function = name ? name->function : NULL;
	own.name = name ? name->shown : NULL;
	own.file = intern(s, f->file);
	own.language = intern(s, f->language);
	return own;
}

/* ---- modules ------------------------------------------------------------------------------------------- */

struct symbol_module *symbols_module(struct symbols *s, const struct module_id *id)
{
	size_t path_bytes = strlen(id->path) + 1, n = id->build_id_bytes + path_bytes;
	struct symbol_module *m = calloc(1, sizeof(*m) + n + path_bytes + NAME_BYTES), *known;
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
	m->shown = memcpy(m->key + n, id->path, path_bytes);
	m->key_bytes = n;
	m->build_id_bytes = id->build_id_bytes;
	m->seen_ns = id->seen_ns;
	m->any_build_id = id->any_build_id;
	HASH_ADD_KEYPTR(hh, s->modules, m->key, n, m);
	return m;
}

void symbols_show_as(struct symbol_module *m, const char *name)
{
	const char *slash = strrchr(m->path, '/'), *own = slash ? slash + 1 : m->path;
	const size_t before = (size_t)(own - m->path), bytes = strlen(name);
	if (!bytes || bytes >= NAME_BYTES || *name == '-' || strpbrk(name, " :") || !strncmp(own, name, bytes))
		return;
	strcpy(m->shown + before, m->named && strcmp(m->shown + before, name) ? own : name);
	m->named = true;
}

enum symbol_state symbols_state(const struct symbol_module *m)
{
	return m->state;
}

const char *symbols_why(const struct symbol_module *m)
{
	return m->why;
}

struct module_id symbols_id(const struct symbol_module *m)
{
	return (struct module_id){ m->path, m->key, m->build_id_bytes, m->seen_ns, m->any_build_id };
}

void symbols_mark_used(struct symbol_module *m)
{
	m->wanted = true;
}

bool symbols_is_used(const struct symbol_module *m)
{
	return m->wanted;
}

const char *symbols_shown(const struct symbol_module *m)
{
	return m->shown;
}

const char *symbols_path(const struct symbol_module *m)
{
	return m->path;
}

struct symbol_module *symbols_next(const struct symbols *s, const struct symbol_module *m)
{
	return m ? m->hh.next : s->modules;
}

/* ---- look-up ------------------------------------------------------------------------------------------- */

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

static struct place *place_of_nothing(struct symbols *s, struct symbol_module *m, uint64_t address)
{
	struct frame nothing = { .library = m ? m->shown : NULL, .offset = address };
	return place_add(s, m, address, &nothing, 1);
}

struct asking {
	struct symbols *symbols;
	struct symbol_module *module;
};

static void take_place(void *data, uint64_t address, const struct frame *frames, size_t count)
{
	struct asking *a = data;
	struct frame own[MAX_FRAMES];
	if (place_find(a->symbols, a->module, address))
		return;
	for (size_t i = 0; i < count; i++)
		own[i] = own_frame(a->symbols, a->module, address, &frames[i]);
	place_add(a->symbols, a->module, address, own, count);
}

/* Takes what the cache has. Returns how many addresses are left, at the front. */
static size_t ask_cache(struct asking *a, uint64_t *addresses, size_t count)
{
	struct symbol_module *m = a->module;
	struct frame frames[MAX_FRAMES];
	size_t left = 0, n;
	if (!m->cache_is_open && a->symbols->cache) {
		struct module_id id = symbols_id(m);
		m->cache = symbol_cache_open(a->symbols->cache, &id);
		m->cache_is_open = true;
	}
	if (!m->cache)
		return count;
	for (size_t i = 0; i < count; i++) {
		if (!symbol_cache_find(m->cache, addresses[i], frames, &n)) {
			addresses[left++] = addresses[i];
			continue;
		}
		take_place(a, addresses[i], frames, n);
		m->state = SYMBOLS_READ;
	}
	return left;
}

/* Once it can't be read it isn't tried again. */
static void note_opened(void *data, const struct symbol_opened *o)
{
	struct asking *a = data;
	struct opened *known;
	const size_t n = strlen(o->path);
	HASH_FIND(hh, a->symbols->opened, o->path, n, known);
	if (known || !(known = malloc(sizeof(*known) + n + 1)))
		return;
	memcpy(known->path, o->path, n + 1);
	known->file = *o;
	known->file.path = known->path;
	HASH_ADD_KEYPTR(hh, a->symbols->opened, known->path, n, known);
}

bool symbols_are_unchanged(const struct symbols *s)
{
	for (const struct opened *o = s->opened; o; o = o->hh.next)
		if (!symbol_opened_is_unchanged(&o->file))
			return false;
	for (const struct symbol_module *m = s->modules; m; m = m->hh.next)
		if (m->cache && !symbol_cache_is_unchanged(m->cache, m->path))
			return false;
	return true;
}

void symbols_resume(struct symbols *s)
{
	symbol_worker_forget(s->worker);
	find_cache(s);
}

static void ask(struct symbols *s, struct symbol_module *m, uint64_t *addresses, size_t count, bool more)
{
	struct asking a = { s, m };
	if (s->open_none || (m->state != SYMBOLS_UNREAD && m->state != SYMBOLS_READ))
		return;
	count = ask_cache(&a, addresses, count);
	struct symbol_question q = { symbols_id(m), addresses, count, more, m->cache, note_opened };
	if (count)
		m->state = symbol_worker_ask(s->worker, &q, take_place, &a, &m->why);
}

size_t symbols_find(struct symbols *s, struct symbol_module *m, uint64_t address, const struct frame **frames)
{
	static const struct frame unknown;
	struct place *place = place_find(s, m, address);
	if (!place && m) {
		ask(s, m, &address, 1, true);
		place = place_find(s, m, address);
	}
	if (!place)
		place = place_of_nothing(s, m, address);
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

/* All places of one module. */
static void look_through(struct symbols *s, struct symbol_place *places, size_t count)
{
	struct symbol_module *m = places->module;
	uint64_t *addresses = malloc(count * sizeof(*addresses));
	size_t unknown = 0;
	for (size_t i = 0; addresses && i < count; i++)
		if ((!i || places[i].address != places[i - 1].address) && !place_find(s, m, places[i].address))
			addresses[unknown++] = places[i].address;
	ask(s, m, addresses, unknown, false);
	free(addresses);
	for (size_t i = 0; i < count; i++) {
		struct place *place = place_find(s, m, places[i].address);
		place = place ? place : place_of_nothing(s, m, places[i].address);
		places[i].frames = place ? place->frames : NULL;
		places[i].count = place ? (uint32_t)place->count : 0;
	}
}

void symbols_look_ahead(struct symbols *s, struct symbol_place *places, size_t count, symbols_progress *progress)
{
	qsort(places, count, sizeof(*places), by_file);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && places[to].module == places[from].module; to++)
			;
		look_through(s, places + from, to - from);
		if (progress)
			progress(to, count);
	}
}

/* ---- symbols that travel ------------------------------------------------------------------------------- */

int symbols_add_known(struct symbols *s, struct symbol_module *m, uint64_t address, const struct frame *frames,
		      size_t count)
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
		return error_memory();
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
		return error_memory();
	for (const struct place *p = s->places; p; p = p->hh.next)
		if (p->key.module && (p->told || p->key.module->state == SYMBOLS_READ))
			(*places)[(*count)++] = (struct symbol_place){ p->key.module, p->key.address, p->frames,
								       (uint32_t)p->count, 0 };
	qsort(*places, *count, sizeof(**places), by_module_and_address);
	return 0;
}
