/*
 * The on-disk format, version 1: everything the shim writes and the analyzer reads.
 *
 * A trace directory holds
 *
 *   session          struct mt_session, mapped by every process and the recorder
 *   PID-N.info       struct mt_info, the chunk states, then a log of records (mapped by the process)
 *   PID-N.nodes      the call tree: struct mt_node by id (mapped by the process)
 *   PID-N.ring       chunks of raw events (mapped by the process)
 *   PID-N.trace      compressed blocks, written by the recorder alone
 *   symbols          what the addresses of the call trees are; written by `memtrace symbolize`, may be missing
 *
 * If session.ring_dir is set, .info, .nodes and .ring are there instead, as memtrace-START.PID-N.info and so on, START
 * being session.start_real_ns as 16 hexadecimal digits.
 *
 * N counts the images one pid has run: 0, then 1 after an exec. When a process has ended and all its chunks
 * are encoded, the recorder appends its nodes and its info to PID-N.trace and removes the other three files.
 *
 * Glossary
 *   tick      one unit of the session's clock (see mt_session.clock)
 *   slot      32 bytes of a chunk: an event, or the extension of the event before it
 *   ring      a sequence of slots written by one thread at a time; a thread that ends leaves its ring to the next
 *   position  index of a slot in its ring since the process started: chunk.seq * MT_CHUNK_SLOTS + slot
 *   node      a call stack, as (caller's node, return address); 0 is "no stack"
 *
 * All integers are little endian. docs/FORMAT.md says the same byte by byte.
 */
#ifndef MT_FORMAT_H
#define MT_FORMAT_H

#include <stdint.h>

#define MT_VERSION 1

#define MT_SESSION_MAGIC "MTSESS1\n"
#define MT_INFO_MAGIC    "MTINFO1\n"
#define MT_TRACE_MAGIC   "MTTRAC1\n"
#define MT_SYMBOLS_MAGIC "MTSYMB1\n"
#define MT_CHUNK_MAGIC   0x4b43544du /* "MTCK" */
#define MT_BLOCK_MAGIC   0x4b42544du /* "MTBK" */

/* ---- session ------------------------------------------------------------------------------------------- */

enum mt_clock {
	MT_CLOCK_TSC = 1,       /* x86-64 time stamp counter, where the kernel itself trusts it */
	MT_CLOCK_MONOTONIC = 2, /* CLOCK_MONOTONIC in nanoseconds */
	MT_CLOCK_CNTVCT = 3,    /* aarch64 virtual counter */
};

enum mt_session_flag {
	MT_SESSION_NO_RECORDER = 1, /* none may be started: a process is PID 1 or a subreaper */
	MT_SESSION_SUPERVISED = 2,  /* `memtrace run` sees to the recorder */
};

/* A pipeline of an interactive shell, or all that a script runs: process groups are numbers of one pid namespace, and a
 * number comes again only when nobody is in the group any more. Its leader may have ended before that. */
struct mt_job {
	uint64_t pid_ns; /* inode of /proc/self/ns/pid; 0 = unknown: nobody's */
	/* of the group's leader, as mt_info.boot_start; 0 = it had ended. Of group 0 the namespace's first process */
	uint64_t leader_start;
	uint32_t group, session; /* getpgid() and getsid() */
};

#define MT_SESSION_PAGE  4096u
#define MT_SESSION_LEAST 1240u /* mt_session.bytes of the first writers; what they lack reads as 0 */

/* A process that is not recorded, or only in part. */
struct mt_unseen {
	uint32_t pid;   /* 0 = none, or withdrawn */
	uint32_t why;   /* enum mt_loss; written last */
	char path[120]; /* of the program, or of the library whose malloc comes first; of a longer one its end */
};

/* First 4096 bytes of the file "session". It may grow at its end within version 1. Fields after `ring_dir` change while
 * the session lives. */
struct mt_session {
	char magic[8];
	uint32_t version;
	uint32_t bytes;       /* sizeof(struct mt_session) */
	uint64_t start_ticks; /* one moment on three clocks */
	uint64_t start_mono_ns;
	uint64_t start_real_ns;
	uint32_t clock; /* enum mt_clock */
	uint32_t page_bytes;
	uint64_t limit_bytes;     /* of the whole directory; 0 = none */
	uint64_t keep_free_bytes; /* of the file system */
	char boot_id[40];
	char host[64];
	char ring_dir[1024];       /* of the mapped files; absolute; empty = the trace directory */
	uint32_t flags;            /* enum mt_session_flag, atomic or */
	uint32_t recorder_pid;     /* 0 = none; set by the recorder that holds the lock on "session" */
	uint64_t recorder_beat_ns; /* CLOCK_MONOTONIC of the recorder's last round */
	uint64_t used_bytes;       /* atomic: disk charged by every process and the recorder */
	uint64_t unrecorded;       /* atomic: processes that were seen and could not be recorded */
	uint32_t root_pid;         /* the child of `memtrace run` ... */
	uint32_t root_exit_kind;   /* ... and how it ended (enum mt_exit) */
	int32_t root_exit_code;
	uint32_t trace_mib; /* atomic: how much of used_bytes is in blocks, by the recorder; the rest is raw */
	/* atomic: device allocations that failed; the recorder samples the devices when it grows */
	uint32_t failures;
	uint32_t unrecorded_why; /* atomic: enum mt_loss, or'ed */
	/* atomic: the same in bytes, in files of blocks; how much of them a recorder that was killed had counted */
	uint64_t trace_bytes;
	struct mt_job job;     /* of the process that made it; others of the same job may join */
	uint64_t memory_bytes; /* of the machine; 0 = not known */
	/* by memtrace start and stop: how often it was asked; odd = recording is to go on. For who begins from then
	 * on */
	uint32_t asked;
	uint32_t oom_commands;      /* atomic: how often its recorders ran MEMTRACE_ON_OOM */
	struct mt_unseen unseen[8]; /* the first of those in `unrecorded` that are known by name */
	/* one moment on two clocks, when the last recorder ended; 0 = none has. Ticks are written last */
	uint64_t ended_ticks, ended_mono_ns;
};

