#include "analyzer/push/push.h"

#include "analyzer/model/selection/main_process.h"
#include "analyzer/model/selection/owners.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/push/push_profile.h"
#include "analyzer/push/push_queue.h"
#include "analyzer/reader/tick_clock.h"
#include "analyzer/symbols/symbol_file.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "analyzer/util/recorded_clock.h"
#include "analyzer/util/system/cgroup.h"
#include "analyzer/util/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_NS 1000000000ull
#define WAIT_NS 100000000 /* for being stopped */
#define RETRIES 20        /* a trace that just begins has no process yet */
#define ALMOST  0.95      /* of a control group: it will soon be full ... */
#define AHEAD   3         /* ... or so many looks later, if it goes on as it did between the last two ... */
#define FAR     0.90      /* ... and below that it is not any more */

/* What a process has, by the model's number of the site. */
struct ledger {
	struct push_site *sites;
	size_t count, room;
	bool told; /* its last profile was made */
};

struct follow {
	const struct push *push;
	const char *dir;
	struct reader *reader;
	struct cgroups *groups;
	struct stacks *stacks;
	struct push_queue queue;
	struct ledger *ledgers; /* by process */
	size_t ledger_room;
	bool begun;               /* all that was there at the beginning is read */
	uint64_t since_ns;        /* CLOCK_MONOTONIC: when the last profiles were made */
	double group_used;        /* bytes of the control group, at the last look */
	bool almost_full, failed; /* failed: no memory */
};

/* ---- what changes ---------------------------------------------------------------------------------------- */

static struct push_site *site_of(struct follow *f, const struct model_change *c)
{
	if (vec_reserve(f->ledgers, f->ledger_room, c->process->id + 1ul))
		return NULL;
	struct ledger *l = &f->ledgers[c->process->id];
	if (vec_reserve(l->sites, l->room, c->site + 1ul))
		return NULL;
	struct push_site *s = &l->sites[c->site];
	l->count = c->site >= l->count ? c->site + 1ul : l->count;
	if (!s->known) {
		const struct model_site key = model_site_key(c->model, c->process->id, c->site);
		*s = (struct push_site){
			.node = c->node, .node2 = c->node2, .device = c->device, .kind = c->kind, .known = true
		};
		s->weight = key.sampled == MODEL_UNSAMPLED ? 0 : owners_weight(f->reader, &key);
	}
	return s;
}

static void on_change(void *arg, const struct model_change *c)
{
	struct follow *f = arg;
	struct push_site *s = c->site == UINT32_MAX ? NULL : site_of(f, c);
	f->failed = f->failed || (!s && c->site != UINT32_MAX);
	if (!s)
		return;
	s->live_bytes += (uint64_t)c->bytes;
	s->live_blocks += (uint64_t)c->blocks;
	if (c->bytes >= 0 && c->blocks > 0) {
		s->made_bytes += (uint64_t)c->bytes;
		s->made_blocks += (uint64_t)c->blocks;
	}
}

/* ---- profiles -------------------------------------------------------------------------------------------- */

/* When it is, for a process that runs; else when it ended. */
static uint64_t moment_of(const struct follow *f, const struct process *p)
{
	return p->state == PROCESS_RUNNING ? recorded_clock_real_ns() : reader_origin_real_ns(f->reader) + p->end_ns;
}

static int make_one(struct follow *f, const struct model *m, const struct process *p, enum model_kind kind,
		    uint32_t device, bool made)
{
	const struct ledger *l = &f->ledgers[p->id];
	const uint64_t since = clock_mono_ns() - f->since_ns;
	const struct push_profile profile = {
		.stacks = f->stacks,
		.process = p,
		.sites = l->sites,
		.count = l->count,
		.kind = kind,
		.device = device,
		.made = made,
		.head = { .first = made ? ALLOCATED_BLOCKS : LIVE_BLOCKS,
			  .last = made ? ALLOCATED_BYTES : LIVE_BYTES,
			  .real_ns = moment_of(f, p),
			  .duration_ns = !made      ? 0
					 : f->begun ? since
						    : p->end_ns - p->start_ns,
			  .period = p->stacks == MT_STACKS_SAMPLE || process_is_picked(p) ? p->sample_bytes : 1,
			  .comments = { reader_complete(f->reader) ? NULL : "memtrace: the trace is incomplete" } },
		.most_samples = f->push->most_samples,
		.most_bytes = f->push->most_bytes,
	};
	char *bytes;
	size_t count;
	const char *name = device == MODEL_NO_DEVICE ? "host" : model_device(m, device)->name;
	int e = push_profile_make(&profile, &bytes, &count);
	if (e == 0 && bytes)
		e = push_queue_add(&f->queue, p, kind_name(kind), name, bytes, count);
	free(bytes);
	return e;
}

