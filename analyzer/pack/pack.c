#include "analyzer/pack/pack.h"

#include "analyzer/util/error.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define TAR_BLOCK 512u
#define BUFFER    ((size_t)1 << 18)
#define LEVEL     6

struct pack {
	FILE *to;
	const char *path;
	ZSTD_CCtx *z;
	char *in, *out; /* buffers */
};

static int compress_some(struct pack *p, const void *from, size_t n, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = { from, n, 0 };
	size_t left;
	do {
		ZSTD_outBuffer out = { p->out, BUFFER, 0 };
		left = ZSTD_compressStream2(p->z, &out, &in, how);
		if (ZSTD_isError(left))
			return error_memory();
		if (fwrite(p->out, 1, out.pos, p->to) != out.pos)
			return error_errno(MT_EOUTPUT, p->path, ERROR_NO_OFFSET);
	} while (in.pos < in.size || (how == ZSTD_e_end && left));
	return 0;
}

static int put(struct pack *p, const void *from, size_t n)
{
	return compress_some(p, from, n, ZSTD_e_continue);
}

static int pad(struct pack *p, uint64_t bytes)
{
	static const char zeros[TAR_BLOCK];
	return put(p, zeros, (TAR_BLOCK - bytes % TAR_BLOCK) % TAR_BLOCK);
}

/* ustar; sizes from 8 GiB on as GNU's tar has them. Whoever packs, and when, is nobody's business. */
static int put_header(struct pack *p, const char *name, uint64_t bytes)
{
	char h[TAR_BLOCK] = { 0 };
	unsigned sum = 0;
	snprintf(h, 100, "%s", name);
	memcpy(h + 100, "0000600", 8);
	memcpy(h + 108, "0000000", 8);
	memcpy(h + 116, "0000000", 8);
	memcpy(h + 136, "00000000000", 12);
	memcpy(h + 148, "        ", 8);
	h[156] = '0';
	memcpy(h + 257, "ustar", 6);
	memcpy(h + 263, "00", 2);
	if (bytes >> 33) {
		h[124] = (char)0x80;
		for (int i = 0; i < 8; i++)
			h[135 - i] = (char)(bytes >> 8 * i);
	} else {
		snprintf(h + 124, 12, "%011llo", (unsigned long long)bytes);
	}
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	h[155] = ' ';
	return put(p, h, sizeof(h));
}

int pack_add_bytes(struct pack *p, const char *name, const void *bytes, size_t n)
{
	int e = put_header(p, name, n);
	if (!e)
		e = put(p, bytes, n);
	return e ? e : pad(p, n);
}

int pack_add_stream(struct pack *p, const char *name, FILE *from)
{
	off_t bytes = fseeko(from, 0, SEEK_END) ? -1 : ftello(from);
	size_t n = 1;
	if (bytes < 0 || fflush(from) || fseeko(from, 0, SEEK_SET))
		return error_errno(MT_EOUTPUT, p->path, ERROR_NO_OFFSET);
	int e = put_header(p, name, (uint64_t)bytes);
	while (!e && (n = fread(p->in, 1, BUFFER, from)) != 0)
		e = put(p, p->in, n);
	if (!e && ferror(from))
		e = error_errno(MT_EIO, p->path, ERROR_NO_OFFSET);
	return e ? e : pad(p, (uint64_t)bytes);
}

int pack_add_file(struct pack *p, const char *name, const struct file *from)
{
	int e = put_header(p, name, from->size);
	for (uint64_t at = 0; !e && at < from->size;) {
		size_t n = from->size - at < BUFFER ? (size_t)(from->size - at) : BUFFER;
		e = file_read(from, at, p->in, n);
		if (!e)
			e = put(p, p->in, n);
		at += n;
	}
	return e ? e : pad(p, from->size);
}

int pack_open(struct pack **out, FILE *to, const char *path)
{
	struct pack *p = *out = calloc(1, sizeof(*p));
	if (!p)
		return error_memory();
	p->to = to;
	p->path = path;
	p->z = ZSTD_createCCtx();
	p->in = malloc(BUFFER);
	p->out = malloc(BUFFER);
	if (!p->z || !p->in || !p->out)
		return error_memory();
	ZSTD_CCtx_setParameter(p->z, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(p->z, ZSTD_c_checksumFlag, 1);
	return 0;
}

int pack_close(struct pack *p, bool whole)
{
	static const char end[2 * TAR_BLOCK];
	if (!p)
		return 0;
	int e = whole ? compress_some(p, end, sizeof(end), ZSTD_e_end) : 0;
	ZSTD_freeCCtx(p->z);
	free(p->in);
	free(p->out);
	free(p);
	return e;
}