/* ---- process: PID-N.info ------------------------------------------------------------------------------- */

enum mt_origin { MT_ORIGIN_EXEC = 1, MT_ORIGIN_FORK = 2 };

/* How calls come to the hooks of a process that was not preloaded. A forked child is as its parent was. */
enum mt_attached {
	MT_ATTACHED_NOT = 0,     /* it was preloaded */
	MT_ATTACHED_HOOKED = 1,  /* by rewritten relocations */
	MT_ATTACHED_UNDONE = 2,  /* these are as they were before: recording has been stopped */
	MT_ATTACHED_NOTHING = 3, /* they don't: the library was loaded later, and nothing could be rewritten */
};

enum mt_exit {
	MT_EXIT_NONE = 0,   /* running, or ended without a word (killed, or the machine died) */
	MT_EXIT_CODE = 1,   /* exit_code is the status */
	MT_EXIT_SIGNAL = 2, /* exit_code is the signal */
	MT_EXIT_EXEC = 3,   /* replaced by another image; its heap ended, nothing leaked */
};

enum mt_stacks { MT_STACKS_ALL = 0, MT_STACKS_SAMPLE = 1, MT_STACKS_NONE = 2 };

enum mt_record_mode {
	MT_RECORD_ALL = 0,
	MT_RECORD_YOUNG = 1,
	MT_RECORD_AUTO = 2,    /* MT_REC_MODE says which */
	MT_RECORD_SAMPLED = 3, /* a heap block of at least sample_bytes, and of smaller ones each that was picked */
};

#define MT_NO_PARENT UINT32_MAX

/* A bit of mt_info.asked that changes when a snapshot of what holds the memory is wanted (holders.h). The rest says
 * whether recording is to go on. */
#define MT_ASKED_HOLDERS 0x80000000u

/* First 4096 bytes of PID-N.info. Fields from `exit_kind` on change while the process lives; each counter
 * only grows and is written with a relaxed atomic add. */
struct mt_info {
	char magic[8];
	uint32_t version;
	uint32_t bytes; /* sizeof(struct mt_info) */
	uint32_t pid;
	uint32_t image;        /* N of PID-N */
	uint32_t parent_pid;   /* getppid() when it started; with MT_ORIGIN_FORK: the process it inherits from */
	uint32_t parent_image; /* with MT_ORIGIN_FORK: that one's N; else MT_NO_PARENT */
	uint32_t origin;       /* enum mt_origin */
	uint32_t clock;
	uint64_t start_ticks; /* one moment on three clocks */
	uint64_t start_mono_ns;
	uint64_t start_real_ns;
	uint64_t boot_start; /* field 22 of /proc/PID/stat, so that a reused pid is noticed */
	uint64_t pid_ns;     /* inode of /proc/self/ns/pid: pids are only comparable within one */
	uint64_t fork_ticks; /* the parent's events before this are inherited */
	uint32_t fork_exact; /* 0: no fork handler ran (raw clone); fork_ticks is late */
	uint32_t node_base;  /* ids below belong to the parent's tree */
	uint32_t stacks;     /* enum mt_stacks */
	uint32_t depth;      /* frames kept */
	uint64_t sample_bytes;

