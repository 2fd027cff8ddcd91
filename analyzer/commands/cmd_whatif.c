/* memtrace whatif: the requests of the run, replayed under other settings of the framework's caching allocator, or on
 * another card. */
#include "analyzer/commands/commands.h"
#include "analyzer/whatif/whatif_ahead.h"
#include "analyzer/whatif/whatif_change.h"
#include "analyzer/whatif/whatif_host.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/replay/pool/least.h"
#include "analyzer/replay/pool/replay.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CASES = 16 };

#define LEAK            "leak:"
#define MOST_LEAST_WORK 4e5 /* requests times cases: of more it is looked for of the run alone, or not at all */

struct whatif_options {
	struct options common;
	const char *conf, *without, *scale, *host;
	uint64_t device_bytes;
};

static const struct option_row rows[] = {
	{ "alloc-conf", 0, "CONF", OPTION_STRING, offsetof(struct whatif_options, conf),
	  "like PYTORCH_CUDA_ALLOC_CONF; without it, the usual", 0 },
	{ "device-memory", 0, "BYTES", OPTION_BYTES, offsetof(struct whatif_options, device_bytes),
	  "on a card with so much memory", 0 },
	{ "without", 0, "SITE", OPTION_STRING, offsetof(struct whatif_options, without),
	  "without blocks of FILE:LINE or of stacks that match a regex, the pools' Nth leak (leak:N), or copies", 0 },
	{ "scale", 0, "SITE=N", OPTION_STRING, offsetof(struct whatif_options, scale),
	  "with N times the bytes for these; batch=N: for what depends on the batch", 0 },
	{ "host", 0, "SETTING", OPTION_STRING, offsetof(struct whatif_options, host),
	  "the heap again: jemalloc, MALLOC_ARENA_MAX=2 ...; all", 0 },
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_JSON,
	OPTIONS_ROW_RULES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_whatif_spec = {
	"memtrace whatif [--alloc-conf CONF] [options] [DIR...]",
	"What another setting of PyTorch's allocator, another card, the run without some\n"
	"blocks, or another malloc would have done: recorded requests are made again.\n"
	"First as it was: where that does not agree with the run, nothing is said.",
	rows,
	0,
	"  memtrace whatif                            # the usual settings, ranked\n"
	"  memtrace whatif --alloc-conf expandable_segments:True\n"
	"  memtrace whatif --device-memory 40G\n"
	"  memtrace whatif --without train.py:73      # had that line kept nothing\n"
	"  memtrace whatif --scale batch=2            # at least so much, at most so much\n"
	"  memtrace whatif --host jemalloc            # malloc's memory with that one\n",
	"Read: docs/whatif.md",
};

/* ---- what is asked ----------------------------------------------------------------------------------------- */

struct question {
	struct replay_case cases[MOST_CASES];
	size_t count;
	struct whatif_change *changes[2];
	char *names[2];
	struct whatif_ahead *ahead; /* NULL: not needed */
	/* the smallest device that would have done, of each pool: for the run itself, then for each case; NULL: too
	 * much work */
	uint64_t *least;
	size_t least_count; /* of each pool */
	bool complete;      /* nothing is known to be missing of the trace, but for what was folded */
};

static uint64_t least_of(const struct question *q, const struct replay *r, const struct replay_track *t, size_t number)
{
	return number < q->least_count ? q->least[(size_t)(t - r->tracks) * q->least_count + number] : 0;
}

static struct replay_case *add_case(struct question *q, const char *name, const struct whatif_options *o)
{
	struct replay_case *c = &q->cases[q->count++];
	*c = (struct replay_case){ .name = name, .own = true, .device_bytes = o->device_bytes };
	return c;
}

static int set_conf(struct replay_case *c, const char *conf)
{
	struct cuda_pool_settings settings = CUDA_POOL_DEFAULTS;
	c->own = !conf;
	c->conf = conf;
	return conf ? replay_settings(&settings, conf, 0, true) : 0;
}

/* The run's own setting, or --alloc-conf, with other requests. */
static int add_change(struct question *q, size_t i, char *name, const struct whatif_options *o)
{
	struct replay_case *c = add_case(q, name, o);
	q->names[i] = name;
	c->factor = whatif_factor;
	c->factor_arg = q->changes[i];
	return name ? set_conf(c, o->conf) : error_memory();
}

/* "leak:2": of which blocks. */
static int without_leak(struct question *q, struct selection *v, const char *number)
{
	char *end;
	const unsigned long n = strtoul(number, &end, 10);
	uint32_t *stacks = NULL;
	size_t count = 0;
	if (end == number || *end)
		return error_set(MT_EUSAGE, "--without", ERROR_NO_OFFSET, LEAK "%s: it is like leak:1", number);
	int e = whatif_ahead_new(&q->ahead, v, false);
	if (!e)
		e = whatif_leak(q->ahead, n, &stacks, &count);
	if (!e)
		return whatif_without_stacks(&q->changes[0], v, stacks, count, false);
	free(stacks);
	return e;
}

static int without_copies(struct question *q, struct selection *v)
{
	uint32_t *calls = NULL;
	size_t count = 0;
	int e = whatif_ahead_new(&q->ahead, v, true);
	if (!e)
		e = whatif_copies(q->ahead, &calls, &count);
	if (!e)
		return whatif_without_stacks(&q->changes[0], v, calls, count, true);
	free(calls);
	return e;
}

static int leave_out(struct question *q, struct selection *v, const char *what)
{
	if (!strcmp(what, "copies"))
		return without_copies(q, v);
	if (!strncmp(what, LEAK, strlen(LEAK)))
		return without_leak(q, v, what + strlen(LEAK));
	return whatif_without(&q->changes[0], v, what);
}

static int ask_changes(struct question *q, struct selection *v, const struct whatif_options *o)
{
	int e = 0;
	if (o->without && o->scale)
		return error_set(MT_EUSAGE, "whatif", ERROR_NO_OFFSET, "--without and --scale: one of them");
	if (o->without) {
		e = leave_out(q, v, o->without);
		return e ? e : add_change(q, 0, output_format("without %s", o->without), o);
	}
	const bool batch = whatif_is_batch(o->scale);
	for (size_t i = 0; i < 1u + batch && !e; i++) {
		e = whatif_scale(&q->changes[i], v, o->scale, i == 0);
		if (!e)
			e = add_change(q, i,
				       output_format("%s%s", o->scale,
						     !batch ? ""
						     : i    ? ", at most"
							    : ", at least"),
				       o);
	}
	return e;
}

static int ask(struct question *q, struct selection *v, const struct whatif_options *o)
{
	if (o->without || o->scale)
		return ask_changes(q, v, o);
	int e = o->conf ? set_conf(add_case(q, o->conf, o), o->conf) : 0;
	if (!e && !o->conf && o->device_bytes)
		add_case(q, "as it was", o);
	for (size_t i = 0; !o->conf && !e && i < replay_usual_count; i++)
		e = set_conf(add_case(q, replay_usual[i], o), replay_usual[i]);
	return e;
}

static void question_fini(struct question *q)
{
	for (size_t i = 0; i < sizeof(q->names) / sizeof(q->names[0]); i++) {
		whatif_change_free(q->changes[i]);
		free(q->names[i]);
	}
	whatif_ahead_free(q->ahead);
	free(q->least);
}

/* A misspelt line is no line that has nothing. */
static int check_changes(const struct question *q, const struct replay *replay, const struct whatif_options *o)
{
	bool any = replay->count == 0 || !q->changes[0];
	for (size_t i = 0; i < replay->count; i++) {
		any |= replay->tracks[i].differs.request > 0 || replay->tracks[i].unmodelled;
		for (size_t k = 0; k < q->count; k++)
			any |= replay->tracks[i].outcomes[k].changed > 0;
	}
	return any ? 0
		   : error_set(MT_EUSAGE, o->without ? "--without" : "--scale", ERROR_NO_OFFSET,
			       "%s: no request of the pool was made there", o->without ? o->without : o->scale);
}

/* ---- showing ----------------------------------------------------------------------------------------------- */

static char *place_of(const struct selection *v, const struct process *p, const struct replay_moment *m)
{
	const struct stack_site site =
		stacks_site(v->stacks, stacks_of(v->stacks, p, m->node, m->node2), selection_flags(v->options));
	return site.frame ? frame_where(site.frame) : strdup("(no stack)");
}

/* What became of the requests. */
static char *end_text(const struct selection *v, const struct replay_track *t, const struct replay_outcome *o)
{
	if (o->refused.request) {
		char *place = place_of(v, t->process, &o->refused);
		char *text = output_format("no, at %s: %s %s", DURATION(o->refused.ns), BYTES(o->refused.bytes),
					   place ? place : "");
		free(place);
		return text;
	}
	if (o->granted.request && o->granted.request == t->requests)
		return strdup("yes, what failed last too");
	if (t->refused)
		return output_format("%s of %s that failed", COUNT(o->granted_count), COUNT(t->refused));
	return strdup("yes");
}

static void print_row(struct table *table, const struct selection *v, const struct replay_track *t, const char *name,
		      const struct replay_outcome *o, uint64_t least)
{
	char *end = end_text(v, t, o);
	table_row(table, (const char *[]){ name, BYTES(o->figures.most_reserved), BYTES(o->figures.most_used),
					   COUNT(o->figures.retries), least ? BYTES(least) : "?", end });
	free(end);
}

static const char *device_name(const struct replay_track *t, char *buffer, size_t size)
{
	snprintf(buffer, size, "%s:%u", t->device && t->device->backend == MT_BACKEND_ASCEND ? "npu" : "cuda",
		 t->device ? t->device->ordinal : 0);
	return buffer;
}

static const struct replay_outcome *sorted_by;

/* What gets furthest, then what reserves least. */
static int by_use(const void *a, const void *b)
{
	const struct replay_outcome *x = &sorted_by[*(const size_t *)a], *y = &sorted_by[*(const size_t *)b];
	const uint64_t p = x->refused.request ? x->refused.request : UINT64_MAX,
		       q = y->refused.request ? y->refused.request : UINT64_MAX;
	if (p != q)
		return p > q ? -1 : 1;
	return (x->figures.most_reserved > y->figures.most_reserved) -
	       (x->figures.most_reserved < y->figures.most_reserved);
}

/* Why blocks may be missing, or NULL. */
static const char *missing_text(const struct replay *r, const struct process *p, const struct question *q)
{
	return p->lost_events || p->skipped_slots ? "events were lost"
	       : !q->complete                     ? "part of the trace is missing"
	       : r->folded                        ? "the disk limit left events out of the trace"
						  : NULL;
}

/* Folding keeps what is live when a pool has most, so this holds even so; where a free is missing it may not. */
static void print_asked(const struct replay_track *t, const struct question *q)
{
	if (q->complete)
		output_fit_line(
			STYLE_NONE,
			t->unknown_sizes
				? output_format(
					  "  asked for at any one time: at most %s to %s; no setting can need less",
					  BYTES(t->most_requested_low), BYTES(t->most_requested))
				: output_format("  asked for at any one time: at most %s; no setting can need less",
						BYTES(t->most_requested)));
}

static void print_differs(const struct selection *v, const struct replay *r, const struct replay_track *t,
			  const struct question *q)
{
	const char *missing = missing_text(r, t->process, q);
	char *place = place_of(v, t->process, &t->differs);
	output_fit_line(
		STYLE_BAD,
		output_format("  not modelled: request %s of %s got another block than the replay says (%s at %s);",
			      COUNT(t->differs.request), COUNT(t->requests), place ? place : "",
			      DURATION(t->differs.ns)));
	output_fit_line(STYLE_BAD, output_format("  %s%sof other settings nothing can be said", missing ? missing : "",
						 missing ? ", so " : ""));
	print_asked(t, q);
	free(place);
}

/* Those that are something else than the run was; the best first. Returns how many. */
static size_t rank(const struct replay_track *t, const struct question *q, size_t order[MOST_CASES])
{
	size_t count = 0;
	for (size_t i = 0; i < q->count; i++) {
		struct cuda_pool_settings settings;
		if (q->cases[i].device_bytes || q->cases[i].factor || q->count == 1 ||
		    replay_case_settings(t, &q->cases[i], 0, &settings) ||
		    !replay_same_settings(&settings, &t->settings))
			order[count++] = i;
	}
	if (q->changes[0])
		return count; /* at least, at most */
	sorted_by = t->outcomes;
	qsort(order, count, sizeof(*order), by_use);
	return count;
}

/* Behind the recorded end, under the best of the cases. */
static void print_growth(const struct question *q, const struct replay_track *t, size_t best)
{
	const struct replay_outcome *o = &t->outcomes[best];
	const struct whatif_growth g = whatif_growth_of(q->ahead, t, o);
	const char *unit = g.stepped ? "step" : "second";
	if (!g.grows || o->refused.request)
		return;
	char *when = g.until.ever ? forecast_text(g.until.x, g.until.low, g.until.high) : NULL;
	char *line = output_format("%s: fits up to the recorded end; goes on to grow %s a %s%s%s%s%s",
				   q->cases[best].name, BYTES((uint64_t)g.rate), unit, when ? ", so until " : "",
				   when ? unit : "", when ? " " : "", when ? when : "");
	print("  ");
	output_wrapped(line ? line : "", 2, 4, output_width() - 2, NULL);
	free(line);
	free(when);
}

static void print_outcomes(const struct selection *v, const struct replay *r, const struct replay_track *t,
			   const struct question *q)
{
	static const struct column columns[] = {
		{ "setting", LEFT, false },  { "reserved", RIGHT, false }, { "in use", RIGHT, false },
		{ "retries", RIGHT, false }, { "needs", RIGHT, false },    { "does it fit?", LEFT, true },
	};
	size_t order[MOST_CASES], count = rank(t, q, order);
	struct table *table = table_new(columns, sizeof(columns) / sizeof(columns[0]), 2);
	print_row(table, v, t, "the run", &t->run, least_of(q, r, t, 0));
	for (size_t i = 0; i < count; i++) {
		print_row(table, v, t, q->cases[order[i]].name, &t->outcomes[order[i]],
			  least_of(q, r, t, order[i] + 1));
		if (t->outcomes_low)
			print_row(table, v, t, "  had they asked for less", &t->outcomes_low[order[i]], 0);
	}
	table_print(table);
	if (count && q->ahead && !q->changes[0])
		print_growth(q, t, order[0]);
}

/* What the answer rests on. */
static void print_changed(const struct replay_track *t, const struct question *q)
{
	const uint64_t least = t->outcomes[0].changed, most = t->outcomes[q->count - 1].changed;
	char *range =
		least < most ? output_format("%s to %s", COUNT(least), COUNT(most)) : output_format("%s", COUNT(most));
	output_fit_line(
		STYLE_NONE,
		output_format("  %s of %s requests are changed; all others are made as they were, in their order",
			      range ? range : "", COUNT(t->requests)));
	if (t->refused)
		output_fit_line(STYLE_NONE,
				output_format("  it is known up to the recorded end: what the program would have done "
					      "behind that nobody knows"));
	free(range);
}

/* Whose allocator it is taken for. */
static char *framework_text(const struct framework *f)
{
	if (*f->version)
		return output_format("the allocator of %s %s", framework_name(f->kind), f->version);
	return output_format("the allocator of %s, of a version that is not known: taken for a recent one",
			     framework_name(f->kind));
}

static void print_track(const struct selection *v, const struct replay *r, const struct replay_track *t,
			const struct question *q)
{
	char name[32];
	output_line(STYLE_HEAD, output_format("WHAT IF  %s of %u %s", device_name(t, name, sizeof(name)),
					      t->process->pid, t->process->name));
	if (t->unmodelled) {
		output_fit_line(STYLE_BAD, output_format("  not modelled: %s", t->unmodelled));
		return;
	}
	char *framework = framework_text(&t->framework);
	output_fit_line(STYLE_NONE, output_format("  %s", framework ? framework : ""));
	free(framework);
	if (t->differs.request) {
		print_differs(v, r, t, q);
		return;
	}
	output_fit_line(STYLE_NONE,
			output_format("  the run, replayed: each of %s requests got the block that it got then",
				      COUNT(t->requests)));
	if (t->outside)
		output_fit_line(STYLE_NONE,
				output_format("  beside the pool %s of the device were in use", BYTES(t->outside)));
	if (t->unknown_sizes)
		output_fit_line(
			STYLE_BAD,
			output_format(
				"  of %s requests only the block's size is known: each may have asked for up to %s less",
				COUNT(t->unknown_sizes), BYTES(t->most_unknown)));
	print_outcomes(v, r, t, q);
	if (q->changes[0])
		print_changed(t, q);
	else
		print_asked(t, q);
}

static json_t *json_moment(const struct selection *v, const struct replay_track *t, const struct replay_moment *m)
{
	if (!m->request)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "request", json_bytes(m->request));
	json_object_set_new(o, "bytes", json_bytes(m->bytes));
	json_object_set_new(o, "at_s", json_seconds(m->ns));
	json_object_set_new(o, "stack",
			    json_stack(v->stacks, stacks_of(v->stacks, t->process, m->node, m->node2),
				       selection_flags(v->options)));
	return o;
}

