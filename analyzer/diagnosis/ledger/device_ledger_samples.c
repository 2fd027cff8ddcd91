/*
 * What the driver says of a device's processes, every second or so, against what we know exactly at any time.
 *
 * The two are compared where nothing moves: a sample counts if the process's own memory was the same a little before
 * and after. What the driver charges beyond that is the process's context, which hardly changes; so the nearest such
 * sample will do. Where memory never rests a sample close to the ledger's moment must do.
 */
#include "analyzer/diagnosis/ledger/device_ledger.h"

#include "analyzer/util/vec.h"

#define BACK_NS     (120ull * 1000000000u)
#define AHEAD_NS    (5ull * 1000000000u)
#define CLOSE_NS    (1500ull * 1000000u) /* near enough to the moment that our own memory may be taken as it was then */
#define GUESS_BYTES (4ull << 30)         /* no context is larger */

/* The sample of a subject that is nearest to the ledger's moment, and the nearest while nothing moved. */
struct seen {
	const struct sample_subject *subject;
	const struct model_share *share; /* of a traced process */
	bool any, still, known;
	uint64_t ns, bytes;
	uint64_t still_ns, still_bytes, still_own;
	bool gone;
	uint64_t gone_ns;
	bool guessed; /* it is taken for a traced process */
};

struct look {
	struct device_ledger *ledger;
	const struct model *model;
	const struct samples *samples;
	struct seen *seen;
	size_t count, room;
	uint64_t left_ns; /* when the driver first lacked a traced process after the ledger's moment */
};

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* ---- what was live at a time ----------------------------------------------------------------------------- */

bool device_ledger_still_at(const struct model *m, const struct model_series *s, uint64_t ns, uint64_t *bytes)
{
	uint64_t width = model_timeline_width_ns(m), from = model_from_ns(m);
	uint64_t at = ns > from ? (ns - from) / width : 0;
	*bytes = 0;
	if (!s->count || at + 1 < s->first)
		return from == 0; /* before it had anything; what it had before --from is not known by time */
	if (ns < from)
		return false;
	if (at < s->first || at >= s->first + s->count) {
		*bytes = at < s->first ? 0 : s->buckets[s->count - 1].last;
		return false;
	}
	const struct model_bucket *b = &s->buckets[at - s->first];
	*bytes = b->last;
	for (uint64_t i = at ? at - 1 : 0; i <= at + 1; i++)
		if (i >= s->first && i < s->first + s->count &&
		    (s->buckets[i - s->first].low != *bytes || s->buckets[i - s->first].high != *bytes))
			return false;
	return at + 1 < s->first + s->count;
}

/* ---- gathering ------------------------------------------------------------------------------------------- */

/* Hosts by number: samples may have been opened with another reader of the same directories than the model. */
bool device_ledger_is_of(const struct model_device *d, const struct sample_subject *s)
{
	return (s->kind == MT_SUBJECT_DEVICE || s->kind == MT_SUBJECT_DEVICE_PROCESS) &&
	       s->host->index == d->host->index && s->backend == d->backend && *d->uuid && !strcmp(s->text, d->uuid);
}

static uint64_t left_at(const struct device_ledger *l, const struct samples *samples)
{
	uint64_t first = UINT64_MAX;
	for (unsigned i = 0;
	     (i = samples_find(samples, MT_SUBJECT_DEVICE_PROCESS, NULL, i)) < samples_subjects(samples); i++) {
		const struct sample_subject *d = samples_subject(samples, i);
		if (device_ledger_is_of(l->device, d) && d->traced && d->gone_ns > l->ns && d->gone_ns < first)
			first = d->gone_ns;
	}
	return first;
}

static struct seen *seen_of(struct look *k, const struct sample_subject *d)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->seen[i].subject == d)
			return &k->seen[i];
	if (vec_reserve(k->seen, k->room, k->count + 1))
		return NULL;
	k->seen[k->count].subject = d;
	return &k->seen[k->count++];
}

/* The share that a sample is about: of its process, or the device's sum for the device itself. */
static const struct model_series *line_of(const struct look *k, struct seen *s, uint64_t ns)
{
	if (s->subject->kind == MT_SUBJECT_DEVICE)
		return &k->ledger->device->timeline[LAYER_MEMORY];
	const struct process *p = s->subject->traced ? samples_process(k->samples, s->subject, ns) : NULL;
	s->share = p ? model_share(k->model, k->ledger->device->index, p->id) : s->share;
	return s->share ? &s->share->timeline[LAYER_MEMORY] : NULL;
}