	uint32_t exit_kind; /* enum mt_exit */
	int32_t exit_code;
	uint64_t end_ticks;  /* 0 = unknown */
	uint64_t pair_ticks; /* the latest moment known on both clocks, to tell a tick's length */
	uint64_t pair_mono_ns;
	uint64_t log_bytes; /* published bytes of the record log */
	uint32_t node_end;  /* published: ids below have been handed out (own ones from node_base) */
	uint32_t chunks;    /* chunks in the ring file */
	uint32_t rings;
	uint32_t threads;          /* threads that recorded at least one event */
	uint64_t lost_events;      /* dropped: disk full, limit reached, no file could be made */
	uint64_t truncated_stacks; /* stacks cut at depth, at an unreadable frame, or at the end of the tree */
	uint64_t unwritten_bytes;  /* log records that did not fit */
	uint64_t faults;           /* internal inconsistencies; too many turn the shim off */
	uint32_t off;              /* the kill switch fired */
	uint32_t seccomp;          /* a seccomp filter was installed: no files after that */
	uint64_t disk_bytes;       /* of session.used_bytes: what this process's raw files are charged with */
	uint32_t lost_why;         /* enum mt_loss, or'ed: why events were lost */
	uint32_t fixed;            /* its files can't grow any more, and may be all there is */
	uint64_t unplaced_stacks;  /* of truncated_stacks: there was no room for their nodes */
	/* RLIMIT_AS when it started, or when a request was refused last; MT_NO_LIMIT; 0 = not known */
	uint64_t address_limit;
	uint64_t data_limit; /* RLIMIT_DATA, the same */
	/* what it had of them when a request was refused last, as /proc/self/statm says; 0 = none was */
	uint64_t address_used;
	uint64_t data_used;
	uint64_t shm_used;              /* bytes of files in /dev/shm when it started, and 1; 0 = not known */
	uint32_t fork_node, fork_node2; /* after a fork: the parent's stack then, as an event's; 0 = not known */
	uint32_t asked;          /* as the session's, of this process; it looks at each event. MT_ASKED_HOLDERS */
	uint32_t stops;          /* how often recording was stopped since it had begun */
	uint64_t recorded_ticks; /* when recording began, if not with the process; 0 = with it */
	uint64_t stopped_ticks;  /* not recorded since then; 0 = it is */
	uint64_t gap_ticks;      /* how long it was stopped in between, all in all */
	/* atomic: requests that failed, of devices and of the host, trials not among them */
	uint32_t device_failures, refusals;
	uint32_t attached;    /* enum mt_attached */
	uint32_t record;      /* enum mt_record_mode */
	uint64_t young_bytes; /* atomic: no more young blocks than these were ever alive at once */
	/* MT_RECORD_SAMPLED: every call of the heap that returned a block, and its bytes; every free. While there are
	 * raw files those of struct mt_tally come on top */
	uint64_t heap_calls, heap_bytes, heap_frees;
};

#define MT_NO_LIMIT UINT64_MAX

#define MT_INFO_LEAST 208u /* mt_info.bytes of the first writers; what they lack reads as 0 */

/* Why events were lost, and why processes were not recorded. */
enum mt_loss {
	MT_LOSS_DISK = 1,      /* no space, or the limit was reached */
	MT_LOSS_SECCOMP = 2,   /* a system call filter leaves no way to get more memory or files */
	MT_LOSS_RIGHTS = 4,    /* the process gave up its rights to the trace directory */
	MT_LOSS_DAMAGE = 8,    /* raw files were cut off or overwritten before they were compressed */
	MT_LOSS_FILES = 16,    /* no descriptors, or the files can't be made for another reason */
	MT_LOSS_MEMORY = 32,   /* none for what recording needs, or no address space (RLIMIT_AS) */
	MT_LOSS_SHARED = 4096, /* of a child that shares its parent's thread-local storage */
	/* of processes alone */
	MT_LOSS_STATIC = 64,       /* a program that loads no library: static, or of 32 bits */
	MT_LOSS_SECURE = 128,      /* it gains rights, and the loader drops LD_PRELOAD */
	MT_LOSS_ENVIRONMENT = 256, /* it was started without LD_PRELOAD */
	MT_LOSS_BEHIND = 512,      /* another library's malloc comes first */
	MT_LOSS_LATE = 1024,       /* the shim was loaded by dlopen, when calls were bound already */
	MT_LOSS_SANITIZER = 2048,  /* the program has a sanitizer's run time, and is left alone */
};

#define MT_INFO_STATES  4096u /* offset of the chunk states: one byte (enum mt_chunk_state) per chunk */
#define MT_MAX_CHUNKS   65536u
#define MT_INFO_TALLIES (MT_INFO_STATES + MT_MAX_CHUNKS) /* offset of struct mt_tally of the rings from 0 on */
#define MT_TALLIES      960u
#define MT_INFO_LOG     0x20000u /* offset of the record log */
#define MT_LOG_STEP     0x10000u /* the log grows by this */

/* What the threads of a ring have counted, with MT_RECORD_SAMPLED: of blocks that leave no event, too. */
struct mt_tally {
	uint64_t calls; /* as mt_info.heap_calls */
	uint64_t next;  /* the shim's: until `bytes` is that no block is picked that doesn't reach it */
	uint64_t bytes, frees;
	uint64_t reserved[4];
};

