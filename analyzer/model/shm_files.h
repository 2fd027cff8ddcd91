/* Files in /dev/shm: which line made them, that is mapped each first, whoever did so later. A file that was unlinked
 * before it was mapped goes by itself, and is none of these; whether others are still there nobody records. */
#ifndef MT_MODEL_SHM_FILES_H
#define MT_MODEL_SHM_FILES_H

#include "analyzer/model/model.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/ranges.h"

struct process_memory;

struct shm_files {
	uint64_t *seen; /* hashes of paths */
	size_t seen_count, seen_room;
	struct hash_index index;
	struct model_shm_maker *makers;
	size_t maker_count, maker_room;
};

/* `r` has just been mapped. 0 or -MT_EMEMORY. */
int shm_files_note(struct process_memory *memory, const struct range *r);
void shm_files_fini(struct shm_files *f);

#endif