static void note_still(struct look *k, struct seen *s, uint64_t ns, uint64_t bytes)
{
	uint64_t own;
	const struct model_series *line = line_of(k, s, ns);
	if (!line || !device_ledger_still_at(k->model, line, ns, &own))
		return;
	if (s->still && distance(s->still_ns, k->ledger->ns) <= distance(ns, k->ledger->ns))
		return;
	/* a process that is being torn down has memory in its trace that the driver has taken back */
	const uint64_t total = k->ledger->total;
	if (s->subject->kind == MT_SUBJECT_DEVICE &&
	    (ns >= k->left_ns || (total != MODEL_UNKNOWN && bytes + own > total)))
		return;
	s->still = true;
	s->still_ns = ns;
	s->still_bytes = bytes;
	s->still_own = own;
}

static int note_sample(void *arg, const struct sample *sample)
{
	struct look *k = arg;
	const bool device = sample->subject->kind == MT_SUBJECT_DEVICE;
	const unsigned field = device ? (unsigned)MT_DEVICE_free : (unsigned)MT_DEVICE_PROCESS_bytes;
	if (!device_ledger_is_of(k->ledger->device, sample->subject))
		return 0;
	struct seen *s = seen_of(k, sample->subject);
	if (!s)
		return -MT_EMEMORY;
	if (sample->gone) {
		s->gone = true;
		s->gone_ns = sample->ns;
		return 0;
	}
	if (!s->any || distance(sample->ns, k->ledger->ns) < distance(s->ns, k->ledger->ns)) {
		s->any = true;
		s->ns = sample->ns;
		s->known = sample->fields & 1ull << field;
		s->bytes = s->known ? sample->value[field] : 0;
	}
	if (sample->fields & 1ull << field)
		note_still(k, s, sample->ns, sample->value[field]);
	return 0;
}

/* ---- what follows ---------------------------------------------------------------------------------------- */

static struct device_ledger_process *row_of(struct device_ledger *l, const struct process *p)
{
	for (unsigned i = 0; i < l->process_count; i++)
		if (l->processes[i].process == p)
			return &l->processes[i];
	return NULL;
}

uint64_t device_ledger_context(uint64_t charged, uint64_t own)
{
	return charged >= own && charged - own < GUESS_BYTES ? charged - own : MODEL_UNKNOWN;
}

/* What the driver charges beyond what was allocated, what its own pool keeps of freed memory among it; MODEL_UNKNOWN if
 * there is no telling. `share` is the process's. */
static uint64_t context_of(const struct look *k, const struct seen *s, const struct model_share *share,
			   const struct device_ledger_process *row)
{
	uint64_t own = s->still_own, bytes = s->still_bytes;
	if (!s->still && s->known && device_ledger_still_at(k->model, &share->timeline[LAYER_MEMORY], s->ns, &own)) {
		bytes = s->bytes;
	} else if (!s->still) {
		if (!s->known || distance(s->ns, k->ledger->ns) >= CLOSE_NS)
			return MODEL_UNKNOWN;
		bytes = s->bytes;
		own = row->bytes;
	}
	return device_ledger_context(bytes, own);
}

static int charge_context(const struct look *k, struct device_ledger_process *row, uint64_t context)
{
	struct device_ledger *l = k->ledger;
	row->other += context;
	row->bytes += context;
	l->other_own += context;
	const struct model_share *share = model_share(k->model, l->device->index, row->process->id);
	const char *name = share && share->driver_pool ? "context+pool" : "context"; /* as narrow as the column */
	return context ? device_ledger_add_part(l, row->process, name, context, true) : 0;
}

static int add_context(struct look *k, const struct seen *s)
{
	struct device_ledger_process *row = row_of(k->ledger, s->share->process);
	uint64_t context = row ? context_of(k, s, s->share, row) : MODEL_UNKNOWN;
	return context == MODEL_UNKNOWN ? 0 : charge_context(k, row, context);
}

/* It is a process that the driver had at the ledger's moment and that we don't know better from its trace. */
static bool is_there(const struct look *k, const struct seen *s)
{
	return s->any && (!s->gone || s->gone_ns > k->ledger->ns) && !s->subject->traced;
}

static bool has_sample(const struct look *k, const struct process *p)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->seen[i].share && k->seen[i].share->process == p)
			return true;
	return false;
}

/* A process of the driver's that may be one of `row`: what its context would be, MODEL_UNKNOWN if it is another. */
static uint64_t guessed_context(const struct look *k, const struct seen *s, const struct device_ledger_process *row)
{
	const struct model_share *share =
		row->process ? model_share(k->model, k->ledger->device->index, row->process->id) : NULL;
	if (!share || row->guessed || has_sample(k, row->process) ||
	    s->subject->first_ns + 2000000000u < row->process->start_ns)
		return MODEL_UNKNOWN;
	return context_of(k, s, share, row);
}

static bool is_strange(const struct look *k, const struct seen *s, bool later)
{
	return s->subject->kind == MT_SUBJECT_DEVICE_PROCESS && !s->share && !s->guessed && is_there(k, s) &&
	       !s->subject->pid && (s->subject->first_ns > k->ledger->ns) == later;
}