/* A log record: header, payload, padded with zeros to 8 bytes. Strings end with NUL. */
enum mt_record_type {
	MT_REC_PROGRAM = 1,  /* payload: exe\0 argv[0]\0 argv[1]\0 ... */
	MT_REC_ENV = 2,      /* payload: NAME=VALUE\0 ... of settings of allocators, devices, ranks; the last counts */
	MT_REC_HOOK = 3,     /* struct mt_rec_hook, then the name\0 */
	MT_REC_MODULE = 4,   /* struct mt_rec_module, then build id, then path\0 */
	MT_REC_UNMODULE = 5, /* struct mt_rec_unmodule */
	MT_REC_THREAD = 6,   /* struct mt_rec_thread, then the name\0: may change; a later one replaces it */
	MT_REC_FILE = 7,     /* struct mt_rec_file, then the path\0 of a mapped file */
	MT_REC_CHILD = 8,    /* struct mt_rec_child: a wait of this process said how a child ended */
	MT_REC_CODE = 9,     /* struct mt_rec_code, then the line table, then file\0, then name\0 */
	MT_REC_DEVICE = 10,  /* struct mt_rec_device, then uuid\0, then the model's name\0 */
	MT_REC_NAME = 11,    /* struct mt_rec_name, then the text\0 of a mark */
	MT_REC_MODE = 12,    /* struct mt_rec_mode: of MT_RECORD_AUTO, from here on; at first it is MT_RECORD_ALL */
	/* struct mt_rec_import, then what\0 path\0 lacks\0: it was not recorded but imported, from what, from which
	 * file, and what is not in that */
	MT_REC_IMPORT = 13,
	MT_REC_NEVER = 14, /* struct mt_rec_never: a block that never had memory, whatever its events say */
	MT_REC_LATE = 15,  /* payload: NAME=VALUE\0 ... of settings that came when their pool had begun: in vain */
};

struct mt_record {
	uint16_t type;
	uint16_t reserved;
	uint32_t bytes; /* with header and padding */
	uint64_t ticks;
};

struct mt_rec_hook {
	uint32_t id;
	uint32_t reserved;
};

/* Node ids tell the time: a node's pc belongs to the module that covered it when the node was made, that is
 * the one with node_from <= id that was not unloaded (MT_REC_UNMODULE.node_until <= id) before. */
struct mt_rec_module {
	uint64_t bias;       /* run-time address minus the address in the ELF file */
	uint64_t start, end; /* of its mapped segments */
	uint32_t node_from;
	uint32_t build_id_bytes;
};

struct mt_rec_unmodule {
	uint64_t start;
	uint32_t node_until;
	uint32_t reserved;
};

struct mt_rec_thread {
	uint32_t index;
	uint32_t tid;
};

struct mt_rec_file {
	uint32_t id;
	uint32_t reserved;
};

struct mt_rec_child {
	uint32_t pid;
	uint32_t kind;
	int32_t code;
	uint32_t reserved;
};

/* A Python code object. A forked child goes on with ids above those its parent had then. */
struct mt_rec_code {
	uint32_t id;
	uint32_t version; /* of CPython, 0x030b for 3.11: says how the line table is to be read */
	uint32_t first_line;
	uint32_t table_bytes; /* co_lnotab before 3.10, co_linetable since */
};

struct mt_rec_mode {
	uint32_t record; /* MT_RECORD_ALL or MT_RECORD_YOUNG */
	uint32_t reserved;
};

struct mt_rec_never {
	uint64_t addr; /* MT_NOWHERE or more */
	uint64_t reserved;
};

/* OTHER: of a device that memtrace does not know by itself: of a trace that was imported, or as a framework calls it */
enum mt_backend {
	MT_BACKEND_CUDA = 1,
	MT_BACKEND_ASCEND = 2,
	MT_BACKEND_OTHER = 3,
	MT_BACKEND_HIP = 4,
	MT_BACKEND_XPU = 5
};

/* A device as this process calls it. Processes share a device if backend and uuid (of one host) are the same. */
struct mt_rec_device {
	uint32_t id;      /* what mt_ext_device.device says; 1, 2, ...: 0 there is "no device" */
	uint32_t backend; /* enum mt_backend */
	uint32_t ordinal; /* N of the process's cuda:N, hip:N, npu:N or xpu:N */
	uint32_t reserved;
	uint64_t total_bytes; /* as the driver says; 0 = unknown */
};

struct mt_rec_name {
	uint32_t id;
	uint32_t reserved;
};

enum mt_import_has {
	MT_IMPORT_HEAP = 1,
	MT_IMPORT_MAPPINGS = 2,
	MT_IMPORT_DEVICES = 4,
	MT_IMPORT_PINNED = 8,
	MT_IMPORT_HISTORY = 16, /* else it is what was there at one or two moments */
};

struct mt_rec_import {
	uint32_t has; /* enum mt_import_has, or'ed: what the file speaks of; the rest is unknown */
	uint32_t reserved;
};

/* ---- call tree: PID-N.nodes ---------------------------------------------------------------------------- */

#define MT_NODE_EXACT  1u /* pc is the interrupted instruction, not a return address: look it up as it is */
#define MT_NODE_PYTHON 2u /* pc is no address but what MT_PY_* say */
#define MT_NODE_CALLER 4u /* all that is kept of a stack that was not sampled: the function that asked for the block */