static int make_kinds(struct follow *f, const struct model *m, const struct process *p, uint32_t device)
{
	const bool host = device == MODEL_NO_DEVICE;
	int e = 0;
	for (unsigned k = host ? 0 : MODEL_HOST_KINDS; k < (host ? MODEL_HOST_KINDS : MODEL_KINDS) && e == 0; k++) {
		e = make_one(f, m, p, (enum model_kind)k, device, false);
		if (e == 0)
			e = make_one(f, m, p, (enum model_kind)k, device, true);
	}
	return e;
}

static int make_process(struct follow *f, const struct model *m, const struct process *p)
{
	struct ledger *l = &f->ledgers[p->id];
	int e = make_kinds(f, m, p, MODEL_NO_DEVICE);
	for (unsigned d = 0; d < model_devices(m) && e == 0; d++)
		e = make_kinds(f, m, p, d);
	for (size_t i = 0; i < l->count; i++)
		l->sites[i].made_bytes = l->sites[i].made_blocks = 0;
	if (p->state != PROCESS_RUNNING) {
		l->told = true;
		free(l->sites);
		l->sites = NULL;
		l->count = l->room = 0;
	}
	return e;
}

static bool is_wanted(const struct follow *f, unsigned id)
{
	return id < f->ledger_room && !f->ledgers[id].told &&
	       reader_find(f->reader, f->push->options->process, id) == id;
}

static int make_all(struct follow *f, const struct model *m)
{
	const unsigned count = reader_processes(f->reader);
	int e = f->failed ? error_memory() : 0;
	for (unsigned id = 0; id < count && e == 0; id++)
		if (is_wanted(f, id) && (count == 1 || !process_was_short(reader_process(f->reader, id))))
			e = make_process(f, m, reader_process(f->reader, id));
	if (e == 0)
		e = push_queue_flush(&f->queue);
	f->since_ns = clock_mono_ns();
	return e;
}

/* ---- when ------------------------------------------------------------------------------------------------ */

/* What the kernel can give up at once is not counted. */
static uint64_t file_bytes(const struct cgroups *groups, const char *group, unsigned version)
{
	char text[16384], *at = NULL;
	unsigned long long bytes = 0;
	if (cgroup_read_file(groups, group, "memory.stat", text, sizeof(text)))
		at = strstr(text, version == 2 ? "\ninactive_file " : "\ntotal_inactive_file ");
	return at && sscanf(at, " %*s %llu", &bytes) == 1 ? bytes : 0;
}

/* Of the control group that ends first, read now: samples of it are ten seconds apart. *total 0: there is no limit. */
static double group_used(const struct follow *f, double *total)
{
	char own[CGROUP_PATH], limiting[CGROUP_PATH];
	uint64_t used = 0, limit = UINT64_MAX;
	*total = 0;
	for (unsigned id = 0; id < reader_processes(f->reader); id++) {
		const struct process *p = reader_process(f->reader, id);
		const unsigned version = p->state == PROCESS_RUNNING ? cgroups_of(f->groups, p->pid, own, limiting) : 0;
		if (!version)
			continue;
		cgroup_read_number(f->groups, limiting, version == 2 ? "memory.max" : "memory.limit_in_bytes", &limit);
		if (limit >= UINT64_MAX / 4 ||
		    !cgroup_read_number(f->groups, limiting, version == 2 ? "memory.current" : "memory.usage_in_bytes",
					&used))
			return 0;
		*total = (double)limit;
		const uint64_t files = file_bytes(f->groups, limiting, version);
		return used > files ? (double)(used - files) : 0;
	}
	return 0;
}

/* True once, until there is room again. */
static bool gets_full(struct follow *f)
{
	double total, before = f->group_used, used = f->group_used = group_used(f, &total);
	const double soon = used + AHEAD * (before > 0 && used > before ? used - before : 0);
	const bool near = total > 0 && (used >= ALMOST * total || soon >= total), first = near && !f->almost_full;
	f->almost_full = near || (f->almost_full && used >= FAR * total);
	return first;
}

