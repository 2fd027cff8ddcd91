#include "analyzer/util/base64.h"

void base64_encode(const unsigned char *from, size_t count, char *to)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t at = 0; at < count; at += 3) {
		unsigned left = count - at < 3 ? (unsigned)(count - at) : 3;
		unsigned word = (unsigned)from[at] << 16 | (left > 1 ? (unsigned)from[at + 1] << 8 : 0) |
				(left > 2 ? from[at + 2] : 0);
		*to++ = digits[word >> 18];
		*to++ = digits[word >> 12 & 63];
		*to++ = left > 1 ? digits[word >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[word & 63] : '=';
	}
}