/* A Python frame's pc: the id of its code (MT_REC_CODE) and the offset in bytes of the instruction it is at. No
 * native pc has the highest bit set, so the two kinds share a tree. ENTRY: the interpreter entered its evaluator
 * for this frame; frames further in until the next one with this mark run in the same native frame. Code 0 with
 * ENTRY is an evaluator without a frame, which it is just leaving. Code 0 without ENTRY is a thread, MT_PY_OFFSET its
 * index: the outermost frame of one that runs no Python in a process that does. Its caller, if any, is the Python stack
 * that gave the thread its work: of autograd's threads, that which called backward(). With BESIDE a thread's node also
 * says, in place of the code's id, at which node the process's first thread was in Python then, or a few milliseconds
 * before: who may have given it its work. */
#define MT_PY_FRAME      (1ull << 63)
#define MT_PY_ENTRY      (1ull << 62)
#define MT_PY_BESIDE     (1ull << 31)
#define MT_PY_CODE(pc)   ((pc) & MT_PY_BESIDE ? 0 : (uint32_t)((pc) >> 32) & 0x3fffffffu)
#define MT_PY_MAIN(pc)   ((pc) & MT_PY_BESIDE ? (uint32_t)((pc) >> 32) & 0x3fffffffu : 0)
#define MT_PY_OFFSET(pc) ((uint32_t)(pc) & 0x7fffffffu)
#define MT_PY_MAX_CODE   0x3fffffffu

/* At offset id - node_base (in units of 16). parent < id always; the same (parent, pc) may occur twice. */
struct mt_node {
	uint64_t pc;
	uint32_t parent;
	uint32_t flags;
};

#define MT_NODE_STEP 4096u     /* nodes a file grows by; node_base is a multiple of it */
#define MT_NODE_RUN  32u       /* ids that a ring has at once, at most, before the file reaches them */
#define MT_MAX_NODES 16777216u /* ids fit 24 bits */

/* ---- ring: PID-N.ring ---------------------------------------------------------------------------------- */

enum mt_chunk_state {
	MT_CHUNK_FREE = 0,    /* not used yet, or its events are in PID-N.trace */
	MT_CHUNK_FILLING = 1, /* a thread appends; `used` slots are valid */
	MT_CHUNK_FULL = 2,    /* waits for the recorder; read it raw until then */
};

#define MT_CHUNK_BYTES 262144u
#define MT_CHUNK_SLOTS 8190u /* (MT_CHUNK_BYTES - sizeof(struct mt_chunk)) / sizeof(struct mt_event) */

/* Chunk i is at offset i * MT_CHUNK_BYTES of the ring file. */
struct mt_chunk {
	uint32_t magic;
	uint32_t ring;
	uint64_t seq;    /* chunk number within its ring: 0, 1, ... */
	uint32_t used;   /* published slots (release store; the reader loads with acquire) */
	uint32_t thread; /* thread index that owned the ring at slot 0 */
	uint64_t reserved[5];
};

enum mt_kind {
	MT_NONE = 0,
	MT_ALLOC = 1, /* addr, size, node: heap block */
	/* addr: stamped before the real call; in folded blocks size 1: not a temporary block, as others were allocated
	 * in between */
	MT_FREE = 2,
	/* addr = requested bytes (all 64 bits), size = the kind that failed: MT_ALLOC or MT_MAP, which may have
	 * MT_TRIAL; node */
	MT_FAIL = 3,
	MT_UNDO = 4,  /* addr: this ring's last FREE or UNMAP of addr did not happen */
	MT_MAP = 5,   /* addr, size, node; an MT_EXT slot with struct mt_ext_map follows */
	MT_UNMAP = 6, /* addr, size: stamped before the real call */
	MT_EXT = 7,   /* extension of the slot before; never alone */
	/* addr = thread index that owns the ring from here on, size = tid, 0 = that of MT_REC_THREAD: an index is used
	 * again once its thread has ended and left nothing alive */
	MT_THREAD = 8,
	MT_LOST = 9, /* addr = events this ring lost just before this one */

	/* Each of these is followed by an MT_EXT slot with struct mt_ext_device. */
	MT_DEVICE_ALLOC = 10, /* addr = address or handle, size, node: memory of the ext's class */
	MT_DEVICE_FREE = 11,  /* addr; stamped before the real call */
	/* addr = requested bytes (all 64 bits, 0 = unknown), size = by which they are rounded at most, node; an
	 * MT_DEVICE_INFO comes before it where it is known */
	MT_DEVICE_FAIL = 12,
	MT_DEVICE_UNDO = 13, /* addr: this ring's last MT_DEVICE_FREE or _UNMAP of addr and class did not happen */
	/* addr, size, node: a physical handle (ext.stream) is mapped there; of class POOL: the block at ext.stream,
	 * which is MT_NOWHERE or more, lies there */
	MT_DEVICE_MAP = 14,
	MT_DEVICE_UNMAP = 15, /* addr, size; stamped before the real call */
	MT_DEVICE_RESET = 16, /* what the process had of class `addr` (0 = any) on that device is gone */
	/* addr = free bytes, size = total bytes of the device at that moment, as its driver says */
	MT_DEVICE_INFO = 17,
	MT_MARK = 18, /* addr = value, size = id of MT_REC_NAME; ext.class is an enum mt_mark */
	MT_FOLD = 19, /* what is left out, by folding or as young blocks; ext.class is an enum mt_fold */
};