static json_t *json_finite(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *json_growth(const struct question *q, const struct replay_track *t, const struct replay_outcome *r)
{
	if (!q->ahead || q->changes[0] || r->refused.request)
		return json_null();
	const struct whatif_growth g = whatif_growth_of(q->ahead, t, r);
	if (!g.grows)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "by", json_text(g.stepped ? "step" : "second"));
	json_object_set_new(o, "bytes", json_finite(g.rate));
	json_object_set_new(o, "until", json_finite(g.until.ever ? g.until.x : INFINITY));
	json_object_set_new(o, "until_low", json_finite(g.until.ever ? g.until.low : INFINITY));
	json_object_set_new(o, "until_high", json_finite(g.until.ever ? g.until.high : INFINITY));
	return o;
}

static json_t *json_replayed(const struct selection *v, const struct replay_track *t, const struct replay_outcome *r)
{
	json_t *o = json_object();
	json_object_set_new(o, "most_reserved_bytes", json_bytes(r->figures.most_reserved));
	json_object_set_new(o, "most_used_bytes", json_bytes(r->figures.most_used));
	json_object_set_new(o, "most_requested_bytes", json_bytes(r->figures.most_requested));
	json_object_set_new(o, "retries", json_bytes(r->figures.retries));
	json_object_set_new(o, "refused", json_moment(v, t, &r->refused));
	return o;
}

