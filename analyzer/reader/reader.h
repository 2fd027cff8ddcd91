/*
 * The reader turns trace directories into processes and one stream of events. It alone sees bytes: everything it hands
 * out has been validated (sizes, magics, versions, record lengths, parents below their nodes), so that no damaged,
 * truncated or foreign file can crash, hang or blow up what stands on it.
 *
 *   struct reader *r;
 *   int e = reader_open(&r, dirs, ndirs, 0);
 *   struct reader_step step;
 *   while ((e = reader_next(r, &step)) > 0)
 *           switch (step.what) { ... }
 *   reader_close(r);
 *
 * A trace is read as it is: of a process that runs, was killed, or whose recorder died, from raw chunks, blocks or
 * both. Memory: the call trees, one block of events per process that is alive at that point of the stream, nothing
 * else.
 *
 * Times are nanoseconds since the first process of the merged set started (struct reader's origin). Several directories
 * are merged: processes of one boot of one host share its clock, hosts are aligned by wall clock.
 */
#ifndef MT_READER_READER_H
#define MT_READER_READER_H

#include "format/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader;

/* One boot of one machine; processes on it share memory, so peaks are summed within it and never across. */
struct reader_host {
	unsigned index; /* in reader_host() */
	const char *name;
	const char *boot_id;
	uint64_t memory_bytes;  /* of the machine; 0 = not recorded */
	uint64_t start_real_ns; /* wall clock of its first process */
	unsigned processes;
};

/* A loaded program or library. */
struct process_module {
	uint64_t start, end, bias; /* run-time address - bias = address in the ELF file */
	uint32_t node_from;        /* nodes made from here on ... */
	uint32_t node_until;       /* ... and below this; UINT32_MAX = never unloaded */
	uint64_t ticks;            /* when it was noticed */
	uint64_t until_ticks;      /* UINT64_MAX = never unloaded */
	const char *path;
	const unsigned char *build_id;
	unsigned build_id_bytes; /* 0 = none */
};

struct process_thread {
	uint32_t index, tid;
	const char *name; /* may be "" */
};

enum process_state {
	PROCESS_RUNNING = 1, /* alive on this machine while we read */
	PROCESS_ENDED,       /* exit_kind says how */
	PROCESS_GONE,        /* ended without a word: killed, or the machine died */
};

/* How a child ended, as the kernel told this process when it waited for it. */
struct process_child {
	uint32_t pid, kind; /* enum mt_exit */
	int32_t code;
	uint64_t ticks;
};

struct process_mapped_file {
	uint32_t id; /* mt_ext_map.file */
	const char *path;
};

/* A device under the name this process has for it. Strings are never NULL. */
struct process_mode {
	uint64_t ticks;
	uint32_t record; /* enum mt_record_mode, from then on */
};

struct process_device {
	uint32_t id;          /* mt_ext_device.device */
	uint32_t backend;     /* enum mt_backend */
	uint32_t ordinal;     /* N of cuda:N, npu:N */
	uint64_t total_bytes; /* 0 = unknown */
	const char *uuid, *name;
};

/* A Python code object: what its frames' nodes refer to. */
struct process_code {
	uint32_t id;
	uint32_t version; /* of CPython, 0x030b for 3.11 */
	uint32_t first_line;
	uint32_t table_bytes;
	const unsigned char *table; /* lines by instruction, as that version keeps them */
	const char *file, *name;
};

#define PROCESS_NO_RANK (-1)

