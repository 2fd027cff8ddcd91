/* Figures of memory control groups, of both versions. */
#include "analyzer/recorder/sampler/sampler_sources.h"
#include "analyzer/util/system/cgroup.h"

#include <stdio.h>
#include <string.h>

#define COUNT_OF(a) (sizeof(a) / sizeof(*(a)))

/* No limit is 0. */
static void read_figure(const struct cgroups *c, const char *group, const char *name, unsigned field, struct figures *f)
{
	uint64_t number;
	if (cgroup_read_number(c, group, name, &number))
		figure(f, field, number == UINT64_MAX ? 0 : number / 1024);
}

static void take_lines(const struct cgroups *c, const char *group, const char *name, const struct kernel_line *lines,
		       size_t count, uint64_t divisor, struct figures *f)
{
	char text[16384];
	if (cgroup_read_file(c, group, name, text, sizeof(text)))
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
		{ "anon", MT_CGROUP_anon },
		{ "file", MT_CGROUP_file },
		{ "kernel", MT_CGROUP_kernel },
		{ "shmem", MT_CGROUP_shmem },
		{ "file_mapped", MT_CGROUP_file_mapped },
		{ "file_dirty", MT_CGROUP_file_dirty },
		{ "inactive_file", MT_CGROUP_file_inactive },
	};
	static const struct kernel_line events[] = {
		{ "max", MT_CGROUP_limit_hits },
		{ "oom", MT_CGROUP_ooms },
		{ "oom_kill", MT_CGROUP_oom_kills },
	};
	char path[CGROUP_FILE];
	read_figure(c, group, "memory.max", MT_CGROUP_limit, f);
	read_figure(c, group, "memory.high", MT_CGROUP_high, f);
	read_figure(c, group, "memory.current", MT_CGROUP_current, f);
	read_figure(c, group, "memory.peak", MT_CGROUP_peak, f);
	read_figure(c, group, "memory.swap.max", MT_CGROUP_swap_limit, f);
	read_figure(c, group, "memory.swap.current", MT_CGROUP_swap, f);
	take_lines(c, group, "memory.stat", stat, COUNT_OF(stat), 1024, f);
	take_lines(c, group, "memory.events", events, COUNT_OF(events), 1, f);
	split_shmem(f);
	cgroup_file(c, group, "memory.pressure", path);
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
	} while (strcmp(at, limiting) != 0 && cgroup_go_up(at));
	if (known)
		figure(f, MT_CGROUP_oom_kills, kills);
}

static void sample_first(const struct cgroups *c, const char *own, const char *group, struct figures *f)
{
	static const struct kernel_line stat[] = {
		{ "total_cache", MT_CGROUP_file },
		{ "total_rss", MT_CGROUP_anon },
		{ "total_shmem", MT_CGROUP_shmem },
		{ "total_mapped_file", MT_CGROUP_file_mapped },
		{ "total_dirty", MT_CGROUP_file_dirty },
		{ "total_swap", MT_CGROUP_swap },
		{ "total_inactive_file", MT_CGROUP_file_inactive },
	};
	uint64_t hits;
	read_figure(c, group, "memory.limit_in_bytes", MT_CGROUP_limit, f);
	read_figure(c, group, "memory.usage_in_bytes", MT_CGROUP_current, f);
	read_figure(c, group, "memory.max_usage_in_bytes", MT_CGROUP_peak, f);
	read_figure(c, group, "memory.kmem.usage_in_bytes", MT_CGROUP_kernel, f);
	take_lines(c, group, "memory.stat", stat, COUNT_OF(stat), 1024, f);
	if (cgroup_read_number(c, group, "memory.failcnt", &hits))
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
