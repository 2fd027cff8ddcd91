/* memtrace start, stop: recording goes on or stops in programs that run. They look at a number in a file that they have
 * mapped, at each event. */
#include "analyzer/commands/attach_pid.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/trace_of_pid.h"
#include "analyzer/reader/files/file.h"
#include "analyzer/reader/reader.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/options.h"
#include "analyzer/util/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct option_row rows[] = { OPTIONS_END };

const struct option_spec cmd_start_spec = {
	"memtrace start [DIR|PID]",
	"Recording begins, or goes on, in the processes of a trace, and in those that\n"
	"begin from now on; with a PID in that process, and in those. A program that was\n"
	"started without memtrace is attached to: MEMTRACE_OUTPUT and the other settings\n"
	"of this command's environment hold for it. In one that was started paused, or\n"
	"that memtrace stop stopped, it takes effect at the next allocation or free.",
	rows,
	0,
	"  memtrace start 4711       # ... and memtrace stop 4711: as it was before\n"
	"  memtrace run --paused -- python serve.py &\n"
	"  memtrace start            # ... and later memtrace stop\n",
	"Read: docs/start.md",
};

const struct option_spec cmd_stop_spec = {
	"memtrace stop [DIR|PID]",
	"Recording stops in the processes of a trace, or in that process, and in those\n"
	"that begin from now on, until memtrace start. The trace stays, and what is freed\n"
	"meanwhile looks alive in it.",
	rows,
	0,
	"  memtrace stop 4711\n",
	"Read: docs/stop.md, docs/start.md",
};

struct switching {
	bool on;
	const char *pid; /* only this one's; NULL = all */
	unsigned done, old;
	bool attached, undone; /* hooks were put into it while it ran; and taken away */
	bool look;             /* only */
};

/* The next number that says so, where an older writer has a place for it: 1 = it has none. */
static int ask(const struct file *f, size_t offset, uint32_t bytes, bool on)
{
	uint32_t asked;
	if (bytes < offset + sizeof(asked))
		return 1;
	int e = file_read(f, offset, &asked, sizeof(asked));
	if (e)
		return e;
	asked += (asked & 1) == on ? 2 : 1;
	int fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : pwrite(fd, &asked, sizeof(asked), (off_t)offset);
	e = n == sizeof(asked) ? 0 : error_errno(MT_EOUTPUT, f->path, ERROR_NO_OFFSET);
	if (fd >= 0)
		close(fd);
	return e;
}

static bool is_of(const char *name, const char *pid)
{
	size_t n = pid ? strlen(pid) : 0;
	return !pid || (!strncmp(name, pid, n) && name[n] == '-');
}

static int switch_one(void *context, const char *name, const struct file *f)
{
	struct switching *s = context;
	const char *extension = strrchr(name, '.');
	uint32_t bytes = 0;
	bool session = !strcmp(name, "session");
	if (!session && (!extension || strcmp(extension, ".info") || !is_of(name, s->pid)))
		return 0;
	int e = file_read(f, session ? offsetof(struct mt_session, bytes) : offsetof(struct mt_info, bytes), &bytes,
			  sizeof(bytes));
	uint32_t attached = 0;
	if (!session && !e && bytes >= offsetof(struct mt_info, attached) + sizeof(attached) &&
	    !file_read(f, offsetof(struct mt_info, attached), &attached, sizeof(attached)))
		s->undone = attached == MT_ATTACHED_UNDONE;
	s->attached = s->attached || attached;
	if (s->look)
		return 0;
	if (!e)
		e = ask(f, session ? offsetof(struct mt_session, asked) : offsetof(struct mt_info, asked), bytes,
			s->on);
	s->old += !session && e > 0;
	s->done += !session && e == 0;
	return e < 0 ? e : 0;
}

static int switch_files(const char *dir, struct switching *s)
{
	struct reader *r;
	int e = reader_open(&r, &dir, 1, READER_FORCE);
	s->done = s->old = 0;
	if (e)
		return e;
	if (reader_recording(r))
		e = reader_files(r, switch_one, s);
	reader_close(r);
	return e;
}

static int switch_all(const char *dir, struct switching *s)
{
	int e = switch_files(dir, s);
	/* of a process that has just ended the recorder removes raw files while we look at them */
	for (int tries = 0; e == -MT_EIO && tries < 20; tries++) {
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		e = switch_files(dir, s);
	}
	if (!e && !s->done)
		e = error_set(MT_EUSAGE, dir, ERROR_NO_OFFSET, "%s",
			      s->old ? "is recorded by an older version" : "nobody is recorded there now");
	if (!e)
		print("%s: recording %s in %u process%s\n", dir, s->on ? "goes on" : "stops", s->done,
		      s->done == 1 ? "" : "es");
	return e;
}

static void look(const char *dir, struct switching *s)
{
	struct reader *r;
	s->look = true;
	if (reader_open(&r, &dir, 1, READER_FORCE) == 0) {
		reader_files(r, switch_one, s);
		reader_close(r);
	}
	s->look = false;
}

/* A process that is attached to takes its hooks away at its next allocation, and then sees no number any more. */
static void wait_for_change(const char *dir, struct switching *s)
{
	for (int tries = 0; tries < (s->on ? 5 : 50) && !s->undone; tries++) {
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
		look(dir, s);
	}
}

static int command(const struct option_spec *spec, int argc, char **argv, bool on)
{
	struct options o = { 0 };
	struct switching s = { .on = on };
	bool attached = false;
	char *dir = NULL;
	int e = open_options(spec, &o, argc, argv);
	if (e)
		return e < 0 ? e : 0;
	if (o.ndirs != 1)
		e = error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET, "one trace or process at a time");
	else
		e = on ? trace_or_attach(o.dirs[0], &dir, &attached) : trace_of_pid(o.dirs[0], &dir);
	s.pid = dir ? o.dirs[0] : NULL;
	if (!e && attached)
		print("%s: recording begins in process %s\n", dir, o.dirs[0]);
	else if (!e)
		e = switch_all(dir ? dir : o.dirs[0], &s);
	if (!e && s.attached && s.pid)
		wait_for_change(dir, &s);
	if (!e && on && s.undone &&
	    s.pid) { /* nothing of it comes to the hooks any more, so it does not see the number */
		free(dir);
		e = attach_pid(pid_of(o.dirs[0]), &dir);
	}
	free(dir);
	options_free(&o);
	return e;
}

int cmd_start(int argc, char **argv)
{
	return command(&cmd_start_spec, argc, argv, true);
}

int cmd_stop(int argc, char **argv)
{
	return command(&cmd_stop_spec, argc, argv, false);
}
