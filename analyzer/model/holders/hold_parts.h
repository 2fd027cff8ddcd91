/* What rows have of each site: who lists holders says which site made most of a row. */
#ifndef MT_MODEL_HOLDERS_HOLD_PARTS_H
#define MT_MODEL_HOLDERS_HOLD_PARTS_H

#include <stddef.h>
#include <stdint.h>

struct hold_part {
	uint32_t row, site;
	uint64_t bytes;
};

/* Sorts by row and site, and adds up those that have both alike. Returns how many are left, at the front. */
size_t hold_parts_join(struct hold_part *parts, size_t count);

#endif
