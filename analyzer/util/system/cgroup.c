#include "analyzer/util/system/cgroup.h"

#include "analyzer/util/system/kernel_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_LIMIT (1ull << 62) /* version 1 says the highest number of whole pages */

struct cgroups {
	unsigned version;        /* 0 = none is mounted */
	char mount[CGROUP_PATH]; /* "/sys/fs/cgroup/memory" */
	char root[CGROUP_PATH];  /* the part of the hierarchy that is mounted there, "/" = all */
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

void cgroups_free(struct cgroups *c)
{
	free(c);
}

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
		if (c->version == 2 ? !strncmp(line, "0:", 2) && !controllers[1]
				    : strstr(controllers, "memory") != NULL) {
			snprintf(path, CGROUP_PATH, "%s", at + 1);
			return true;
		}
	}
	return false;
}

void cgroup_file(const struct cgroups *c, const char *group, const char *name, char path[CGROUP_FILE])
{
	snprintf(path, CGROUP_FILE, "%s%s/%s", c->mount, strcmp(group, "/") ? group : "", name);
}

bool cgroup_read_file(const struct cgroups *c, const char *group, const char *name, char *text, size_t size)
{
	char path[CGROUP_FILE];
	cgroup_file(c, group, name, path);
	return kernel_read(path, text, size) > 0;
}

bool cgroup_read_number(const struct cgroups *c, const char *group, const char *name, uint64_t *number)
{
	char text[64];
	if (!cgroup_read_file(c, group, name, text, sizeof(text)))
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
	return cgroup_read_file(c, group, c->version == 2 ? "cgroup.procs" : "memory.usage_in_bytes", text,
				sizeof(text)) ||
	       cgroup_read_file(c, group, "memory.stat", text, sizeof(text));
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

bool cgroup_go_up(char path[CGROUP_PATH])
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
		if (cgroup_read_number(c, at, limit_file(c), &limit) && limit < lowest) {
			lowest = limit;
			snprintf(limiting, CGROUP_PATH, "%s", at);
		}
	} while (cgroup_go_up(at));
	return c->version;
}

uint64_t cgroups_limit(const struct cgroups *c, uint32_t pid)
{
	char own[CGROUP_PATH], limiting[CGROUP_PATH];
	uint64_t limit = UINT64_MAX;
	if (cgroups_of(c, pid, own, limiting) && !cgroup_read_number(c, limiting, limit_file(c), &limit))
		return UINT64_MAX;
	return limit;
}
