/*
 * What the trace knows in the formats of other tools. A format is one file, export_NAME.c, and one row in exports.def.
 *
 * open(), then stack() for each stack of each kind of memory, then close(), which is also called behind an error. Each
 * returns 0 or an error; one that a format has no use for is NULL.
 *
 * Names of frames are the trace's: they may hold anything. What a format prints goes through util/print.h, which makes
 * it harmless for terminals; what means something in the format itself is the format's to replace.
 */
#ifndef MT_REPORT_EXPORT_H
#define MT_REPORT_EXPORT_H

#include "analyzer/model/moment.h"

/* A stack that had memory at the moment. All borrowed for the call. */
struct export_stack {
	const struct moment *at;
	const char *memory;                /* "heap", "cuda:0 pool": the sums are of one kind each */
	const struct frame *const *frames; /* those that the options show, innermost first */
	size_t count;                      /* 0: no stack is known */
	uint64_t bytes, blocks;
};

struct export
{
	const struct selection *selection;
	void *state; /* the format's own */
	int error;   /* for close(): what went wrong, so that what is printed is not whole; 0 = nothing */
};

struct export_ops {
	const char *name;
	int (*open)(struct export *);
	int (*stack)(struct export *, const struct export_stack *);
	int (*close)(struct export *);
};

#define EXPORT(format) extern const struct export_ops export_##format;
#include "analyzer/report/exports.def"
#undef EXPORT

/* "folded"; NULL or a name that is none is wrong usage: NULL and an error are left. */
const struct export_ops *export_find(const char *name);

/* Writes what was alive at the moments, behind the model's pass. */
int export_moments(const struct export_ops *, const struct selection *v, const struct moments *m);

#endif
