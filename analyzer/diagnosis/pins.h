/* Who keeps memory from going back: the sites whose blocks lie in segments that are partly empty. */
#ifndef MT_DIAGNOSIS_PINS_H
#define MT_DIAGNOSIS_PINS_H

#include "analyzer/model/pool_layout.h"

struct pin {
	uint32_t process, site;
	uint64_t held; /* bytes of its blocks in such segments */
	uint64_t blocks;
	/* unused bytes of the segments they lie in; what several sites pin together counts for each */
	uint64_t pinned;
	uint64_t alone; /* of segments in which there is nobody else */
	uint32_t segments;
};

/* Of the segments that may serve `only`; NULL = of all. *pins is allocated, those that pin most first. 0 or
 * -MT_EMEMORY. */
int pins_find(const struct pool_layout *l, const struct pool_request *only, struct pin **pins, size_t *count);

#endif
