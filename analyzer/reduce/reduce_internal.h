/* What the parts of a reduction have in common. */
#ifndef MT_REDUCE_REDUCE_INTERNAL_H
#define MT_REDUCE_REDUCE_INTERNAL_H

#include "analyzer/reduce/reduce.h"
#include "analyzer/analysis/analysis.h"

#include <jansson.h>
#include <zlib.h>

/* ---- rows.c: lines ----------------------------------------------------------------------------------------------- */

enum reduce_table {
#define TABLE(table, what) TABLE_##table,
#define COLUMN(table, name, type, what)
#include "analyzer/reduce/columns.def"
#undef COLUMN
#undef TABLE
	REDUCE_TABLES
};

struct rows {
	z_stream stream;
	unsigned char *out;
	size_t count, room;
	int error;
};

int rows_begin(struct rows *r);
/* Writes a row and releases it: the table's columns, null where it has no such key. */
void rows_put(struct rows *r, enum reduce_table table, json_t *row);
/* Ends the file. 0 or -MT_E*; then r->out is NULL. */
int rows_end(struct rows *r);

/* Text up to `most` bytes, not cut within a character; null for NULL and "". */
json_t *rows_text(const char *text, size_t most);

/* ---- ranks.c: processes by rank ---------------------------------------------------------------------------------- */

struct reduce_rank {
	int64_t rank;                 /* PROCESS_NO_RANK: all that have none */
	const struct process **items; /* in order of start */
	size_t count;
	const struct process *main;
	bool launcher;
};

struct reduce_ranks {
	struct reduce_rank *items;
	size_t count;
	unsigned *of; /* by id of a process: index of its rank */
};

int ranks_find(struct reduce_ranks *r, const struct selection *sel);
void ranks_fini(struct reduce_ranks *r);

/* ---- stack_names.c: stacks by hash ------------------------------------------------------------------------------- */

enum { STACK_NAME = 17 };

struct stack_name {
	char hash[STACK_NAME], lineless[STACK_NAME]; /* hexadecimal, NUL-terminated */
};

struct stack_names; /* remembers what it was asked */
struct stack_names *stack_names_new(struct stacks *s);
void stack_names_free(struct stack_names *n);

/* Of any id of the stacks; 0 has the hash of no frames. Borrowed until the next call; NULL = no memory. */
const struct stack_name *stack_names_find(struct stack_names *n, uint32_t id);

/* Writes each stack that was marked once. */
void stack_names_mark(struct stack_names *n, uint32_t id);
void stack_names_put(struct stack_names *n, struct rows *rows, size_t frames);
void stack_names_unmark(struct stack_names *n); /* all */

/* ---- the reduction ----------------------------------------------------------------------------------------------- */

/* What there is room for. */
struct reduce_bounds {
	size_t sites, frames, buckets, steps, ooms;
};

struct reduction {
	struct selection *selection;
	struct analysis analysis;
	struct reduce_ranks ranks;
	struct stack_names *names;
	struct reduce_sites *sites;
	struct reduce_bounds bounds;
	unsigned part; /* what `bounds` are divided by */
	struct rows rows;
};

/* site_rows.c */
struct reduce_sites;
int sites_collect(struct reduction *r); /* r->sites; behind the analysis */
void sites_free(struct reduce_sites *s);
size_t sites_count(const struct reduce_sites *s, size_t rank); /* stacks with memory */
void sites_put(struct reduction *r);

/* growth.c: how a site grows; the same for all blocks of its stack in a process. */
struct site_grows {
	size_t rank;
	enum model_kind kind;
	char stack[STACK_NAME];
	const char *outlook, *certainty;
	double grown, per_s, per_step, error; /* NAN: no steps are known, it grew for less than a second */
};

/* Those that grow, allocated. Takes the analysis's timeline for a while. 0 or -MT_E*. */
int growth_list(struct reduction *r, struct site_grows **list, size_t *count);

/* run_rows.c, device_rows.c, time_rows.c */
void run_rows_put(struct reduction *r);
void device_rows_put(struct reduction *r);
void time_rows_put(struct reduction *r);

json_t *reduce_wall(const struct reduction *r, uint64_t ns); /* since 1970, of a moment of the trace */

/* What the processes of a rank had at most at one moment, of series that count the same: at most, and at least. */
struct reduce_peak {
	uint64_t high, low;
};
struct reduce_peak reduce_peak_of(const struct model *m, const struct model_series *const *series,
				  const uint64_t *peaks, size_t count);

#endif
