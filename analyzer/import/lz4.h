/* A stream of LZ4 frames, decompressed as it comes: what memray writes. Its checksums are not looked at. */
#ifndef MT_IMPORT_LZ4_H
#define MT_IMPORT_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lz4 {
	unsigned char *part; /* of the head, of a size or of a block, until all of it is there */
	size_t part_count, needed;
	int next; /* what `part` is to be */
	bool linked, block_sums, whole_sum, plain;
	size_t most;           /* bytes of a block, decompressed */
	unsigned char *window; /* the last 64 KiB, and then the block */
	size_t from, to;       /* of it, what nobody has taken yet */
};

/* NULL: no memory. */
struct lz4 *lz4_new(void);
void lz4_free(struct lz4 *z);

/* From *in on, and no further than `end`; at most `room` bytes to `out`. Returns how many, or -1: it is no LZ4.
 * *whole: a frame has just ended, or none has begun. */
long lz4_step(struct lz4 *z, const unsigned char **in, const unsigned char *end, unsigned char *out, size_t room,
	      bool *whole);

#endif
