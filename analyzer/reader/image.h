/*
 * An image: one program that a pid ran, until it ended or called exec. It is known here as the reader's parts see it:
 * struct process, which everybody sees, and the files PID-N.info, .nodes, .ring and .trace that it is read from. Only
 * files of the reader include this.
 */
#ifndef MT_READER_IMAGE_H
#define MT_READER_IMAGE_H

#include "analyzer/reader/files/file.h"
#include "analyzer/reader/memory_bound.h"
#include "analyzer/reader/reader.h"
#include "analyzer/reader/tick_clock.h"
#include "format/codec.h"

/* Where a block lies in PID-N.trace. */
struct trace_block {
	uint64_t offset, bytes;
	uint32_t type;
	uint64_t last_ticks;
	uint32_t slots; /* of events, as its head says */
};

/* PID-N.trace, indexed but not yet checked: checksums are verified when a block is used. */
struct trace {
	struct file file;
	struct trace_block *blocks; /* MT_BLOCK_EVENTS and _FOLDED */
	size_t count, room;
	uint64_t slots;                 /* in all blocks, as their heads say */
	struct trace_block nodes, info; /* bytes 0 = none */
	bool indexed, end;              /* end: MT_BLOCK_END is there, so nothing is left in the rings */
	bool replaced;                  /* folding has put another file in its place since it was last read */
	uint64_t inode, indexed_bytes;  /* of the file that was indexed */
	uint64_t next;                  /* offset of the first block that is not indexed yet */
	uint64_t cut_at;                /* where a last block begins that is not whole; 0 = all are */
};

/* A chunk of PID-N.ring that held events when the trace was opened. */
struct raw_chunk {
	uint32_t index, ring, used, thread;
	uint64_t seq;
	/* the slots, where a recorder lives that may reuse the chunk at any time; NULL = they are read from the file */
	struct mt_event *copy;
};

struct raw {
	struct file file;
	struct raw_chunk *chunks; /* sorted by (ring, seq) */
	size_t count, room;
	uint64_t slots;      /* in all chunks */
	uint64_t last_ticks; /* of the latest event in any chunk */
	/* ticks; of a running process events behind it may not be in their final order yet. UINT64_MAX = all are */
	uint64_t horizon;
};

struct session {
	struct file file;
	struct mt_session head;
	bool known;    /* `head` was read; false: it is made up (--force) */
	bool here;     /* recorded in this boot of this machine */
	bool recorder; /* a recorder may be at work right now */
	const char *dir;
	uid_t owner;  /* of the session file */
	bool shared;  /* other users may write to the ring directory, so each file's owner is checked */
	bool foreign; /* files of other users were met; a note says so */
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
	uint64_t sign_of_life; /* ticks of the last moment at which it is known to have lived */

	struct file info_file, node_file, young_file;
	void *young; /* what was in that file, where it may change; NULL = it is read when it is needed */
	size_t young_bytes;
	struct raw raw;
	struct trace trace;

	/* the part of the record log that was read last; strings of struct process and of the tables below lie in
	 * `logs`, which keeps all parts */
	char *log;
	size_t log_bytes, log_seen; /* log_seen: bytes of the parts before */
	char **logs;
	size_t logs_count, logs_room;
	const char *hooks[1024];
	const char **argv, **env, **late;
	char *label; /* process.name, where that is more than its program */
	size_t argv_room, env_room, late_room;
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
	uint64_t *nevers;
	size_t never_count, never_room;
	struct process_mode *modes;
	size_t mode_count, mode_room;
	const char **names; /* of marks, by id; NULL = none */
	size_t name_room;
	struct process_child *exits;
	size_t exit_count, exit_room;
	struct mt_node *nodes; /* its own, not those inherited by fork */
	uint64_t nodes_taken;  /* bytes of the reader's memory bound that they take */
	uint64_t disk;         /* bytes of its files on disk, as the memory bound was told */
};

static inline struct image *image_of(const struct process *p)
{
	return (struct image *)(uintptr_t)p;
}

#define IMAGE_MAX_NAMES (1u << 20) /* different texts of marks */

/* Functions below return 0 or a negative -MT_E*, unless something else is said. */

/* Reads the head of NAME.info; `name` is "PID-N". image_close() in either case. */
int image_open(struct image *im, const char *name);

/* Reads what is there once clocks are settled: raw chunks, the index of the trace, log and nodes; in an order in which
 * nothing of a running process is missed. */
int image_load(struct image *im);

/* Reads what has been added since. */
int image_refresh(struct image *im);

/* Open the files of the events, and close them until they are needed again. */
int image_resume(struct image *im);
void image_suspend(struct image *im);
void image_close(struct image *im);

/* Whether a recorder may still append to its trace. */
bool image_is_growing(const struct image *im);

/* Whether a process of that pid runs on this machine that started at the recorded time. */
bool image_is_alive(const struct image *im);

/* notes.c: damage was met and is in error_get(). Returns that error; with READER_FORCE it becomes a note, and 0. */
int reader_damage(struct reader *r);
/* Adds a note: `code` as in struct reader_note, offset or ERROR_NO_OFFSET. */
void reader_remark(struct reader *r, int code, const char *file, int64_t offset, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
bool reader_is_following(const struct reader *r);
struct codec *reader_codec(struct reader *r);
struct ahead *reader_ahead(const struct reader *r); /* guards the codec from when processes are merged on */
bool reader_is_large(const struct reader *r);       /* worth a thread */
struct memory_bound *reader_bound(const struct reader *r);
uint64_t *reader_decoded(struct reader *r); /* bytes of events that its streams hold */

/* info_log.c: the record log in im->log. */
int log_parse(struct image *im, const char *file, uint64_t file_offset);

/* trace_file.c: finds the blocks of PID-N.trace by their heads; again: those that were appended since. */
int trace_index(struct image *im);
/* Reads a whole block and checks it: into *buf, which grows as needed, and its header into *head. */
int trace_read(const struct image *im, const struct trace_block *b, struct codec_buf *buf, struct mt_block *head);

/* PID-N.young, read into *file, which is the caller's to free unless it is im->young. *bytes 0 = there is none. */
int image_young(struct image *im, void **file, size_t *bytes);

/* ring_file.c: which chunks of PID-N.ring hold events now, into im->raw. */
int raw_snapshot(struct image *im);

#endif
