/* memtrace holders: which object of Python keeps the memory, or what a program of C and C++ has lost. */
#include "analyzer/attach/copy.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/trace_of_pid.h"
#include "analyzer/reader/files/file.h"
#include "analyzer/reader/holders_file.h"
#include "analyzer/report/screen/holders_report.h"
#include "analyzer/report/screen/scan_report.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 30000
#define STEP_MS 20

struct holders_options {
	struct options common;
	uint64_t snapshot;
	bool scan;
};

static const struct option_row rows[] = {
	{ "snapshot", 0, "N", OPTION_NUMBER, offsetof(struct holders_options, snapshot),
	  "the N-th one, from 1 on; otherwise the last", 0 },
	{ "scan", 0, NULL, OPTION_FLAG, offsetof(struct holders_options, scan),
	  "of C and C++: which blocks nothing points to, who has the others", 0 },
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_JSON,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_holders_spec = {
	"memtrace holders [options] [PID|DIR]",
	"Which object of Python keeps the memory, and from where: of a program that runs\n"
	"(PID) now, of a trace as it was when a snapshot was taken. Snapshots are taken\n"
	"with MEMTRACE_HOLDERS=1 (memtrace run --holders): when memory ran out, at marks,\n"
	"at memtrace_holders() and at the end.",
	rows,
	0,
	"  memtrace holders 4711\n"
	"  memtrace holders --scan 4711\n"
	"  memtrace run --holders -- python train.py; memtrace holders\n",
	"Read: docs/holders.md",
};

/* ---- of a program that runs ------------------------------------------------------------------------------ */

struct asking {
	uint32_t pid;
	bool done, old;
};

static int ask_one(void *context, const char *name, const struct file *f)
{
	struct asking *a = context;
	const char *extension = strrchr(name, '.');
	uint32_t bytes = 0, asked = 0;
	if (!extension || strcmp(extension, ".info") || (uint32_t)strtoul(name, NULL, 10) != a->pid)
		return 0;
	int e = file_read(f, offsetof(struct mt_info, bytes), &bytes, sizeof(bytes));
	if (e || bytes < offsetof(struct mt_info, asked) + sizeof(asked))
		return e;
	e = file_read(f, offsetof(struct mt_info, asked), &asked, sizeof(asked));
	if (e)
		return e;
	asked ^= MT_ASKED_HOLDERS;
	int fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : pwrite(fd, &asked, sizeof(asked), (off_t)offsetof(struct mt_info, asked));
	e = n == sizeof(asked) ? 0 : error_errno(MT_EOUTPUT, f->path, ERROR_NO_OFFSET);
	if (fd >= 0)
		close(fd);
	a->done = !e;
	return e;
}

/* The running image of this pid. */
static const struct process *running(struct reader *r, const char *pid)
{
	for (unsigned id = 0; (id = reader_find(r, pid, id)) < reader_processes(r); id++)
		if (reader_process(r, id)->state == PROCESS_RUNNING)
			return reader_process(r, id);
	return NULL;
}

static int wait_for(const struct process *p, int before)
{
	struct timespec pause = { 0, STEP_MS * 1000000L };
	for (int ms = 0; ms < WAIT_MS; ms += STEP_MS) {
		int n = holders_heads(p, NULL, 0);
		if (n > before || n < 0)
			return n < 0 ? n : 0;
		nanosleep(&pause, NULL);
	}
	return error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET,
			 "pid %u has not answered in %d s: no CPython that memtrace knows, or its main thread runs no "
			 "Python code (it waits in C)",
			 p->pid, WAIT_MS / 1000);
}

static int ask(const char *dir, const char *pid)
{
	struct reader *r;
	int e = reader_open(&r, &dir, 1, READER_FORCE);
	if (e)
		return e;
	const struct process *p = running(r, pid);
	struct asking a = { .pid = p ? p->pid : 0 };
	int before = p ? holders_heads(p, NULL, 0) : 0;
	e = !p ? error_set(MT_EUSAGE, pid, ERROR_NO_OFFSET, "runs no longer")
	    : process_is_picked(p)
		    ? error_set(MT_EUSAGE, pid, ERROR_NO_OFFSET,
				"is recorded with --record sampled: who holds its blocks needs --record all")
	    : before < 0 ? before
	    : process_is_pypy(p)
		    ? error_set(MT_EUSAGE, pid, ERROR_NO_OFFSET, "runs PyPy: only objects of CPython are known")
		    : reader_files(r, ask_one, &a);
	if (!e && !a.done)
		e = error_set(MT_EUSAGE, pid, ERROR_NO_OFFSET, "is recorded by an older version");
	if (!e)
		e = wait_for(p, before);
	reader_close(r);
	return e;
}

