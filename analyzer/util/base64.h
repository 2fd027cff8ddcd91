#ifndef MT_UTIL_BASE64_H
#define MT_UTIL_BASE64_H

#include <stddef.h>

#define BASE64_BYTES(count) (((count) + 2) / 3 * 4)

/* Writes BASE64_BYTES(count) characters, without a 0. */
void base64_encode(const unsigned char *from, size_t count, char *to);

#endif
