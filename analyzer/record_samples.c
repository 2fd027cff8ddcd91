#include "analyzer/record_samples.h"

#include "analyzer/alive.h"
#include "analyzer/record_samples_own.h"
#include "analyzer/ticks.h"
#include "analyzer/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MS               1000000ull
#define SECOND           (1000 * MS)
#define PERIOD_NS        SECOND
#define FAST_PERIOD_NS   (250 * MS)
#define FAST_SHARE       50            /* more than 1/50 of memory more in a second is fast */
#define LOOK_NS          (250 * MS)    /* at the session's counter of failures, when no device is in use ... */
#define DEVICE_LOOK_NS   (50 * MS)     /* ... and when one is */
#define EVENT_PERIOD_NS  (100 * MS)    /* between samples that failures ask for */
#define EVENT_BURST      20            /* blocks that are written at once for them; one more each second */
#define LOOK_SHARE       500
#define LOOK_NS_PER_MIB  50000         /* as measured with pages of 4 KiB on a slow machine */
#define LONG_NS          (50 * MS)
#define LONG_SHARE       1000
#define CHANGED_SHARE    20
#define ALLOWANCE_NS     (500 * MS)
#define FIRST_NS         (500 * MS)
#define MAPPINGS_NS      (30 * SECOND)
#define CHANGED          8             /* 1/8 more or less resident than at the last look is a reason for another, or as much touched */
#define MAPPING_KIB      (16u << 10)
#define CGROUP_NS        (10 * SECOND)
#define OTHERS_NS        (5 * SECOND)
#define OTHERS           6             /* untraced processes that are shown */
#define OTHER_KIB        (8u << 10)    /* ... if they have as much */
#define NVML_RETRY_NS    (10 * SECOND)
#define STOP_NS          SECOND

/* A look at all pages of a process: what it cost, and so when it may be repeated. */
struct look {
	uint64_t last_ns;       /* 0 = never */
	uint64_t rss;           /* KiB it had then */
	uint64_t faults;        /* minor ones, until then */
	uint64_t ns_per_mib;    /* 0 = not known yet */
	bool stale;             /* somebody was forked or ended: what is shared is another share now */
};

/* One traced process as the sampler sees it. */
struct target {
	struct sampler_process who;
	bool listed;            /* still among those the recorder knows */
	bool over;
	uint32_t number;        /* in our /proc; 0 = not found */
	struct look rollup, mappings;
	uint64_t rss;           /* KiB */
	uint64_t met_ns;
	uint64_t log_at;        /* read so far of its record log */
	bool cuda;
	char libcuda[1024];
	unsigned cgroup_version;
	uint64_t cgroup_ns;     /* when it is looked up again */
	char own_group[CGROUP_PATH], group[CGROUP_PATH];
};

struct other { uint32_t pid; struct proc_who who; };

struct sampler {
	struct mt_session *session;
	struct samples_file *file;
	struct cgroups *cgroups;
	struct nvml *nvml;
	uint64_t nvml_retry_ns;
	bool own_namespace;     /* we are in the machine's first pid namespace: a driver's pids are ours */

	struct target **targets;
	size_t count, room;
	uint64_t now;           /* of this sample */
	uint64_t start_ns, spent_ns; /* of the allowance for looks that are early */
	uint64_t memory;        /* KiB the machine has, or the lowest limit */
	uint64_t others_ns;
	struct other others[OTHERS];
	size_t other_count;
	uint32_t failures;
	unsigned burst;
	bool grows, ended;

	pthread_t thread;
	pthread_mutex_t lock;   /* of what follows; never held while the kernel is asked for anything */
	pthread_cond_t wake;
	bool stop, stopped;
	struct sampler_process *list;
	size_t list_count, list_room;
	uint64_t list_version, seen_version;
};

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

/* ---- which use devices ----------------------------------------------------------------------------------- */

/* Its log says so once it has met one; the library's path is found in passing. */
static void take_record(struct target *t, const struct mt_record *head, const char *payload, size_t bytes)
{
	if (head->type == MT_REC_DEVICE && bytes >= sizeof(struct mt_rec_device)) {
		struct mt_rec_device d;
		memcpy(&d, payload, sizeof(d));
		t->cuda |= d.backend == MT_BACKEND_CUDA;
	} else if (head->type == MT_REC_MODULE && bytes > sizeof(struct mt_rec_module)) {
		struct mt_rec_module m;
		memcpy(&m, payload, sizeof(m));
		size_t at = sizeof(m) + m.build_id_bytes;
		if (at < bytes && memchr(payload + at, 0, bytes - at) && strstr(payload + at, "/libcuda.so"))
			snprintf(t->libcuda, sizeof(t->libcuda), "%s", payload + at);
	}
}

