/* The machine, processes and mappings, as /proc has them. */
#include "analyzer/recorder/sampler/sampler_sources.h"
#include "analyzer/util/system/kernel_file.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define COUNT_OF(a) (sizeof(a) / sizeof(*(a)))

/* ---- lines of its files ------------------------------------------------------------------------------------ */

static bool has_key(const char *line, const char *key)
{
	size_t n = strlen(key);
	return !strncmp(line, key, n) && (line[n] == ':' || line[n] == ' ' || line[n] == '\t');
}

/* One line of a file; keys come in the table's order or not, so the search starts where it last ended. */
static void take_line(const char *line, const struct kernel_line *lines, size_t count, uint64_t divisor, size_t *next,
		      struct figures *f)
{
	for (size_t i = 0; i < count; i++) {
		const struct kernel_line *l = &lines[(*next + i) % count];
		if (!has_key(line, l->key))
			continue;
		const char *number = line + strlen(l->key) + 1;
		figure(f, l->field, strtoull(number, NULL, 10) / divisor);
		*next = (size_t)(l - lines) + 1;
		return;
	}
}

void kernel_figures(const char *text, const struct kernel_line *lines, size_t count, uint64_t divisor,
		    struct figures *f)
{
	size_t next = 0;
	for (const char *line = text; line && *line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
		take_line(line, lines, count, divisor, &next, f);
}

void kernel_pressure(const char *path, unsigned some, unsigned full, struct figures *f)
{
	char text[512];
	if (kernel_read(path, text, sizeof(text)) <= 0)
		return;
	const char *s = strstr(text, "some "), *p = strstr(text, "full ");
	const char *total = s ? strstr(s, "total=") : NULL, *total2 = p ? strstr(p, "total=") : NULL;
	if (total)
		figure(f, some, strtoull(total + 6, NULL, 10));
	if (total2)
		figure(f, full, strtoull(total2 + 6, NULL, 10));
}

/* ---- the machine --------------------------------------------------------------------------------------- */

static void take_swapping(struct figures *f)
{
	static const struct kernel_line lines[] = {
		{ "pswpin", MT_MACHINE_swapped_in },
		{ "pswpout", MT_MACHINE_swapped_out },
		{ "oom_kill", MT_MACHINE_oom_kills },
	};
	char text[32768];
	uint64_t kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	if (kernel_read("/proc/vmstat", text, sizeof(text)) <= 0)
		return;
	kernel_figures(text, lines, COUNT_OF(lines), 1, f);
	f->value[MT_MACHINE_swapped_in] *= kib;
	f->value[MT_MACHINE_swapped_out] *= kib;
}

static void take_shm(struct figures *f)
{
	struct statvfs fs;
	if (statvfs("/dev/shm", &fs) || !fs.f_blocks)
		return;
	figure(f, MT_MACHINE_shm_total, (uint64_t)fs.f_blocks * fs.f_frsize / 1024);
	figure(f, MT_MACHINE_shm_used, (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize / 1024);
}

void sample_machine(struct figures *f)
{
	static const struct kernel_line lines[] = {
		{ "MemTotal", MT_MACHINE_total },
		{ "MemFree", MT_MACHINE_free },
		{ "MemAvailable", MT_MACHINE_available },
		{ "Buffers", MT_MACHINE_buffers },
		{ "Cached", MT_MACHINE_cached },
		{ "SwapCached", MT_MACHINE_swap_cached },
		{ "Mlocked", MT_MACHINE_locked },
		{ "SwapTotal", MT_MACHINE_swap_total },
		{ "SwapFree", MT_MACHINE_swap_free },
		{ "Dirty", MT_MACHINE_dirty },
		{ "Writeback", MT_MACHINE_writeback },
		{ "AnonPages", MT_MACHINE_anon },
		{ "Mapped", MT_MACHINE_mapped },
		{ "Shmem", MT_MACHINE_shmem },
		{ "SReclaimable", MT_MACHINE_slab_reclaimable },
		{ "SUnreclaim", MT_MACHINE_slab_unreclaimable },
		{ "KernelStack", MT_MACHINE_kernel_stacks },
		{ "PageTables", MT_MACHINE_page_tables },
		{ "Committed_AS", MT_MACHINE_committed },
		{ "Percpu", MT_MACHINE_per_cpu },
		{ "Hugetlb", MT_MACHINE_huge_pages },
	};
	char text[8192];
	if (kernel_read("/proc/meminfo", text, sizeof(text)) > 0)
		kernel_figures(text, lines, COUNT_OF(lines), 1, f);
	take_swapping(f);
	take_shm(f);
	kernel_pressure("/proc/pressure/memory", MT_MACHINE_psi_some, MT_MACHINE_psi_full, f);
}

/* ---- a process ----------------------------------------------------------------------------------------- */

bool sample_process_stat(uint32_t pid, struct proc_who *who, struct figures *f)
{
	char path[64], text[1024];
	unsigned long long minor, major, start, size;
	long long rss;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	if (kernel_read(path, text, sizeof(text)) <= 0)
		return false;
	char *name = strchr(text, '('), *end = strrchr(text, ')'); /* the name may hold anything */
	if (!name || !end || end < name ||
	    sscanf(end + 1,
		   " %*c %*s %*s %*s %*s %*s %*s %llu %*s %llu %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %lld",
		   &minor, &major, &start, &size, &rss) != 5)
		return false;
	snprintf(who->name, sizeof(who->name), "%.*s", (int)(end - name - 1), name + 1);
	who->start = start;
	who->kernel = !size;
	who->rss_kib = rss > 0 ? (uint64_t)rss * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024) : 0;
	if (f) {
		figure(f, MT_PROCESS_minor_faults, minor);
		figure(f, MT_PROCESS_major_faults, major);
	}
	return true;
}

bool sample_process_status(uint32_t pid, struct figures *f)
{
	static const struct kernel_line lines[] = {
		{ "VmSize", MT_PROCESS_size },        { "VmLck", MT_PROCESS_locked },
		{ "VmHWM", MT_PROCESS_rss_peak },     { "VmRSS", MT_PROCESS_rss },
		{ "RssAnon", MT_PROCESS_rss_anon },   { "RssFile", MT_PROCESS_rss_file },
		{ "RssShmem", MT_PROCESS_rss_shmem }, { "VmPTE", MT_PROCESS_page_tables },
		{ "VmSwap", MT_PROCESS_swap },        { "HugetlbPages", MT_PROCESS_huge_pages },
		{ "Threads", MT_PROCESS_threads },    { "VmData", MT_PROCESS_data },
	};
	char path[64], text[8192];
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	if (kernel_read(path, text, sizeof(text)) <= 0 || !strstr(text, "\nVmRSS:"))
		return false; /* without it it has ended, or is a kernel thread */
	kernel_figures(text, lines, COUNT_OF(lines), 1, f);
	return true;
}

bool sample_process_rollup(uint32_t pid, struct figures *f)
{
	static const struct kernel_line lines[] = {
		{ "Pss", MT_PROCESS_pss },
		{ "Pss_Anon", MT_PROCESS_pss_anon },
		{ "Pss_File", MT_PROCESS_pss_file },
		{ "Pss_Shmem", MT_PROCESS_pss_shmem },
		{ "Shared_Clean", MT_PROCESS_shared_clean },
		{ "Shared_Dirty", MT_PROCESS_shared_dirty },
		{ "Private_Clean", MT_PROCESS_private_clean },
		{ "Private_Dirty", MT_PROCESS_private_dirty },
		{ "Anonymous", MT_PROCESS_anonymous },
		{ "SwapPss", MT_PROCESS_swap_pss },
	};
	char path[64], text[4096];
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/smaps_rollup", pid);
	if (kernel_read(path, text, sizeof(text)) <= 0)
		return false;
	kernel_figures(text, lines, COUNT_OF(lines), 1, f);
	return f->fields & 1ull << MT_PROCESS_pss;
}

/* ---- its mappings --------------------------------------------------------------------------------------- */

/* "7f00-7f10 rw-p 00000000 00:00 0   /path" begins a mapping. Address space that nobody may touch is none: its end is
 *                                    its start. */
static bool mapping_head(const char *line, uint64_t *start, uint64_t *end, char *path, size_t size)
{
	int at = 0;
	char rights[8];
	if (!isxdigit((unsigned char)*line) || isupper((unsigned char)*line) ||
	    sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", start, end, rights, &at) != 3 || !at)
		return false;
	if (!strncmp(rights, "---", 3))
		*end = *start;
	snprintf(path, size, "%.*s", (int)strcspn(line + at, "\n"), line[at] ? line + at : "");
	if (!*path)
		snprintf(path, size, "[anon]");
	return true;
}

bool sample_mappings(uint32_t pid, uint64_t least,
		     void (*found)(void *arg, uint64_t start, const char *path, const struct figures *f), void *arg)
{
	static const struct kernel_line lines[] = {
		{ "Rss", MT_MAPPING_rss },   { "Pss", MT_MAPPING_pss },       { "Anonymous", MT_MAPPING_anonymous },
		{ "Swap", MT_MAPPING_swap }, { "Locked", MT_MAPPING_locked },
	};
	char path[64], line[1024], name[512] = "", next_name[512];
	uint64_t start = 0, end = 0, next_start, next_end;
	struct figures f = { 0 };
	size_t at = 0;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/smaps", pid);
	int fd = kernel_open(path);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (!mapping_head(line, &next_start, &next_end, next_name, sizeof(next_name))) {
			if (end - start >= least * 1024)
				take_line(line, lines, COUNT_OF(lines), 1, &at, &f);
			continue;
		}
		if (end - start >= least * 1024)
			found(arg, start, name, &f);
		start = next_start;
		end = next_end;
		snprintf(name, sizeof(name), "%s", next_name);
		f.fields = 0;
		figure(&f, MT_MAPPING_size, (end - start) / 1024);
	}
	if (end - start >= least * 1024)
		found(arg, start, name, &f);
	fclose(file);
	return true;
}
