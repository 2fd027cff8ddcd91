/* One pass over the samples for extremes, for who was killed, and for the ledger's moment. */
#include "analyzer/diagnosis/ledger/host_memory_internal.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

#define EARLY_NS (3 * SECOND) /* a victim may take so long to end after it was counted */
#define LATE_NS  (5 * SECOND) /* ... and be seen to have ended so long before a sample shows the count */
#define AS_FULL  64           /* moments that differ by less than 1/64 are equally full */

enum { MOST_MOMENTS = 8192 }; /* then each second one goes */

/* ---- the pass over all samples --------------------------------------------------------------------------- */

/* Per subject: what it adds to what is in memory right now, and the image it is of. */
struct share {
	bool lives;
	uint64_t bytes, shmem; /* shmem: a part of them */
	const struct process *image;
	uint64_t image_until;
};

struct pass {
	struct host_memory *s;
	struct share *shares;
	uint64_t sum, shmem; /* of the shares of traced processes of our host */
	unsigned alive;      /* of them */
	bool over;           /* the machine was looked at when all had ended */
	uint64_t group;      /* what the cgroup with a limit has of that kind; 0 = there is none */
	uint64_t looked;     /* of the shares what this sample looked at closely */
	uint64_t most, most_ns;
	uint64_t best, best_ns, best_looked; /* of the moments that are as full the one that is known best */
	int error;
};

static bool has(const struct sample *x, unsigned field)
{
	return x->known >> field & 1;
}

/* What it takes for itself: with shared pages divided where that is known. */
static uint64_t own_shmem(const struct sample *x)
{
	uint64_t shmem = x->value[MT_PROCESS_rss_shmem];
	return has(x, MT_PROCESS_pss_shmem) ? lower(shmem, x->value[MT_PROCESS_pss_shmem]) : shmem;
}

static uint64_t own_share(const struct sample *x)
{
	uint64_t anon = x->value[MT_PROCESS_rss_anon], swap = x->value[MT_PROCESS_swap];
	if (has(x, MT_PROCESS_pss_anon))
		anon = host_share(anon, x->value[MT_PROCESS_pss_anon], x->value[MT_PROCESS_anonymous]);
	return anon + own_shmem(x) + swap;
}

static const struct process *image_at(struct pass *p, const struct sample *x)
{
	struct share *sh = &p->shares[x->subject->index];
	if (sh->image && x->ns < sh->image_until)
		return sh->image;
	sh->image = samples_process(p->s->samples, x->subject, x->ns);
	sh->image_until = sh->image && sh->image->exit_kind == MT_EXIT_EXEC ? sh->image->end_ns : UINT64_MAX;
	return sh->image;
}

static void raise(uint64_t *most, uint64_t *at, uint64_t value, uint64_t ns)
{
	if (*most == HOST_KILL_UNKNOWN || value > *most) {
		*most = value;
		if (at)
			*at = ns;
	}
}

static void take_process(struct pass *p, const struct sample *x)
{
	struct share *sh = &p->shares[x->subject->index];
	const struct share before = *sh;
	if (!x->subject->traced)
		return;
	sh->bytes = x->gone ? 0 : own_share(x);
	sh->shmem = x->gone ? 0 : own_shmem(x);
	if (x->subject->host == p->s->host)
		p->alive += (sh->lives = !x->gone) - before.lives;
	p->looked += x->fields >> MT_PROCESS_pss_anon & 1 ? sh->bytes : 0;
	if (x->subject->host == p->s->host) {
		p->sum += sh->bytes - before.bytes;
		p->shmem += sh->shmem - before.shmem;
	}
	const struct process *image = x->gone ? NULL : image_at(p, x);
	if (!image)
		return;
	struct host_process *out = &p->s->processes[image->id];
	uint64_t rss = x->value[MT_PROCESS_rss], peak = x->value[MT_PROCESS_rss_peak];
	raise(&out->rss_peak, &out->rss_peak_ns, peak > rss ? peak : rss, x->ns);
	raise(&out->rss_seen, NULL, rss, x->ns);
	raise(&out->swap_peak, NULL, x->value[MT_PROCESS_swap], x->ns);
	if (x->fields >> MT_PROCESS_private_dirty & 1) {
		if (out->dirty_first == HOST_KILL_UNKNOWN)
			out->dirty_first = x->value[MT_PROCESS_private_dirty];
		out->dirty_last = x->value[MT_PROCESS_private_dirty];
	}
}