static void read_log(struct target *t)
{
	static char buf[65536];
	struct mt_info info;
	int fd = open(t->who.info, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (pread(fd, &info, sizeof(info), 0) == sizeof(info))
		while (t->log_at + sizeof(struct mt_record) <= info.log_bytes) {
			struct mt_record head;
			ssize_t n = pread(fd, buf, sizeof(buf), (off_t)(MT_INFO_LOG + t->log_at));
			if (n < (ssize_t)sizeof(head))
				break;
			uint64_t at = 0, end = (uint64_t)n;
			end = t->log_at + end > info.log_bytes ? info.log_bytes - t->log_at : end;
			while (at + sizeof(head) <= end) {
				memcpy(&head, buf + at, sizeof(head));
				if (head.bytes < sizeof(head) || head.bytes % 8)
					goto out;
				if (at + head.bytes > end && at)
					break;
				if (at + head.bytes <= end)
					take_record(t, &head, buf + at + sizeof(head), head.bytes - sizeof(head));
				at += head.bytes; /* one larger than the buffer is none of ours */
			}
			t->log_at += at;
		}
out:
	close(fd);
}

/* Where nobody told, the mappings do. */
static void find_libcuda(struct target *t)
{
	char path[64], line[1400];
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", t->number);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *slash = strchr(line, '/');
		if (slash && strstr(slash, "/libcuda.so")) {
			snprintf(t->libcuda, sizeof(t->libcuda), "%.*s", (int)strcspn(slash, "\n"), slash);
			break;
		}
	}
	if (f)
		fclose(f);
}

static bool uses_devices(const struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i]->cuda)
			return true;
	return false;
}

static void open_nvml(struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct target *t = s->targets[i];
		if (!t->cuda || s->nvml || s->now < s->nvml_retry_ns)
			continue;
		if (!*t->libcuda && t->number)
			find_libcuda(t);
		s->nvml = nvml_open(t->libcuda);
		s->nvml_retry_ns = s->now + NVML_RETRY_NS;
	}
}

/* What the trace calls a process of the driver's. In a container the driver may speak of the host's numbers, which mean others
 * here; there only a process that is known to use devices is taken for it. */
static uint32_t pid_of(void *arg, uint32_t pid, char name[64])
{
	struct sampler *s = arg;
	struct proc_who who;
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i]->number == pid && (s->own_namespace || s->targets[i]->cuda)) {
			if (sample_process_stat(pid, &who, NULL))
				snprintf(name, 64, "%s", who.name);
			return s->targets[i]->who.pid;
		}
	if (!s->own_namespace || !sample_process_stat(pid, &who, NULL))
		return 0;
	snprintf(name, 64, "%s", who.name);
	return pid;
}

/* ---- looking --------------------------------------------------------------------------------------------- */

static void look_at_cgroup(struct sampler *s, struct target *t)
{
	if (s->now >= t->cgroup_ns && !t->over) {
		t->cgroup_version = cgroups_of(s->cgroups, t->number, t->own_group, t->group);
		/* launchers move a process soon or never */
		t->cgroup_ns = s->now - t->met_ns < CGROUP_NS ? 0 : s->now + CGROUP_NS;
	}
	for (size_t i = 0; s->targets[i] != t; i++)
		if (!s->targets[i]->over && s->targets[i]->cgroup_version == t->cgroup_version &&
		    !strcmp(s->targets[i]->own_group, t->own_group))
			return; /* it has been looked at */
	if (!t->cgroup_version)
		return;
	struct figures f = { 0 };
	struct subject_key key = { .kind = MT_SUBJECT_CGROUP, .key = { t->cgroup_version }, .text = t->group, .text2 = t->own_group };
	sample_cgroup(s->cgroups, t->cgroup_version, t->own_group, t->group, &f);
	samples_file_add(s->file, &key, &f);
	if (f.value[MT_CGROUP_limit] && f.value[MT_CGROUP_limit] < s->memory)
		s->memory = f.value[MT_CGROUP_limit];
}

