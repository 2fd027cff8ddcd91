/* A setting under which a heap is replayed: an allocator, and environment variables for it. */
#ifndef MT_REPLAY_HEAP_HEAP_SETTING_H
#define MT_REPLAY_HEAP_HEAP_SETTING_H

#include "analyzer/reader/reader.h"

struct heap_setting {
	char *name;         /* as written, or "as it was" */
	char library[1024]; /* path of the allocator; "" = the C library's */
	char **variables;   /* NAME=VALUE, then NULL */
	unsigned count;
	bool trim; /* malloc_trim(0) is called once, at the end */
};

/* The settings that are tried if the user names none; heap_usual_count of them. */
extern const char *const heap_usual[];
extern const size_t heap_usual_count;

/* Reads a setting: an allocator, variables, or both, which change what the process had. "jemalloc",
 * "MALLOC_ARENA_MAX=2", "jemalloc MALLOC_CONF=dirty_decay_ms:0", "malloc_trim". 0, or -MT_EUSAGE with what is wrong; if
 * the allocator is not installed, that names its package. heap_setting_fini() in either case. */
int heap_setting_parse(struct heap_setting *s, const char *text, const struct process *p);

/* The setting under which the process ran. 0, or -MT_EREPLAY if its allocator is not installed here. */
int heap_setting_own(struct heap_setting *s, const struct process *p);

/* Whether a setting that was parsed is the same as the process's own. */
bool heap_setting_is_own(const struct heap_setting *s, const struct heap_setting *own);

/* Whether the path is that of an allocator's library. */
bool heap_setting_is_library(const char *path);

void heap_setting_fini(struct heap_setting *s);

/* Whether a variable, NAME or NAME=VALUE, is a setting of an allocator. */
bool heap_setting_heeds(const char *variable);

#endif
