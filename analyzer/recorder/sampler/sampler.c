#include "analyzer/recorder/sampler/sampler_internal.h"

#include "analyzer/util/system/pid_alive.h"
#include "analyzer/util/ticks.h"
#include "analyzer/util/vec.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#define FAST_PERIOD_NS  (250 * MS)
#define FAST_SHARE      50         /* more than 1/50 of memory more in a second is fast */
#define LOOK_NS         (250 * MS) /* at the session's counter of failures, when no device is in use ... */
#define DEVICE_LOOK_NS  (50 * MS)  /* ... and when one is */
#define EVENT_PERIOD_NS (100 * MS) /* between samples that failures ask for */
#define EVENT_BURST     20         /* blocks that are written at once for them; one more each second */
#define STOP_NS         SECOND

/* ---- which processes ------------------------------------------------------------------------------------ */

static bool is_same(const struct sampler_process *a, const struct sampler_process *b)
{
	return a->pid == b->pid && a->boot_start == b->boot_start && a->pid_ns == b->pid_ns;
}

void sampler_processes(struct sampler *s, const struct sampler_process *list, size_t count)
{
	pthread_mutex_lock(&s->lock);
	bool same = count == s->list_count;
	for (size_t i = 0; same && i < count; i++)
		same = is_same(&list[i], &s->list[i]) && !strcmp(list[i].info, s->list[i].info);
	if (!same && !vec_reserve_raw(s->list, s->list_room, count)) {
		if (count)
			memcpy(s->list, list, count * sizeof(*list));
		s->list_count = count;
		s->list_version++;
		pthread_cond_signal(&s->wake);
	}
	pthread_mutex_unlock(&s->lock);
}

static struct target *find_target(struct sampler *s, const struct sampler_process *who)
{
	for (size_t i = 0; i < s->count; i++)
		if (is_same(&s->targets[i]->who, who))
			return s->targets[i];
	return NULL;
}

static void meet(struct sampler *s, const struct sampler_process *who)
{
	struct target *t = find_target(s, who);
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t || vec_reserve(s->targets, s->room, s->count + 1)) {
			free(t);
			return;
		}
		s->targets[s->count++] = t;
		t->met_ns = ticks_mono_ns();
	}
	if (strcmp(t->who.info, who->info) != 0)
		t->log_at = 0; /* after an exec */
	t->who = *who;
	t->listed = true;
}

static void update_targets(struct sampler *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->list_version != s->seen_version) {
		for (size_t i = 0; i < s->count; i++) {
			s->targets[i]->listed = false;
			s->targets[i]->rollup.stale = true;
		}
		for (size_t i = 0; i < s->list_count; i++)
			meet(s, &s->list[i]);
		s->seen_version = s->list_version;
	}
	pthread_mutex_unlock(&s->lock);
}

static void forget_targets(struct sampler *s)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->count; i++) {
		if (!s->targets[i]->listed || s->targets[i]->over)
			free(s->targets[i]);
		else
			s->targets[kept++] = s->targets[i];
	}
	s->count = kept;
}

static uint64_t resident(const struct sampler *s)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s->count; i++)
		sum += s->targets[i]->rss;
	return sum;
}

/* The devices first: what is free changes fastest after a failure. */
static void sample(struct sampler *s)
{
	uint64_t before = resident(s), last = s->now;
	update_targets(s);
	s->now = ticks_mono_ns();
	samples_file_time(s->file, s->now);
	look_at_devices(s);
	for (size_t i = 0; i < s->count; i++)
		look_at_process(s, s->targets[i]);
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i]->over) {
			samples_file_end_stale(s->file, MT_SUBJECT_PROCESS, s->targets[i]->who.pid, s->now);
			samples_file_end_stale(s->file, MT_SUBJECT_MAPPING, s->targets[i]->who.pid, s->now);
		}
	look_at_machine(s); /* whoever reads takes it for the end of the processes */
	look_at_mappings(s);
	look_at_others(s);
	samples_file_end_stale(s->file, MT_SUBJECT_PROCESS, 0, s->now > 2 * OTHERS_NS ? s->now - 2 * OTHERS_NS : 0);
	uint64_t after = resident(s), step = s->now - last;
	s->grows = before && after > before &&
		   (double)(after - before) * SECOND / (double)step > (double)(s->memory / FAST_SHARE);
}

