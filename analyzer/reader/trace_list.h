/* The trace directories below a folder. */
#ifndef MT_READER_TRACE_LIST_H
#define MT_READER_TRACE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listed_trace {
	char *dir;              /* as one would type it */
	uint64_t start_real_ns; /* wall clock */
	uint64_t bytes;         /* on disk, with raw files that lie elsewhere */
};

struct trace_list {
	struct listed_trace *list; /* the newest first */
	size_t count, room;
};

/* Of each folder (none: the working directory) itself, if it is one, else those in it and up to two folders further
 * down, where -o t/%j/%r puts them. Hidden folders and links are passed over. 0 or an error; trace_list_fini() in
 * either case. */
int trace_list_make(struct trace_list *l, const char *const *folders, int count);
void trace_list_fini(struct trace_list *l);

enum trace_removed { TRACE_REMOVED, TRACE_HOLDS_MORE, TRACE_NOT_OURS };

/* Removes the directory with its files, and its raw files elsewhere; with `dry` only says what would happen.
 * TRACE_HOLDS_MORE: something in it is no file of a trace, TRACE_NOT_OURS: it is another user's; then nothing is
 * touched. < 0: an error, some of it may be gone. That nobody records into it is the caller's business. */
int trace_list_remove(const struct listed_trace *t, bool dry);

#endif