/* The time that a look takes is the processor's, not what the scheduler adds on a busy machine. */
static uint64_t worked_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t predicted(const struct look *l, uint64_t rss)
{
	return (l->ns_per_mib ? l->ns_per_mib : LOOK_NS_PER_MIB) * (rss >> 10);
}

/* All looks together are to take 1/LOOK_SHARE of the time; and as one keeps the process from mapping memory as long as it
 * lasts, long ones are rare. A look that has a reason may come earlier, from an allowance that grows half as fast. */
static bool is_due(const struct sampler *s, const struct target *t, const struct look *l, uint64_t rss, uint64_t faults, uint64_t period)
{
	uint64_t cost = predicted(l, rss), since = s->now - (l->last_ns ? l->last_ns : t->met_ns), pause = cost * LOOK_SHARE * s->count;
	bool touched = (faults - l->faults) * (page_bytes() >> 10) > l->rss / CHANGED; /* what a fork shares is copied so, and stays as large */
	bool changed = l->stale || touched || (rss > l->rss ? rss - l->rss : l->rss - rss) > l->rss / CHANGED;
	if (!l->last_ns && cost < FIRST_NS)
		return true;
	if (cost > LONG_NS && since < cost * LONG_SHARE)
		return false;
	return since >= (pause > period ? pause : period) ||
	       (changed && since >= cost * CHANGED_SHARE && s->spent_ns + cost < ALLOWANCE_NS + (s->now - s->start_ns) / (2 * LOOK_SHARE));
}

static void look_ends(struct sampler *s, struct look *l, uint64_t rss, uint64_t cost)
{
	uint64_t per_mib = rss >> 10 ? cost / (rss >> 10) : 0;
	if (l->last_ns && s->now - l->last_ns < cost * LOOK_SHARE * s->count)
		s->spent_ns += cost; /* it was early */
	l->last_ns = s->now;
	l->rss = rss;
	l->stale = false;
	l->ns_per_mib = per_mib > LOOK_NS_PER_MIB / 10 ? per_mib : LOOK_NS_PER_MIB / 10;
}

static void look_closely(struct sampler *s, struct target *t, struct figures *f)
{
	uint64_t rss = f->value[MT_PROCESS_rss];
	uint64_t faults = f->value[MT_PROCESS_minor_faults];
	if (!is_due(s, t, &t->rollup, rss, faults, PERIOD_NS * 9 / 10))
		return;
	uint64_t start = worked_ns();
	sample_process_rollup(t->number, f);
	look_ends(s, &t->rollup, rss, worked_ns() - start);
	t->rollup.faults = faults;
}

static void look_at_process(struct sampler *s, struct target *t)
{
	struct proc_who who;
	struct figures f = { 0 };
	if (!t->number)
		t->number = alive_number(t->who.pid, t->who.pid_ns, t->who.boot_start);
	bool there = t->number && sample_process_stat(t->number, &who, &f) && who.start == t->who.boot_start;
	if (!there || !sample_process_status(t->number, &f)) {
		t->over = t->number || !t->listed;
		s->ended |= t->over;
		look_at_cgroup(s, t); /* did it kill it? */
		return;
	}
	look_at_cgroup(s, t);
	look_closely(s, t, &f);
	struct subject_key key = { .kind = MT_SUBJECT_PROCESS, .key = { t->who.pid, t->who.boot_start, 1 }, .text = who.name,
				   .text2 = t->own_group };
	samples_file_add(s->file, &key, &f);
	t->rss = f.value[MT_PROCESS_rss];
}

struct mappings { struct sampler *sampler; const struct target *target; };

static void add_mapping(void *arg, uint64_t start, const char *path, const struct figures *f)
{
	const struct mappings *m = arg;
	struct subject_key key = { .kind = MT_SUBJECT_MAPPING, .key = { m->target->who.pid, m->target->who.boot_start, start },
				   .text = path };
	samples_file_add(m->sampler->file, &key, f);
}