static inline int mt_has_ext(unsigned kind)
{
	return kind == MT_MAP || (kind >= MT_DEVICE_ALLOC && kind <= MT_FOLD);
}

/* Gives something back: published before the real call, so of equal times it comes first. */
static inline int mt_gives_back(unsigned kind)
{
	return kind == MT_FREE || kind == MT_UNMAP || kind == MT_DEVICE_FREE || kind == MT_DEVICE_UNMAP;
}

/* One slot. */
struct mt_event {
	uint64_t ticks;
	uint64_t addr;
	uint64_t size : 48;
	uint64_t hook : 10; /* id of MT_REC_HOOK */
	uint64_t kind : 6;  /* enum mt_kind */
	uint32_t node;      /* native stack */
	uint32_t node2;     /* stack in the language above it (Python); 0 = none */
};

#define MT_MAX_SIZE ((1ull << 48) - 1)

/* Addresses from here on are no memory's: of blocks of a pool of which it is not known where they lie. */
#define MT_NOWHERE (1ull << 62)

#define MT_TRIAL 256u /* the request was of a kind that programs make to see whether it works: no want of memory */

enum mt_map_flag {
	MT_MAP_ANON = 1,
	MT_MAP_SHARED = 2,
	MT_MAP_FIXED = 4,  /* replaced whatever was mapped there */
	MT_MAP_MEMFD = 8,  /* file is a memfd or shared memory object */
	MT_MAP_MOVED = 16, /* by mremap: `old` is where it was */
	MT_MAP_KEPT = 32,  /* mremap with MREMAP_DONTUNMAP or old size 0: the old range stays */
	/* mprotect: what is mapped there stays; only prot means anything beside ANON and FIXED, which are set */
	MT_MAP_PROTECT = 64,
	MT_MAP_GIVEN = 128, /* madvise gave its memory back: what is mapped there stays; ANON and FIXED are set */
	MT_MAP_ARENA = 256, /* by the allocator whose blocks are recorded, which lie in it */
};

/* Second slot of MT_MAP, in the shape of an event whose kind is MT_EXT. */
struct mt_ext_map {
	uint64_t old;        /* with MT_MAP_MOVED; else 0 */
	uint64_t offset;     /* in the file */
	uint32_t prot : 8;   /* PROT_* */
	uint32_t flags : 24; /* enum mt_map_flag */
	uint32_t kind_ext;   /* MT_EXT << 26: lies where an event has its kind */
	uint32_t file;       /* id of MT_REC_FILE; 0 = none or unknown */
	uint32_t reserved;
};

/* What a device event is about. Addresses of different classes and devices are not the same thing. */
enum mt_class {
	MT_CLASS_DEVICE = 1,     /* linear memory of the device */
	MT_CLASS_MANAGED = 2,    /* moves between device and host */
	MT_CLASS_ASYNC = 3,      /* stream-ordered, from a pool of the driver's */
	MT_CLASS_ARRAY = 4,      /* addr is a handle */
	MT_CLASS_PHYSICAL = 5,   /* virtual memory API: addr is a handle, bytes are charged to the device */
	MT_CLASS_RESERVED = 6,   /* ... an address range without memory */
	MT_CLASS_ALIAS = 7,      /* memory of another process or graphics API (IPC, imports): no new bytes */
	MT_CLASS_PINNED = 8,     /* host memory that the driver allocated and locked */
	MT_CLASS_REGISTERED = 9, /* host memory of the program's that is locked: no new bytes */
	MT_CLASS_POOL = 10,      /* block of the framework's caching allocator, inside the above */
	MT_CLASS_WORKSPACE = 11, /* the same, of a second pool (Ascend's workspaces) */
	/* memory of the host's heap that a framework's pool gives out in pieces: these are MT_ALLOC, and it is none. An
	 * MT_FREE that is no piece's ends it */
	MT_CLASS_SEGMENT = 12,
	MT_CLASSES
};

enum mt_mark {
	MT_MARK_POINT = 1, /* at this moment: size = name */
	MT_MARK_STEP = 2,  /* addr = number of the step that begins */
	MT_MARK_BEGIN = 3, /* a phase begins; phases of one thread nest */
	MT_MARK_END = 4,   /* name 0: the innermost */
	MT_MARK_LABEL = 5, /* the block at `addr` is called `size` */
	/* the heap block at `addr` was asked for by this event's stack, though another thread has made the call */
	MT_MARK_OWNER = 6,
};

/* A folded block is BEGIN, what is kept with LEVEL and LAST in between, any number of SUM, END. A SUM outside of one is
 * of young blocks: then ext.source says nothing. */
