/*
 * The next block of a process is decoded in a thread while the one before is read: that takes a fifth of a pass.
 *
 * Only what depends on nothing but the block's bytes is done there. Whatever is odd about a block makes it one that was
 * not decoded, and who wants it decodes it anew: so errors, notes and counts come about in one place, in the order of
 * events, with the thread or without.
 *
 * There is one thread for all readers of a trace. It begins with the first block that it is given, and ends with the
 * pass. Where it can't be made, all goes on without.
 */
#ifndef MT_READER_DECODE_AHEAD_H
#define MT_READER_DECODE_AHEAD_H

#include "analyzer/reader/image.h"
#include "analyzer/util/event_check.h"

/* Slots of a decoded block. */
struct decoded {
	struct mt_event *slots;
	uint32_t *rings;
	size_t room; /* slots */
};

enum ahead_state {
	AHEAD_NONE = 0,
	AHEAD_WAITS,   /* nobody has begun with it */
	AHEAD_RUNS,    /* the thread's: nobody else touches it */
	AHEAD_DECODED, /* `block` and `to` are filled */
	AHEAD_FAILED,
};

/* A block to be decoded; the caller's, and stays where it is until ahead_take(). */
struct ahead_block {
	const struct image *image;
	struct trace_block place;
	struct slot_limits limits;
	struct decoded to;      /* room for one more than place.slots */
	struct codec_buf block; /* room for place.bytes */
	struct mt_block head;
	bool sound;             /* each slot is possible (event_check.h) */
	bool given;             /* until ahead_take() */
	enum ahead_state state; /* guarded by the thread's lock, like `next` */
	struct ahead_block *next;
};

struct ahead;

/* `codec` is used by one of all of them at a time: who uses it beside them calls ahead_enter(). NULL = no memory. */
struct ahead *ahead_new(struct codec *codec);
void ahead_free(struct ahead *); /* NULL is fine. No block waits */

/* Ends the thread, if there is one; the next block begins another. No block waits. */
void ahead_stop(struct ahead *);

/* Whether the thread will decode it. */
bool ahead_give(struct ahead *, struct ahead_block *);

/* Waits for it if it was given; where nobody has begun with it, takes it back. Whether it is decoded. */
bool ahead_take(struct ahead *, struct ahead_block *);

/* Between these the codec is the caller's. */
void ahead_enter(struct ahead *);
void ahead_leave(struct ahead *);

#endif
