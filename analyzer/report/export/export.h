/*
 * A trace in the formats of other tools. A format is one file, export_NAME.c, and one row in exports.def.
 *
 * Its functions are called in this order: ask() before the pass over the events, where it can add to the query; after
 * the pass open(), then stack() for each stack of each kind of memory, then close(), also after an error of one of the
 * others. Each returns 0 or an error. A function that a format does not need is NULL; without stack() no stack is
 * looked up.
 *
 * Names of frames are the trace's: they may hold anything. What a format prints goes through util/print.h, which makes
 * it harmless for terminals; what means something in the format itself is the format's to replace. A binary format
 * prints by print_as_is(), and takes its names from export_clean().
 */
#ifndef MT_REPORT_EXPORT_EXPORT_H
#define MT_REPORT_EXPORT_EXPORT_H

#include "analyzer/model/selection/moment.h"

/* A stack that had memory at the moment. All borrowed for the call. */
struct export_stack {
	const struct moment *at;
	const char *memory;                /* "heap", "cuda:0 pool": the sums are of one kind each */
	const struct process *process;     /* with ops.by_process: whose bytes and blocks; NULL = of all processes */
	const struct owner *owner;         /* the sums of this stack over all processes */
	const struct frame *const *frames; /* that the options show, innermost first */
	size_t count;                      /* of frames; 0 = the stack is not known */
	uint64_t bytes, blocks;
};

struct export
{
	struct selection *selection;
	void *state; /* the format's own */
	bool failed; /* there was an error: close() frees, and writes nothing */
	bool all;    /* every stack of every kind of memory, however small */
	/* The kind of memory that failed, else the heap, else the largest; NULL = there is none. Set before open() */
	const struct moment *main;
	struct label_frame *labels; /* export_label_frame()'s */
};

/* Stacks below this part of their kind are one together, unless all are wanted. */
#define EXPORT_SMALL 0.001

struct export_ops {
	const char *name;
	bool binary;     /* not for a terminal */
	bool by_process; /* stack() is called for each process separately */
	bool end;        /* where no moment is named it has the end, too, beside the peaks */
	bool one_kind;   /* it would add up kinds of memory: unless one is chosen or all are wanted, only `main` */
	int (*ask)(struct export *, struct model_query *);
	int (*open)(struct export *);
	int (*stack)(struct export *, const struct export_stack *);
	int (*close)(struct export *);
};

#define EXPORT(format) extern const struct export_ops export_##format;
#include "analyzer/report/export/exports.def"
#undef EXPORT

/* The format of that name ("folded"). NULL = `name` is NULL or no format; then -MT_EUSAGE is set. */
const struct export_ops *export_find(const char *name);

/* Makes the pass over the events and writes the format to stdout, or where print_into() says. What modules and
 * libraries need for themselves is a stack by its name, and what is small is one, unless `all`. 0 or -MT_E*. */
int export_run(const struct export_ops *, struct selection *sel, bool all);

/* Why a stack is not told by itself: the name that stands for it; NULL = it is. `bytes` of `sum`, as the `rank`-th
 * largest. */
const char *export_label(const struct export *, enum model_kind kind, uint32_t stack, uint64_t bytes, uint64_t sum,
			 size_t rank);

/* A frame of that name, the same one each time: the whole stack of what is told under it. NULL = no memory. */
const struct frame *export_label_frame(struct export *, const char *label);

void export_free_labels(struct export *);
extern const char export_small_stacks[]; /* the label of those that are small */

/* The frame's name and "(FILE:LINE)" where these are known. Allocated; NULL when there is no memory. */
char *export_frame_text(const struct frame *f);

/* A name for a kind of memory: "heap", "cuda:0 pool". `device` NULL = of the host. Allocated; NULL = no memory. */
char *export_memory(enum model_kind kind, const struct model_device *device);

/* The text as a terminal may see it (format/text.h), in UTF-8. Allocated; NULL when there is no memory. */
char *export_clean(const char *text);

#endif
