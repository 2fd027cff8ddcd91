/*
 * memtrace live: a running program, again and again. What the recorder samples (resident memory, devices, control groups) is read
 * every second. The events are read from the beginning each time, so that takes turns: after a reading that took a second
 * there is none for LAZINESS seconds.
 */
#include "analyzer/clock.h"
#include "analyzer/course.h"
#include "analyzer/error.h"
#include "analyzer/output.h"
#include "analyzer/trend.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LAZINESS 4
#define FIRST_ALERT 85.0
#define SECOND_ALERT 90.0
#define MOST_GAUGES 64
#define MOST_PROCESSES 12

struct live_options {
	struct options common;
	const char *alert;
	uint64_t every;
};

static const struct option_row rows[] = {
	OPTIONS_ROW_PROCESS,
	{ "alert", 0, "PERCENT", OPTION_STRING, offsetof(struct live_options, alert),
	  "warn when a device, control group or the machine is that full (default 85% and 90%); then exit with 1" },
	{ "every", 0, "SECONDS", OPTION_NUMBER, offsetof(struct live_options, every), "between two looks (default 1)" },
	OPTIONS_END
};

static const struct option_spec spec = {
	"memtrace live [--alert 90%] [options] [PID or DIR]",
	"A refreshing view of a running program until it ends: memory of its processes, what is left of devices, control group and\n"
	"machine, growth. A line every time where the output is no terminal. Warns with a line and, on a terminal, a bell.",
	rows, 0,
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* ---- what is known ------------------------------------------------------------------------------------- */

/* Something that can become full. */
struct gauge { char name[96]; double used, total; int warned; };

struct shown_process { uint32_t pid; char name[32]; uint64_t heap, map, pinned, device, rss, swap; bool running; };

struct live {
	const struct live_options *options;
	struct options read;                    /* for views: the directory */
	const char *dir;
	double first, second;                   /* per cent */
	struct gauge gauges[MOST_GAUGES];
	size_t gauge_count;
	struct shown_process processes[MOST_PROCESSES];
	size_t process_count, process_all;
	bool running, alerted, modelled;
	uint64_t heap, map, pinned, device, rss, swap; /* sums */
	uint64_t steps, age_ns;                 /* age: when the events were read, since the start */
	char growth[256];
	uint64_t next_model_ns;
};

static struct gauge *gauge_of(struct live *l, const char *name)
{
	for (size_t i = 0; i < l->gauge_count; i++)
		if (!strcmp(l->gauges[i].name, name))
			return &l->gauges[i];
	if (l->gauge_count == MOST_GAUGES)
		return NULL;
	struct gauge *g = &l->gauges[l->gauge_count++];
	*g = (struct gauge){ .name = "" };
	snprintf(g->name, sizeof(g->name), "%s", name);
	return g;
}

static void set_gauge(struct live *l, const char *name, double used, double total)
{
	struct gauge *g = total > 0 ? gauge_of(l, name) : NULL;
	if (!g)
		return;
	g->used = used;
	g->total = total;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static bool has(const struct sample_subject *d, unsigned field)
{
	return d->known & 1ull << field;
}

static void take_subject(struct live *l, const struct sample_subject *d)
{
	if (d->kind == MT_SUBJECT_MACHINE && has(d, MT_MACHINE_total) && has(d, MT_MACHINE_available)) {
		double total = (double)d->last[MT_MACHINE_total].value;
		set_gauge(l, "machine", total - (double)d->last[MT_MACHINE_available].value, total);
	} else if (d->kind == MT_SUBJECT_CGROUP && has(d, MT_CGROUP_limit) && has(d, MT_CGROUP_current)) {
		double file = has(d, MT_CGROUP_file) ? (double)d->last[MT_CGROUP_file].value : 0;
		set_gauge(l, "control group", (double)d->last[MT_CGROUP_current].value - file, (double)d->last[MT_CGROUP_limit].value);
	} else if (d->kind == MT_SUBJECT_DEVICE && has(d, MT_DEVICE_used) && has(d, MT_DEVICE_total)) {
		char name[96];
		snprintf(name, sizeof(name), "%s %u", d->backend == MT_BACKEND_ASCEND ? "npu" : "gpu", d->number);
		set_gauge(l, name, (double)d->last[MT_DEVICE_used].value, (double)d->last[MT_DEVICE_total].value);
	}
}

/* The kernel knows better than a sample while it runs here. */
static uint64_t rss_now(const struct process *p, const struct sample_subject *d)
{
	char path[64];
	unsigned long pages;
	snprintf(path, sizeof(path), "/proc/%u/statm", p->pid);
	FILE *f = p->state == PROCESS_RUNNING ? fopen(path, "re") : NULL;
	int n = f ? fscanf(f, "%*u %lu", &pages) : 0;
	if (f)
		fclose(f);
	if (n == 1)
		return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return d && has(d, MT_PROCESS_rss) && p->state == PROCESS_RUNNING ? d->last[MT_PROCESS_rss].value : 0;
}

/* Of this machine, where the program runs. */
static void take_machine(struct live *l)
{
	unsigned long long total = 0, available = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "MemTotal: %llu", &total);
		sscanf(line, "MemAvailable: %llu", &available);
	}
	if (f)
		fclose(f);
	if (total && available)
		set_gauge(l, "machine", (double)(total - available) * 1024, (double)total * 1024);
}