/* Of two that follow each other the higher one stays. */
static void halve_moments(struct host_memory *s)
{
	for (size_t i = 0; i < s->moment_count / 2; i++)
		s->moments[i] = s->moments[2 * i + (s->moments[2 * i + 1].bytes > s->moments[2 * i].bytes)];
	s->moment_count /= 2;
	s->moment_each *= 2;
	s->moment_more = 0;
}

static void note_moment(struct pass *p, uint64_t ns, uint64_t bytes)
{
	struct host_memory *s = p->s;
	struct host_moment *last = s->moment_count ? &s->moments[s->moment_count - 1] : NULL;
	if (last && ++s->moment_more < s->moment_each) {
		if (bytes > last->bytes)
			*last = (struct host_moment){ ns, bytes };
		return;
	}
	if (s->moment_count == MOST_MOMENTS)
		halve_moments(s);
	p->error = vec_reserve(s->moments, s->moment_room, s->moment_count + 1);
	if (!p->error)
		s->moments[s->moment_count++] = (struct host_moment){ ns, bytes };
	s->moment_more = 0;
}

/* It comes last in each sample. */
static void take_machine(struct pass *p, const struct sample *x)
{
	struct host_facts *f = &p->s->facts;
	if (x->subject->host != p->s->host || x->gone)
		return;
	uint64_t swap = x->value[MT_MACHINE_swap_total] - x->value[MT_MACHINE_swap_free];
	if (!f->sampled)
		f->swap_start = swap;
	f->sampled = true;
	f->memory = x->value[MT_MACHINE_total];
	f->swap_total = x->value[MT_MACHINE_swap_total];
	raise(&f->swap_peak, &f->swap_peak_ns, swap, x->ns);
	const uint64_t files = x->value[MT_MACHINE_shm_used];
	if (f->shm_start == HOST_KILL_UNKNOWN)
		f->shm_start = files;
	if (!p->over)
		f->shm_left = less(files, f->shm_start); /* who lives then is asked later */
	p->over = p->alive == 0 && p->most;
	raise(&f->shm_peak, &f->shm_peak_ns, files, x->ns);
	f->shm_total = x->value[MT_MACHINE_shm_total];
	if (has(x, MT_MACHINE_available) && x->value[MT_MACHINE_available] < f->available_min) {
		f->available_min = x->value[MT_MACHINE_available];
		f->available_min_ns = x->ns;
	}
	/* shares are estimates: there can't be more than there is. Files that came to /dev/shm meanwhile are taken for
	 * the run's */
	uint64_t there = x->value[MT_MACHINE_anon] + x->value[MT_MACHINE_shmem] + swap;
	uint64_t now = lower(p->sum + less(f->shm_left, p->shmem), there);
	if (p->alive) {
		f->traced_end = now;
		f->traced_end_ns = x->ns;
	}
	if (p->group)
		now = p->group;
	bool fuller = now > p->best + p->best / AS_FULL;
	if (fuller || (now >= p->most - p->most / AS_FULL && p->looked > p->best_looked)) {
		p->best = now;
		p->best_ns = x->ns;
		p->best_looked = p->looked;
	}
	raise(&p->most, &p->most_ns, now, x->ns);
	note_moment(p, x->ns, now);
	p->group = p->looked = 0;
}

static void take_worst(struct worst *w, const struct sample *x)
{
	uint64_t both = 1ull << MT_CGROUP_current | 1ull << MT_CGROUP_file, current = x->value[MT_CGROUP_current],
		 file = x->value[MT_CGROUP_file];
	if ((x->fields & both) != both || current < file || (w->ns && current - file <= w->bytes))
		return;
	w->bytes = current - file;
	w->ns = x->ns;
	w->file = file;
}

