/* LEB128 integers: seven bits a byte, low bits first, the top bit says that more follow. */
#ifndef MT_VARINT_H
#define MT_VARINT_H

#include <stdint.h>

#define VARINT_MAX 10

static inline uint8_t *varint_put(uint8_t *p, uint64_t value)
{
	while (value >= 128) {
		*p++ = (uint8_t)(value | 128);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

/* What is left to read. Reading past the end gives zeros and sets `bad`, so that callers check once. */
struct varint_in {
	const uint8_t *at, *end;
	int bad;
};

static inline uint64_t varint_get_long(struct varint_in *in)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		uint8_t byte = *in->at++;
		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return value;
	}
	in->bad = 1;
	return 0;
}

static inline uint64_t varint_get(struct varint_in *in)
{
	if (in->at < in->end && *in->at < 128)
		return *in->at++;
	return varint_get_long(in);
}

/* Small differences of either sign become small numbers: 0, -1, 1, -2, ... */
static inline uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ -(difference >> 63);
}

static inline uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ -(value & 1);
}

#endif