/* Of the run itself (no name) nothing is refused that was granted then. */
static json_t *json_outcome(const struct selection *v, const struct question *q, const struct replay_track *t,
			    const char *name, const struct replay_outcome *r, uint64_t least)
{
	json_t *o = json_replayed(v, t, r);
	json_object_set_new(o, "least_device_bytes", least ? json_bytes(least) : json_null());
	if (!name) {
		json_object_del(o, "refused");
		return o;
	}
	json_object_set_new(o, "goes_on", json_growth(q, t, r));
	json_object_set_new(o, "setting", json_text(name));
	json_object_set_new(o, "changed", json_bytes(r->changed));
	json_object_set_new(o, "granted_count", json_bytes(r->granted_count));
	json_object_set_new(o, "granted", json_moment(v, t, &r->granted));
	return o;
}

static json_t *json_track(const struct selection *v, const struct replay *r, const struct replay_track *t,
			  const struct question *q)
{
	json_t *o = json_object(), *list = json_array();
	char name[32];
	json_object_set_new(o, "pid", json_integer(t->process->pid));
	json_object_set_new(o, "process", json_text(t->process->program));
	json_object_set_new(o, "device", json_text(device_name(t, name, sizeof(name))));
	json_object_set_new(o, "requests", json_bytes(t->requests));
	json_object_set_new(o, "requests_refused", json_bytes(t->refused));
	json_object_set_new(o, "outside_bytes", json_bytes(t->outside));
	json_object_set_new(o, "unknown_sizes", json_bytes(t->unknown_sizes));
	json_object_set_new(o, "most_unknown_bytes", json_bytes(t->most_unknown));
	json_object_set_new(o, "most_used_bytes", t->unmodelled ? json_null() : json_bytes(t->most_used));
	json_object_set_new(o, "most_requested_bytes", t->unmodelled ? json_null() : json_bytes(t->most_requested));
	json_object_set_new(o, "most_requested_low_bytes",
			    t->unmodelled ? json_null() : json_bytes(t->most_requested_low));
	json_object_set_new(o, "not_modelled", t->unmodelled ? json_text(t->unmodelled) : json_null());
	json_object_set_new(o, "framework", json_text(framework_name(t->framework.kind)));
	json_object_set_new(o, "framework_version",
			    *t->framework.version ? json_text(t->framework.version) : json_null());
	json_object_set_new(o, "differs", json_moment(v, t, &t->differs));
	const bool known = !t->differs.request && !t->unmodelled;
	json_object_set_new(o, "run", known ? json_outcome(v, q, t, NULL, &t->run, least_of(q, r, t, 0)) : json_null());
	for (size_t i = 0; i < q->count && known; i++) {
		json_t *setting = json_outcome(v, q, t, q->cases[i].name, &t->outcomes[i], least_of(q, r, t, i + 1));
		json_object_set_new(setting, "low",
				    t->outcomes_low ? json_replayed(v, t, &t->outcomes_low[i]) : json_null());
		json_array_append_new(list, setting);
	}
	json_object_set_new(o, "settings", list);
	return o;
}

