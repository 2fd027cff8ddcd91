/*
 * A frame is a magic number, a descriptor, blocks that each begin with their size, and a size of 0. A block is a row of
 * sequences: a token (4 bits: how many literals, 4 bits: how long the match, less 4; 15 = more bytes follow that are
 * added, as long as they are 255), the literals, and how far back the match begins (2 bytes). The last has no match. A
 * match may lie in the blocks before, up to 64 KiB back.
 */
#include "analyzer/import/lz4.h"

#include <stdlib.h>
#include <string.h>

#define HISTORY (64u << 10)
#define LARGEST (4u << 20)
#define MAGIC   0x184d2204u

enum { HEAD, REST_OF_HEAD, SIZE, BLOCK, SUM };

struct lz4 *lz4_new(void)
{
	struct lz4 *z = calloc(1, sizeof(*z));
	if (!z)
		return NULL;
	z->part = malloc(LARGEST + 4);
	z->window = calloc(1, HISTORY + LARGEST);
	z->needed = 6;
	z->from = z->to = HISTORY;
	if (z->part && z->window)
		return z;
	lz4_free(z);
	return NULL;
}

void lz4_free(struct lz4 *z)
{
	if (!z)
		return;
	free(z->part);
	free(z->window);
	free(z);
}

static uint32_t number(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* What 15 and the bytes behind it come to; false: they are cut off. */
static bool length(const unsigned char **at, const unsigned char *end, size_t *count)
{
	unsigned char byte = 255;
	while (byte == 255) {
		if (*at == end)
			return false;
		*count += byte = *(*at)++;
	}
	return true;
}

static bool unpack_block(struct lz4 *z)
{
	const unsigned char *at = z->part, *const end = z->part + z->part_count;
	unsigned char *out = z->window + HISTORY, *const most = out + z->most;
	while (at < end) {
		const unsigned token = *at++;
		size_t literals = token >> 4, match = token & 15;
		if (literals == 15 && !length(&at, end, &literals))
			return false;
		if (literals > (size_t)(end - at) || literals > (size_t)(most - out))
			return false;
		memcpy(out, at, literals);
		out += literals;
		at += literals;
		if (at == end)
			break;
		if (end - at < 2)
			return false;
		const size_t back = at[0] | (size_t)at[1] << 8;
		at += 2;
		if (match == 15 && !length(&at, end, &match))
			return false;
		match += 4;
		const size_t before = (size_t)(out - z->window) - (z->linked ? 0 : HISTORY);
		if (!back || back > before || match > (size_t)(most - out))
			return false;
		for (size_t i = 0; i < match; i++, out++) /* it may reach into itself */
			*out = out[-(ptrdiff_t)back];
	}
	z->to = (size_t)(out - z->window);
	return true;
}

static bool take_block(struct lz4 *z)
{
	z->from = HISTORY;
	if (!z->plain)
		return unpack_block(z);
	memcpy(z->window + HISTORY, z->part, z->part_count);
	z->to = HISTORY + z->part_count;
	return true;
}

static bool take_head(struct lz4 *z)
{
	const unsigned flags = z->part[4], size = z->part[5] >> 4 & 7;
	if (number(z->part) != MAGIC || flags >> 6 != 1 || size < 4 || flags & 1) /* 1: with a dictionary */
		return false;
	z->linked = !(flags & 0x20);
	z->block_sums = flags & 0x10;
	z->whole_sum = flags & 4;
	z->most = (size_t)1 << (8 + 2 * size);
	z->needed = (flags & 8 ? 8 : 0) + 1; /* how many bytes there will be, and a sum */
	z->next = REST_OF_HEAD;
	return true;
}

static bool take_size(struct lz4 *z)
{
	const uint32_t size = number(z->part);
	z->plain = size >> 31;
	z->needed = size & 0x7fffffffu;
	z->next = BLOCK;
	if (z->needed > z->most)
		return false;
	if (size == 0) { /* the end of the frame */
		z->next = z->whole_sum ? SUM : HEAD;
		z->needed = z->whole_sum ? 4 : 6;
	} else if (z->block_sums) {
		z->needed += 4;
	}
	return z->needed > 0;
}

static bool take(struct lz4 *z)
{
	bool fine = true;
	switch (z->next) {
	case HEAD:
		return take_head(z);
	case SIZE:
		return take_size(z);
	case BLOCK:
		z->part_count -= z->block_sums ? 4 : 0;
		fine = take_block(z);
		/* fall through */
	case REST_OF_HEAD:
		z->next = SIZE;
		z->needed = 4;
		return fine;
	default:
		z->next = HEAD;
		z->needed = 6;
		return true;
	}
}

/* What was before becomes the history of the next block. */
static void move_window(struct lz4 *z)
{
	memmove(z->window, z->window + z->to - HISTORY, HISTORY);
	z->from = z->to = HISTORY;
}

long lz4_step(struct lz4 *z, const unsigned char **in, const unsigned char *end, unsigned char *out, size_t room,
	      bool *whole)
{
	while (z->from == z->to && *in < end) {
		const size_t missing = z->needed - z->part_count, there = (size_t)(end - *in);
		const size_t count = missing < there ? missing : there;
		memcpy(z->part + z->part_count, *in, count);
		z->part_count += count;
		*in += count;
		if (z->part_count < z->needed)
			continue;
		if (z->to > HISTORY)
			move_window(z);
		if (!take(z))
			return -1;
		z->part_count = 0;
	}
	const size_t count = z->to - z->from < room ? z->to - z->from : room;
	memcpy(out, z->window + z->from, count);
	z->from += count;
	*whole = z->next == HEAD && z->part_count == 0;
	return (long)count;
}