/* ---- by a copy of its memory ------------------------------------------------------------------------------ */

/* The copy is made first: a reader that is opened afterwards has all that happened before the copy. */
static int copy(struct memory_copy *c, const char *dir, const char *pid)
{
	struct reader *r;
	int e = reader_open(&r, &dir, 1, READER_FORCE);
	if (e)
		return e;
	const struct process *p = running(r, pid);
	const uint32_t clock = p ? p->clock : 0;
	reader_close(r);
	if (!p)
		return error_set(MT_EUSAGE, pid, ERROR_NO_OFFSET, "runs no longer");
	return copy_memory(c, (pid_t)strtol(pid, NULL, 10), dir, clock);
}

static struct memory_copy copied;

static int scan_answer(struct selection *sel)
{
	const struct process *p = running(sel->reader, sel->options->process);
	if (!p)
		return error_set(MT_EUSAGE, sel->options->process, ERROR_NO_OFFSET, "has ended meanwhile");
	if (process_is_picked(p))
		return error_set(MT_EUSAGE, "--scan", ERROR_NO_OFFSET,
				 "%s is recorded with --record sampled: who points to its blocks needs --record all",
				 sel->options->process);
	struct model_query q = MODEL_QUERY_ALL;
	q.until_ns = process_ns(p, copied.ticks);
	int e = selection_run(sel, &q);
	struct scan_report r = { .selection = sel,
				 .process = p,
				 .copy = &copied,
				 .whole = process_is_whole(p) && reader_complete(sel->reader) };
	struct scan *scan = NULL;
	e = e ? e : scan_make(&scan, &copied, sel->model, sel->stacks, p, r.whole);
	r.scan = scan;
	if (!e && sel->options->json) {
		e = scan_print_json(&r);
	} else if (!e) {
		output_line(STYLE_FAINT, output_format("memtrace holders --scan %s", sel->options->process));
		scan_print(&r);
		selection_print_missing(sel);
	}
	scan_free(scan);
	return e;
}

/* ---- the answer ------------------------------------------------------------------------------------------ */

static int answer(struct selection *sel)
{
	const struct holders_options *o = (const struct holders_options *)sel->options;
	struct holders_report r;
	int e = holders_report_make(&r, sel, o->snapshot ? (int)o->snapshot - 1 : -1);
	if (!e && sel->options->json) {
		e = holders_print_json(&r);
	} else if (!e) {
		output_line(STYLE_FAINT, output_format("memtrace holders %s", sel->options->dirs[0]));
		holders_print(&r);
		selection_print_missing(sel);
	}
	holders_report_fini(&r);
	return e;
}

int cmd_holders(int argc, char **argv)
{
	struct holders_options o = { 0 };
	char *dir = NULL;
	int e = options_parse(&cmd_holders_spec, &o, argc, argv);
	if (e)
		return e > 0 ? 0 : e;
	if (o.common.ndirs == 1)
		e = trace_of_pid(o.common.dirs[0], &dir);
	if (!e && o.scan && !dir)
		e = error_set(MT_EUSAGE, "--scan", ERROR_NO_OFFSET,
			      "needs the pid of a program that runs and is recorded");
	if (!e && dir) {
		e = o.scan ? copy(&copied, dir, o.common.dirs[0]) : ask(dir, o.common.dirs[0]);
		o.common.process = o.common.dirs[0];
		o.common.dirs[0] = dir;
	}
	if (e)
		options_free(&o.common);
	else
		e = selection_answer(&cmd_holders_spec, &o, o.scan ? scan_answer : answer);
	memory_copy_free(&copied);
	free(dir);
	return e;
}
