#include "analyzer/analysis/newest_trace.h"

#include "analyzer/model/selection/main_process.h"
#include "analyzer/util/ticks.h"
#include "analyzer/util/vec.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEWEST_LARGE_BYTES (16 << 20)    /* of files: not looked into, it is no small command's */
#define NEWEST_LATELY_NS   2000000000ull /* the programs of a pipeline start together */
#define MOST_LOOKS         200

struct candidate {
	char *name;
	struct timespec time;
};

struct candidates {
	struct candidate *list;
	size_t count, room;
};

static int newer_first(const void *a, const void *b)
{
	const struct timespec *x = &((const struct candidate *)a)->time, *y = &((const struct candidate *)b)->time;
	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? 1 : -1;
	return (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

static void find(struct candidates *c)
{
	DIR *d = opendir(".");
	for (struct dirent *entry; d && (entry = readdir(d));) {
		char path[512];
		struct stat st;
		if (strncmp(entry->d_name, "memtrace", 8) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/session", entry->d_name);
		if (stat(path, &st) || !S_ISREG(st.st_mode) || stat(entry->d_name, &st) ||
		    vec_reserve(c->list, c->room, c->count + 1))
			continue;
		c->list[c->count++] = (struct candidate){ strdup(entry->d_name), st.st_mtim };
	}
	if (d)
		closedir(d);
	if (c->count)
		qsort(c->list, c->count, sizeof(*c->list), newer_first);
}

static uint64_t bytes_of(const char *dir)
{
	uint64_t bytes = 0;
	DIR *d = opendir(dir);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		struct stat st;
		if (fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (uint64_t)st.st_blocks * 512;
	}
	if (d)
		closedir(d);
	return bytes;
}

/* Begun just now, and where we are. Not what a script has recorded before it came to us: somebody in it must be
 * running. */
static bool may_be_our_pipeline(const char *dir)
{
	struct mt_session s = { 0 };
	struct stat st;
	char path[512];
	snprintf(path, sizeof(path), "%s/session", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool whole = fd >= 0 && pread(fd, &s, sizeof(s), 0) == sizeof(s);
	if (fd >= 0)
		close(fd);
	return whole && s.job.pid_ns && s.job.group == (uint32_t)getpgrp() && s.job.session == (uint32_t)getsid(0) &&
	       stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == s.job.pid_ns &&
	       ticks_mono_ns() - s.start_mono_ns < NEWEST_LATELY_NS;
}

static bool anyone(const struct reader *r, bool (*is)(const struct process *))
{
	for (unsigned id = 0; id < reader_processes(r); id++)
		if (is(reader_process(r, id)))
			return true;
	return false;
}

static bool runs(const struct process *p)
{
	return p->state == PROCESS_RUNNING;
}
static bool lasted(const struct process *p)
{
	return !process_was_short(p);
}

static bool held_something(struct reader *r)
{
	struct model *m;
	bool held = false;
	if (model_run(&m, r, &MODEL_QUERY_ALL) < 0)
		return true;
	for (unsigned id = 0; id < reader_processes(r); id++)
		held |= !process_is_momentary(model_process(m, id));
	model_free(m);
	return held;
}

enum trace_kind {
	NOT_BEGUN,
	OUR_PIPELINE,
	SHORT_COMMAND,
	WORTH_A_REPORT
}; /* NOT_BEGUN: its first process has not begun to record */

/* What can't be read is for the command to complain about. */
static enum trace_kind look_into(const char *dir)
{
	struct reader *r;
	if (bytes_of(dir) >= NEWEST_LARGE_BYTES)
		return WORTH_A_REPORT;
	int e = reader_open(&r, &dir, 1, READER_FORCE);
	if (e)
		return e == -MT_ENOTRACE || e == -MT_ENOPROCESS ? NOT_BEGUN : WORTH_A_REPORT;
	enum trace_kind kind = may_be_our_pipeline(dir) && anyone(r, runs) ? OUR_PIPELINE
			       : anyone(r, lasted) || held_something(r)    ? WORTH_A_REPORT
									   : SHORT_COMMAND;
	reader_close(r);
	return kind;
}

char *newest_trace(unsigned *passed)
{
	struct candidates c = { 0 };
	size_t best = 0, i;
	bool fallback = false;
	enum trace_kind kind = SHORT_COMMAND;
	find(&c);
	for (i = 0; i < c.count && i < MOST_LOOKS; i++) {
		kind = look_into(c.list[i].name);
		if (kind == WORTH_A_REPORT || (kind == SHORT_COMMAND && !fallback))
			best = i;
		fallback |= kind == SHORT_COMMAND;
		if (kind == WORTH_A_REPORT)
			break;
	}
	*passed = (unsigned)best;
	char *name = c.count ? strdup(c.list[best].name) : NULL;
	for (i = 0; i < c.count; i++)
		free(c.list[i].name);
	free(c.list);
	return name;
}
