/*
 * What reader.c and its parts share:
 *
 *   directory.c        finds and opens the files of a directory
 *   host_clocks.c      machines, and their clocks
 *   process_tree.c     parents, and how processes ended
 *   merge_processes.c  one stream of all processes
 *   notes.c            notes, and what image.h declares of the reader
 *
 * Nobody else includes this. Functions that return int: 0 or a negative -MT_E*.
 */
#ifndef MT_READER_READER_INTERNAL_H
#define MT_READER_READER_INTERNAL_H

#include "analyzer/reader/decode_ahead.h"
#include "analyzer/reader/image.h"
#include "analyzer/reader/memory_bound.h"
#include "analyzer/reader/process_stream.h"
#include "analyzer/reader/reader.h"

/* An image in the merged stream. Sources lie in a heap, by the time of their next step. */
struct source {
	struct image *image;
	enum reader_what next; /* 0 = nothing more */
	uint64_t ticks, ns;
	struct stream *stream;
	struct batch batch; /* slots that were read, and ... */
	size_t at;          /* ... the first of them that was not handed out */
	bool parked;        /* READER_FOLLOW: it has nothing for now, and is not in the heap */
};

struct reader {
	unsigned flags;
	struct session *sessions;
	size_t session_count;
	struct image **images;
	size_t image_count, image_room;
	struct image *again; /* of reader_open_again(): own copies of the images, which borrow all else; or NULL */
	struct reader_host *hosts;
	size_t host_count, host_room;
	struct clock *clocks; /* at most one per image; never reallocated, as images point to them */
	size_t clock_count;
	uint64_t origin_real_ns;
	struct reader_note *notes;
	size_t note_count, note_room;
	uint64_t notes_dropped;
	struct codec *codec;
	struct ahead *ahead;        /* with reader_open_again() the first reader's */
	bool is_large;              /* its blocks are decoded ahead */
	struct memory_bound *bound; /* on what is held decoded; with reader_open_again() the first reader's */
	uint64_t decoded;           /* bytes of events that streams hold */
	struct source *sources;
	size_t source_count, source_room;
	struct source **heap;
	size_t heap_count;
};

/* directory.c: opens everything that lies in `dir`; images go into r->images. */
int directory_open(struct reader *r, struct session *s, const char *dir);
/* Reads the head of the session file again. */
void directory_look_again(struct session *s);
/* The same, and adds images that are new. */
int directory_refresh(struct reader *r, struct session *s);

/* host_clocks.c: finds which processes share a machine and its clock, and settles the clocks. */
int host_clocks_settle(struct reader *r);
/* Gives an image that came later the host and clock of its session. -MT_ECHANGED if there is no such clock. */
int host_clocks_add(struct reader *r, struct image *im);

/* Ticks at which its part of the stream begins: of a forked child the fork, as it inherits what lives then. */
uint64_t image_start_ticks(const struct image *im);

/* process_tree.c: numbers the processes, loads them, finds parents and how everybody ended. */
int process_tree_load(struct reader *r);
/* The same for images from index `first_new` on, which are new; and looks once more at those that have not ended. */
int process_tree_refresh(struct reader *r, size_t first_new);

/* merge_processes.c: makes r->sources and their heap; adds images and slots that are new. */
int merge_processes_make(struct reader *r);
int merge_processes_refresh(struct reader *r);
void merge_processes_free(struct reader *r);

#endif