/* What was before nobody has followed: what had ended is left out, and of what runs that was allocated. A program that
 * began only now is told from its start. */
static void begin(struct follow *f)
{
	uint64_t told_ns = 0;
	for (unsigned id = 0; id < reader_processes(f->reader) && id < f->ledger_room; id++) {
		const struct process *p = reader_process(f->reader, id);
		struct ledger *l = &f->ledgers[id];
		const uint64_t age = reader_duration_ns(f->reader) - p->start_ns;
		l->told = l->told || p->state != PROCESS_RUNNING;
		told_ns = !l->told && age <= f->push->every_ns && age > told_ns ? age : told_ns;
		for (size_t i = 0; i < l->count && age > f->push->every_ns; i++)
			l->sites[i].made_bytes = l->sites[i].made_blocks = 0;
	}
	f->since_ns = clock_mono_ns() - told_ns;
	f->begun = true;
}

static bool pause_is_over(const struct follow *f)
{
	for (uint64_t ns = 0; ns < LOOK_NS && !*f->push->stopped; ns += WAIT_NS)
		nanosleep(&(struct timespec){ .tv_nsec = WAIT_NS }, NULL);
	return !*f->push->stopped;
}

enum { STOP = 0, GO_ON = 1 };

static int on_idle(void *arg, const struct model *m)
{
	struct follow *f = arg;
	const bool ended = reader_ended(f->reader), full = gets_full(f);
	int e = 0;
	if (!f->begun && !ended)
		begin(f);
	if (ended || full || clock_mono_ns() - f->since_ns >= f->push->every_ns)
		e = make_all(f, m);
	if (e < 0 || ended)
		return e;
	if (!pause_is_over(f)) {
		e = make_all(f, m);
		return e < 0 ? e : STOP;
	}
	e = reader_refresh(f->reader);
	return e < 0 ? e : GO_ON;
}

/* ---- following ------------------------------------------------------------------------------------------- */

static int open_all(struct follow *f)
{
	int e = reader_open(&f->reader, &f->dir, 1, READER_FORCE | READER_FOLLOW);
	if (e == 0 && !reader_processes(f->reader))
		e = error_set(MT_ENOTRACE, f->dir, ERROR_NO_OFFSET, "no process yet");
	if (e == 0 && reader_find(f->reader, f->push->options->process, 0) == reader_processes(f->reader))
		e = reader_no_such_process(f->reader, f->push->options->process);
	f->stacks = stacks_new();
	if (e == 0 && f->stacks)
		symbol_file_read(stacks_symbols(f->stacks), f->dir); /* what is damaged there is only missing */
	f->groups = cgroups_new();
	return e ? e : f->stacks && f->groups ? 0 : error_memory();
}

static int read_all(struct follow *f)
{
	struct model *m = NULL;
	struct model_query q = MODEL_QUERY_ALL;
	q.changes_only = true;
	q.on_change = on_change;
	q.arg = f;
	q.on_idle = on_idle;
	q.idle_arg = f;
	int e = model_run(&m, f->reader, &q);
	model_free(m);
	return e;
}

static void close_all(struct follow *f)
{
	for (size_t i = 0; i < f->ledger_room; i++)
		free(f->ledgers[i].sites);
	free(f->ledgers);
	cgroups_free(f->groups);
	stacks_free(f->stacks);
	reader_close(f->reader);
	*f = (struct follow){ .push = f->push, .dir = f->dir, .queue = f->queue };
}

/* What is being written may be half there: a little later it is whole. */
int push_follow(const struct push *push, const char *dir)
{
	struct follow f = { .push = push, .dir = dir };
	int e = push_queue_open(&f.queue, push, dir), failures = 0;
	bool again = e == 0;
	while (again) {
		e = open_all(&f);
		if (e == 0)
			e = read_all(&f);
		close_all(&f);
		again = e < 0 && e != -MT_EUSAGE && ++failures <= RETRIES && !*push->stopped;
		if (again)
			nanosleep(&(struct timespec){ .tv_nsec = 3 * WAIT_NS }, NULL);
	}
	push_queue_close(&f.queue);
	return e;
}
