#include "analyzer/import/input.h"

#include "analyzer/import/lz4.h"
#include "analyzer/util/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { ROOM = 1 << 18 };

static int start_gzip(struct input *in)
{
	in->gzip = calloc(1, sizeof(*in->gzip));
	return in->gzip && inflateInit2(in->gzip, 15 + 16) == Z_OK ? 0 : error_memory();
}

int input_open(struct input *in, const char *path)
{
	static const unsigned char gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd },
				   lz4[] = { 0x04, 0x22, 0x4d, 0x18 };
	*in = (struct input){ .path = path, .ended = true };
	in->file = fopen(path, "rb");
	if (!in->file)
		return error_errno(MT_EIO, path, ERROR_NO_OFFSET);
	in->bytes = malloc(ROOM);
	in->packed = malloc(ROOM);
	if (!in->bytes || !in->packed)
		return error_memory();
	errno = 0;
	in->packed_count = fread(in->packed, 1, ROOM, in->file);
	if (ferror(in->file))
		return error_errno(MT_EIO, path, 0);
	if (in->packed_count > 4 && !memcmp(in->packed, gzip, sizeof(gzip)))
		return start_gzip(in);
	if (in->packed_count > 4 && !memcmp(in->packed, zstd, sizeof(zstd)))
		return (in->zstd = ZSTD_createDCtx()) ? 0 : error_memory();
	if (in->packed_count > 4 && !memcmp(in->packed, lz4, sizeof(lz4)))
		return (in->lz4 = lz4_new()) ? 0 : error_memory();
	return 0;
}

void input_close(struct input *in)
{
	if (in->file)
		fclose(in->file);
	if (in->gzip)
		inflateEnd(in->gzip);
	free(in->gzip);
	ZSTD_freeDCtx(in->zstd);
	lz4_free(in->lz4);
	free(in->bytes);
	free(in->packed);
	*in = (struct input){ 0 };
}

int input_bad(const struct input *in, const char *why)
{
	return error_set(MT_EFORMAT, in->path, (int64_t)(in->offset - (in->count - in->at)), "%s", why);
}

static int unpack_gzip(struct input *in)
{
	z_stream *z = in->gzip;
	if (in->ended && in->offset)
		inflateReset(z); /* another member */
	z->next_in = in->packed + in->packed_at;
	z->avail_in = (unsigned)(in->packed_count - in->packed_at);
	z->next_out = in->bytes;
	z->avail_out = ROOM;
	int e = inflate(z, Z_NO_FLUSH);
	in->ended = e == Z_STREAM_END;
	in->packed_at = in->packed_count - z->avail_in;
	in->count = ROOM - z->avail_out;
	return e == Z_OK || e == Z_STREAM_END || e == Z_BUF_ERROR ? 0 : input_bad(in, "is no whole gzip file");
}

static int unpack_zstd(struct input *in)
{
	ZSTD_inBuffer from = { in->packed, in->packed_count, in->packed_at };
	ZSTD_outBuffer to = { in->bytes, ROOM, 0 };
	size_t left = ZSTD_decompressStream(in->zstd, &to, &from);
	if (ZSTD_isError(left))
		return input_bad(in, "is no whole zstd file");
	in->ended = left == 0;
	in->packed_at = from.pos;
	in->count = to.pos;
	return 0;
}

static int read_packed(struct input *in)
{
	errno = 0;
	in->packed_at = 0;
	in->packed_count = fread(in->packed, 1, ROOM, in->file);
	return ferror(in->file) ? error_errno(MT_EIO, in->path, (int64_t)in->offset) : 0;
}

static int unpack_lz4(struct input *in)
{
	const unsigned char *from = in->packed + in->packed_at;
	long count = lz4_step(in->lz4, &from, in->packed + in->packed_count, in->bytes, ROOM, &in->ended);
	if (count < 0)
		return input_bad(in, "is no whole LZ4 file");
	in->packed_at = (size_t)(from - in->packed);
	in->count = (size_t)count;
	return 0;
}

static int unpack(struct input *in)
{
	return in->gzip ? unpack_gzip(in) : in->zstd ? unpack_zstd(in) : unpack_lz4(in);
}

int input_fill(struct input *in)
{
	int e = 0;
	in->at = in->count = 0;
	while (!e && !in->count) {
		bool packed = in->gzip || in->zstd || in->lz4, more = in->packed_at < in->packed_count;
		if (!more && (e = read_packed(in)) == 0 && !(more = in->packed_count > 0) && (in->ended || !packed))
			return 0;
		if (e < 0)
			return e;
		if (!more && packed) { /* what the decompressor still holds */
			e = unpack(in);
			if (!e && !in->count)
				return error_set(MT_ECUT, in->path, (int64_t)in->offset, NULL);
		} else if (packed) {
			e = unpack(in);
		} else {
			unsigned char *swap = in->bytes;
			in->bytes = in->packed;
			in->packed = swap;
			in->count = in->packed_count;
			in->packed_count = 0;
		}
	}
	if (in->limit && in->count > in->limit - in->offset)
		in->count = in->limit > in->offset ? in->limit - in->offset : 0;
	in->offset += in->count;
	return e < 0 ? e : in->count > 0;
}

int input_read(struct input *in, void *to, size_t count)
{
	unsigned char *out = to;
	while (count) {
		size_t part = in->count - in->at < count ? in->count - in->at : count;
		if (out) {
			memcpy(out, in->bytes + in->at, part);
			out += part;
		}
		in->at += part;
		count -= part;
		int e = count ? input_fill(in) : 1;
		if (e <= 0)
			return e < 0 ? e : error_set(MT_ECUT, in->path, (int64_t)in->offset, NULL);
	}
	return 0;
}
