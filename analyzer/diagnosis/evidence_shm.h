/*
 * Who makes files in /dev/shm, by line: processes whose line is the same are added up, as workers are. And whether what
 * it makes goes on growing: it was made over most of the time since the first file, and most of it was there at
 * once as samples of /dev/shm show, which also have what others did there.
 */
#ifndef MT_DIAGNOSIS_EVIDENCE_SHM_H
#define MT_DIAGNOSIS_EVIDENCE_SHM_H

#include "analyzer/diagnosis/diagnosis_data.h"

/* Fills evidence.host.shm; before the host's growth is gathered. 0 or -MT_EMEMORY. */
int evidence_shm(struct diagnosis *);

/* What of it goes on growing; bytes 0: nothing, or nobody knows. */
struct evidence_growth evidence_shm_growth(struct diagnosis *);

#endif
