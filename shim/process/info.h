/* The info file of an image: what it is, and what is said of it once. */
#ifndef MT_PROCESS_INFO_H
#define MT_PROCESS_INFO_H

#include <stdint.h>

#include "format/format.h"

struct mt_tables;
void mt_info_tables(struct mt_tables *t);

/* Makes the image's files, all that it needs for its first event. `fork_ticks` 0 = the moment of the fork is unknown;
 * `node_base`: where its call tree begins. Nonzero if it worked; else it is counted as unrecorded. */
int mt_info_begin(enum mt_origin origin, uint32_t parent_pid, uint32_t parent_image, uint64_t fork_ticks,
		  uint32_t node_base);

#endif
