/* Under what a heap is replayed: an allocator and its variables. */
#ifndef MT_REPLAY_HEAP_SETTING_H
#define MT_REPLAY_HEAP_SETTING_H

#include "analyzer/reader/reader.h"

struct heap_setting {
	char *name;         /* as written, or "as it was" */
	char library[1024]; /* path of the allocator; "" = the C library's */
	char **variables;   /* NAME=VALUE, then NULL */
	unsigned count;
	bool trim; /* malloc_trim(0) is called once, at the end */
};

/* What is tried where nobody names one; heap_usual_count of them. */
extern const char *const heap_usual[];
extern const size_t heap_usual_count;

/* "jemalloc", "MALLOC_ARENA_MAX=2", "jemalloc MALLOC_CONF=dirty_decay_ms:0", "malloc_trim": an allocator, variables, or
 * both, on top of what the process had. 0; -MT_EUSAGE with what is wrong, also where the allocator is not installed
 * (names the package). heap_setting_fini() in each case. */
int heap_setting_parse(struct heap_setting *s, const char *text, const struct process *p);

/* As the process ran. -MT_EREPLAY: its allocator is not installed here. */
int heap_setting_own(struct heap_setting *s, const struct process *p);

/* Does that one differ from the process's own? Of a setting that was parsed. */
bool heap_setting_is_own(const struct heap_setting *s, const struct heap_setting *own);

/* Is it an allocator's library? */
bool heap_setting_is_library(const char *path);

void heap_setting_fini(struct heap_setting *s);

/* Is an environment's NAME=VALUE, or such a NAME, one that allocators heed? */
bool heap_setting_heeds(const char *variable);

#endif
