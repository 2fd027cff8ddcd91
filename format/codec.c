/* The frame of a block (header, covers, columns, checksum), and the two kinds that have no inner structure. */
#include "format/codec.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "format/column.h"

#define ZSTD_LEVEL 3

/* Before each column: its size, and that of the zstd frame that follows. */
struct column_header {
	uint32_t raw, stored;
};

static const char *const error_texts[] = {
	[0] = "no error",
	[CODEC_EMEM] = "out of memory",
	[CODEC_ECUT] = "the block is cut off",
	[CODEC_EBAD] = "no block starts here",
	[CODEC_ECRC] = "the block's checksum is wrong",
	[CODEC_ELIMIT] = "the block is larger than any may be",
	[CODEC_ECORRUPT] = "the block's contents contradict themselves",
	[CODEC_EARG] = "these events can't be encoded",
};

const char *codec_strerror(int error)
{
	unsigned index = (unsigned)-error;
	return index < sizeof(error_texts) / sizeof(*error_texts) ? error_texts[index] : "unknown error";
}

/* ---- memory -------------------------------------------------------------------------------------------- */

int codec_buf_reserve(struct codec_buf *buf, size_t capacity)
{
	if (capacity <= buf->capacity)
		return 0;
	if (capacity < buf->capacity * 3 / 2)
		capacity = buf->capacity * 3 / 2;
	uint8_t *data = realloc(buf->data, capacity);
	if (!data)
		return -CODEC_EMEM;
	buf->data = data;
	buf->capacity = capacity;
	return 0;
}

void codec_buf_fini(struct codec_buf *buf)
{
	free(buf->data);
	*buf = (struct codec_buf){ 0 };
}

struct codec *codec_new(void)
{
	struct codec *codec = calloc(1, sizeof(*codec));
	if (!codec)
		return NULL;
	codec->compressor = ZSTD_createCCtx();
	codec->decompressor = ZSTD_createDCtx();
	if (codec->compressor && codec->decompressor)
		return codec;
	codec_free(codec);
	return NULL;
}

void codec_rest(struct codec *codec)
{
	for (unsigned i = 0; i < COLUMNS_MAX; i++) {
		free(codec->columns[i].base);
		codec->columns[i] = (struct column){ 0 };
	}
	event_scratch_free(codec->events);
	codec->events = NULL;
}

void codec_free(struct codec *codec)
{
	if (!codec)
		return;
	ZSTD_freeCCtx(codec->compressor);
	ZSTD_freeDCtx(codec->decompressor);
	codec_rest(codec);
	free(codec);
}

int column_reset(struct column *column, size_t bytes)
{
	if (bytes > column->capacity) {
		free(column->base);
		column->base = malloc(bytes);
		column->capacity = column->base ? bytes : 0;
	}
	column->at = column->base;
	return column->base || !bytes ? 0 : -CODEC_EMEM;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

int block_begin(struct codec_buf *out, uint32_t type, const struct mt_cover *covers, uint32_t cover_count)
{
	size_t cover_bytes = cover_count * sizeof(*covers);
	int error = codec_buf_reserve(out, sizeof(struct mt_block) + cover_bytes);
	if (error)
		return error;
	struct mt_block *header = block_header(out);
	*header = (struct mt_block){ .magic = MT_BLOCK_MAGIC, .type = type, .covers = cover_count };
	if (cover_count)
		memcpy(header + 1, covers, cover_bytes);
	out->size = sizeof(*header) + cover_bytes;
	return 0;
}

/* Appends one compressed column. */
static int block_add(struct codec *codec, struct codec_buf *out, const void *data, size_t bytes)
{
	struct column_header header = { .raw = (uint32_t)bytes };
	size_t bound = bytes ? ZSTD_compressBound(bytes) : 0;
	int error = codec_buf_reserve(out, out->size + sizeof(header) + bound);
	if (error)
		return error;
	uint8_t *at = out->data + out->size;
	if (bytes) {
		size_t stored =
			ZSTD_compressCCtx(codec->compressor, at + sizeof(header), bound, data, bytes, ZSTD_LEVEL);
		if (ZSTD_isError(stored))
			return -CODEC_EMEM;
		header.stored = (uint32_t)stored;
	}
	memcpy(at, &header, sizeof(header));
	out->size += sizeof(header) + header.stored;
	block_header(out)->columns++;
	return 0;
}

int block_add_columns(struct codec *codec, struct codec_buf *out, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct column *column = &codec->columns[i];
		int error = block_add(codec, out, column->base, (size_t)(column->at - column->base));
		if (error)
			return error;
	}
	return 0;
}

static size_t block_head_bytes(const struct mt_block *header)
{
	return sizeof(*header) + (size_t)header->covers * sizeof(struct mt_cover);
}

