#include "analyzer/replay/heap/heap_setting.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `own`: how the variables begin that are this allocator's. */
static const struct allocator {
	const char *name, *libraries[4], *package, *own;
} allocators[] = {
	{ "glibc", { NULL }, NULL, NULL },
	{ "jemalloc", { "libjemalloc.so.2", NULL }, "libjemalloc2", "MALLOC_CONF=" },
	{ "tcmalloc", { "libtcmalloc_minimal.so.4", "libtcmalloc.so.4", NULL }, "libtcmalloc-minimal4", "TCMALLOC_" },
	{ "mimalloc", { "libmimalloc.so.2", "libmimalloc.so.3", NULL }, "libmimalloc2.0", "MIMALLOC_" },
};
enum { ALLOCATORS = sizeof(allocators) / sizeof(*allocators), GLIBC = 0 };

static const char *const glibc_variables[] = { "MALLOC_ARENA_MAX", "MALLOC_ARENA_TEST",      "MALLOC_TRIM_THRESHOLD_",
					       "MALLOC_TOP_PAD_",  "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_",
					       "GLIBC_TUNABLES",   "MALLOC_PERTURB_" };
static const char *const glibc_tunables[] = { "arena_max",    "arena_test",     "trim_threshold",
					      "top_pad",      "mmap_threshold", "mmap_max",
					      "tcache_count", "tcache_max",     "tcache_unsorted_limit",
					      "mxfast",       "hugetlb",        "perturb",
					      "check" };
#define TUNABLE "glibc.malloc."

enum { GLIBC_TUNABLES = sizeof(glibc_tunables) / sizeof(*glibc_tunables) };
enum { GLIBC_VARIABLES = sizeof(glibc_variables) / sizeof(*glibc_variables) };

const char *const heap_usual[] = {
	"MALLOC_ARENA_MAX=1",
	"MALLOC_ARENA_MAX=2",
	"MALLOC_TRIM_THRESHOLD_=131072",
	"MALLOC_MMAP_THRESHOLD_=131072",
	"GLIBC_TUNABLES=glibc.malloc.tcache_count=0",
	"malloc_trim",
	"jemalloc",
	"tcmalloc",
	"mimalloc",
};
const size_t heap_usual_count = sizeof(heap_usual) / sizeof(*heap_usual);

static size_t name_length(const char *variable)
{
	return strcspn(variable, "=");
}

static bool is_glibcs(const char *variable)
{
	for (size_t i = 0; i < GLIBC_VARIABLES; i++)
		if (strlen(glibc_variables[i]) == name_length(variable) &&
		    !strncmp(variable, glibc_variables[i], name_length(variable)))
			return true;
	return false;
}

static const struct allocator *owner_of(const char *variable)
{
	for (size_t i = 1; i < ALLOCATORS; i++)
		if (!strncmp(variable, allocators[i].own, strlen(allocators[i].own)))
			return &allocators[i];
	return is_glibcs(variable) ? &allocators[GLIBC] : NULL;
}

bool heap_setting_heeds(const char *variable)
{
	return owner_of(variable) || !strncmp(variable, "MALLOC_", 7);
}

/* ---- libraries --------------------------------------------------------------------------------------------- */

/* Where the loader looks by itself; other places are named by a path. */
static bool find_library(const char *name, char path[1024])
{
	static const char *const folders[] = {
		"/usr/local/lib",
#if defined(__x86_64__)
		"/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
		"/usr/lib/aarch64-linux-gnu",
#endif
		"/usr/lib64",
		"/usr/lib",
	};
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, 1024, "%s/%s", folders[i], name);
		if (!access(path, R_OK))
			return true;
	}
	path[0] = '\0';
	return false;
}

static int find_allocator(struct heap_setting *s, const struct allocator *a)
{
	for (size_t i = 0; a->libraries[i]; i++)
		if (find_library(a->libraries[i], s->library))
			return 0;
	return a == allocators ? 0
			       : error_set(MT_EUSAGE, s->name, ERROR_NO_OFFSET,
					   "%s is not installed; in Debian it is the package %s", a->name, a->package);
}

