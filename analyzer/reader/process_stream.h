/* The events of one image in causal order: its blocks, then what is left in the rings. */
#ifndef MT_READER_PROCESS_STREAM_H
#define MT_READER_PROCESS_STREAM_H

#include "analyzer/reader/image.h"

struct stream;

/* Functions that return int: 0 or a negative -MT_E*. */
int stream_new(struct stream **out, struct image *im);
void stream_free(struct stream *s);

/* After image_refresh(): goes on with what has been added. */
int stream_refresh(struct stream *s);

struct batch {
	const struct mt_event *slots; /* times never run backwards, across batches too */
	const uint32_t *rings, *threads;
	size_t count; /* 0 = the end */
};

/* The next slots; borrowed until the next call. */
int stream_next(struct stream *s, struct batch *b);

/* How many slots stream_next() has returned so far. */
uint64_t stream_slots_read(const struct stream *s);

#endif