/* ---- command ----------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct selection *v, const struct replay_track *t)
{
	char name[32];
	const char *device = v->options->device;
	return selection_has(v, t->process) && (!device || !strcmp(device, device_name(t, name, sizeof(name))) ||
						(t->device && !strcmp(device, t->device->uuid)));
}

/* The run itself first, then the smallest devices, then the cases. */
static int find_least(struct replay *replay, const struct reader *r, const struct replay_query *query,
		      struct question *q)
{
	struct replay_case cases[MOST_CASES + 1] = { { .own = true } };
	struct replay_query all = *query;
	uint64_t requests = 0;
	for (size_t i = 0; i < replay->count; i++)
		requests += replay->tracks[i].requests;
	size_t count = (double)requests * (double)(q->count + 1) <= MOST_LEAST_WORK ? q->count + 1
		       : (double)requests <= MOST_LEAST_WORK                        ? 1
										    : 0;
	memcpy(cases + 1, q->cases, q->count * sizeof(*cases));
	all.cases = cases;
	q->least = calloc(count * replay->count + 1, sizeof(*q->least));
	q->least_count = q->least ? count : 0;
	return !q->least ? error_memory() : count ? replay_least(replay, r, &all, count, q->least) : 0;
}

/* A run in which something failed may have gone on. */
static int look_ahead(const struct replay *replay, struct selection *v, struct question *q)
{
	bool any = false;
	for (size_t i = 0; i < replay->count; i++)
		any |= replay->tracks[i].refused && !replay->tracks[i].differs.request;
	return any && !q->ahead && !q->changes[0] ? whatif_ahead_new(&q->ahead, v, false) : 0;
}

