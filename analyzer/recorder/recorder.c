/*
 * One recorder serves a session: it holds a lock on the file "session", looks for processes, and gives each of them
 * a round now and then.
 *
 * It may be killed at any moment. Whatever it knows is in the files: a block is either whole or cut off by the next
 * recorder, a chunk is freed only after the block that holds it is written, and raw files are removed only after the
 * last block. What fails (no space, no descriptors) is left raw and tried again.
 */
#include "analyzer/recorder/recorder.h"

#include "analyzer/recorder/apart.h"
#include "analyzer/recorder/exit_status.h"
#include "analyzer/recorder/rings/file_io.h"
#include "analyzer/recorder/fold/fold.h"
#include "analyzer/recorder/oom_command.h"
#include "analyzer/recorder/rings/recorder_process.h"
#include "analyzer/recorder/sampler/sampler.h"
#include "analyzer/util/system/file_owner.h"
#include "analyzer/util/error.h"
#include "analyzer/util/system/pid_alive.h"
#include "analyzer/util/ticks.h"
#include "analyzer/util/vec.h"
#include "format/output_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define MS             1000000ull
#define HORIZON_NS     (10 * MS)  /* longer than a thread needs from an event's stamp to its publication */
#define SETTLE_NS      (250 * MS) /* after a fork until the child's files are there */
#define TIME_UNIT_NS   100        /* times are kept about this exact */
#define PAUSE_TIGHT_NS (2 * MS)   /* where rings can't grow and were too small lately */
#define LATELY_NS      (1000 * MS)
#define PAUSE_MIN_NS   (20 * MS)
#define PAUSE_MAX_NS   (250 * MS)
#define RETRY_NS       (1000 * MS)
#define MAX_FAILURES   4           /* then a process that is over is left as it is */
#define LINGER_NS      (1000 * MS) /* without any process, before we go */
#define BIRTH_NS       (1000 * MS) /* a process whose files can't be had (yet) is not waited for any longer */
#define OWN_FILES      16          /* descriptors that are not of processes' files */
#define LAST_WORDS_NS  (300 * MS)  /* after SIGTERM, for processes that are about to end */
#define PIDS           4096        /* lists of processes by pid */
#define TIGHT_FREE     (64ull << 20)

static volatile sig_atomic_t told_to_stop;

struct work {
	struct recorder r;
	struct record_process *processes;
	struct record_process *by_pid[PIDS];
	struct folding *fold;            /* NULL = nothing is folded */
	bool folding;                    /* it has a job */
	struct oom_command *oom;         /* NULL = nothing is to be run */
	struct sampler *sampler;         /* NULL = no samples */
	struct sampler_process *sampled; /* whom it looks at */
	size_t sampled_room;
	bool hangs;        /* a sampler that could not be stopped still uses the session */
	rlim_t most_files; /* descriptors that files of processes may have */
	int session_fd;
	pid_t parent;
	int dir_fd, raw_fd; /* raw_fd: -1 = there is none any more */
	char dir[32];
	char raw_dir[32];
	char raw_prefix[MT_RAW_PREFIX]; /* of file names in raw_dir */
};

/* ---- the session ----------------------------------------------------------------------------------------- */

static int map_session(struct work *w)
{
	char path[4400];
	struct stat st;
	snprintf(path, sizeof(path), "%s/session", w->r.dir);
	w->session_fd = record_open(path, O_RDWR);
	if (w->session_fd < 0 || fstat(w->session_fd, &st))
		return error_errno(MT_ENOTRACE, path, ERROR_NO_OFFSET);
	w->r.owner = st.st_uid;
	if (st.st_size < (off_t)sizeof(*w->r.session))
		return error_set(MT_ECUT, path, ERROR_NO_OFFSET, NULL);
	void *at = mmap(NULL, sizeof(*w->r.session), PROT_READ | PROT_WRITE, MAP_SHARED, w->session_fd, 0);
	if (at == MAP_FAILED)
		return error_errno(MT_EIO, path, ERROR_NO_OFFSET);
	w->r.session = at;
	if (memcmp(w->r.session->magic, MT_SESSION_MAGIC, sizeof(w->r.session->magic)))
		return error_set(MT_EMAGIC, path, 0, NULL);
	if (w->r.session->version != MT_VERSION)
		return error_set(MT_EVERSION, path, 8, NULL);
	return 0;
}

