/* Whether a recorded process still runs. */
#ifndef MT_ALIVE_H
#define MT_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

/* A thread of process `pid`, as numbered in the pid namespace whose inode is `ns`, that started at `start` (field 22
 * of /proc/PID/stat) has not ended yet. A reused pid, a zombie and a process we can't see are not alive. */
bool alive(uint32_t pid, uint64_t ns, uint64_t start);

#endif
