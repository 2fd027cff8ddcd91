/*
 * Blocks of PID-N.trace: from events, nodes and records to bytes and back. docs/FORMAT.md describes the bytes.
 *
 * Every block decodes alone: predictors start anew in each. A struct codec is scratch memory only, kept between
 * calls because it is large; it carries no state from one block to the next and serves one thread at a time.
 * Decoding trusts nothing: it stays within its input, and what it allocates is bounded by the limits below.
 */
#ifndef MT_CODEC_H
#define MT_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

#define CODEC_MAX_SLOTS  1048576u /* of an events block */
#define CODEC_MAX_COVERS 65536u
#define CODEC_MAX_INFO   0x20000000u /* bytes of an info block before compression */

enum codec_error {
	CODEC_EMEM = 1, /* out of memory */
	CODEC_ECUT,     /* the file ends within the block */
	CODEC_EBAD,     /* no block starts here */
	CODEC_ECRC,     /* checksum */
	CODEC_ELIMIT,   /* larger than any block may be */
	CODEC_ECORRUPT, /* the checksum is right, the contents are not */
	CODEC_EARG,     /* the caller's input can't be encoded */
};

/* One line without a full stop; `error` is a negative enum codec_error. */
const char *codec_strerror(int error);

/* The caller's growing buffer: start with {0}; data is size bytes long; reused when passed again. */
struct codec_buf {
	uint8_t *data;
	size_t size, capacity;
};

void codec_buf_fini(struct codec_buf *);
int codec_buf_reserve(struct codec_buf *, size_t capacity);

struct codec *codec_new(void);
void codec_free(struct codec *);

/* Gives back its scratch memory, some 20 MiB, until it is used again. */
void codec_rest(struct codec *);

/* Each encode replaces the contents of `out` by one whole block, ready to be appended; 0 or -CODEC_E*.
 *
 * events: `slots` slots of any rings, slot i of ring rings[i], in causal order with MT_EXT after its MT_MAP.
 * Times are stored as multiples of 2^shift ticks and never run backwards: an earlier one becomes its
 * predecessor's. Everything else comes back exactly. */
int codec_encode_events(struct codec *, const struct mt_event *events, const uint32_t *rings, uint32_t slots,
			const struct mt_cover *covers, uint32_t cover_count, unsigned shift, struct codec_buf *out);

/* The same, of a block that stands for more events than these; `level` (1 to 255): how often it was folded. */
int codec_encode_folded(struct codec *, const struct mt_event *events, const uint32_t *rings, uint32_t slots,
			const struct mt_cover *covers, uint32_t cover_count, unsigned shift, unsigned level,
			struct codec_buf *out);

static inline unsigned codec_shift(const struct mt_block *b)
{
	return b->type == MT_BLOCK_FOLDED ? b->shift & 255 : b->shift;
}
static inline unsigned codec_level(const struct mt_block *b)
{
	return b->type == MT_BLOCK_FOLDED ? b->shift >> 8 & 255 : 0;
}
static inline int codec_holds_events(uint32_t type)
{
	return type == MT_BLOCK_EVENTS || type == MT_BLOCK_FOLDED;
}

/* nodes[0] is the node whose id is node_base. */
int codec_encode_nodes(struct codec *, const struct mt_node *nodes, uint32_t count, uint32_t node_base,
		       struct codec_buf *out);

/* header: sizeof(struct mt_info) bytes; log: the record log. */
int codec_encode_info(struct codec *, const struct mt_info *info, const void *log, size_t log_bytes,
		      struct codec_buf *out);

int codec_encode_end(struct codec_buf *out);

/* The block at `data`, of which `available` bytes are there: header sane, all of it there, checksum right.
 * Copies the header, sets *bytes to the size of the whole block. covers lie sizeof(struct mt_block) further on. */
int codec_check(const void *data, size_t available, struct mt_block *header, size_t *bytes);

/* Each decode takes a block that codec_check() accepted; `bytes` is its whole size.
 * events and rings have room for header.count slots. */
int codec_decode_events(struct codec *, const void *block, size_t bytes, struct mt_event *events, uint32_t *rings);

/* nodes has room for header.count; header.first_ticks is the id of the first. */
int codec_decode_nodes(struct codec *, const void *block, size_t bytes, struct mt_node *nodes);

/* out: struct mt_info, then the record log; header.count bytes. */
int codec_decode_info(struct codec *, const void *block, size_t bytes, void *out);

#endif
