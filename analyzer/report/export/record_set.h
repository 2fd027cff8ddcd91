/* Records of one size, found by their first bytes, numbered from 1 on. */
#ifndef MT_REPORT_EXPORT_RECORD_SET_H
#define MT_REPORT_EXPORT_RECORD_SET_H

#include "analyzer/util/hash_index.h"

#include <stddef.h>
#include <stdint.h>

struct record_set {
	unsigned char *records;
	size_t count, room, size, key; /* key: so many bytes of the `size` tell it from others */
	struct hash_index index;
};

uint64_t record_hash(const void *bytes, size_t size);

/* The number of the record like this one, which is put there if it is new. 0: no memory. */
uint32_t record_set_number(struct record_set *s, const void *record);

/* In place, until another one is put there. */
void *record_set_at(const struct record_set *s, uint32_t number);

void record_set_fini(struct record_set *s);

#endif
