/*
 * What the trace knows in the formats of other tools. A format is one file, export_NAME.c, and one row in exports.def.
 *
 * ask() before the pass over the events, to add to what it is asked; behind it open(), then stack() for each stack of
 * each kind of memory, then close(), which is also called behind an error, of ask() too. Each returns 0 or an error;
 * one that a format has no use for is NULL. Without stack() no stack is looked up.
 *
 * Names of frames are the trace's: they may hold anything. What a format prints goes through util/print.h, which makes
 * it harmless for terminals; what means something in the format itself is the format's to replace. A binary format
 * prints by print_as_is(), and takes its names from export_clean().
 */
#ifndef MT_REPORT_EXPORT_H
#define MT_REPORT_EXPORT_H

#include "analyzer/model/moment.h"

/* A stack that had memory at the moment. All borrowed for the call. */
struct export_stack {
	const struct moment *at;
	const char *memory;                /* "heap", "cuda:0 pool": the sums are of one kind each */
	const struct process *process;     /* with ops.by_process; else NULL: of all */
	const struct owner *owner;         /* of all processes */
	const struct frame *const *frames; /* those that the options show, innermost first */
	size_t count;                      /* 0: no stack is known */
	uint64_t bytes, blocks;
};

struct export
{
	struct selection *selection;
	void *state; /* the format's own */
	bool failed; /* close() has nothing to write any more */
};

struct export_ops {
	const char *name;
	bool binary;     /* not for a terminal */
	bool by_process; /* stack() is called for each process by itself */
	int (*ask)(struct export *, struct model_query *);
	int (*open)(struct export *);
	int (*stack)(struct export *, const struct export_stack *);
	int (*close)(struct export *);
};

#define EXPORT(format) extern const struct export_ops export_##format;
#include "analyzer/report/exports.def"
#undef EXPORT

/* "folded"; NULL or a name that is none is wrong usage: NULL and an error are left. */
const struct export_ops *export_find(const char *name);

/* The pass over the events, and what the format makes of it, on stdout or where print_into() says. */
int export_run(const struct export_ops *, struct selection *v);

/* "heap", "cuda:0 pool". Allocated; NULL when there is no memory. */
char *export_memory(enum model_kind kind, const struct model_device *device);

/* The text as a terminal may see it (format/text.h), in UTF-8. Allocated; NULL when there is no memory. */
char *export_clean(const char *text);

#endif