static void show_progress(double done, uint64_t events)
{
	output_progress_of("replaying", events, "events", done);
}

static int answer(struct replay *replay, struct reader *r, struct selection *v, struct question *q)
{
	struct replay_query query = { .no_files = v->options->no_debug_files, .on_progress = output_progress };
	int e = replay_run(replay, r, &query);
	query.on_progress = show_progress;
	query.cases = q->cases;
	query.case_count = q->count;
	if (!e)
		e = find_least(replay, r, &query, q);
	if (!e)
		e = replay_more(replay, r, &query);
	return e ? e : look_ahead(replay, v, q);
}

static int whatif(struct selection *v)
{
	const struct whatif_options *o = (const struct whatif_options *)v->options;
	if (o->host && (o->conf || o->without || o->scale || o->device_bytes))
		return error_set(MT_EUSAGE, "--host", ERROR_NO_OFFSET, "is of the heap: one question at a time");
	if (o->host)
		return whatif_host(v, o->host);
	struct question q = { .count = 0 };
	struct replay replay = { 0 };
	struct reader *r = NULL; /* whose processes the replay names */
	int e = selection_names(v);
	if (!e)
		e = ask(&q, v, o);
	if (!e)
		e = reader_open_again(&r, v->reader);
	if (!e)
		e = answer(&replay, r, v, &q);
	output_progress_end();
	if (!e)
		e = check_changes(&q, &replay, o);
	q.complete = reader_complete(v->reader) && (!r || reader_complete(r));
	if (!e && !v->options->json && !q.complete)
		output_fit_line(STYLE_BAD, strdup("INCOMPLETE: what is left is replayed, see memtrace check"));
	json_t *list = json_array();
	size_t shown = 0;
	for (size_t i = 0; i < replay.count && !e; i++) {
		if (!is_wanted(v, &replay.tracks[i]))
			continue;
		if (shown++ && !v->options->json)
			print("\n");
		if (v->options->json)
			json_array_append_new(list, json_track(v, &replay, &replay.tracks[i], &q));
		else
			print_track(v, &replay, &replay.tracks[i], &q);
	}
	if (!e && !shown && !v->options->json)
		print("no blocks of PyTorch's caching allocator in %s\nmemtrace whatif --host replays its heap on other mallocs\n",
		      replay.folded || !q.complete ? "what is left of this trace" : "this trace");
	if (!e && v->options->json) {
		json_t *root = json_object();
		json_object_set_new(root, "version", json_integer(1));
		json_object_set_new(root, "complete", json_boolean(q.complete));
		json_object_set_new(root, "folded", json_boolean(replay.folded));
		json_object_set(root, "pools", list);
		e = json_print(root);
	}
	json_decref(list);
	replay_fini(&replay);
	reader_close(r);
	question_fini(&q);
	return e;
}

int cmd_whatif(int argc, char **argv)
{
	struct whatif_options o = { 0 };
	return selection_command(&cmd_whatif_spec, &o, argc, argv, whatif);
}