/* Version 2 counts requests that failed for the limit, version 1 how often it was hit. */
static void take_kills_at_limit(struct worst *w, const struct sample *x)
{
	uint64_t hits = x->value[x->known >> MT_CGROUP_ooms & 1 ? MT_CGROUP_ooms : MT_CGROUP_limit_hits],
		 kills = x->value[MT_CGROUP_oom_kills];
	w->killed |= w->looked && kills > w->kills && hits > w->hits;
	w->hits = hits;
	w->kills = kills;
	w->looked = true;
}

/* The kernel counts each page of a cgroup once. */
static void take_cgroup(struct pass *p, const struct sample *x)
{
	struct worst *w = &p->s->worst[x->subject->index];
	take_worst(w, x);
	take_kills_at_limit(w, x);
	if (has(x, MT_CGROUP_shmem))
		p->shares[x->subject->index].shmem = x->value[MT_CGROUP_shmem];
	if (x->gone || x->subject->host != p->s->host || !x->value[MT_CGROUP_limit])
		return;
	p->group = x->value[MT_CGROUP_anon] + x->value[MT_CGROUP_shmem] + x->value[MT_CGROUP_swap];
}

static int note_sample(void *arg, const struct sample *x)
{
	if (x->subject->kind == MT_SUBJECT_PROCESS)
		take_process(arg, x);
	else if (x->subject->kind == MT_SUBJECT_CGROUP)
		take_cgroup(arg, x);
	else if (x->subject->kind == MT_SUBJECT_MACHINE)
		take_machine(arg, x);
	return ((struct pass *)arg)->error;
}

/* ---- who was killed --------------------------------------------------------------------------------------- */

struct kills {
	uint64_t from_ns, to_ns, first, last;
	bool any;
	unsigned subject, field;
};

/* The counter's value before the window, and the last within. */
static int take_kills(void *arg, const struct sample *x)
{
	struct kills *k = arg;
	if (x->subject->index != k->subject || !(x->fields >> k->field & 1))
		return 0;
	uint64_t value = x->value[k->field];
	if (!k->any || x->ns <= k->from_ns)
		k->first = value;
	k->last = value;
	k->any = true;
	return 0;
}

static int kills_between(const struct host_memory *s, unsigned subject, unsigned field, uint64_t from_ns,
			 uint64_t to_ns, uint64_t *out)
{
	struct kills k = { .subject = subject, .field = field, .from_ns = from_ns, .to_ns = to_ns };
	int e = samples_each(s->samples, from_ns > 60 * SECOND ? from_ns - 60 * SECOND : 0, to_ns, take_kills, &k);
	*out = k.any && k.last > k.first ? k.last - k.first : 0;
	return e;
}

static bool may_be_killed(const struct process *p)
{
	return p->state == PROCESS_GONE || (p->exit_kind == MT_EXIT_SIGNAL && p->exit_code == 9);
}

static const struct sample_subject *cgroup_of(const struct host_memory *s, const struct sample_subject *process)
{
	for (unsigned i = 0;
	     (i = samples_find(s->samples, MT_SUBJECT_CGROUP, process->host, i)) < samples_subjects(s->samples); i++)
		if (!strcmp(samples_subject(s->samples, i)->text2, process->text2))
			return samples_subject(s->samples, i);
	return NULL;
}

/* How many others died without a word in the same moments: so many kills explain all of them. */
static uint64_t deaths_between(const struct host_memory *s, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < reader_processes(s->reader); i++) {
		const struct process *p = reader_process(s->reader, i);
		n += may_be_killed(p) && p->end_ns >= from_ns && p->end_ns <= to_ns;
	}
	return n;
}

static int judge(struct host_memory *s, struct host_process *out)
{
	const struct sample_subject *d = samples_of_process(s->samples, out->process);
	uint64_t kills = 0, from, to;
	int e = 0;
	if (!d || !may_be_killed(out->process))
		return 0;
	from = d->last_ns > EARLY_NS ? d->last_ns - EARLY_NS : 0;
	to = (d->gone_ns != UINT64_MAX ? d->gone_ns : d->last_ns) + LATE_NS;
	const struct sample_subject *group = cgroup_of(s, d);
	if (group && group->known >> MT_CGROUP_oom_kills & 1)
		e = kills_between(s, group->index, MT_CGROUP_oom_kills, from, to, &kills);
	unsigned machine = samples_find(s->samples, MT_SUBJECT_MACHINE, d->host, 0);
	if (!e && !kills && machine < samples_subjects(s->samples)) {
		e = kills_between(s, machine, MT_MACHINE_oom_kills, from, to, &kills);
		kills = kills ? 1 : 0; /* the victim may have been any process of the machine */
		out->oom_killed = kills ? HOST_MAYBE_KILLED : HOST_NOT_KILLED;
		return e;
	}
	if (kills)
		out->oom_killed = kills >= deaths_between(s, from, to) ? HOST_KILLED : HOST_MAYBE_KILLED;
	return e;
}