/* One image a pid ran. Plain data, read only for everybody but the reader. Strings are never NULL. */
struct process {
	/* unique in the merged set: 0, 1, ... in order of start; the index in reader_process() */
	unsigned id;
	const struct reader_host *host;
	uint32_t pid, image, ppid;    /* ppid: with MT_ORIGIN_FORK the process that it inherits memory from */
	const struct process *parent; /* with MT_ORIGIN_FORK: its nodes below node_base are the parent's; else NULL */
	/* who started it: `parent`, the image before an exec, or the process ppid; NULL = not in the trace */
	const struct process *creator;
	uint32_t origin;       /* enum mt_origin */
	uint32_t parent_image; /* with MT_ORIGIN_FORK; else MT_NO_PARENT */
	bool fork_exact;
	const char *exe;
	const char *program;     /* basename of argv[0], or of the executable; "?" if unknown */
	const char *name;        /* for screens: program, and its rank and tags, if known: "python rank 3 tp=1" */
	const char *const *argv; /* argc strings, then NULL */
	unsigned argc;
	const char *const *env; /* NAME=VALUE, then NULL; settings of allocators, devices and ranks alone */
	unsigned env_count;
	/* of settings of a pool that were made when it had begun: they are not in force */
	const char *const *late;
	unsigned late_count;
	/* what its launcher's variables say when it starts; PROCESS_NO_RANK = nothing */
	int64_t rank, local_rank, world_size, group_rank;
	const char *job, *tags; /* of the scheduler, MEMTRACE_TAGS; "" = none */
	/* not recorded by us: from what and from which file it was imported, and what is therefore unknown; "" = it
	 * was recorded */
	const char *imported, *imported_file, *imported_lacks;
	uint32_t imported_has;     /* enum mt_import_has: kinds of memory that are known; of who was recorded all */
	uint64_t start_ns, end_ns; /* end: its last sign of life if how it ended is unknown */
	uint64_t start_real_ns;
	enum process_state state;
	/* neither the process nor its recorder noted an end: perhaps a whole container was killed */
	bool cut_off;
	/* enum mt_exit; as the parent's wait was told, where the process itself recorded no end */
	uint32_t exit_kind;
	int32_t exit_code;
	uint32_t own_exit_kind; /* as the process itself recorded it */
	int32_t own_exit_code;
	uint32_t stacks; /* enum mt_stacks */
	uint32_t record; /* enum mt_record_mode */
	/* not with MT_RECORD_ALL: no more bytes of young blocks were ever alive at once */
	uint64_t young_bytes;
	/* with MT_RECORD_SAMPLED: all calls of the heap that returned a block, their bytes, all frees. Exact */
	uint64_t heap_calls, heap_bytes, heap_frees;
	uint32_t depth;
	uint64_t sample_bytes;
	unsigned threads; /* that recorded at least one event */
	unsigned rings;
	const struct process_module *modules;
	unsigned module_count;

	const struct process_child *children;
	unsigned child_count;
	const struct process_mapped_file *files; /* sorted by id */
	unsigned file_count;
	const struct process_code *codes; /* sorted by id */
	unsigned code_count;
	const struct process_device *devices; /* in order of first use */
	unsigned device_count;
	const uint64_t *nevers; /* addresses of blocks that never had memory, in order */
	size_t never_count;
	const struct process_mode *modes; /* with MT_RECORD_AUTO: the changes, the first one to MT_RECORD_YOUNG */
	unsigned mode_count;
	unsigned thread_end; /* one more than the highest index that process_thread() may know */

	uint32_t clock; /* enum mt_clock */
	uint64_t start_ticks;
	uint64_t fork_ticks;          /* 0 if it is no fork */
	uint32_t node_base, node_end; /* ids of its own: [node_base, node_end) */
	const struct mt_node *nodes;  /* of node_base; NULL if it has none. Use process_node() */
	bool has_events;
	bool has_heirs;            /* processes of the trace were forked from it */
	uint64_t moving_hooks[16]; /* bits by hook: it moves blocks (realloc and its like, mremap) */
	uint64_t pool_hooks[16];   /* ... it is of a framework's pool that may lie on the heap */

	/* What is missing. The first four are the shim's own counts. */
	uint64_t lost_events, truncated_stacks, unplaced_stacks, unwritten_bytes, faults;
	uint32_t lost_why; /* enum mt_loss, or'ed; 0 = unknown */
	/* events whose node is unknown; they are handed out with node 0. Grows while reading */
	uint64_t bad_nodes;
	uint64_t skipped_slots; /* event slots that are gone or were unreadable. Grows while reading */
	bool off;               /* the shim turned itself off */
	bool seccomp;           /* no new files after a filter was installed */
	uint64_t address_limit, data_limit, address_used, data_used; /* as in struct mt_info */
	uint64_t shm_used;
	uint64_t recorded_ticks;        /* when recording began; 0 = with the process */
	uint64_t stopped_ticks;         /* since when it is stopped; 0 = it is on, start_ticks: it never was on */
	uint64_t gap_ticks;             /* how long it was stopped in between, in all */
	uint32_t stops;                 /* how often it was stopped */
	uint32_t attached;              /* enum mt_attached */
	uint32_t fork_node, fork_node2; /* its parent's stack at the fork; 0 = not known, or no fork */
};