/* ---- when ------------------------------------------------------------------------------------------------ */

static uint32_t failures(const struct sampler *s)
{
	return __atomic_load_n(&s->session->failures, __ATOMIC_RELAXED);
}

/* True when it is to stop. */
static bool wait_for(struct sampler *s, uint64_t ns)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	uint64_t at = (uint64_t)until.tv_sec * SECOND + (uint64_t)until.tv_nsec + ns;
	until = (struct timespec){ .tv_sec = (time_t)(at / SECOND), .tv_nsec = (long)(at % SECOND) };
	pthread_mutex_lock(&s->lock);
	uint64_t version = s->list_version;
	while (!s->stop && s->list_version == version && !pthread_cond_timedwait(&s->wake, &s->lock, &until))
		;
	bool stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

static bool has_news(struct sampler *s)
{
	pthread_mutex_lock(&s->lock);
	bool news = s->list_version != s->seen_version;
	pthread_mutex_unlock(&s->lock);
	return news;
}

/* Waits until there is a reason to look again: it is time, a device failed, processes came or went. */
static bool wait_for_reason(struct sampler *s)
{
	uint64_t period = (s->grows ? FAST_PERIOD_NS : PERIOD_NS) * samples_file_slowdown(s->file),
		 due = s->now + period;
	for (;;) {
		uint64_t now = ticks_mono_ns(), look = uses_devices(s) ? DEVICE_LOOK_NS : LOOK_NS;
		bool event = failures(s) != s->failures || has_news(s);
		if (now >= due || (event && now >= s->now + EVENT_PERIOD_NS))
			return true;
		uint64_t left = event ? s->now + EVENT_PERIOD_NS - now : due - now;
		if (wait_for(s, left < look ? left : look))
			return false;
	}
}

/* What is written at once for failures is limited: a program may go on failing for a week. */
static bool is_urgent(struct sampler *s, bool event)
{
	if (!event || !s->burst)
		return false;
	s->burst--;
	return true;
}

static void *work(void *arg)
{
	struct sampler *s = arg;
	uint64_t refill = 0;
	bool go_on = true;
	while (go_on) {
		go_on = wait_for_reason(s);
		bool failed = failures(s) != s->failures;
		s->failures = failures(s);
		s->ended = false;
		sample(s);
		if (s->now - refill > SECOND && s->burst < EVENT_BURST) {
			s->burst++;
			refill = s->now;
		}
		samples_file_flush(s->file, !go_on || is_urgent(s, failed || s->ended));
		forget_targets(s);
	}
	pthread_mutex_lock(&s->lock);
	s->stopped = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

static void free_sampler(struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->targets[i]);
	close_devices(s);
	cgroups_free(s->cgroups);
	samples_file_free(s->file);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s->targets);
	free(s->list);
	free(s);
}

static void set_up_lock(struct sampler *s)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&s->lock, NULL);
}

struct sampler *sampler_start(const char *dir, struct mt_session *session)
{
	struct sampler *s = calloc(1, sizeof(*s));
	sigset_t all, old;
	if (!s)
		return NULL;
	set_up_lock(s);
	s->session = session;
	s->burst = EVENT_BURST;
	s->memory = UINT64_MAX;
	s->start_ns = ticks_mono_ns();
	s->failures = failures(s);
	s->now = ticks_mono_ns() - EVENT_PERIOD_NS; /* the first look is when it is told of a process */
	s->file = samples_file_new(dir, session);
	s->cgroups = cgroups_new();
	s->own_namespace = pid_sees_whole_machine();
	sigfillset(&all); /* signals are the recorder's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	bool ok = s->file && !pthread_create(&s->thread, NULL, work, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ok)
		return s;
	free_sampler(s);
	return NULL;
}

bool sampler_stop(struct sampler *s)
{
	struct timespec until;
	if (!s)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_NS / SECOND;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	int e = 0;
	while (!s->stopped && !e)
		e = pthread_cond_timedwait(&s->wake, &s->lock, &until);
	bool stopped = s->stopped;
	pthread_mutex_unlock(&s->lock);
	if (!stopped) {
		pthread_detach(s->thread);
		return false;
	}
	pthread_join(s->thread, NULL);
	free_sampler(s);
	return true;
}
