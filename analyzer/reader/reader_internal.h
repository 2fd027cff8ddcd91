/* What reader.c and its parts share: directory.c finds and opens, host_clocks.c knows clocks, process_tree.c who is
 * whose parent, merge_processes.c makes one stream of all processes, notes.c what all of them use of the reader. Nobody
 * else includes this. */
#ifndef MT_READER_READER_INTERNAL_H
#define MT_READER_READER_INTERNAL_H

#include "analyzer/reader/image.h"
#include "analyzer/reader/memory_bound.h"
#include "analyzer/reader/process_stream.h"
#include "analyzer/reader/reader.h"

/* Where an image stands in the stream. Sources lie in a heap by the time of what they do next. */
struct source {
	struct image *image;
	enum reader_what next; /* 0 = nothing more */
	uint64_t ticks, ns;
	struct stream *stream;
	struct batch batch;
	size_t at;
	bool parked; /* READER_FOLLOW: it has nothing for now, and is not in the heap */
};

struct reader {
	unsigned flags;
	struct session *sessions;
	size_t session_count;
	struct image **images;
	size_t image_count, image_room;
	struct image *again; /* of reader_open_again(): the images, all else of which is another reader's; or NULL */
	struct reader_host *hosts;
	size_t host_count, host_room;
	struct clock *clocks; /* one per image at most; never moves */
	size_t clock_count;
	uint64_t origin_real_ns;
	struct reader_note *notes;
	size_t note_count, note_room;
	uint64_t notes_dropped;
	struct codec *codec;
	struct memory_bound *bound; /* on what is held decoded; of reader_open_again() the other reader's */
	uint64_t decoded;
	struct source *sources;
	size_t source_count, source_room;
	struct source **heap;
	size_t heap_count;
};

/* directory.c: everything that lies in `dir`, into r->images. */
int directory_open(struct reader *r, struct session *s, const char *dir);
/* What the session says now. */
void directory_look_again(struct session *s);
/* The same, and images that are new. */
int directory_refresh(struct reader *r, struct session *s);

/* host_clocks.c: which processes share a machine and its clock, and what time it was. */
int host_clocks_settle(struct reader *r);
/* Of an image that came later: the host and clock of its session. -MT_ECHANGED if there is no such clock. */
int host_clocks_add(struct reader *r, struct image *im);

/* When it began: a forked child with what it inherited. */
uint64_t image_start_ticks(const struct image *im);

/* process_tree.c: numbers the processes, loads them, finds parents and how everybody ended. */
int process_tree_load(struct reader *r);
/* Looks at those that have not ended once more; images from `first_new` on are new. */
int process_tree_refresh(struct reader *r, size_t first_new);

/* merge_processes.c */
int merge_processes_make(struct reader *r);
int merge_processes_refresh(struct reader *r);
void merge_processes_free(struct reader *r);

#endif