enum mt_fold {
	/* the most bytes that are alive at one moment of what is left out from here to END: `addr` of the heap,
	 * ext.stream of everything else */
	MT_FOLD_BEGIN = 1,
	/* `addr` blocks of one stack, kind and size that are left out, with ext.stream bytes together; ext.other of
	 * them were temporary. `size` has as many bits as their sizes; where stacks are sampled it is their size.
	 * ext.status: the thread that allocated them. ext.source 1: its latest allocation is left out.
	 * ext.capture: what they are: 0 = heap, an enum mt_class, or MT_FOLD_MAPS; ext.device: where */
	MT_FOLD_SUM = 2,
	MT_FOLD_END = 3,
	/* the pool of ext.device, left-out blocks included: `addr` to `size` bytes were alive since the LEVEL before
	 * (at this moment, if it is the block's first of the device), and ext.stream bytes are now. ext.other:
	 * allocations left out since the LEVEL before. ext.source 1: a low point, where nothing alive on devices is
	 * left out. ext.capture: MT_CLASS_POOL; 0 = only ext.other is said */
	MT_FOLD_LEVEL = 4,
	MT_FOLD_LAST = 5, /* the latest mapping of thread ext.status is left out */
};

#define MT_FOLD_MAPS 255u /* ext.capture of SUM */

enum mt_mark_source { MT_MARK_PROGRAM = 0, MT_MARK_NVTX = 1, MT_MARK_MSTX = 2 };

/* Of MT_DEVICE_ALLOC: BEFORE is no call, but a block that was there already when recording began. node2 is one frame,
 * the same of all these, which says so. */
enum mt_alloc_source { MT_ALLOC_CALL = 0, MT_ALLOC_BEFORE = 1 };
#define MT_BEFORE_NAME "blocks from before the recording"

/* Second slot of MT_DEVICE_*, MT_MARK and MT_FOLD, in the shape of an event whose kind is MT_EXT. */
struct mt_ext_device {
	/* ALLOC, FREE: its stream, 0 = default or none; MAP: the handle; FAIL of class POOL: allocated bytes, of
	 * DEVICE and PHYSICAL on Ascend: bytes that the pool had been asked for, 0 = unknown */
	uint64_t stream;
	/* MAP: offset in the handle; ALLOC of class POOL: bytes of the block that were not asked for, plus 1, 0 =
	 * unknown; FAIL of class POOL: reserved bytes as the framework says; MARK_BEGIN and _END of NVTX, MSTX: the
	 * range's id, 0 = of this thread's stack */
	uint64_t other;
	uint32_t class : 8;   /* enum mt_class or enum mt_mark */
	uint32_t device : 16; /* MT_REC_DEVICE.id; 0 = none (the host, unknown) */
	uint32_t source : 8;  /* enum mt_mark_source; ALLOC: enum mt_alloc_source */
	uint32_t kind_ext;    /* MT_EXT << 26 */
	uint32_t status;      /* FAIL: what the API returned */
	/* ALLOC, FAIL of class POOL: number of the capture that its stream was in; 0 = none. FOLD: see enum mt_fold */
	uint32_t capture;
};

/* ---- young blocks: PID-N.young -------------------------------------------------------------------------- */

/* Small blocks that wait in a table until they are freed or become events: docs/design/young.md. The file is the head,
 * a page; the table; and an area for each ring that has put blocks there. */
#define MT_YOUNG_MAGIC "MTYOUN1\n"
#define MT_YOUNG_TABLE 4096u /* offset of the table */
/* In the table, a power of two; two of each set. */
#define MT_YOUNG_BLOCKS_LEAST 65536u
#define MT_YOUNG_BLOCKS_MOST  262144u
#define MT_YOUNG_SUMS         4094u
#define MT_YOUNG_PLACES       8192u
#define MT_YOUNG_LIMIT        1024u /* bytes: smaller blocks are young */
#define MT_YOUNG_SLOTS        1024u /* a thread that has written so many is worth an area, and its process a table */
#define MT_YOUNG_WINDOW_NS    500000000u /* after which a thread that goes on writes what it has left out */
#define MT_YOUNG_AREAS        4096u

struct mt_young_head {
	char magic[8]; /* written last */
	uint32_t version;
	uint32_t blocks; /* in the table */
	uint32_t areas;  /* published */
	uint32_t reserved;
};

/* What addr is: 0 empty, MT_YOUNG_TAKEN being filled, else an address, a multiple of 8, and these bits. */
enum mt_young_state {
	MT_YOUNG_TAKEN = 1,
	MT_YOUNG_LEAVES = 2, /* its MT_ALLOC is being written, or was: an area says where */
	/* it was freed, and is to go to a sum; an area may say which. With LEAVES: meanwhile, and nothing else tells */
	MT_YOUNG_FREED = 4,
};

struct mt_young_block {
	uint64_t addr;
	uint64_t ticks; /* when it was allocated */
	uint32_t node, node2;
	uint16_t size, hook;
	uint16_t area; /* of the ring whose thread allocated it */
	uint16_t reserved;
};

/* Blocks of one stack, thread, hook and size that were allocated and freed. */
struct mt_young_sum {
	uint32_t node, node2;
	uint32_t thread; /* that allocated them */
	uint16_t hook;
	uint16_t size;  /* as of MT_FOLD_SUM */
	uint32_t count; /* 0 = empty */
	uint32_t temporary;
	uint64_t bytes;
};

