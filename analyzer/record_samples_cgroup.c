/*
 * Memory control groups, of both versions. Paths in /proc/PID/cgroup are as seen from our cgroup namespace and begin
 * at the hierarchy's root, of which only a part may be mounted; so a path is looked for below what is mounted, and
 * where it can't be found (a container's processes seen from another one) the mount's own root stands for it.
 */
#include "analyzer/record_samples_own.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_LIMIT (1ull << 62) /* version 1 says the highest number of whole pages */
#define COUNT_OF(a) (sizeof(a) / sizeof(*(a)))

struct cgroups {
	unsigned version;           /* 0 = none is mounted */
	char mount[CGROUP_PATH];    /* "/sys/fs/cgroup/memory" */
	char root[CGROUP_PATH];     /* the part of the hierarchy that is mounted there, "/" = all */
};

/* "36 35 98:0 /root /mount options - type source options" */
static bool take_mount(struct cgroups *c, char *line)
{
	char root[CGROUP_PATH], mount[CGROUP_PATH], type[32], *rest = strstr(line, " - ");
	if (!rest || sscanf(line, "%*s %*s %*s %1023s %1023s", root, mount) != 2 || sscanf(rest, " - %31s", type) != 1)
		return false;
	bool second = !strcmp(type, "cgroup2");
	/* a memory controller of version 1 is mounted only if version 2 lacks it */
	if (!second && (strcmp(type, "cgroup") != 0 || !strstr(rest, "memory")))
		return false;
	if (second && c->version)
		return false;
	c->version = second ? 2 : 1;
	snprintf(c->mount, sizeof(c->mount), "%s", mount);
	snprintf(c->root, sizeof(c->root), "%s", root);
	return true;
}

struct cgroups *cgroups_new(void)
{
	struct cgroups *c = calloc(1, sizeof(*c));
	size_t size = 1 << 20;
	char *text = malloc(size);
	if (c && text && kernel_read("/proc/self/mountinfo", text, size) > 0)
		for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			take_mount(c, line);
	free(text);
	return c;
}

void cgroups_free(struct cgroups *c) { free(c); }

/* ---- which ----------------------------------------------------------------------------------------------- */

/* The process's line: "4:memory:/a/b", or "0::/a/b". */
static bool path_in_proc(const struct cgroups *c, uint32_t pid, char path[CGROUP_PATH])
{
	char file[64], text[8192];
	snprintf(file, sizeof(file), "/proc/%" PRIu32 "/cgroup", pid);
	if (kernel_read(file, text, sizeof(text)) <= 0)
		return false;
	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':'), *at = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!at)
			continue;
		*at = '\0';
		if (c->version == 2 ? !strncmp(line, "0:", 2) && !controllers[1] : strstr(controllers, "memory") != NULL) {
			snprintf(path, CGROUP_PATH, "%s", at + 1);
			return true;
		}
	}
	return false;
}

static bool read_file(const struct cgroups *c, const char *group, const char *name, char *text, size_t size)
{
	char path[2 * CGROUP_PATH + 64];
	snprintf(path, sizeof(path), "%s%s/%s", c->mount, strcmp(group, "/") ? group : "", name);
	return kernel_read(path, text, size) > 0;
}

/* False: there is no such file. "max" is no limit. */
static bool read_number(const struct cgroups *c, const char *group, const char *name, uint64_t *number)
{
	char text[64];
	if (!read_file(c, group, name, text, sizeof(text)))
		return false;
	*number = strncmp(text, "max", 3) ? strtoull(text, NULL, 10) : UINT64_MAX;
	if (*number >= NO_LIMIT)
		*number = UINT64_MAX;
	return true;
}

static const char *limit_file(const struct cgroups *c)
{
	return c->version == 2 ? "memory.max" : "memory.limit_in_bytes";
}

static bool exists(const struct cgroups *c, const char *group)
{
	char text[64];
	return read_file(c, group, c->version == 2 ? "cgroup.procs" : "memory.usage_in_bytes", text, sizeof(text)) ||
	       read_file(c, group, "memory.stat", text, sizeof(text));
}

/* From the hierarchy's path to one below the mount. */
static void below_mount(const struct cgroups *c, char path[CGROUP_PATH])
{
	size_t n = strlen(c->root);
	if (n > 1 && !strncmp(path, c->root, n) && (path[n] == '/' || !path[n]))
		memmove(path, path + n, strlen(path + n) + 1);
	if (!*path || !strncmp(path, "/..", 3) || !exists(c, path))
		snprintf(path, CGROUP_PATH, "/");
}

static bool go_up(char path[CGROUP_PATH])
{
	char *slash = strrchr(path, '/');
	if (!slash || !path[1])
		return false;
	slash[slash == path] = '\0';
	return true;
}

unsigned cgroups_of(const struct cgroups *c, uint32_t pid, char own[CGROUP_PATH], char limiting[CGROUP_PATH])
{
	char at[CGROUP_PATH];
	uint64_t lowest = UINT64_MAX, limit;
	if (!c || !c->version || !path_in_proc(c, pid, own))
		return 0;
	below_mount(c, own);
	snprintf(limiting, CGROUP_PATH, "%s", own);
	snprintf(at, sizeof(at), "%s", own);
	do {
		if (read_number(c, at, limit_file(c), &limit) && limit < lowest) {
			lowest = limit;
			snprintf(limiting, CGROUP_PATH, "%s", at);
		}
	} while (go_up(at));
	return c->version;
}