/* Pids and ticks of another machine or boot mean nothing here. */
static bool is_of_this_boot(const struct mt_session *s)
{
	char id[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!f)
		return true;
	bool same = !fgets(id, sizeof(id), f) || !strncmp(id, s->boot_id, 36);
	fclose(f);
	return same;
}

/* Held by its descriptor, so that it stays the one that was looked at. */
static void open_raw_dir(struct work *w)
{
	const struct mt_session *s = w->r.session;
	char path[sizeof(s->ring_dir) + 1];
	struct stat st;
	w->raw_fd = w->dir_fd;
	if (s->ring_dir[0]) {
		snprintf(path, sizeof(path), "%.*s", (int)sizeof(s->ring_dir), s->ring_dir);
		w->raw_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	w->r.shared = fstat(w->raw_fd, &st) || st.st_mode & 022 || !file_is_of(st.st_uid, w->r.owner);
	snprintf(w->raw_dir, sizeof(w->raw_dir), "/proc/self/fd/%d", w->raw_fd);
	snprintf(w->r.raw_stem, sizeof(w->r.raw_stem), "%s/%s", w->raw_dir, w->raw_prefix);
}

static void close_raw_dir(struct work *w)
{
	if (w->raw_fd >= 0 && w->raw_fd != w->dir_fd)
		close(w->raw_fd);
	w->raw_fd = -1;
}

/* As the shim names raw files: in a ring directory after the session. */
static void find_raw_files(struct work *w)
{
	const struct mt_session *s = w->r.session;
	if (s->ring_dir[0])
		mt_raw_prefix(w->raw_prefix, s->start_real_ns);
	open_raw_dir(w);
}

/* A process that finds none makes it anew. */
static void find_raw_dir_again(struct work *w)
{
	struct stat st;
	if (w->raw_fd >= 0 && (fstat(w->raw_fd, &st) || st.st_nlink))
		return;
	close_raw_dir(w);
	open_raw_dir(w);
}

/* The trace was deleted under us. */
static bool is_removed(const struct work *w)
{
	struct stat st;
	return fstat(w->session_fd, &st) == 0 && st.st_nlink == 0;
}

/* A file of a process keeps it. Of a trace that was deleted nobody will read any. */
static void remove_ring_dir(struct work *w)
{
	const struct mt_session *s = w->r.session;
	DIR *dir = s->ring_dir[0] && is_removed(w) ? opendir(w->raw_dir) : NULL;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (!strncmp(entry->d_name, w->raw_prefix, strlen(w->raw_prefix)))
			unlinkat(w->raw_fd, entry->d_name, 0);
	if (dir)
		closedir(dir);
	/* sessions used to share one, and it was the user's */
	if (s->ring_dir[0] && memchr(s->ring_dir, 0, sizeof(s->ring_dir)) &&
	    !strncmp(mt_base_name(s->ring_dir), "memtrace-", 9))
		rmdir(s->ring_dir);
}

static void set_beat(struct work *w)
{
	__atomic_store_n(&w->r.session->recorder_beat_ns, ticks_mono_ns(), __ATOMIC_RELAXED);
}

static void set_present(struct work *w, bool present)
{
	set_beat(w);
	__atomic_store_n(&w->r.session->recorder_pid, present ? (uint32_t)getpid() : 0, __ATOMIC_RELEASE);
}

/* So that a reader need not look at the clock, to know how long a tick is where a process was killed soon: a trace that
 * is done reads the same at any time. */
static void note_end(struct work *w)
{
	struct mt_session *s = w->r.session;
	__atomic_store_n(&s->ended_ticks, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&s->ended_mono_ns, ticks_mono_ns(), __ATOMIC_RELEASE);
	__atomic_store_n(&s->ended_ticks, ticks_now(s->clock), __ATOMIC_RELEASE);
}

/* The moment up to which this round takes events, and how long a tick is. */
static void set_clock(struct work *w)
{
	const struct mt_session *s = w->r.session;
	uint64_t ns = ticks_mono_ns() - s->start_mono_ns, ticks = ticks_now(s->clock) - s->start_ticks;
	double per_ns = ns ? (double)ticks / (double)ns : 1;
	uint64_t back = (uint64_t)(per_ns * HORIZON_NS);
	w->r.horizon = s->start_ticks + (ticks > back ? ticks - back : 0);
	w->r.settled =
		w->r.horizon > (uint64_t)(per_ns * SETTLE_NS) ? w->r.horizon - (uint64_t)(per_ns * SETTLE_NS) : 0;
	w->r.shift = 0;
	while (w->r.shift < 16 && (double)(2ull << w->r.shift) <= per_ns * TIME_UNIT_NS)
		w->r.shift++;
}

static void set_tight(struct work *w)
{
	const struct mt_session *s = w->r.session;
	struct statfs fs;
	uint64_t used = __atomic_load_n(&s->used_bytes, __ATOMIC_RELAXED);
	bool near_limit =
		s->limit_bytes && (used > s->limit_bytes / 4 * 3 || used - w->r.trace_bytes > s->limit_bytes / 4);
	bool near_full = !statfs(w->raw_dir, &fs) &&
			 (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < s->keep_free_bytes + TIGHT_FREE;
	w->r.tight = near_limit || near_full;
}

/* ---- its processes --------------------------------------------------------------------------------------- */

static bool is_known(const struct work *w, uint32_t pid, uint32_t image)
{
	for (const struct record_process *p = w->by_pid[pid % PIDS]; p; p = p->next_of_pid)
		if (p->pid == pid && p->image == image)
			return true;
	return false;
}

/* PID-N.info, behind the prefix. */
static void meet(struct work *w, const char *file)
{
	size_t prefix = strlen(w->raw_prefix);
	uint32_t pid, image;
	char name[32], wanted[64];
	if (strncmp(file, w->raw_prefix, prefix) || sscanf(file + prefix, "%" SCNu32 "-%" SCNu32, &pid, &image) != 2)
		return;
	snprintf(name, sizeof(name), "%" PRIu32 "-%" PRIu32, pid, image);
	snprintf(wanted, sizeof(wanted), "%s.info", name);
	if (strcmp(file + prefix, wanted) || is_known(w, pid, image))
		return;
	struct record_process *p = record_process_new(name, pid, image);
	if (!p)
		return;
	p->met_ns = ticks_mono_ns();
	p->next = w->processes;
	w->processes = p;
	p->next_of_pid = w->by_pid[pid % PIDS];
	w->by_pid[pid % PIDS] = p;
}

static void look_around(struct work *w)
{
	find_raw_dir_again(w);
	DIR *dir = opendir(w->raw_dir);
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		meet(w, entry->d_name);
	closedir(dir);
}

/* After an exec the process goes on under another image of the same pid. */
static bool was_replaced(const struct work *w, const struct record_process *p)
{
	for (const struct record_process *q = w->by_pid[p->pid % PIDS]; q; q = q->next_of_pid)
		if (q != p && q->info && q->pid == p->pid && q->image > p->image &&
		    q->info->pid_ns == p->info->pid_ns && q->info->boot_start == p->info->boot_start &&
		    q->info->magic[0])
			return true;
	return false;
}

/* Once over it stays so; asked before the rings are looked at, so that nothing is appended after. */
static void see_whether_over(const struct work *w, struct record_process *p)
{
	if (p->over || !p->info)
		return;
	if (!p->start) /* it could not read its own: then its number must stay whose it is when we first look */
		p->start = p->info->boot_start ? p->info->boot_start : pid_start_time(p->pid, p->info->pid_ns);
	const bool replaced = was_replaced(w, p);
	enum alive life = replaced ? ALIVE_NO : pid_alive(p->pid, p->info->pid_ns, p->start);
	p->over = life == ALIVE_NO;
	p->unknown = life == ALIVE_UNKNOWN;
	if (life == ALIVE_YES)
		exit_status_watch(p);
	else if (p->over && !replaced)
		exit_status_take(p);
}

/* Killed before it recorded anything, or removed by somebody: nothing will ever come of it. (If that is wrong, as it is
 * of another pid namespace and has not said so yet, its file is met again.) */
static bool is_hopeless(const struct work *w, struct record_process *p, int opened)
{
	char path[4500];
	snprintf(path, sizeof(path), "%s%s.info", w->r.raw_stem, p->name);
	if (access(path, F_OK))
		return true;
	if (opened != 1 || (p->info && p->info->magic[0]))
		return false;
	return pid_alive(p->pid, p->info ? p->info->pid_ns : 0, p->info ? p->info->boot_start : 0) == ALIVE_NO;
}

static int serve(struct work *w, struct record_process *p, uint64_t now)
{
	if (p->finished || p->given_up || now < p->retry_ns)
		return 0;
	int e = record_process_open(p, &w->r);
	if (e) {
		p->finished = is_hopeless(w, p, e);
		p->unknown = now - p->met_ns > BIRTH_NS;
		return 0;
	}
	see_whether_over(w, p);
	oom_command_look(w->oom, &w->r, p);
	e = record_process_round(p, &w->r);
	if (e < 0) {
		p->retry_ns = now + (p->failures ? RETRY_NS : 0);
		p->given_up = ++p->failures >= MAX_FAILURES && p->over;
	} else {
		p->failures = 0;
	}
	return e > 0 ? e : 0;
}

/* Each has two files and a pidfd; where these are too many only the one that is being served keeps them open. */
static bool are_many(const struct work *w)
{
	rlim_t files = 0;
	for (const struct record_process *p = w->processes; p; p = p->next)
		files += 3;
	return files > w->most_files;
}

static void forget_pid(struct work *w, const struct record_process *p)
{
	struct record_process **link = &w->by_pid[p->pid % PIDS];
	while (*link != p)
		link = &(*link)->next_of_pid;
	*link = p->next_of_pid;
}

static void forget_finished(struct work *w)
{
	for (struct record_process **link = &w->processes; *link;) {
		struct record_process *p = *link;
		if (p->finished) {
			*link = p->next;
			forget_pid(w, p);
			folding_forget(w->fold, p);
			record_process_free(p);
		} else {
			link = &p->next;
		}
	}
}

static bool has_work(const struct work *w)
{
	for (const struct record_process *p = w->processes; p; p = p->next)
		if (!p->given_up && !p->unknown)
			return true;
	return false;
}

static void tell_sampler(struct work *w)
{
	size_t count = 0;
	for (const struct record_process *p = w->processes; p && w->sampler; p = p->next) {
		if (!p->info || p->over || p->given_up || vec_reserve_raw(w->sampled, w->sampled_room, count + 1))
			continue;
		struct sampler_process *to = &w->sampled[count++];
		*to = (struct sampler_process){ .pid = p->pid,
						.pid_ns = p->info->pid_ns,
						.boot_start = p->info->boot_start };
		snprintf(to->info, sizeof(to->info), "%s%s.info", w->r.raw_stem, p->name);
	}
	if (w->sampler)
		sampler_processes(w->sampler, w->sampled, count);
}

/* One round over all of them; returns how much there was to do. */
static int work_round(struct work *w)
{
	int done = 0;
	uint64_t now = ticks_mono_ns();
	set_clock(w); /* before any ring is looked at */
	set_tight(w);
	look_around(w);
	oom_command_round(w->oom);
	bool many = are_many(w);
	for (struct record_process *p = w->processes; p; p = p->next) {
		done += serve(w, p, now);
		if (many && !w->folding)
			record_process_close_files(p);
		set_beat(w);
	}
	tell_sampler(w);
	w->folding = folding_work(w->fold, &w->r, w->processes);
	done += w->folding;
	forget_finished(w);
	return done;
}

/* ---- how long --------------------------------------------------------------------------------------------- */

/* `memtrace run` tells us when; if it is gone we are as any other recorder. */
static bool is_supervised(const struct work *w)
{
	return (__atomic_load_n(&w->r.session->flags, __ATOMIC_RELAXED) & MT_SESSION_SUPERVISED) &&
	       getppid() == w->parent;
}

static void pause_for(uint64_t ns)
{
	struct timespec pause = { .tv_nsec = (long)ns };
	nanosleep(&pause, NULL);
}

/* A small ring is full in a few milliseconds, or blocks can't leave it until folding is done. */
static bool is_hurried(const struct work *w, uint64_t now)
{
	return w->r.tight &&
	       ((w->r.lost_ns && now - w->r.lost_ns < LATELY_NS) || (w->folding && recorder_waits(&w->r)));
}

static void work_until_idle(struct work *w)
{
	uint64_t idle_since = ticks_mono_ns(), pause = PAUSE_MIN_NS;
	while (!told_to_stop) {
		int done = work_round(w);
		uint64_t now = ticks_mono_ns();
		if (done || has_work(w) || is_supervised(w)) /* a round over thousands takes longer than we linger */
			idle_since = now;
		if (now - idle_since > LINGER_NS || is_removed(w))
			return;
		pause = done || !has_work(w) ? PAUSE_MIN_NS : pause * 5 / 4;
		pause = pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS;
		pause_for(is_hurried(w, now) ? PAUSE_TIGHT_NS : pause);
	}
}

static void work_to_the_end(struct work *w)
{
	uint64_t end = ticks_mono_ns() + LAST_WORDS_NS;
	do
		work_round(w);
	while (has_work(w) && ticks_mono_ns() < end && (pause_for(PAUSE_MIN_NS), 1));
}

/* A process that begins after our last look must see that it has no recorder. */
static void work_off(struct work *w)
{
	for (;;) {
		/* it would take the last descriptors */
		w->sampler = w->most_files ? sampler_start(w->r.dir, w->r.session) : NULL;
		work_until_idle(w);
		if (told_to_stop)
			work_to_the_end(w);
		w->hangs |= !sampler_stop(w->sampler);
		w->sampler = NULL;
		set_present(w, false);
		work_round(w); /* not only a look: files of which nothing will ever come are met again and again */
		if (told_to_stop || !has_work(w) || is_removed(w))
			return;
		set_present(w, true);
	}
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

static void on_term(int sig)
{
	(void)sig;
	told_to_stop = 1;
}

static void set_up_process(struct work *w)
{
	static const int ignored[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGUSR1,
				       SIGUSR2, SIGXFSZ, SIGTSTP, SIGTTOU, SIGTTIN };
	struct sigaction term = { .sa_handler = on_term };
	sigset_t ready;
	struct rlimit files;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigaction(SIGTERM, &term, NULL);
	sigemptyset(&ready);
	sigaddset(&ready, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &ready, NULL); /* memtrace run blocks it until now */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
		w->most_files = files.rlim_cur > 2 * OWN_FILES ? files.rlim_cur - OWN_FILES : 0;
	}
	umask(077);
}

static int set_up(struct work *w)
{
	struct recorder *r = &w->r;
	r->codec = codec_new();
	r->cut = ring_cut_new();
	r->slots = malloc(RECORD_BLOCK_SLOTS * sizeof(*r->slots));
	r->rings = malloc(RECORD_BLOCK_SLOTS * sizeof(*r->rings));
	if (!r->codec || !r->cut || !r->slots || !r->rings)
		return error_set(MT_EMEMORY, r->dir, ERROR_NO_OFFSET, NULL);
	return 0;
}

static void tear_down(struct work *w)
{
	struct recorder *r = &w->r;
	folding_free(w->fold);
	oom_command_free(w->oom);
	free(w->sampled);
	while (w->processes) {
		struct record_process *p = w->processes;
		w->processes = p->next;
		record_process_free(p);
	}
	codec_free(r->codec);
	ring_cut_free(r->cut);
	free(r->slots);
	free(r->rings);
	codec_buf_fini(&r->block);
	if (r->session && !w->hangs)
		munmap(r->session, sizeof(*r->session));
	if (w->session_fd >= 0)
		close(w->session_fd);
}

static int run(struct work *w)
{
	int e = map_session(w);
	if (e)
		return e;
	if (flock(w->session_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? 0 : error_errno(MT_EIO, w->r.dir, ERROR_NO_OFFSET);
	if (!is_of_this_boot(w->r.session))
		return error_set(MT_ERUN, w->r.dir, ERROR_NO_OFFSET, "was recorded before this machine was started");
	e = set_up(w);
	if (e)
		return e;
	w->r.trace_bytes = (uint64_t)w->r.session->trace_mib << 20;
	folding_settle(&w->r);
	w->fold = folding_new();
	w->oom = oom_command_new(&w->r);
	set_present(w, true);
	find_raw_files(w);
	apart_push(w->r.dir);
	work_off(w);
	note_end(w);
	remove_ring_dir(w);
	return 0;
}

/* The directory by descriptor, not by name: when it is removed and another trace begins in its place, that one's
 * processes are not ours. */
static int open_dir(struct work *w, const char *name)
{
	w->dir_fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->dir_fd < 0)
		return error_errno(MT_ENOTRACE, name, ERROR_NO_OFFSET);
	snprintf(w->dir, sizeof(w->dir), "/proc/self/fd/%d", w->dir_fd);
	w->r.dir = w->dir;
	return 0;
}

int record_run(const char *dir)
{
	struct work w = { .session_fd = -1, .raw_fd = -1, .parent = getppid() };
	int e = open_dir(&w, dir);
	if (e)
		return e;
	set_up_process(&w);
	e = run(&w);
	tear_down(&w);
	close_raw_dir(&w);
	close(w.dir_fd);
	return e;
}
