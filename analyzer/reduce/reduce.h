/*
 * The reduction of a trace: what questions about many traces need of one, in at most REDUCE_MOST bytes whatever the
 * trace's size. gzip of NDJSON: each line is an object whose key "t" names a table of columns.def, and has exactly its
 * columns.
 *
 *   struct reduced r;
 *   int e = reduce(&r, v);           v from selection_open(); runs the analysis
 *   ... r.bytes, r.count ... free(r.bytes);
 */
#ifndef MT_REDUCE_REDUCE_H
#define MT_REDUCE_REDUCE_H

#include "analyzer/model/selection/selection.h"

#define REDUCE_VERSION 1
#define REDUCE_MOST    2000000u
/* in the trace's directory */
#define REDUCE_FILE "reduced.ndjson.gz"

struct reduced {
	void *bytes; /* allocated */
	size_t count;
	size_t ranks, sites;
	uint64_t events;
};

/* 0 or -MT_E*; then there is nothing to free. */
int reduce(struct reduced *out, struct selection *sel);

/* Prints the tables and their columns as JSON. 0 or -MT_E*. */
int reduce_print_columns(void);

#endif