static void take_processes(struct live *l, const struct view *v, const struct samples *s)
{
	l->process_count = l->process_all = 0;
	l->running = false;
	l->rss = l->swap = 0;
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct process *p = reader_process(v->reader, id);
		if (!view_has(v, p))
			continue;
		l->running = l->running || p->state == PROCESS_RUNNING;
		l->process_all++;
		if (p->state != PROCESS_RUNNING && l->process_all > 1)
			continue;
		const struct sample_subject *d = s ? samples_of_process(s, p) : NULL;
		uint64_t rss = rss_now(p, d), swap = d && has(d, MT_PROCESS_swap) ? d->last[MT_PROCESS_swap].value : 0;
		l->rss += rss;
		l->swap += swap;
		if (l->process_count == MOST_PROCESSES)
			continue;
		struct shown_process *to = &l->processes[l->process_count++];
		if (to->pid != p->pid)
			*to = (struct shown_process){ .pid = p->pid };
		snprintf(to->name, sizeof(to->name), "%s", p->name);
		to->rss = rss;
		to->swap = swap;
		to->running = p->state == PROCESS_RUNNING;
	}
}

static void take_growth(struct live *l, const struct view *v, const struct course *c)
{
	const struct pace *p = course_main(c, v);
	double most = 0;
	*l->growth = '\0';
	l->steps = p ? p->total : 0;
	for (size_t k = 0; p && k < p->track_count; k++) {
		const struct step_track *t = &p->tracks[k];
		struct growth g = course_growth(p, t);
		double limit;
		char name[64];
		if (!growth_is_steady(&g) || g.certainty == CERTAINTY_LOW || g.bytes <= most)
			continue;
		struct forecast f = trend_forecast(c, v, p, t, &g, &limit);
		most = g.bytes;
		course_track_name(v, p->process, t->kind, t->device, name, sizeof(name));
		int n = snprintf(l->growth, sizeof(l->growth), "%s grows by %s a step, %s", name, BYTES((uint64_t)g.rate), growth_name(g.kind));
		char *when = f.ever ? forecast_text(f.x, f.low, f.high) : NULL;
		if (when && n > 0 && (size_t)n < sizeof(l->growth))
			snprintf(l->growth + n, sizeof(l->growth) - (size_t)n, "; memory ends at step %s", when);
		free(when);
	}
}

static void take_model(struct live *l, const struct view *v)
{
	l->heap = model_totals(v->model, MODEL_HEAP).live_bytes;
	l->map = model_totals(v->model, MODEL_MAP).live_bytes;
	l->pinned = model_totals(v->model, MODEL_PINNED).live_bytes;
	l->device = 0;
	for (unsigned i = 0; i < model_devices(v->model); i++) {
		const struct model_device *d = model_device(v->model, i);
		l->device += d->layer[LAYER_MEMORY].live_bytes;
		if (d->total_bytes && !gauge_of(l, d->name)->total)
			set_gauge(l, d->name, (double)d->layer[LAYER_MEMORY].live_bytes, (double)d->total_bytes);
		else if (d->total_bytes)
			set_gauge(l, d->name, fmax((double)d->layer[LAYER_MEMORY].live_bytes, 0), (double)d->total_bytes);
	}
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct model_process *m = model_process(v->model, id);
		for (size_t i = 0; i < l->process_count; i++) {
			struct shown_process *to = &l->processes[i];
			if (to->pid != m->process->pid)
				continue;
			to->heap = m->kind[MODEL_HEAP].live_bytes;
			to->map = m->kind[MODEL_MAP].live_bytes;
			to->pinned = m->kind[MODEL_PINNED].live_bytes;
			to->device = m->kind[MODEL_DEVICE].live_bytes;
		}
	}
	l->age_ns = model_end_ns(v->model);
	l->modelled = true;
}