bool heap_setting_is_library(const char *path)
{
	const char *name = strrchr(path, '/');
	name = name ? name + 1 : path;
	for (size_t i = 1; i < ALLOCATORS; i++)
		if (!strncmp(name, "lib", 3) && !strncmp(name + 3, allocators[i].name, strlen(allocators[i].name)))
			return true;
	return false;
}

/* The library that a process's malloc was; NULL = the C library. */
static const struct process_module *module_of_allocator(const struct process *p)
{
	for (unsigned i = 0; i < p->module_count; i++)
		if (heap_setting_is_library(p->modules[i].path))
			return &p->modules[i];
	return NULL;
}

/* By its name alone: a trace may be anybody's, and what is at a path that it names would be run. */
static int find_own_library(struct heap_setting *s, const struct process *p)
{
	const struct process_module *m = module_of_allocator(p);
	const char *name = m ? strrchr(m->path, '/') : NULL;
	if (!m || find_library(name ? name + 1 : m->path, s->library))
		return 0;
	return error_set(MT_EREPLAY, NULL, ERROR_NO_OFFSET,
			 "the heap of %u %s can't be replayed: its allocator, %s, is not installed here", p->pid,
			 p->name, m->path);
}

/* ---- variables --------------------------------------------------------------------------------------------- */

/* In the place of one of that name. */
static int set_variable(struct heap_setting *s, const char *variable)
{
	char *copy = strdup(variable), **list;
	if (!copy)
		return error_memory();
	for (unsigned i = 0; i < s->count; i++)
		if (!strncmp(s->variables[i], variable, name_length(variable) + 1)) {
			free(s->variables[i]);
			s->variables[i] = copy;
			return 0;
		}
	list = realloc(s->variables, (s->count + 2) * sizeof(*list));
	if (!list) {
		free(copy);
		return error_memory();
	}
	s->variables = list;
	s->variables[s->count++] = copy;
	s->variables[s->count] = NULL;
	return 0;
}

static int set_own_variables(struct heap_setting *s, const struct process *p)
{
	int e = 0;
	for (unsigned i = 0; i < p->env_count && !e; i++) /* profiles would be files of a name that the trace chose */
		if (heap_setting_heeds(p->env[i]) && !strstr(p->env[i], "prof"))
			e = set_variable(s, p->env[i]);
	return e;
}

static int unknown_tunable(const struct heap_setting *s, const char *name)
{
	struct suggestion near = { .text = name };
	for (size_t i = 0; i < GLIBC_TUNABLES; i++)
		suggest(&near, glibc_tunables[i]);
	return error_set(MT_EUSAGE, s->name, ERROR_NO_OFFSET, "glibc has no tunable '" TUNABLE "%s'%s%s%s", name,
			 near.best ? "; did you mean '" TUNABLE : "", near.best ? near.best : "",
			 near.best ? "'?" : "");
}

/* glibc itself says nothing of one that it does not know. Those of other parts of it are no business of malloc's. */
static int check_tunables(const struct heap_setting *s, const char *variable)
{
	char *copy = strdup(variable + name_length(variable) + 1), *rest = copy, *word;
	int e = copy ? 0 : error_memory();
	while (!e && (word = strsep(&rest, ":"))) {
		size_t i = 0;
		if (strncmp(word, TUNABLE, strlen(TUNABLE)))
			continue;
		word += strlen(TUNABLE);
		word[name_length(word)] = '\0';
		while (i < GLIBC_TUNABLES && strcmp(word, glibc_tunables[i]))
			i++;
		e = i < GLIBC_TUNABLES ? 0 : unknown_tunable(s, word);
	}
	free(copy);
	return e;
}