/* `leaves`, `told`: an entry of the table, or of `sums`, and 1, which becomes the ring's slot at `position`. Once that
 * is published the entry says nothing any more. 0 = none. */
struct mt_young_area {
	uint32_t ring;
	uint32_t thread; /* index, of the ring's owner */
	uint32_t leaves, told;
	uint64_t position;
	uint64_t since;  /* ticks: what `sums` have is younger */
	uint64_t latest; /* address of the thread's latest allocation */
	/* an entry, and 1: while it says FREED, `count`, `temporary` and `bytes` are what sum `sum` is with it */
	uint32_t frees;
	uint32_t sum;
	uint32_t count, temporary;
	uint64_t bytes;
	struct mt_young_sum sums[MT_YOUNG_SUMS]; /* from the first on, in the order in which they began */
	uint16_t places[MT_YOUNG_PLACES];        /* by a hash: of `sums`, and 1; the process's alone */
};

/* ---- blocks: PID-N.trace ------------------------------------------------------------------------------- */

/* The file is a struct mt_trace_header, then blocks back to back. A block that is cut off or fails its
 * checksum ends the readable part; what it would have covered is still in the ring if the process's machine
 * was not restarted in between. */
struct mt_trace_header {
	char magic[8];
	uint32_t version;
	uint32_t bytes; /* sizeof(struct mt_trace_header) */
	uint32_t pid;
	uint32_t image;
	uint64_t reserved;
};

enum mt_block_type {
	MT_BLOCK_EVENTS = 1, /* events of all rings in causal order */
	MT_BLOCK_NODES = 2,  /* the whole call tree */
	MT_BLOCK_INFO = 3,   /* struct mt_info, then the record log without gap */
	MT_BLOCK_END = 4,    /* empty: the process ended and everything is above; the raw files may be gone */
	MT_BLOCK_FOLDED = 5, /* as EVENTS, with fewer events than it covers: some are left out, see enum mt_fold */
};

/* What an events block replaces: slots [from, to) of a ring. */
struct mt_cover {
	uint32_t ring;
	uint32_t thread; /* thread index that owned the ring at `from` */
	uint64_t from, to;
};

/* Followed by `covers` struct mt_cover, then `payload_bytes`. crc is CRC-32 (zlib) of the header with crc = 0,
 * the covers and the payload. Every block decodes alone. */
struct mt_block {
	uint32_t magic;
	uint32_t type; /* enum mt_block_type */
	uint32_t crc;
	uint32_t covers;
	uint64_t payload_bytes;
	uint64_t count;       /* slots, nodes, or bytes of info, before compression */
	uint64_t first_ticks; /* events: of the first; times in the block never run backwards */
	uint64_t last_ticks;
	/* events: times are multiples of 2^shift ticks; folded: bits 8 to 15 say how often it was */
	uint32_t shift;
	uint32_t columns; /* events, nodes: how many */
};

/* ---- symbols ------------------------------------------------------------------------------------------- */

/* Followed by `stored_bytes`: one zstd frame of `plain_bytes` of varints, as docs/FORMAT.md lists them. The file is
 * written under another name and renamed. crc is CRC-32 (zlib) of the header with crc = 0 and what follows it. */
struct mt_symbol_file {
	char magic[8];
	uint32_t version;
	uint32_t crc;
	uint64_t stored_bytes;
	uint64_t plain_bytes;
};

#define MT_SYMBOLS_MAX_BYTES  (1u << 30) /* of plain_bytes */
#define MT_SYMBOLS_MAX_FRAMES 64u        /* inlined at one address */

_Static_assert(sizeof(struct mt_session) <= 4096, "session header is one page");
_Static_assert(sizeof(struct mt_info) <= 4096, "info header is one page");
_Static_assert(MT_INFO_TALLIES + MT_TALLIES * sizeof(struct mt_tally) == MT_INFO_LOG, "tallies are a cache line each");
_Static_assert(sizeof(struct mt_record) == 16, "record header");
_Static_assert(sizeof(struct mt_symbol_file) == 32, "symbols header");
_Static_assert(sizeof(struct mt_node) == 16, "node");
_Static_assert(sizeof(struct mt_young_block) == 32, "young block");
_Static_assert(sizeof(struct mt_young_area) == 147456, "whole pages");
_Static_assert(sizeof(struct mt_chunk) == 64, "chunk header is two slots");
_Static_assert(sizeof(struct mt_event) == 32, "slot");
_Static_assert(sizeof(struct mt_ext_map) == 32, "slot");
_Static_assert(sizeof(struct mt_ext_device) == 32, "slot");
_Static_assert(sizeof(struct mt_chunk) + MT_CHUNK_SLOTS * sizeof(struct mt_event) <= MT_CHUNK_BYTES, "chunk");
_Static_assert(sizeof(struct mt_trace_header) == 32, "trace header");
_Static_assert(sizeof(struct mt_block) == 56, "block header");
_Static_assert(sizeof(struct mt_cover) == 24, "cover");

#endif
