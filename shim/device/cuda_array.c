#include "shim/device/cuda.h"

#define LAYERED 1u /* the same for runtime and driver */

/* Bits of a texel whose format says it all; 0 = the number of channels counts too. */
static unsigned texel_bits(int format)
{
	static const struct {
		uint8_t format, bits;
	} rows[] = {
		{ 0x50, 32 },
		{ 0x51, 16 },
		{ 0x52, 24 },
		{ 0x53, 12 },
		{ 0x54, 24 },
		{ 0x55, 16 },
		{ 0x56, 32 },
		{ 0x57, 24 },
		/* packed, planar */
		{ 0x58, 48 },
		{ 0x59, 12 },
		{ 0x5a, 24 },
		{ 0x5b, 16 },
		{ 0x5c, 32 },
		{ 0x5d, 24 },
		{ 0x5e, 48 },
		{ 0x91, 4 },
		{ 0x92, 4 },
		{ 0x93, 8 },
		{ 0x94, 8 },
		{ 0x95, 8 },
		{ 0x96, 8 },
		{ 0x97, 4 },
		{ 0x98, 4 },
		/* BC1 ... BC7 */
		{ 0x99, 8 },
		{ 0x9a, 8 },
		{ 0x9b, 8 },
		{ 0x9c, 8 },
		{ 0x9d, 8 },
		{ 0x9e, 8 },
		{ 0x9f, 24 },
		{ 0xa1, 24 },
		{ 0xa2, 16 },
		{ 0xa3, 32 },
		{ 0xa4, 32 },
		{ 0xa5, 16 },
		{ 0xa6, 32 },
		{ 0xa7, 32 },
		/* YUV */
		{ 0xa8, 32 },
		{ 0xa9, 32 },
		{ 0xb0, 12 },
		{ 0xb1, 64 },
		{ 0xb2, 24 },
		{ 0xb3, 48 },
		{ 0xb4, 24 },
		{ 0xb5, 48 },
		{ 0xc0, 8 },
		{ 0xc1, 16 },
		{ 0xc2, 32 },
		{ 0xc3, 16 },
		{ 0xc4, 32 },
		{ 0xc5, 64 },
		/* normalised */
		{ 0xc6, 8 },
		{ 0xc7, 16 },
		{ 0xc8, 32 },
		{ 0xc9, 16 },
		{ 0xca, 32 },
		{ 0xcb, 64 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].format == format)
			return rows[i].bits;
	return 0;
}

static unsigned channel_bits(int format)
{
	switch (format) {
	case 0x01:
	case 0x08:
		return 8;
	case 0x02:
	case 0x09:
	case 0x10:
		return 16;
	case 0x03:
	case 0x0a:
	case 0x20:
		return 32;
	default:
		return 0;
	}
}

static int is_block_compressed(int format)
{
	return format >= 0x91 && format <= 0x9e;
}

static uint64_t level_bytes(const uint64_t extent[3], unsigned bits, int blocks)
{
	uint64_t w = extent[0] ? extent[0] : 1, h = extent[1] ? extent[1] : 1, d = extent[2] ? extent[2] : 1;

	if (blocks) { /* of 4 by 4 */
		w = (w + 3) & ~(uint64_t)3;
		h = (h + 3) & ~(uint64_t)3;
	}
	return (w * h * d * bits + 7) / 8;
}

static uint64_t all_levels(const uint64_t extent[3], unsigned bits, int blocks, unsigned levels, unsigned flags)
{
	uint64_t e[3] = { extent[0], extent[1], extent[2] }, sum = 0;

	for (unsigned l = 0; l < levels; l++) {
		sum += level_bytes(e, bits, blocks);
		if (e[0] <= 1 && e[1] <= 1 && (e[2] <= 1 || (flags & LAYERED)))
			break;
		for (int i = 0; i < 3; i++)
			if (!(i == 2 && (flags & LAYERED)))
				e[i] = e[i] > 1 ? e[i] / 2 : e[i];
	}
	return sum;
}

uint64_t mt_cuda_array_bytes(int format, unsigned channels, const uint64_t extent[3], unsigned levels, unsigned flags)
{
	unsigned bits = texel_bits(format);

	return all_levels(extent, bits ? bits : channel_bits(format) * channels, is_block_compressed(format), levels,
			  flags);
}

/* Kinds 17 to 30 of the runtime's formats are BC1 to BC7, in pairs but for one: those of the driver in the same order.
 * */
uint64_t mt_cuda_texel_bytes(const struct cudaChannelFormatDesc *d, struct cudaExtent e, unsigned levels,
			     unsigned flags)
{
	uint64_t extent[3] = { e.width, e.height, e.depth };

	if (!d)
		return 0;
	if (d->f >= 17 && d->f <= 30)
		return mt_cuda_array_bytes(0x91 + d->f - 17, 1, extent, levels, flags);
	if (d->f == 4)
		return mt_cuda_array_bytes(0xb0, 1, extent, levels, flags);
	return all_levels(extent, (unsigned)(d->x + d->y + d->z + d->w), 0, levels, flags);
}