/* Of the subjects whose pids mean nothing to us and the traced processes the two that are closest; MODEL_UNKNOWN = none
 * are. */
static uint64_t closest(struct look *k, bool later, struct seen **seen, struct device_ledger_process **row)
{
	uint64_t least = MODEL_UNKNOWN;
	for (size_t i = 0; i < k->count; i++)
		for (unsigned j = 0; j < k->ledger->process_count && is_strange(k, &k->seen[i], later); j++) {
			const uint64_t context = guessed_context(k, &k->seen[i], &k->ledger->processes[j]);
			if (context >= least)
				continue;
			least = context;
			*seen = &k->seen[i];
			*row = &k->ledger->processes[j];
		}
	return least;
}

/* Such a subject may be a traced process seen from outside its container: the one whose memory it exceeds by as little
 * as a context takes. So may a neighbour, by more; whoever is listed first, the closest are taken for each other. */
static int guess(struct look *k, bool later)
{
	struct seen *seen;
	struct device_ledger_process *row;
	uint64_t context;
	int e = 0;
	while (!e && (context = closest(k, later, &seen, &row)) != MODEL_UNKNOWN) {
		seen->guessed = row->guessed = true;
		e = charge_context(k, row, context);
	}
	return e;
}

static int add_neighbour(struct device_ledger *l, const struct seen *s, uint64_t first_ns)
{
	const struct sample_subject *d = s->subject;
	struct device_ledger_process *row =
		device_ledger_add_process(l, NULL, d->pid ? d->pid : d->other_pid, *d->text2 ? d->text2 : "?");
	if (!row)
		return error_memory();
	row->subject = d;
	row->bytes = s->bytes;
	row->since_ns = d->first_ns;
	row->before = d->first_ns <= first_ns;
	l->other_processes += s->bytes;
	return 0;
}

/*
 * Who was listed only afterwards may have come in between, if there was room. A traced process that is listed while it
 * dies, when /proc no longer says whose pid it is, looks the same.
 */
static bool had_room(const struct device_ledger *l, uint64_t bytes)
{
	return l->total == MODEL_UNKNOWN || l->free == MODEL_UNKNOWN ||
	       device_ledger_known(l) + bytes <= l->total - l->free + bytes / 8;
}

/* In a container the recorder takes the driver's number for one of ours only once that is known to use devices. */
static bool has_number_of_ours(const struct device_ledger *l, const struct sample_subject *d)
{
	for (size_t i = 0; i < l->process_count && !d->pid; i++)
		if (l->processes[i].process && l->processes[i].process->pid == d->other_pid)
			return true;
	return false;
}

static int take_process(struct look *k, struct seen *s, uint64_t first_ns)
{
	struct device_ledger *l = k->ledger;
	if (s->share)
		return add_context(k, s);
	if (s->guessed || !is_there(k, s))
		return 0;
	if ((s->subject->first_ns > l->ns || has_number_of_ours(l, s->subject)) && s->known && !had_room(l, s->bytes))
		return 0;
	if (!s->known) {
		l->other_processes = MODEL_UNKNOWN; /* somebody is there, with we don't know how much */
		return 0;
	}
	return l->other_processes == MODEL_UNKNOWN ? 0 : add_neighbour(l, s, first_ns);
}

/* The driver's free bytes, moved by what our own memory has changed since. */
static void take_free(struct device_ledger *l, const struct seen *s)
{
	uint64_t now = l->at->layer[LAYER_MEMORY];
	if (l->free != MODEL_UNKNOWN || !s->still)
		return;
	uint64_t all = s->still_bytes + s->still_own;
	l->free = all > now ? all - now : 0;
}

int device_ledger_take_samples(struct device_ledger *l, const struct model *m, const struct samples *samples)
{
	struct look k = { .ledger = l, .model = m, .samples = samples, .left_ns = left_at(l, samples) };
	uint64_t first_ns = UINT64_MAX;
	int e = samples_each(samples, l->ns > BACK_NS ? l->ns - BACK_NS : 0, l->then ? l->ns : l->ns + AHEAD_NS,
			     note_sample, &k);
	for (size_t i = 0; i < k.count && !e; i++)
		if (k.seen[i].subject->kind == MT_SUBJECT_DEVICE) {
			first_ns = k.seen[i].subject->first_ns;
			l->other_processes = 0;
			take_free(l, &k.seen[i]);
		}
	for (int later = 0; later < 2 && !e; later++) {
		e = guess(&k, later);
		for (size_t i = 0; i < k.count && !e; i++)
			if (k.seen[i].subject->kind == MT_SUBJECT_DEVICE_PROCESS &&
			    (k.seen[i].subject->first_ns > l->ns) == later)
				e = take_process(&k, &k.seen[i], first_ns);
	}
	free(k.seen);
	return e;
}
