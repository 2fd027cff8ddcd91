/* memtrace live: a running program, again and again. */
#include "analyzer/commands/attach_pid.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/live_follow.h"
#include "analyzer/report/live_print.h"
#include "analyzer/report/open.h"
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
	"what is left of devices, control group and machine, growth. A line every time\n"
	"where the output is no terminal. Warns with a line and, on a terminal, a bell.\n"
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

/* ---- showing ------------------------------------------------------------------------------------------- */

static void print_screen(const struct watch *w)
{
	const struct live *l = &w->live;
	char *dir = output_tail(w->dir,
				output_width() - (int)sizeof("memtrace live     running   reading   1,234,567 steps"));
	print("\033[H\033[2J%smemtrace live%s  %s   %s%s", output_begin(STYLE_HEAD), output_end(STYLE_HEAD), dir,
	      l->running ? "running" : "ended", l->modelled ? "" : "   reading");
	free(dir);
	if (l->steps)
		print("   %s steps", COUNT(l->steps));
	print("\n");
	if (l->lost)
		print("%sevents were lost: of the heap %s to %s are live%s\n", output_begin(STYLE_BAD),
		      BYTES(l->heap_min), BYTES(l->heap), output_end(STYLE_BAD));
	print("\n");
	static const struct column columns[] = {
		{ "PROCESS", RIGHT, false },  { "", LEFT, true },         { "heap", RIGHT, false },
		{ "mapped", RIGHT, false },   { "pinned", RIGHT, false }, { "device", RIGHT, false },
		{ "resident", RIGHT, false }, { "swap", RIGHT, false },
	};
	struct table *t = table_new(columns, 8, 0);
	for (size_t i = 0; i < l->process_count; i++) {
		const struct shown_process *p = &l->processes[i];
		char *pid = output_format("%u", p->pid);
		table_row(t, (const char *[]){ pid, p->name, BYTES(p->heap), BYTES(p->map), BYTES(p->pinned),
					       BYTES(p->device), p->running ? BYTES(p->rss) : "ended",
					       p->running ? BYTES(p->swap) : "" });
		free(pid);
	}
	table_print(t);
	if (l->process_all > l->process_count)
		print("  and %zu that ended or are not shown\n", l->process_all - l->process_count);
	print("\n");
	for (size_t i = 0; i < l->gauge_count; i++) {
		const struct gauge *g = &l->gauges[i];
		int full = (int)(live_percent(g) / 2.5 + 0.5);
		enum output_style style = live_percent(g) >= w->levels.first ? STYLE_BAD : STYLE_NONE;
		char *name = output_cut(g->name, 24);
		print("%s%-24s %10s of %10s %5.1f %%  ", output_begin(style), name, BYTES((uint64_t)g->used),
		      BYTES((uint64_t)g->total), live_percent(g));
		free(name);
		for (int k = 0; k < 40; k++)
			print("%s", k < full ? "#" : ".");
		print("%s\n", output_end(style));
	}
	if (*l->growth)
		print("\n%sGROWTH%s  %s\n", output_begin(STYLE_BAD), output_end(STYLE_BAD), l->growth);
}

static void print_line(const struct live *l)
{
	print("%.1f s  heap ", (double)l->age_ns / 1e9);
	if (l->lost) /* events, frees among them */
		print("%s to ", BYTES(l->heap_min));
	print("%s  mapped %s", BYTES(l->heap), BYTES(l->map));
	if (l->pinned)
		print("  pinned %s", BYTES(l->pinned));
	if (l->device)
		print("  device %s", BYTES(l->device));
	if (l->running) /* what has ended has none */
		print("  resident %s  swap %s", BYTES(l->rss), BYTES(l->swap));
	for (size_t i = 0; i < l->gauge_count; i++)
		print("  %s %.1f %%", l->gauges[i].name, live_percent(&l->gauges[i]));
	if (l->steps)
		print("  %s steps", EXACT(l->steps));
	if (*l->growth)
		print("  %s", l->growth);
	print("%s\n", l->running ? "" : "  ended");
}

/* Once for each level, and again only after it was below. */
static void warn(struct watch *w)
{
	struct live *l = &w->live;
	for (size_t i = 0; i < l->gauge_count; i++) {
		struct gauge *g = &l->gauges[i];
		int level = live_level(g, &w->levels);
		if (level > g->warned && !w->options->common.json) {
			print("%s%s: %s is %.1f %% full: %s of %s%s\n", output_begin(STYLE_BAD),
			      level == 2 ? "ALERT" : "WARNING", g->name, live_percent(g), BYTES((uint64_t)g->used),
			      BYTES((uint64_t)g->total), output_end(STYLE_BAD));
			if (output_is_terminal())
				print("\a");
		}
		w->alerted = w->alerted || level == 2;
		g->warned = level;
	}
}

/* Returns false after the last look. */
static bool show(struct live *l, bool reading)
{
	struct watch *w = (struct watch *)l;
	if (w->options->common.json && l->modelled)
		w->error = live_print_json(l, &w->levels);
	else if (output_is_terminal() && !w->options->common.json)
		print_screen(w);
	else if (l->modelled && !w->options->common.json)
		print_line(l);
	warn(w);
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
