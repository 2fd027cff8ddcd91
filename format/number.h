/* Numbers as people write them: one reader for the shim and the program. Exact, without floating point, memory or
 * locale. */
#ifndef MT_NUMBER_H
#define MT_NUMBER_H

#include <stdint.h>

/* Each takes the whole text. 0, or -1 if it is no such number; then *value stays as it is. */

/* "512", "64K", "1.5G", "2GiB", "300mb": units are powers of 1024. Below 2^63. */
int mt_read_bytes(const char *text, uint64_t *value);

/* "12.5", "12.5s", "500ms", "90m", "8h" to ns; what is below one is cut off. Below 2^63. */
int mt_read_duration(const char *text, uint64_t *value);

/* Digits alone. */
int mt_read_count(const char *text, uint64_t *value);

#endif
