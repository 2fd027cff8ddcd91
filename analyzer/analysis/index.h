/*
 * The index: the analysis of a trace, kept for the next command. It is the memory that the analysis lies in
 * (util/memory/memory.h), so all that was found is in it, and later commands begin where this one's passes ended.
 *
 * It lies in the user's cache, not beside the trace: who loads it runs with the pointers in it, and a trace may come
 * from anybody. An index is good for this build of memtrace, and for a trace of which nothing will be added, whose
 * files are as they were, as are those that names come from; and for a command that looks at all of the trace.
 *
 *   MEMTRACE_INDEX   a folder for it, and also short analyses are kept; "0": none is kept or looked for
 *   not set          memtrace/ in XDG_CACHE_HOME or ~/.cache, for analyses that take INDEX_LEAST_NS
 *
 * What can't be kept, or not be read, is as not there; nothing is said of it.
 */
#ifndef MT_ANALYSIS_INDEX_H
#define MT_ANALYSIS_INDEX_H

#include "analyzer/analysis/analysis.h"

#define INDEX_SETTING  "MEMTRACE_INDEX"
#define INDEX_LEAST_NS 3000000000ull

/* A selection, to be opened and freed. If its analysis may be kept (`wanted`, and the options are such) it is the first
 * thing in the range, and all that becomes part of it has to lie there, too: mem_use(mem_has(sel)). NULL: no memory. */
struct selection *index_selection(const struct options *o, bool wanted);

struct index {
	char *key; /* of the trace as it was before; NULL: nothing is kept */
	size_t bytes;
	unsigned has; /* enum analysis_want: what the index has */
	uint64_t begin_ns;
};

/* Fills in sel, which was just opened, and `a` from the index, if there is one that has what is wanted (enum
 * analysis_want). Returns 1 if it did; 0: sel is as it was, or newly opened; or -MT_E*. index_fini() in any case. */
int index_take(struct index *x, struct selection *sel, struct analysis *a, unsigned wants);

/* Keeps what was found since index_take(), unless there is one that has all of it. */
void index_keep(struct index *x, struct selection *sel, const struct analysis *a, unsigned wants);
void index_fini(struct index *x);

#endif
