/*
 * Memory control groups, of both versions: which one a process is in, and its files.
 *
 * Paths in /proc/PID/cgroup are as seen from our cgroup namespace and begin at the hierarchy's root, of which only a
 * part may be mounted. So a path is looked for below what is mounted. Where it can't be found (a container's processes
 * seen from another one), the mount's own root stands for it.
 */
#ifndef MT_UTIL_SYSTEM_CGROUP_H
#define MT_UTIL_SYSTEM_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroups; /* where they are mounted */

/* NULL only without memory; where none is mounted, no process is in any. */
struct cgroups *cgroups_new(void);
void cgroups_free(struct cgroups *c);

enum { CGROUP_PATH = 1024, CGROUP_FILE = 2 * CGROUP_PATH + 64 };

/* The memory cgroup of a process and the one among it and its ancestors that has the lowest limit (itself if there is
 * none). 1, 2: the version; 0: unknown. */
unsigned cgroups_of(const struct cgroups *c, uint32_t pid, char own[CGROUP_PATH], char limiting[CGROUP_PATH]);
/* The lowest limit on a process's memory, in bytes; UINT64_MAX = none. */
uint64_t cgroups_limit(const struct cgroups *c, uint32_t pid);

/* The path of a group's file. */
void cgroup_file(const struct cgroups *c, const char *group, const char *name, char path[CGROUP_FILE]);
/* The file as text. False: there is no such file. */
bool cgroup_read_file(const struct cgroups *c, const char *group, const char *name, char *text, size_t size);
/* Its number; UINT64_MAX = no limit ("max"). False: there is no such file. */
bool cgroup_read_number(const struct cgroups *c, const char *group, const char *name, uint64_t *number);
/* To the group above; false at the root. */
bool cgroup_go_up(char path[CGROUP_PATH]);

#endif