static int unknown_word(const struct heap_setting *s, const char *word)
{
	char text[64];
	struct suggestion near = { .text = text };
	snprintf(text, sizeof(text), "%.*s", (int)name_length(word), word);
	for (size_t i = 0; i < ALLOCATORS; i++)
		suggest(&near, allocators[i].name);
	for (size_t i = 0; i < GLIBC_VARIABLES; i++)
		suggest(&near, glibc_variables[i]);
	return near.best ? error_set(MT_EUSAGE, s->name, ERROR_NO_OFFSET,
				     "'%s' is nothing that allocators know; "
				     "did you mean '%s'?",
				     text, near.best)
			 : error_set(MT_EUSAGE, s->name, ERROR_NO_OFFSET,
				     "'%s' is nothing that allocators know: all, glibc, jemalloc, tcmalloc, mimalloc, "
				     "malloc_trim, a path, or MALLOC_ARENA_MAX=2 and the like",
				     text);
}

/* ---- settings ---------------------------------------------------------------------------------------------- */

static int start(struct heap_setting *s, const char *name)
{
	*s = (struct heap_setting){ .name = strdup(name), .variables = calloc(1, sizeof(char *)) };
	return s->name && s->variables ? 0 : error_memory();
}

int heap_setting_own(struct heap_setting *s, const struct process *p)
{
	int e = start(s, "as it was");
	e = e ? e : find_own_library(s, p);
	return e ? e : set_own_variables(s, p);
}

static int use_allocator(struct heap_setting *s, const struct allocator *a)
{
	s->library[0] = '\0';
	return find_allocator(s, a);
}

static int use_path(struct heap_setting *s, const char *path)
{
	if (strlen(path) >= sizeof(s->library) || access(path, R_OK))
		return error_errno(MT_EUSAGE, path, ERROR_NO_OFFSET);
	strcpy(s->library, path);
	return 0;
}

/* A variable of glibc's does nothing to another allocator: then it is meant to be glibc. */
static int use_variable(struct heap_setting *s, const char *variable, bool named)
{
	const struct allocator *a = owner_of(variable);
	if (!a || !variable[name_length(variable)])
		return unknown_word(s, variable);
	int e = !strncmp(variable, "GLIBC_TUNABLES=", 15) ? check_tunables(s, variable) : 0;
	e = e || named ? e : use_allocator(s, a);
	return e ? e : set_variable(s, variable);
}

static int use_word(struct heap_setting *s, const char *word, bool *named)
{
	for (size_t i = 0; i < ALLOCATORS; i++)
		if (!strcmp(word, allocators[i].name)) {
			*named = true;
			return use_allocator(s, &allocators[i]);
		}
	if (!strcmp(word, "malloc_trim")) {
		s->trim = *named = true;
		return 0;
	}
	*named |= *word == '/';
	return *word == '/' ? use_path(s, word) : use_variable(s, word, *named);
}

int heap_setting_parse(struct heap_setting *s, const char *text, const struct process *p)
{
	char *words = strdup(text), *rest = words, *word;
	bool named = false;
	int e = start(s, text);
	e = e ? e : !words ? error_memory() : find_own_library(s, p);
	e = e ? e : set_own_variables(s, p);
	if (!e && !text[strspn(text, " ")])
		e = unknown_word(s, text);
	while (!e && (word = strsep(&rest, " ")))
		e = *word ? use_word(s, word, &named) : 0;
	free(words);
	return e;
}

bool heap_setting_is_own(const struct heap_setting *s, const struct heap_setting *own)
{
	if (s->trim || strcmp(s->library, own->library) || s->count != own->count)
		return false;
	for (unsigned i = 0; i < s->count; i++)
		if (strcmp(s->variables[i], own->variables[i]))
			return false;
	return true;
}

void heap_setting_fini(struct heap_setting *s)
{
	for (unsigned i = 0; s->variables && i < s->count; i++)
		free(s->variables[i]);
	free(s->variables);
	free(s->name);
	*s = (struct heap_setting){ 0 };
}