uint64_t cgroups_limit(const struct cgroups *c, uint32_t pid)
{
	char own[CGROUP_PATH], limiting[CGROUP_PATH];
	uint64_t limit = UINT64_MAX;
	if (cgroups_of(c, pid, own, limiting) && !read_number(c, limiting, limit_file(c), &limit))
		return UINT64_MAX;
	return limit;
}

/* ---- figures --------------------------------------------------------------------------------------------- */

/* No limit is 0. */
static void take(const struct cgroups *c, const char *group, const char *name, unsigned field, struct figures *f)
{
	uint64_t number;
	if (read_number(c, group, name, &number))
		figure(f, field, number == UINT64_MAX ? 0 : number / 1024);
}

static void take_lines(const struct cgroups *c, const char *group, const char *name, const struct kernel_line *lines, size_t count,
		       uint64_t divisor, struct figures *f)
{
	char text[16384];
	if (read_file(c, group, name, text, sizeof(text)))
		kernel_figures(text, lines, count, divisor, f);
}

/* What the kernel calls file or cache includes shared memory, which is not reclaimed like files. */
static void split_shmem(struct figures *f)
{
	uint64_t shmem = f->fields & 1ull << MT_CGROUP_shmem ? f->value[MT_CGROUP_shmem] : 0;
	if (f->fields & 1ull << MT_CGROUP_file)
		f->value[MT_CGROUP_file] -= shmem < f->value[MT_CGROUP_file] ? shmem : f->value[MT_CGROUP_file];
}

static void sample_second(const struct cgroups *c, const char *group, struct figures *f)
{
	static const struct kernel_line stat[] = {
		{ "anon", MT_CGROUP_anon }, { "file", MT_CGROUP_file }, { "kernel", MT_CGROUP_kernel }, { "shmem", MT_CGROUP_shmem },
		{ "file_mapped", MT_CGROUP_file_mapped }, { "file_dirty", MT_CGROUP_file_dirty },
		{ "inactive_file", MT_CGROUP_file_inactive },
	};
	static const struct kernel_line events[] = {
		{ "max", MT_CGROUP_limit_hits }, { "oom", MT_CGROUP_ooms }, { "oom_kill", MT_CGROUP_oom_kills },
	};
	char path[2 * CGROUP_PATH + 64];
	take(c, group, "memory.max", MT_CGROUP_limit, f);
	take(c, group, "memory.high", MT_CGROUP_high, f);
	take(c, group, "memory.current", MT_CGROUP_current, f);
	take(c, group, "memory.peak", MT_CGROUP_peak, f);
	take(c, group, "memory.swap.max", MT_CGROUP_swap_limit, f);
	take(c, group, "memory.swap.current", MT_CGROUP_swap, f);
	take_lines(c, group, "memory.stat", stat, COUNT_OF(stat), 1024, f);
	take_lines(c, group, "memory.events", events, COUNT_OF(events), 1, f);
	split_shmem(f);
	snprintf(path, sizeof(path), "%s%s/memory.pressure", c->mount, strcmp(group, "/") ? group : "");
	kernel_pressure(path, MT_CGROUP_psi_some, MT_CGROUP_psi_full, f);
}

/* Version 1 counts kills in the victim's own group alone. */
static void take_kills(const struct cgroups *c, const char *own, const char *limiting, struct figures *f)
{
	static const struct kernel_line lines[] = { { "oom_kill", 0 } };
	char at[CGROUP_PATH];
	uint64_t kills = 0;
	bool known = false;
	snprintf(at, sizeof(at), "%s", own);
	do {
		struct figures one = { 0 };
		take_lines(c, at, "memory.oom_control", lines, 1, 1, &one);
		known |= one.fields != 0;
		kills += one.value[0];
	} while (strcmp(at, limiting) != 0 && go_up(at));
	if (known)
		figure(f, MT_CGROUP_oom_kills, kills);
}

static void sample_first(const struct cgroups *c, const char *own, const char *group, struct figures *f)
{
	static const struct kernel_line stat[] = {
		{ "total_cache", MT_CGROUP_file }, { "total_rss", MT_CGROUP_anon }, { "total_shmem", MT_CGROUP_shmem },
		{ "total_mapped_file", MT_CGROUP_file_mapped }, { "total_dirty", MT_CGROUP_file_dirty },
		{ "total_swap", MT_CGROUP_swap }, { "total_inactive_file", MT_CGROUP_file_inactive },
	};
	uint64_t hits;
	take(c, group, "memory.limit_in_bytes", MT_CGROUP_limit, f);
	take(c, group, "memory.usage_in_bytes", MT_CGROUP_current, f);
	take(c, group, "memory.max_usage_in_bytes", MT_CGROUP_peak, f);
	take(c, group, "memory.kmem.usage_in_bytes", MT_CGROUP_kernel, f);
	take_lines(c, group, "memory.stat", stat, COUNT_OF(stat), 1024, f);
	if (read_number(c, group, "memory.failcnt", &hits))
		figure(f, MT_CGROUP_limit_hits, hits);
	split_shmem(f);
	take_kills(c, own, group, f);
}

void sample_cgroup(const struct cgroups *c, unsigned version, const char *own, const char *limiting, struct figures *f)
{
	if (version == 2)
		sample_second(c, limiting, f);
	else
		sample_first(c, own, limiting, f);
}
