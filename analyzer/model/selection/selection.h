/* What a command looks at: a trace, narrowed down as its options say. analysis/open.h opens it and runs the model. */
#ifndef MT_MODEL_SELECTION_SELECTION_H
#define MT_MODEL_SELECTION_SELECTION_H

#include "analyzer/model/model.h"
#include "analyzer/model/selection/owners.h"
#include "analyzer/reader/samples.h"
#include "analyzer/symbols/categories.h"
#include "analyzer/symbols/stacks.h"
#include "analyzer/util/options.h"

struct selection {
	const struct options *options;
	struct reader *reader;
	struct model *model;
	struct stacks *stacks;
	struct categories *categories;
	const struct samples *samples; /* what was seen of the system, borrowed; NULL = the command did not look */
	bool *processes;               /* by id; NULL = all */
	unsigned selected;             /* how many of them */
	/* bit per enum model_kind, as --device says, or what the trace has. Complete after selection_run() */
	unsigned kinds;
	/* --device as an index for model_device(); MODEL_NO_DEVICE = all. Valid after selection_run() */
	uint32_t device;
	enum by by;        /* --by; else sites for eyes, and stacks for programs, which can add them up themselves */
	uint64_t from_ns;  /* --from */
	uint64_t until_ns; /* --to, --at */
	bool told_unread;  /* the screen names modules that could not be read */
};

/* -n, or what the command shows without it. */
size_t selection_rows(const struct selection *sel, size_t usual);

/* What --by is called: "site". */
const char *selection_by_name(const struct selection *sel);

/* Wrong usage where there is a --filter that nothing matched; else 0. */
int selection_check_filter(const struct selection *sel, bool matched);

/* How sites are told apart, as --by says. */
enum model_split selection_split(const struct selection *sel);

bool selection_has(const struct selection *sel, const struct process *p);
bool selection_has_device(const struct selection *sel, uint32_t device);

/* The innermost lines of Python, else the frame that says most: up to `most`, innermost first. Returns how many. */
unsigned selection_telling_frames(const struct selection *sel, uint32_t stack, const struct frame **frames,
				  unsigned most);

/* Does --device name a device rather than memory of the host? */
bool selection_wants_device(const struct options *o);

/* The same of device memory on one device. */
int selection_device_owners(const struct selection *sel, enum owners_measure measure, enum model_kind kind,
			    uint32_t device, struct owners **out);

/* Owners by --by, --filter and the frame options; fold is owners_query.fold. */
int selection_owners(const struct selection *sel, enum owners_measure measure, enum model_kind kind, owners_fold *fold,
		     struct owners **out);

/* The same, brief (see owners_query); of mappings Python's arenas are folded, unless --by or --all-frames is given. */
int selection_owners_brief(const struct selection *sel, enum owners_measure measure, enum model_kind kind,
			   owners_fold *fold, struct owners **out);

/* What processes left behind that exited by themselves, by site at the least; brief. */
int selection_leftovers(const struct selection *sel, enum model_kind kind, owners_fold *fold, struct owners **out);

/* The stack of an owner's first member, as stacks_of() has it: owner.stacks are of the merged tree, in which Python's
 * frames and native ones can't be told apart any more. 0 = none. */
uint32_t selection_owner_stack(const struct selection *sel, const struct owner *o);

/* When a bucket of a timeline begins. */
uint64_t selection_bucket_ns(const struct selection *sel, uint32_t bucket);

/* The highest value of a timeline in each of `count` equal stretches of the time looked at. */
void selection_resample(const struct selection *sel, const struct model_series *s, uint64_t *values, size_t count);

/* enum stack_flag as the options say. */
unsigned selection_flags(const struct options *o);

/* "at::native::add", "libfoo.so+0x1234"; and where that is: "main.c:12", "libfoo.so", "". Allocated. */
char *frame_text(const struct frame *f);
char *frame_where(const struct frame *f);

/* "main.c:12 main". Allocated. */
char *frame_place(const struct frame *f);

/* The owner's label, or its site, or "(no stack)". Allocated. */
char *owner_text(const struct owner *o);

/* "< who called it" or "> whom it called", and that one's place; NULL if there is none. Both allocated. */
char *owner_next(const struct owner *o, char **where);

/* worker_setting() of its largest stack; NULL also where a label says what it is. */
const char *owner_setting(const struct owner *o, struct stacks *stacks);
/* The same of tool_of(). */
const struct tool *owner_tool(const struct owner *o, struct stacks *stacks);

/* Is it Python's arenas, whose objects may be any line's? */
bool owner_is_arenas(const struct owner *o, enum model_kind kind, struct stacks *stacks);

/* "1.20 to 3.40 MiB": what its estimated bytes may be; NULL if they are exact. Allocated. */
char *owner_range(const struct owner *o);

/* For tables with such ranges. */
#define SAMPLED_NOTE "stacks were sampled: totals are exact, owners are estimates in their 95 % ranges"
#define PICKED_NOTE  "blocks were sampled: what is alive is an estimate, in its 95 % range"
static inline const char *sampled_note(const struct owners *s)
{
	return s->picked ? PICKED_NOTE : SAMPLED_NOTE;
}

/* Without its folders. */
const char *base_name(const char *path);

/* What the sum of live memory over processes is called: "at end", or "at each end" where several left some, each when
 * it ended, so that the sum may be more than there was at any time. */
const char *selection_end_title(const struct selection *sel);

/* What kind of end, enum mt_exit: "unknown", "exit", "signal", "exec". */
const char *exit_name(uint32_t kind);

/* "exit 0", "SIGKILL", "running", "unknown" (it ended without a trace of how: killed, or a system call of its own) ...
 * into the caller's buffer. */
const char *exit_text(const struct process *p, char *out, size_t size);

/* "recorded from 1.2 s to 3.4 s, stopped 2 times for 0.5 s in between"; returns it. */
enum { RECORDED_PART = 160 };
const char *recorded_part(const struct process *p, char out[RECORDED_PART]);

/* Recording ended before it did, or was stopped in between. */
static inline bool process_was_stopped(const struct process *p)
{
	return p->stops || p->stopped_ticks;
}

/* It was recorded from its start on, without a stop. */
static inline bool process_is_whole(const struct process *p)
{
	return !p->attached && !process_was_stopped(p);
}

const char *kind_name(enum model_kind kind);  /* "heap", "map", "pinned", "device", "pool" */
const char *kind_words(enum model_kind kind); /* on screens: "mapped memory" */

#endif