enum reader_flag {
	READER_FORCE = 1, /* step over damage, note it, deliver the rest; else damage is an error */
	/* only for one directory: at the end of what is there now running processes get no READER_EXIT, and the stream
	 * can go on: reader_refresh() */
	READER_FOLLOW = 2,
};

/* Of a process that runs, events younger than that are left out: another thread may still write an earlier one. A
 * reader lets that much time pass before it looks, so it has all that happened before it was opened. */
#define READER_HORIZON_NS 10000000

/* Opens one or several directories. On error *out is NULL and error_get() has the details. */
int reader_open(struct reader **out, const char *const *dirs, int ndirs, unsigned flags);
void reader_close(struct reader *r); /* NULL is fine */

/* Another pass over the same trace, as the first reader found it. It shares call trees and decoder with `first`, which
 * must outlive it. Meanwhile facts may be asked of `first`, but no events. */
int reader_open_again(struct reader **out, const struct reader *first);

/* ---- facts ---------------------------------------------------------------------------------------------- */

unsigned reader_processes(const struct reader *r);
const struct process *reader_process(const struct reader *r, unsigned id);
unsigned reader_hosts(const struct reader *r);
const struct reader_host *reader_host(const struct reader *r, unsigned index);
uint64_t reader_origin_real_ns(const struct reader *r); /* wall clock of time 0 */
uint64_t reader_duration_ns(const struct reader *r);    /* time of the last sign of life of any process */
uint64_t reader_unrecorded(const struct reader *r);     /* processes seen but not recorded */
uint32_t reader_unrecorded_why(const struct reader *r); /* enum mt_loss, or'ed */

/* The i-th of those that are known by name; false = there are no more. `path` is NUL-terminated. */
bool reader_unseen(const struct reader *r, unsigned i, struct mt_unseen *out);

/* Finds processes as --process does: `what` is a PID, a NAME (argv[0], its basename, or that of a script) or rank:N;
 * NULL matches all. Returns the next matching id >= i, or reader_processes() where there is none. */
unsigned reader_find(const struct reader *r, const char *what, unsigned i);

/* Sets and returns -MT_EUSAGE: --process WHAT matches nobody; the text lists the processes that there are. */
int reader_no_such_process(const struct reader *r, const char *what);

/* Only picked blocks of its heap were recorded, and each stands for others: util/sampling_estimate.h. */
static inline bool process_is_picked(const struct process *p)
{
	return p->record == MT_RECORD_SAMPLED;
}

/* Heap blocks of so many bytes or more have events for certain; a smaller one may be picked, or counted alone. */
static inline uint64_t process_whole_from(const struct process *p)
{
	return process_is_picked(p)                            ? p->sample_bytes
	       : p->record == MT_RECORD_YOUNG || p->mode_count ? MT_YOUNG_LIMIT
							       : 0;
}

/* From ticks of this process to nanoseconds of the merged trace. */
uint64_t process_ns(const struct process *p, uint64_t ticks);

/* A remark on the trace: damage that --force stepped over, a file that is missing, a block still being written. */
struct reader_note {
	int code; /* MT_E*, or MT_OK for something that costs nothing */
	char file[512];
	int64_t offset; /* or ERROR_NO_OFFSET */
	char text[256];
};
unsigned reader_notes(const struct reader *r);
const struct reader_note *reader_note(const struct reader *r, unsigned i);

/* False if anything is known to be missing: lost events, skipped slots, notes with a code. */
bool reader_complete(const struct reader *r);

/* ---- files ---------------------------------------------------------------------------------------------- */

/* Calls `seen` for each file that the traces consist of, wherever it lies, by directory and then by name. `name` is
 * what a file is called in a trace directory; `file` is open for the call. Stops at the first result that isn't 0, and
 * returns it. */
