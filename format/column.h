/* Between the parts of the codec: scratch memory, and columns of a payload. Nobody else includes this. */
#ifndef MT_COLUMN_H
#define MT_COLUMN_H

#include <zstd.h>

#include "format/codec.h"
#include "format/varint.h"

/* Enough for each kind of block. */
#define COLUMNS_MAX 16

/* A column on its way into a block: `at` moves from `base` on. */
struct column {
	uint8_t *base, *at;
	size_t capacity;
};

struct codec {
	ZSTD_CCtx *compressor;
	ZSTD_DCtx *decompressor;
	struct column columns[COLUMNS_MAX];
	struct event_scratch *events; /* codec_events.c */
};

void event_scratch_free(struct event_scratch *);

/* Makes room for `bytes` and starts at the beginning. */
int column_reset(struct column *, size_t bytes);

/* Starts a block in `out`: header and covers. */
int block_begin(struct codec_buf *out, uint32_t type, const struct mt_cover *covers, uint32_t cover_count);

static inline struct mt_block *block_header(struct codec_buf *out)
{
	return (struct mt_block *)out->data;
}

/* Appends the first `count` columns of the codec. */
int block_add_columns(struct codec *, struct codec_buf *out, unsigned count);

/* Sizes and checksum. */
void block_end(struct codec_buf *out);

/* Opens the columns of a block one after the other. */
struct payload {
	const uint8_t *at, *end;
};

struct payload block_payload(const void *block, size_t bytes);

/* Decompresses the next `count` columns into the codec's first ones, none of more bytes than its limit; `in` reads
 * them. */
int payload_columns(struct codec *, struct payload *, unsigned count, const size_t *limits, struct varint_in *in);

#endif