/* ---- the moment ------------------------------------------------------------------------------------------ */

static void choose_moment(struct host_memory *s, const struct pass *p)
{
	s->ns = p->best_ns;
	s->facts.traced_peak = p->most;
	s->facts.traced_peak_ns = p->most_ns;
	uint64_t killed_ns = 0;
	for (unsigned i = 0; i < reader_processes(s->reader); i++) {
		const struct sample_subject *d = samples_of_process(s->samples, reader_process(s->reader, i));
		if (d && d->host == s->host && s->processes[i].oom_killed && d->last_ns > killed_ns)
			killed_ns = d->last_ns;
	}
	if (killed_ns)
		s->ns = killed_ns;
}

static void set_unknown(struct host_memory *s)
{
	s->facts = (struct host_facts){
		.memory = s->host && s->host->memory_bytes ? s->host->memory_bytes : HOST_KILL_UNKNOWN,
		.limit = HOST_KILL_UNKNOWN,
		.available_min = HOST_KILL_UNKNOWN,
		.swap_total = HOST_KILL_UNKNOWN,
		.swap_start = HOST_KILL_UNKNOWN,
		.swap_peak = HOST_KILL_UNKNOWN,
		.swapped_out = HOST_KILL_UNKNOWN,
		.oom_kills = HOST_KILL_UNKNOWN,
		.shm_total = HOST_KILL_UNKNOWN,
		.shm_peak = HOST_KILL_UNKNOWN,
		.shm_start = HOST_KILL_UNKNOWN,
		.shm_left = HOST_KILL_UNKNOWN,
		.cgroup_most = HOST_KILL_UNKNOWN,
		.cgroup_file = HOST_KILL_UNKNOWN,
		.stalled_ns = HOST_KILL_UNKNOWN,
		.traced_peak = HOST_KILL_UNKNOWN,
		.traced_end = HOST_KILL_UNKNOWN,
	};
	for (unsigned i = 0; i < reader_processes(s->reader); i++)
		s->processes[i] = (struct host_process){
			.process = reader_process(s->reader, i),
			.rss_peak = HOST_KILL_UNKNOWN,
			.rss_seen = HOST_KILL_UNKNOWN,
			.swap_peak = HOST_KILL_UNKNOWN,
			.dirty_first = HOST_KILL_UNKNOWN,
			.dirty_last = HOST_KILL_UNKNOWN,
			.rss = HOST_KILL_UNKNOWN,
			.anon = HOST_KILL_UNKNOWN,
			.file = HOST_KILL_UNKNOWN,
			.shmem = HOST_KILL_UNKNOWN,
			.pss = HOST_KILL_UNKNOWN,
			.swap = HOST_KILL_UNKNOWN,
			.private_dirty = HOST_KILL_UNKNOWN,
			.size = HOST_KILL_UNKNOWN,
			.unseen_map = HOST_KILL_UNKNOWN,
		};
}

/* Files are left by processes that have ended; where somebody was not seen to end, nothing is known. Nor are they files
 * of a run whose cgroup was charged for less: others write there, too. */
static void settle_shm(struct host_memory *s, const struct share *shares)
{
	uint64_t charged = 0;
	bool known = false, running = false;
	for (unsigned i = 0; i < samples_subjects(s->samples); i++) {
		const struct sample_subject *d = samples_subject(s->samples, i);
		bool group = d->kind == MT_SUBJECT_CGROUP && d->host == s->host && d->known >> MT_CGROUP_shmem & 1;
		known |= group;
		charged += group ? shares[i].shmem : 0;
		running |= d->kind == MT_SUBJECT_PROCESS && d->traced && d->host == s->host && d->gone_ns == UINT64_MAX;
	}
	if (running)
		s->facts.shm_left = HOST_KILL_UNKNOWN;
	else if (known && s->facts.shm_left != HOST_KILL_UNKNOWN)
		s->facts.shm_left = lower(s->facts.shm_left, charged);
}