struct file;
typedef int reader_file_seen(void *context, const char *name, const struct file *file);
int reader_files(struct reader *r, reader_file_seen *seen, void *context);

/* The first process that runs, or whose recorder has something left to do; NULL if no file changes any more. */
const struct process *reader_recording(const struct reader *r);

/* ---- names and stacks ----------------------------------------------------------------------------------- */

/* NULL for 0 and for a node that isn't there. A child's ids below node_base are found in its parent. */
const struct mt_node *process_node(const struct process *p, uint32_t id);

/* What was mapped at the node's pc when the node was made; NULL if nothing known was. */
const struct process_module *reader_module_of(const struct process *p, uint32_t node);

const char *process_hook(const struct process *p, unsigned hook);                  /* "malloc"; "?" if unknown */
const struct process_device *process_device(const struct process *p, uint32_t id); /* NULL if unknown */
/* Is it of a block that never had memory? */
bool process_never(const struct process *p, uint64_t addr);
const char *process_mark(const struct process *p, uint32_t name); /* text of a mark; "" if unknown */
uint32_t process_marks(const struct process *p);                  /* ids of marks' texts are below */
/* its own or its parent's; NULL if unknown */
const struct process_code *process_code(const struct process *p, uint32_t code);
const struct process_thread *process_thread(const struct process *p, uint32_t index); /* NULL if unknown */
bool process_is_pypy(const struct process *p); /* whose objects are not those of CPython */

/* "In [7]", the cell of a notebook whose code is in that file. False: it is no cell's, or its number is unknown.
 * IPython's names of such files have the number. ipykernel's are hashes: python/libmemtrace/notebook.py marks whose. */
enum { PROCESS_CELL_NAME = 16 };
bool process_cell(const struct process *p, const char *file, char name[PROCESS_CELL_NAME]);

/* ---- events --------------------------------------------------------------------------------------------- */

enum reader_what {
	READER_START = 1, /* the process begins: for a fork, everything its parent did before is behind us */
	READER_EVENTS,    /* count slots of it, in causal order */
	READER_EXIT,      /* it ended at step.ns, or its trace does (state PROCESS_RUNNING) */
};

/* One step of the stream; what it points to is borrowed until the next call. Steps of all processes come in order of
 * time. Within a process the order of slots is causal, and times never run backwards. */
struct reader_step {
	enum reader_what what;
	const struct process *process;
	uint64_t ns;                  /* of START and EXIT */
	const struct mt_event *slots; /* mt_has_ext() ones are followed by their MT_EXT, which never comes first */
	const uint32_t *rings;        /* slots[i]'s ring */
	const uint32_t *threads;      /* index of the thread that owned that ring then */
	size_t count;
};

/* 1 = *step is filled, 0 = the end, < 0 = error. */
int reader_next(struct reader *r, struct reader_step *step);

/* With READER_FOLLOW, after reader_next() returned 0: looks for what has been recorded since, new processes included,
 * and the stream goes on with it. If reader_next() then returns 0 at once, nothing was recorded, or all processes have
 * ended: reader_ended() tells. Pointers to processes and what they point to stay valid; fields of struct process change
 * in place. 0 or an error, after which the trace has to be opened anew: above all -MT_ECHANGED. */
int reader_refresh(struct reader *r);
enum { READER_MORE = 4096 }; /* new processes that there is room for; with more it is -MT_ECHANGED */
bool reader_ended(const struct reader *r);

/* Of a kept analysis (analysis/index.h): whether nothing will be added to its files; and what begins anew in another
 * process, for the same directories. 0 or an error. */
bool reader_is_finished(const struct reader *r);
int reader_resume(struct reader *r, const char *const *dirs);

/* After a pass: frees what was needed to read events. It is made again when events are read again. */
void reader_release(struct reader *r);

/* How far a pass is. */
struct reader_progress {
	double done;     /* the part of the events that was read, 0 to 1 */
	uint64_t events; /* of the whole trace, as heads of blocks and rings say */
};
struct reader_progress reader_progress(const struct reader *r);

#endif
