/* The trace directories below a folder. */
#ifndef MT_READER_TRACE_LIST_H
#define MT_READER_TRACE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listed_trace {
	char *dir;              /* as one would type it */
	uint64_t start_real_ns; /* wall clock */
	uint64_t bytes;         /* on disk, raw files in another directory included */
};

struct trace_list {
	struct listed_trace *list; /* the newest first */
	size_t count, room;
};

/* Lists the traces of each of `count` folders (0: of the working directory): the folder itself if it is a trace, else
 * those in it and up to two folders further down, where -o t/%j/%r puts them. Hidden folders and links are passed over.
 * 0 or an error; trace_list_fini() in either case. */
int trace_list_make(struct trace_list *l, const char *const *folders, int count);
void trace_list_fini(struct trace_list *l);

enum trace_removed { TRACE_REMOVED, TRACE_HOLDS_MORE, TRACE_NOT_OURS, TRACE_GONE };

/* Removes the directory with its files, and its raw files elsewhere; with `dry` only tells what would happen. Returns
 * enum trace_removed, or an error, after which some of it may be gone. Nothing is touched with TRACE_HOLDS_MORE (it
 * holds something that is no file of a trace) and TRACE_NOT_OURS (it is another user's). TRACE_GONE: somebody else
 * removed it meanwhile, or is about to; of several at once one gets TRACE_REMOVED. The caller has to know that nobody
 * records into it. */
int trace_list_remove(const struct listed_trace *t, bool dry);

#endif
