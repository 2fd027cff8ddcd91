/* What reader.c and its parts share: directory.c finds and opens, hosts.c knows clocks, kin.c who is whose parent, sources.c
 * makes one stream of all processes. Nobody else includes this. */
#ifndef MT_READER_OWN_H
#define MT_READER_OWN_H

#include "analyzer/bound.h"
#include "analyzer/image.h"
#include "analyzer/reader.h"
#include "analyzer/stream.h"

/* Where an image stands in the stream. Sources lie in a heap by the time of what they do next. */
struct source {
	struct image *image;
	enum reader_what next;    /* 0 = nothing more */
	uint64_t ticks, ns;
	struct stream *stream;
	struct batch batch;
	size_t at;
	bool parked;              /* READER_FOLLOW: it has nothing for now, and is not in the heap */
};

struct reader {
	unsigned flags;
	struct session *sessions;
	size_t session_count;
	struct image **images;
	size_t image_count, image_room;
	struct image *again;      /* of reader_again(): the images, all else of which is another reader's; or NULL */
	struct reader_host *hosts;
	size_t host_count, host_room;
	struct clock *clocks;     /* one per image at most; never moves */
	size_t clock_count;
	uint64_t origin_real_ns;
	struct reader_note *notes;
	size_t note_count, note_room;
	uint64_t notes_dropped;
	struct codec *codec;
	struct bound *bound;      /* on what is held decoded; of reader_again() the other reader's */
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

/* hosts.c: which processes share a machine and its clock, and what time it was. */
int hosts_settle(struct reader *r);
/* Of an image that came later: the host and clock of its session. -MT_ECHANGED if there is no such clock. */
int hosts_add(struct reader *r, struct image *im);

/* When it began: a forked child with what it inherited. */
uint64_t image_start_ticks(const struct image *im);

/* kin.c: numbers the processes, loads them, finds parents and how everybody ended. */
int kin_load(struct reader *r);
/* Looks at those that have not ended once more; images from `first_new` on are new. */
int kin_refresh(struct reader *r, size_t first_new);

/* sources.c */
int sources_make(struct reader *r);
int sources_refresh(struct reader *r);
void sources_free(struct reader *r);

#endif
