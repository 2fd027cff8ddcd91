#include "analyzer/util/system/pid_alive.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NAMESPACE 0xEFFFFFFCu /* inode of the machine's own, which sees all others */

struct proc_stat {
	char state;
	unsigned long threads; /* that have not been waited for */
	unsigned long long start;
};

/* The name in field 2 may hold anything, so start behind its last parenthesis. */
static bool read_stat(const char *path, struct proc_stat *st)
{
	char text[1024];
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	const char *end = strrchr(text, ')');
	return end &&
	       sscanf(end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %*s %llu",
		      &st->state, &st->threads, &st->start) == 3;
}

static bool has_ended(char state)
{
	return state == 'Z' || state == 'X';
}

/* The first thread may be gone (pthread_exit in main) while others go on: then it is a zombie until they end. */
static bool other_thread_runs(const char *proc)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/task", proc);
	DIR *dir = opendir(path);
	bool found = false;
	if (!dir)
		return false;
	for (struct dirent *entry; !found && (entry = readdir(dir)) != NULL;) {
		struct proc_stat st;
		snprintf(path, sizeof(path), "%s/task/%.20s/stat", proc, entry->d_name);
		found = isdigit((unsigned char)*entry->d_name) && read_stat(path, &st) && !has_ended(st.state);
	}
	closedir(dir);
	return found;
}

static enum alive runs(uint32_t pid, uint64_t start)
{
	char proc[64], path[80];
	struct proc_stat st;
	snprintf(proc, sizeof(proc), "/proc/%" PRIu32, pid);
	snprintf(path, sizeof(path), "%s/stat", proc);
	if (!read_stat(path, &st)) /* mounted with hidepid, it shows our own user's only */
		return kill((pid_t)pid, 0) == 0 || errno == EPERM ? ALIVE_UNKNOWN : ALIVE_NO;
	if (start && st.start != start)
		return ALIVE_NO;
	return !has_ended(st.state) || (st.threads > 1 && other_thread_runs(proc)) ? ALIVE_YES : ALIVE_NO;
}

static uint64_t namespace_of(const char *who)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", who);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* The process's pid in its own namespace: the last number of NSpid. */
static uint32_t inner_pid(const char *who)
{
	char path[64], line[256];
	uint32_t pid = 0;
	snprintf(path, sizeof(path), "/proc/%.20s/status", who);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", 6)) {
			const char *last = strrchr(line, '\t');
			pid = last ? (uint32_t)strtoul(last, NULL, 10) : 0;
			break;
		}
	if (f)
		fclose(f);
	return pid;
}

/* A container's process has a number of ours too. Start times are equal in both, unless time namespaces differ. */
static enum alive search(uint32_t pid, uint64_t ns, uint64_t start, bool see_all, uint32_t *number)
{
	DIR *dir = opendir("/proc");
	enum alive found = see_all ? ALIVE_NO : ALIVE_UNKNOWN;
	if (!dir)
		return ALIVE_UNKNOWN;
	for (struct dirent *entry; found != ALIVE_YES && (entry = readdir(dir)) != NULL;) {
		if (!isdigit((unsigned char)*entry->d_name) || namespace_of(entry->d_name) != ns)
			continue;
		found = ALIVE_NO; /* but the namespace is in sight */
		if (inner_pid(entry->d_name) != pid)
			continue;
		*number = (uint32_t)strtoul(entry->d_name, NULL, 10);
		found = runs(*number, start);
	}
	closedir(dir);
	return found;
}

/* /proc may have been mounted in another pid namespace, and then shows its numbers. */
static bool proc_is_ours(void)
{
	char text[32];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	return n > 0 && strtol(text, NULL, 10) == (long)getpid();
}

bool pid_sees_whole_machine(void)
{
	return proc_is_ours() && namespace_of("self") == FIRST_NAMESPACE;
}

static enum alive locate(uint32_t pid, uint64_t ns, uint64_t start, uint32_t *number)
{
	uint64_t own = namespace_of("self");
	bool ours = proc_is_ours();
	*number = pid;
	if (ours && (!ns || ns == own))
		return runs(pid, start);
	return search(pid, ns, start, ours && own == FIRST_NAMESPACE, number);
}

enum alive pid_alive(uint32_t pid, uint64_t ns, uint64_t start)
{
	uint32_t number;
	return locate(pid, ns, start, &number);
}

uint64_t pid_start_time(uint32_t pid, uint64_t ns)
{
	char path[64];
	struct proc_stat st;
	uint32_t number = pid_in_own_proc(pid, ns, 0);
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", number);
	return number && read_stat(path, &st) ? st.start : 0;
}

bool pid_started_after(uint32_t pid, uint64_t ns, uint64_t mono_ns)
{
	struct timespec boot, mono;
	uint64_t start = pid_start_time(pid, ns);
	if (clock_gettime(CLOCK_BOOTTIME, &boot) || clock_gettime(CLOCK_MONOTONIC, &mono))
		return false;
	/* in all, so of a start before that too much is taken off */
	double suspended = (double)(boot.tv_sec - mono.tv_sec);
	return (double)start / (double)sysconf(_SC_CLK_TCK) - suspended > (double)mono_ns / 1e9 + 2;
}

uint32_t pid_in_own_proc(uint32_t pid, uint64_t ns, uint64_t start)
{
	uint32_t number;
	return locate(pid, ns, start, &number) == ALIVE_YES ? number : 0;
}