static int read_events(struct live *l, struct view *v)
{
	struct model_query q = MODEL_QUERY_ALL;
	struct course *c = course_new();
	uint64_t start = clock_mono_ns();
	if (!c)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	course_attach(c, &q);
	int e = view_run(v, &q);
	if (e == 0)
		take_model(l, v);
	if (e == 0 && (e = course_run(c, v)) == 0)
		take_growth(l, v, c);
	course_free(c);
	uint64_t now = clock_mono_ns();
	l->next_model_ns = now + LAZINESS * (now - start);
	return e;
}

/* What is being written may be half there: the next look sees it whole. */
static int look(struct live *l, bool last)
{
	struct view v;
	struct samples *s = NULL;
	int e = view_open(&v, &l->read);
	if (e < 0)
		return e;
	if (samples_open(&s, v.reader) < 0)
		s = NULL;
	for (unsigned i = 0; s && i < samples_subjects(s); i++)
		take_subject(l, samples_subject(s, i));
	take_processes(l, &v, s);
	if (l->running)
		take_machine(l);
	samples_close(s);
	if (last || !l->running || clock_mono_ns() >= l->next_model_ns)
		e = read_events(l, &v);
	view_close(&v);
	return e;
}

/* ---- showing ------------------------------------------------------------------------------------------- */

static double percent_of(const struct gauge *g)
{
	return 100 * g->used / g->total;
}

static void print_screen(const struct live *l)
{
	printf("\033[H\033[2J%smemtrace live%s  %s   %s%s", output_begin(STYLE_HEAD), output_end(STYLE_HEAD), l->dir,
	       l->running ? "running" : "ended", l->modelled ? "" : "   reading");
	if (l->steps)
		printf("   %s steps", COUNT(l->steps));
	printf("\n\n");
	static const struct column columns[] = {
		{ "PROCESS", RIGHT, false }, { "", LEFT, true }, { "heap", RIGHT, false }, { "mapped", RIGHT, false },
		{ "pinned", RIGHT, false }, { "device", RIGHT, false }, { "resident", RIGHT, false }, { "swap", RIGHT, false },
	};
	struct table *t = table_new(columns, 8, 0);
	for (size_t i = 0; i < l->process_count; i++) {
		const struct shown_process *p = &l->processes[i];
		char *pid = output_format("%u", p->pid);
		table_row(t, (const char *[]){ pid, p->name, BYTES(p->heap), BYTES(p->map), BYTES(p->pinned), BYTES(p->device), BYTES(p->rss),
					       BYTES(p->swap) });
		free(pid);
	}
	table_print(t);
	if (l->process_all > l->process_count)
		printf("  and %zu that ended or are not shown\n", l->process_all - l->process_count);
	printf("\n");
	for (size_t i = 0; i < l->gauge_count; i++) {
		const struct gauge *g = &l->gauges[i];
		int full = (int)(percent_of(g) / 2.5 + 0.5);
		enum output_style style = percent_of(g) >= l->first ? STYLE_BAD : STYLE_NONE;
		printf("%s%-24.24s %10s of %10s %5.1f %%  ", output_begin(style), g->name, BYTES((uint64_t)g->used), BYTES((uint64_t)g->total),
		       percent_of(g));
		for (int k = 0; k < 40; k++)
			printf("%s", k < full ? "#" : ".");
		printf("%s\n", output_end(style));
	}
	if (*l->growth)
		printf("\n%sGROWTH%s  %s\n", output_begin(STYLE_BAD), output_end(STYLE_BAD), l->growth);
}

