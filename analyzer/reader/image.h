/*
 * One program a pid ran, as the reader's own files know it: struct process (what everybody sees) and behind it the
 * files PID-N.info, .nodes, .ring and .trace. Only reader parts (reader, image, trace, raw, stream) include this.
 */
#ifndef MT_READER_IMAGE_H
#define MT_READER_IMAGE_H

#include "analyzer/reader/file.h"
#include "analyzer/reader/memory_bound.h"
#include "analyzer/reader/reader.h"
#include "analyzer/reader/tick_clock.h"
#include "format/codec.h"

/* Where a block lies in PID-N.trace. */
struct trace_block {
	uint64_t offset, bytes;
	uint32_t type;
	uint64_t last_ticks;
};

/* PID-N.trace, indexed but not yet checked: checksums are verified when a block is used. */
struct trace {
	struct file file;
	struct trace_block *blocks; /* MT_BLOCK_EVENTS and _FOLDED */
	size_t count, room;
	uint64_t slots;                 /* in all of them, as their heads say */
	struct trace_block nodes, info; /* bytes 0 = none */
	bool indexed, end;              /* end: everything is in here */
	bool replaced;                  /* by another file, since it was read last: folding does */
	uint64_t inode, indexed_bytes;  /* of the file that was indexed */
	uint64_t next;                  /* up to there */
	uint64_t cut_at;                /* the last block is not whole; 0 = it is */
};

/* A chunk of PID-N.ring that held events when the trace was opened. */
struct raw_chunk {
	uint32_t index, ring, used, thread;
	uint64_t seq;
	/* of a trace with a living recorder, which may reuse the chunk any time; else NULL */
	struct mt_event *copy;
};

struct raw {
	struct file file;
	struct raw_chunk *chunks; /* sorted by (ring, seq) */
	size_t count, room;
	uint64_t slots;      /* in all of them */
	uint64_t last_ticks; /* of the latest event in any of them */
	uint64_t horizon;    /* of a running process: events after it are not ordered yet. UINT64_MAX = none */
};

struct session {
	struct file file;
	struct mt_session head;
	bool known;    /* head was read; else it is made up (--force) */
	bool here;     /* of this boot of this machine */
	bool recorder; /* a recorder may be at work right now */
	const char *dir;
	uid_t owner;  /* of the session file */
	bool shared;  /* others may write to the ring directory: each file in it is asked whose it is */
	bool foreign; /* such files were met, and it was said */
	/* with a ring directory: its raw files are raw_prefix + "PID-N.info" there; else NULL */
	char *raw_prefix;
};

struct image {
	struct process process; /* first, so that image_of() is a cast */
	struct reader *reader;
	struct session *session;
	struct clock *clock;
	char name[32]; /* "PID-N" */
	struct mt_info info;
	bool info_known;
	bool unborn;           /* killed before it recorded anything */
	uint64_t sign_of_life; /* ticks of the last one known */

	struct file info_file, node_file;
	struct raw raw;
	struct trace trace;

	/* what is new of it; strings of struct process and of the tables below lie in `logs` */
	char *log;
	size_t log_bytes, log_seen; /* of the log before */
	char **logs;
	size_t logs_count, logs_room;
	const char *hooks[1024];
	const char **argv, **env;
	char *label; /* process.name, where that is more than its program */
	size_t argv_room, env_room;
	struct process_mapped_file *files;
	size_t file_count, file_room;
	struct process_code *codes;
	size_t code_count, code_room;
	struct process_thread *threads; /* by index; unknown ones have no name */
	size_t thread_count, thread_room;
	struct process_module *modules;
	size_t module_count, module_room;
	struct process_device *devices;
	size_t device_count, device_room;
	const char **names; /* of marks, by id; NULL = none */
	size_t name_room;
	struct process_child *exits;
	size_t exit_count, exit_room;
	struct mt_node *nodes; /* own ones */
	uint64_t nodes_taken;  /* of the reader's bound */
	uint64_t disk;         /* bytes of files that the bound knows of */
};

static inline struct image *image_of(const struct process *p)
{
	return (struct image *)(uintptr_t)p;
}

#define IMAGE_MAX_NAMES (1u << 20) /* different texts of marks */

/* Reads the head of PID-N's info. */
int image_open(struct image *im, const char *name);

/* Once clocks are settled: raw chunks, the index of the trace, log and nodes, in the order that misses nothing of a
 * running process. */
int image_load(struct image *im);

/* The same once more: what has been added since. */
int image_refresh(struct image *im);

/* Takes descriptors for the events, and gives them back. */
int image_resume(struct image *im);
void image_suspend(struct image *im);
void image_close(struct image *im);

/* A recorder appends to its trace. */
bool image_is_growing(const struct image *im);

/* True if there is a pid like that here, started at the recorded time. */
bool image_is_alive(const struct image *im);

/* notes.c: passes error_get() on, or with --force turns it into a note and returns 0. */
int reader_damage(struct reader *r);
void reader_remark(struct reader *r, int code, const char *file, int64_t offset, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
bool reader_is_following(const struct reader *r);
struct codec *reader_codec(struct reader *r);
struct memory_bound *reader_bound(const struct reader *r);
uint64_t *reader_decoded(struct reader *r); /* bytes of events that its streams hold */

/* info_log.c: the record log in im->log. */
int log_parse(struct image *im, const char *file, uint64_t file_offset);

/* trace_file.c */
int trace_index(struct image *im);
/* The whole block, checked, in *buf; its header in *head. */
int trace_read(const struct image *im, const struct trace_block *b, struct codec_buf *buf, struct mt_block *head);

/* ring_file.c */
int raw_snapshot(struct image *im);

#endif
