/* A file of another program, read from its beginning to its end: as it is, or compressed by gzip, zstd or LZ4. */
#ifndef MT_IMPORT_INPUT_H
#define MT_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct input {
	const char *path; /* borrowed */
	FILE *file;
	uint64_t offset; /* of the next byte, decompressed */
	uint64_t limit;  /* it ends there, at the latest; 0 = none. For whoever has opened one that is not compressed */
	unsigned char *bytes;
	size_t at, count;
	struct z_stream_s *gzip;
	struct ZSTD_DCtx_s *zstd;
	struct lz4 *lz4;
	unsigned char *packed; /* of these three */
	size_t packed_at, packed_count;
	bool ended; /* the compressed stream is whole so far */
};

/* 0, -MT_EIO or -MT_EMEMORY; input_close() in either case. */
int input_open(struct input *in, const char *path);
void input_close(struct input *in);

/* More of it is in bytes[at .. count), unless it ends: 1; 0 = the end; < 0 = -MT_EIO, -MT_ECUT, -MT_EFORMAT. */
int input_fill(struct input *in);

/* Reads exactly so many bytes; `to` NULL: passes over them. 0 or an error, -MT_ECUT at the end. */
int input_read(struct input *in, void *to, size_t count);

/* -MT_EFORMAT, at this place of the file. */
int input_bad(const struct input *in, const char *why);

#endif
