/* What the commands that read a trace have in common: open it, narrow it down as the options say, run the model. */
#ifndef MT_ANALYZER_VIEW_H
#define MT_ANALYZER_VIEW_H

#include "analyzer/categories.h"
#include "analyzer/model.h"
#include "analyzer/options.h"
#include "analyzer/samples.h"
#include "analyzer/sites.h"
#include "analyzer/stacks.h"

struct view {
	const struct options *options;
	struct reader *reader;
	struct model *model;
	struct stacks *stacks;
	struct categories *categories;
	const struct samples *samples; /* what was seen of the system, borrowed; NULL = the command did not look */
	bool *processes;   /* by id; NULL = all */
	unsigned selected; /* how many of them */
	unsigned kinds;    /* bit per enum model_kind, as --device says, or what the trace has. Complete after view_run() */
	uint32_t device;   /* --device as an index for model_device(); MODEL_NO_DEVICE = all. Valid after view_run() */
	enum by by;        /* --by; else sites for eyes, and stacks for programs, which can add them up themselves */
	uint64_t from_ns;  /* --from */
	uint64_t until_ns; /* --to, --at */
	bool told_unread;  /* the screen names modules that could not be read */
};

/* Opens the trace and picks processes and kinds. On error nothing is left open. */
int view_open(struct view *v, const struct options *o);

/* A whole command: parses argv into `values`, which begins with a struct options, opens the trace, calls f. Returns what
 * a command returns. */
int view_command(const struct option_spec *spec, void *values, int argc, char **argv, int (*f)(struct view *v));

/* Completes the query by --from, --to, --at and --by, and runs the model. */
int view_run(struct view *v, struct model_query *q);
void view_close(struct view *v);

/* For eyes: a line if anything is missing, so that figures are not all there is. */
void view_print_missing(const struct view *v);

/* -n, or what the command shows without it. */
size_t view_rows(const struct view *v, size_t usual);

/* What --by is called: "site". */
const char *view_by_name(const struct view *v);

/* Wrong usage where there is a --filter that nothing matched; else 0. */
int view_check_filter(const struct view *v, bool matched);

/* How sites are told apart, as --by says. */
enum model_split view_split(const struct view *v);

bool view_has(const struct view *v, const struct process *p);
bool view_has_device(const struct view *v, uint32_t device);

/* The innermost lines of Python, else the frame that says most: up to `most`, innermost first. Returns how many. */
unsigned view_telling_frames(const struct view *v, uint32_t stack, const struct frame **frames, unsigned most);

/* view_device.c. Of the --device that is a device: which one it is in this model; v->device. */
int view_pick_device(struct view *v);
/* The event at which the pass has to stop for --at oom[:N], from a pass of its own. */
int view_find_oom(struct view *v, const struct when *w, uint64_t *event, uint64_t *ns);
/* Does --device name a device rather than memory of the host? */
bool view_wants_device(const struct options *o);

/* The same of device memory on one device. */
int view_device_owners(const struct view *v, enum sites_measure measure, enum model_kind kind, uint32_t device, struct sites **out);

/* Owners by --by, --filter and the frame options; fold is sites_query.fold. */
int view_owners(const struct view *v, enum sites_measure measure, enum model_kind kind, sites_fold *fold, struct sites **out);

/* The same, brief (see sites_query); of mappings Python's arenas are folded, unless --by or --all-frames is given. */
int view_owners_brief(const struct view *v, enum sites_measure measure, enum model_kind kind, sites_fold *fold, struct sites **out);

/* What processes left behind that exited by themselves, by site at the least; brief. */
int view_leftovers(const struct view *v, enum model_kind kind, sites_fold *fold, struct sites **out);

/* When a bucket of a timeline begins. */
uint64_t view_bucket_ns(const struct view *v, uint32_t bucket);

/* The highest value of a timeline in each of `count` equal stretches of the time looked at. */
void view_resample(const struct view *v, const struct model_series *s, uint64_t *values, size_t count);

/* enum stack_flag as the options say. */
unsigned view_flags(const struct options *o);

/* "at::native::add", "libfoo.so+0x1234"; and where that is: "main.c:12", "libfoo.so", "". Allocated. */
char *frame_text(const struct frame *f);
char *frame_where(const struct frame *f);

/* "main.c:12 main". Allocated. */
char *frame_place(const struct frame *f);

/* The owner's label, or its site, or "(no stack)". Allocated. */
char *owner_text(const struct owner *o);

/* "< who called it" or "> whom it called", and that one's place; NULL if there is none. Both allocated. */
char *owner_next(const struct owner *o, char **where);

/* "1.20 to 3.40 MiB": what its estimated bytes may be; NULL if they are exact. Allocated. */
char *owner_range(const struct owner *o);

/* For tables with such ranges. */
#define SAMPLED_NOTE "stacks were sampled: totals are exact, owners are estimates in their 95 % ranges"

/* Without its folders. */
const char *base_name(const char *path);

/* What the sum of live memory over processes is called: "at end", or "at own ends" where several left some, each when it ended, so that the sum
 * may be more than there was at any time. */
const char *view_end_title(const struct view *v);

/* What kind of end, enum mt_exit: "unknown", "exit", "signal", "exec". */
const char *exit_name(uint32_t kind);

/* "exit 0", "SIGKILL", "running", "unknown" (it ended without a trace of how: killed, or a system call of its own) ... into the caller's buffer. */
const char *exit_text(const struct process *p, char *out, size_t size);

const char *kind_name(enum model_kind kind); /* "heap", "map", "pinned", "device", "pool" */

#endif
