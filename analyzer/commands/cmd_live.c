/* memtrace live: a running program, again and again. */
#include "analyzer/commands/attach_pid.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/trace_of_pid.h"
#include "analyzer/live/live_follow.h"
#include "analyzer/live/live_print.h"
#include "analyzer/live/live_screen.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FIRST_ALERT    85.0
#define SECOND_ALERT   90.0
#define LEAST_EVERY_NS 1000000000ull
#define LOOK_NS        100000000 /* for being stopped */

struct live_options {
	struct options common;
	const char *alert, *openmetrics;
	uint64_t every; /* ns */
};

static const struct option_row rows[] = {
	OPTIONS_ROW_PROCESS,
	{ "alert", 0, "PERCENT", OPTION_STRING, offsetof(struct live_options, alert),
	  "warn when a device, control group or the machine is that full (default 85% and 90%); then exit with 1", 0 },
	{ "every", 0, "TIME", OPTION_DURATION, offsetof(struct live_options, every), "between two looks (default 1s)",
	  0 },
	OPTIONS_ROW("json", 0, NULL, OPTION_FLAG, json, "a line of JSON each time; docs/JSON.md has its keys"),
	{ "openmetrics", 0, "FILE", OPTION_STRING, offsetof(struct live_options, openmetrics),
	  "write it anew each time, for Prometheus", 0 },
	OPTIONS_END,
};

const struct option_spec cmd_live_spec = {
	"memtrace live [--alert 90%] [options] [PID or DIR]",
	"A refreshing view of a running program until it ends: memory of its processes,\n"
	"what is left of devices, control group and machine, growth. If the output is\n"
	"no terminal, prints lines. Warns with a line and, on a terminal, a bell.\n"
	"A PID that is not recorded is attached to (memtrace start --help).",
	rows,
	0,
	"  memtrace live 4711\n"
	"  memtrace live --alert 90% > live.log\n"
	"  memtrace live --openmetrics train.prom > /dev/null\n",
	"Read: docs/live.md",
};

static volatile sig_atomic_t stopped;

/* The second one ends it at once, whatever it is at. */
static void stop(int number)
{
	stopped = 1;
	signal(number, SIG_DFL);
}

struct watch {
	struct live live; /* first */
	const struct live_options *options;
	const char *dir;
	struct live_levels levels;
	bool alerted, last;
	int error; /* of a look */
};

/* Returns false after the last look. */
static bool show(struct live *l, bool reading)
{
	struct watch *w = (struct watch *)l;
	if (w->options->common.json && l->modelled)
		w->error = live_print_json(l, &w->levels);
	else if (output_is_terminal() && !w->options->common.json)
		live_print_screen(l, w->dir, &w->levels);
	else if (l->modelled && !w->options->common.json)
		live_print_line(l);
	w->alerted |= live_warn(l, &w->levels, w->options->common.json);
	print_flush();
	if (w->error == 0 && w->options->openmetrics)
		w->error = live_write_openmetrics(l, w->options->openmetrics);
	if (w->error < 0)
		return false;
	if (reading || !l->running)
		return true;
	if (w->last)
		return false;
	for (uint64_t i = 0; i < w->options->every / LOOK_NS && !stopped; i++)
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	w->last = stopped;
	return true;
}

static int parse_alert(struct watch *w)
{
	double percent;
	w->levels.first = FIRST_ALERT;
	w->levels.second = SECOND_ALERT;
	if (!w->options->alert)
		return 0;
	if (options_percent(w->options->alert, &percent) || percent <= 0 || percent > 100)
		return error_set(MT_EUSAGE, "--alert", ERROR_NO_OFFSET, "%s: not like 90%%", w->options->alert);
	w->levels.first = w->levels.second = percent;
	return 0;
}

/* ---- command ------------------------------------------------------------------------------------------- */

int cmd_live(int argc, char **argv)
{
	struct live_options o = { .every = LEAST_EVERY_NS };
	struct watch w = { .live = { .options = &o.common, .show = show }, .options = &o };
	char *owned = NULL;
	bool attached = false;
	int e = open_options(&cmd_live_spec, &o, argc, argv);
	if (e)
		return e > 0 ? 0 : e;
	if (o.every < LEAST_EVERY_NS)
		e = error_set(MT_EUSAGE, "--every", ERROR_NO_OFFSET, "from 1 second on");
	else
		e = o.common.ndirs == 1 ? parse_alert(&w)
					: error_set(MT_EUSAGE, "live", ERROR_NO_OFFSET, "one program at a time");
	if (e == 0)
		e = trace_or_attach(o.common.dirs[0], &owned, &attached);
	if (e == 0 && attached)
		print_error("memtrace: attached to process %s; memtrace stop %s ends that\n", o.common.dirs[0],
			    o.common.dirs[0]);
	if (e == 0) {
		w.dir = owned ? owned : o.common.dirs[0];
		signal(SIGINT, stop);
		signal(SIGTERM, stop);
		e = live_follow(&w.live, w.dir);
		e = e < 0 ? e : w.error;
	}
	free(owned);
	options_free(&o.common);
	return e ? e : w.alerted && o.alert ? 1 : 0;
}