static uint32_t block_crc(const void *block, size_t bytes)
{
	struct mt_block header;
	memcpy(&header, block, sizeof(header));
	header.crc = 0;
	uLong crc = crc32_z(0, (const Bytef *)&header, sizeof(header));
	return (uint32_t)crc32_z(crc, (const Bytef *)block + sizeof(header), bytes - sizeof(header));
}

void block_end(struct codec_buf *out)
{
	struct mt_block *header = block_header(out);
	header->payload_bytes = out->size - block_head_bytes(header);
	header->crc = block_crc(out->data, out->size);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static uint64_t count_limit(uint32_t type)
{
	switch (type) {
	case MT_BLOCK_EVENTS:
	case MT_BLOCK_FOLDED:
		return CODEC_MAX_SLOTS;
	case MT_BLOCK_NODES:
		return MT_MAX_NODES;
	case MT_BLOCK_INFO:
		return CODEC_MAX_INFO;
	default:
		return 0;
	}
}

int codec_check(const void *data, size_t available, struct mt_block *header, size_t *bytes)
{
	if (available < sizeof(*header))
		return -CODEC_ECUT;
	memcpy(header, data, sizeof(*header));
	if (header->magic != MT_BLOCK_MAGIC)
		return -CODEC_EBAD;
	if (header->covers > CODEC_MAX_COVERS || header->count > count_limit(header->type) ||
	    header->columns > COLUMNS_MAX || codec_shift(header) > 63)
		return -CODEC_ELIMIT;
	size_t head = block_head_bytes(header);
	if (available < head || available - head < header->payload_bytes)
		return -CODEC_ECUT;
	*bytes = head + header->payload_bytes;
	return block_crc(data, *bytes) == header->crc ? 0 : -CODEC_ECRC;
}

struct payload block_payload(const void *block, size_t bytes)
{
	struct mt_block header;
	memcpy(&header, block, sizeof(header));
	const uint8_t *start = block;
	return (struct payload){ .at = start + block_head_bytes(&header), .end = start + bytes };
}

/* Decompresses the next column, of at most `limit` bytes, into `column`; `in` reads it. */
static int payload_next(struct codec *codec, struct payload *payload, struct column *column, size_t limit,
			struct varint_in *in)
{
	struct column_header header;
	if ((size_t)(payload->end - payload->at) < sizeof(header))
		return -CODEC_ECORRUPT;
	memcpy(&header, payload->at, sizeof(header));
	payload->at += sizeof(header);
	if (header.raw > limit || header.stored > (size_t)(payload->end - payload->at) || !header.raw != !header.stored)
		return -CODEC_ECORRUPT;
	int error = column_reset(column, header.raw);
	if (error)
		return error;
	if (header.raw) {
		size_t raw =
			ZSTD_decompressDCtx(codec->decompressor, column->base, header.raw, payload->at, header.stored);
		if (raw != header.raw)
			return -CODEC_ECORRUPT;
	}
	payload->at += header.stored;
	*in = (struct varint_in){ .at = column->base, .end = column->base + header.raw };
	return 0;
}

int payload_columns(struct codec *codec, struct payload *payload, unsigned count, const size_t *limits,
		    struct varint_in *in)
{
	for (unsigned i = 0; i < count; i++) {
		int error = payload_next(codec, payload, &codec->columns[i], limits[i], &in[i]);
		if (error)
			return error;
	}
	return 0;
}

/* ---- info and end -------------------------------------------------------------------------------------- */

int codec_encode_info(struct codec *codec, const struct mt_info *info, const void *log, size_t log_bytes,
		      struct codec_buf *out)
{
	size_t bytes = sizeof(*info) + log_bytes;
	if (log_bytes > CODEC_MAX_INFO - sizeof(*info))
		return -CODEC_ELIMIT;
	struct column *column = &codec->columns[0];
	int error = column_reset(column, bytes);
	if (!error)
		error = block_begin(out, MT_BLOCK_INFO, NULL, 0);
	if (error)
		return error;
	memcpy(column->base, info, sizeof(*info));
	if (log_bytes)
		memcpy(column->base + sizeof(*info), log, log_bytes);
	error = block_add(codec, out, column->base, bytes);
	if (error)
		return error;
	block_header(out)->count = bytes;
	block_end(out);
	return 0;
}

int codec_decode_info(struct codec *codec, const void *block, size_t bytes, void *out)
{
	struct mt_block header;
	struct varint_in in;
	struct payload payload = block_payload(block, bytes);
	memcpy(&header, block, sizeof(header));
	if (header.type != MT_BLOCK_INFO || header.count < MT_INFO_LEAST)
		return -CODEC_ECORRUPT;
	int error = payload_next(codec, &payload, &codec->columns[0], header.count, &in);
	if (error)
		return error;
	if ((uint64_t)(in.end - in.at) != header.count)
		return -CODEC_ECORRUPT;
	memcpy(out, in.at, header.count);
	return 0;
}

int codec_encode_end(struct codec_buf *out)
{
	int error = block_begin(out, MT_BLOCK_END, NULL, 0);
	if (!error)
		block_end(out);
	return error;
}
