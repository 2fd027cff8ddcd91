/*
 * Who makes files in /dev/shm, by line: processes whose line is the same are added up, as workers are. And whether what
 * it makes goes on growing: it was made over most of the time since the first file, and most of it was there at
 * once as samples of /dev/shm show, which also have what others did there.
 */
#ifndef MT_DIAGNOSIS_GROWTH_SHM_GROWTH_H
#define MT_DIAGNOSIS_GROWTH_SHM_GROWTH_H

#include <stdint.h>

struct selection;
struct host_memory;

/* The line that made most in files of /dev/shm, as they were mapped first, by whatever process. files 0 = there are
 * none. */
struct shm_maker {
	const char *site; /* "train.py:12 load", or the program's name; allocated where shm_maker_find() made it */
	uint32_t pid;     /* of the process that made most of it, which is: */
	uint64_t most;
	unsigned processes;
	uint64_t files, bytes;
	uint64_t first_ns, last_ns;
	uint64_t growing; /* bytes that go on growing; 0: nothing, or nobody knows */
	double per_second;
};

/* `system` may be NULL: then nobody knows what goes on growing. free((char *)site) in any case. 0 or -MT_EMEMORY. */
int shm_maker_find(struct shm_maker *out, const struct selection *sel, const struct host_memory *system);

#endif