static int read_samples(struct host_memory *s)
{
	struct pass p = { .s = s, .shares = calloc(samples_subjects(s->samples) + 1ul, sizeof(*p.shares)) };
	s->worst = calloc(samples_subjects(s->samples) + 1ul, sizeof(*s->worst));
	int e = p.shares && s->worst ? samples_each(s->samples, 0, UINT64_MAX, note_sample, &p) : error_memory();
	for (unsigned i = 0; !e && i < reader_processes(s->reader); i++)
		e = judge(s, &s->processes[i]);
	if (!e) {
		choose_moment(s, &p);
		settle_shm(s, p.shares);
	}
	free(p.shares);
	return e;
}

/* Everything as of the moment. */
static int take_states(struct host_memory *s)
{
	s->states = calloc(samples_subjects(s->samples) + 1ul, sizeof(*s->states));
	int e = s->states ? samples_states(s->samples, s->ns, 0, s->states) : error_memory();
	return e ? e : host_memory_make_stretches(s);
}

void host_memory_ask(const struct host_memory *s, struct model_query *q)
{
	q->level_ns = s->ns;
	q->stretches = s->stretches;
	q->stretch_count = s->stretch_count;
}

int host_memory_open(struct host_memory **out, struct reader *r)
{
	struct host_memory *s = calloc(1, sizeof(*s));
	int e = 0;
	*out = NULL;
	if (s) {
		s->reader = r;
		s->host = reader_hosts(r) ? reader_host(r, 0) : NULL;
		s->processes = calloc(reader_processes(r) + 1ul, sizeof(*s->processes));
		s->moment_each = 1;
	}
	if (!s || !s->processes)
		e = error_memory();
	if (!e)
		e = samples_open(&s->samples, r);
	if (!e) {
		set_unknown(s);
		if (reader_processes(r) && reader_process(r, 0)->host == s->host && reader_process(r, 0)->shm_used)
			s->facts.shm_start = reader_process(r, 0)->shm_used - 1;
		e = read_samples(s);
	}
	if (!e && s->facts.sampled)
		e = take_states(s);
	if (e)
		host_memory_close(s);
	else
		*out = s;
	return e;
}

int host_memory_resume(struct host_memory *s)
{
	return samples_resume(s->samples);
}

void host_memory_close(struct host_memory *s)
{
	if (!s)
		return;
	samples_close(s->samples);
	free(s->states);
	free(s->stretches);
	free(s->stretch_subjects);
	free(s->worst);
	free(s->processes);
	free(s->others);
	free(s->moments);
	free(s);
}

/* ---- interface ------------------------------------------------------------------------------------------- */

const struct samples *host_memory_samples(const struct host_memory *s)
{
	return s->samples;
}
struct host_moment host_shm_at(const struct host_memory *s, uint64_t ns)
{
	const unsigned machine = samples_find(s->samples, MT_SUBJECT_MACHINE, s->host, 0);
	struct sample_state x;
	if (machine == samples_subjects(s->samples) || samples_at(s->samples, ns, machine, &x) ||
	    !(x.known >> MT_MACHINE_shm_used & 1))
		return (struct host_moment){ 0 };
	return (struct host_moment){ x.ns[MT_MACHINE_shm_used],
				     less(x.value[MT_MACHINE_shm_used], s->facts.shm_start) };
}
const struct host_facts *host_facts(const struct host_memory *s)
{
	return &s->facts;
}
const struct host_ledger *host_ledger(const struct host_memory *s)
{
	return &s->ledger;
}
size_t host_moments(const struct host_memory *s, const struct host_moment **out)
{
	*out = s->moments;
	return s->moment_count;
}
const struct host_process *host_process(const struct host_memory *s, unsigned id)
{
	return &s->processes[id];
}
unsigned host_others(const struct host_memory *s)
{
	return (unsigned)s->other_count;
}
const struct host_other *host_other(const struct host_memory *s, unsigned i)
{
	return &s->others[i];
}