static void print_line(const struct live *l)
{
	printf("%.1f s  heap %s  mapped %s", (double)l->age_ns / 1e9, BYTES(l->heap), BYTES(l->map));
	if (l->pinned)
		printf("  pinned %s", BYTES(l->pinned));
	if (l->device)
		printf("  device %s", BYTES(l->device));
	printf("  resident %s  swap %s", BYTES(l->rss), BYTES(l->swap));
	for (size_t i = 0; i < l->gauge_count; i++)
		printf("  %s %.1f %%", l->gauges[i].name, percent_of(&l->gauges[i]));
	if (l->steps)
		printf("  %s steps", EXACT(l->steps));
	if (*l->growth)
		printf("  %s", l->growth);
	printf("%s\n", l->running ? "" : "  ended");
}

/* Once for each level, and again only after it was below. */
static void warn(struct live *l)
{
	for (size_t i = 0; i < l->gauge_count; i++) {
		struct gauge *g = &l->gauges[i];
		int level = percent_of(g) >= l->second ? 2 : percent_of(g) >= l->first ? 1 : 0;
		if (level > g->warned) {
			printf("%s%s: %s is %.1f %% full: %s of %s%s%s\n", output_begin(STYLE_BAD), level == 2 ? "ALERT" : "WARNING", g->name,
			       percent_of(g), BYTES((uint64_t)g->used), BYTES((uint64_t)g->total), output_end(STYLE_BAD),
			       output_is_terminal() ? "\a" : "");
			l->alerted = l->alerted || level == 2;
		}
		g->warned = level;
	}
}

static void show(struct live *l)
{
	if (output_is_terminal())
		print_screen(l);
	else if (l->modelled)
		print_line(l);
	warn(l);
	fflush(stdout);
}

/* ---- which trace --------------------------------------------------------------------------------------- */

/* The directory of the session that a process has mapped. */
static char *directory_of(const char *pid)
{
	char path[64], *line = NULL, *found = NULL;
	size_t room = 0;
	snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
	FILE *f = fopen(path, "re");
	while (f && !found && getline(&line, &room, f) > 0) {
		char *file = strchr(line, '/');
		size_t n = file ? strcspn(file, "\n") : 0;
		if (n > 8 && !strncmp(file + n - 8, "/session", 8)) {
			file[n - 8] = '\0';
			found = strdup(file);
		}
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

static int find_directory(struct live *l, const char *word, char **owned)
{
	struct stat st;
	*owned = NULL;
	l->dir = word;
	if (stat(word, &st) == 0 || !*word || word[strspn(word, "0123456789")])
		return 0;
	*owned = directory_of(word);
	l->dir = *owned;
	return *owned ? 0 : error_set(MT_ENOTRACE, word, ERROR_NO_OFFSET, "no such process, or it is not recorded");
}

static int parse_alert(struct live *l)
{
	char *end = NULL;
	l->first = FIRST_ALERT;
	l->second = SECOND_ALERT;
	if (!l->options->alert)
		return 0;
	double percent = strtod(l->options->alert, &end);
	if (end == l->options->alert || (*end && strcmp(end, "%")) || !(percent > 0 && percent <= 100))
		return error_set(MT_EUSAGE, "--alert", ERROR_NO_OFFSET, "%s: not like 90%%", l->options->alert);
	l->first = l->second = percent;
	return 0;
}

/* ---- command ------------------------------------------------------------------------------------------- */

static int watch(struct live *l)
{
	uint64_t every = l->options->every ? l->options->every : 1;
	int e, failures = 0;
	for (bool last = false;; ) {
		e = look(l, last);
		failures = e < 0 ? failures + 1 : 0;
		if (failures > 5)
			return e;
		if (e == 0)
			show(l);
		if (last || (e == 0 && !l->running))
			break;
		for (uint64_t i = 0; i < every * 10 && !stopped; i++)
			nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		last = stopped;
	}
	return l->alerted && l->options->alert ? 1 : 0;
}

int cmd_live(int argc, char **argv)
{
	struct live_options o = { 0 };
	struct live l = { .options = &o };
	char *owned = NULL;
	int e = options_parse(&spec, &o, argc, argv);
	if (e)
		return e > 0 ? 0 : e;
	e = o.common.ndirs == 1 ? parse_alert(&l) : error_set(MT_EUSAGE, "live", ERROR_NO_OFFSET, "one program at a time");
	if (e == 0)
		e = find_directory(&l, o.common.dirs[0], &owned);
	if (e == 0) {
		l.read = o.common;
		l.read.dirs = &l.dir;
		l.read.force = true;
		signal(SIGINT, stop);
		signal(SIGTERM, stop);
		e = watch(&l);
	}
	free(owned);
	options_free(&o.common);
	return e;
}