/* One process a sample at most. */
static void look_at_mappings(struct sampler *s)
{
	struct target *t = NULL;
	for (size_t i = 0; i < s->count && !t; i++) {
		struct target *c = s->targets[i];
		if (!c->over && c->number && c->rss >= MAPPING_KIB && is_due(s, c, &c->mappings, c->rss, c->mappings.faults, MAPPINGS_NS))
			t = c;
	}
	if (!t)
		return;
	uint64_t start = worked_ns();
	bool ok = sample_mappings(t->number, MAPPING_KIB, add_mapping, &(struct mappings){ s, t });
	look_ends(s, &t->mappings, t->rss, worked_ns() - start);
	if (ok)
		samples_file_sweep(s->file, MT_SUBJECT_MAPPING, t->who.pid, s->now);
}

static bool is_target(const struct sampler *s, uint32_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i]->number == pid)
			return true;
	return false;
}

static void keep_largest(struct sampler *s, const struct other *o)
{
	size_t i = s->other_count < OTHERS ? s->other_count++ : OTHERS;
	while (i > 0 && s->others[i - 1].who.rss_kib < o->who.rss_kib) {
		if (i < OTHERS)
			s->others[i] = s->others[i - 1];
		i--;
	}
	if (i < OTHERS)
		s->others[i] = *o;
}

static void find_others(struct sampler *s)
{
	DIR *dir = opendir("/proc");
	s->other_count = 0;
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		struct other o = { .pid = (uint32_t)strtoul(entry->d_name, NULL, 10) };
		if (o.pid && isdigit((unsigned char)*entry->d_name) && !is_target(s, o.pid) &&
		    sample_process_stat(o.pid, &o.who, NULL) && !o.who.kernel && o.who.rss_kib >= OTHER_KIB)
			keep_largest(s, &o);
	}
	closedir(dir);
}

static void look_at_others(struct sampler *s)
{
	uint64_t start = worked_ns();
	if (s->now < s->others_ns)
		return;
	find_others(s);
	for (size_t i = 0; i < s->other_count; i++) {
		struct figures f = { 0 };
		struct other *o = &s->others[i];
		struct subject_key key = { .kind = MT_SUBJECT_PROCESS, .key = { o->pid, o->who.start, 0 }, .text = o->who.name };
		if (sample_process_stat(o->pid, &o->who, &f) && sample_process_status(o->pid, &f))
			samples_file_add(s->file, &key, &f);
	}
	uint64_t pause = (worked_ns() - start) * LOOK_SHARE;
	s->others_ns = s->now + (pause > OTHERS_NS ? pause : OTHERS_NS);
}

static void look_at_machine(struct sampler *s)
{
	struct figures f = { 0 };
	sample_machine(&f);
	samples_file_add(s->file, &(struct subject_key){ .kind = MT_SUBJECT_MACHINE }, &f);
	if (f.value[MT_MACHINE_total] && f.value[MT_MACHINE_total] < s->memory)
		s->memory = f.value[MT_MACHINE_total];
}

static void look_at_devices(struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++)
		read_log(s->targets[i]);
	open_nvml(s);
	if (s->nvml && uses_devices(s))
		sample_nvml(s->nvml, s->file, pid_of, s);
}

static uint64_t resident(const struct sampler *s)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s->count; i++)
		sum += s->targets[i]->rss;
	return sum;
}

static void end_target(struct sampler *s, const struct target *t)
{
	samples_file_sweep(s->file, MT_SUBJECT_PROCESS, t->who.pid, s->now);
	samples_file_sweep(s->file, MT_SUBJECT_MAPPING, t->who.pid, s->now);
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
		if (s->targets[i]->over)
			end_target(s, s->targets[i]);
	look_at_machine(s); /* whoever reads takes it for the end of the processes */
	look_at_mappings(s);
	look_at_others(s);
	samples_file_sweep(s->file, MT_SUBJECT_DEVICE_PROCESS, 0, s->now);
	samples_file_sweep(s->file, MT_SUBJECT_PROCESS, 0, s->now > 2 * OTHERS_NS ? s->now - 2 * OTHERS_NS : 0);
	uint64_t after = resident(s), step = s->now - last;
	s->grows = before && after > before && (double)(after - before) * SECOND / (double)step > (double)(s->memory / FAST_SHARE);
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
	uint64_t period = (s->grows ? FAST_PERIOD_NS : PERIOD_NS) * samples_file_coarseness(s->file), due = s->now + period;
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
	if (!event)
		return false;
	if (!s->burst)
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
	nvml_close(s->nvml);
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
	s->own_namespace = alive_sees_all();
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
