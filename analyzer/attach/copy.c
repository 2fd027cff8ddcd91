/*
 * Copies a program's memory at one moment.
 *
 * A first copy is made while the program runs. It brings the pages that it is written to, so that the second one, for
 * which all threads are stopped by ptrace, takes no longer than memory can be read. Pages that were never touched or
 * are in a file are told by /proc/PID/pagemap and left alone: reading them would bring them into the program.
 *
 * A thread is stopped without a signal and goes on with what it waited for. Calls that would end with EINTR are begun
 * anew, as attach does it (arch_save()).
 */
#include "analyzer/attach/copy.h"

#include "analyzer/attach/arch.h"
#include "analyzer/attach/target.h"
#include "analyzer/util/error.h"
#include "analyzer/util/ticks.h"
#include "analyzer/util/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA       (64ull << 20) /* glibc's HEAP_MAX_SIZE: its heaps but the first begin at multiples of it */
#define PIECE       (1u << 14)    /* pages of which pagemap is asked at once */
#define OWN_BYTES   8192u
#define STOP_WITHIN 2000000000ull
#define EVENT_STOP  128 /* PTRACE_EVENT_STOP */

struct stopped {
	pid_t tid;
	int signal; /* that it is to get when it goes on */
	bool is_stopped;
	struct arch_thread at;
};

struct copying {
	struct memory_copy *c;
	struct target *t;
	const char *session;
	struct stopped *threads;
	size_t thread_count, thread_room;
	struct {
		uint64_t *list;
		size_t count, room;
	} kernel; /* what it keeps for an epoll */
	int pagemap;
	uint64_t page;
};

static int failed(const struct copying *k, const char *why)
{
	char name[32];
	snprintf(name, sizeof(name), "%d", (int)k->t->pid);
	return error_set(MT_EATTACH, name, ERROR_NO_OFFSET, "%s", why);
}

/* ---- what is to be copied ---- */

static int add(struct copying *k, uint64_t start, uint64_t end, enum copy_kind kind, uint32_t thread)
{
	struct memory_copy *c = k->c;
	int e = vec_reserve(c->ranges, c->room, c->count + 1);
	if (!e)
		c->ranges[c->count++] = (struct copy_range){ start, end, 0, kind, thread };
	return e;
}

/* Does a heap of glibc's malloc begin here? Its head: where its arena is, the heap before, its size (malloc/arena.c).
 */
static bool is_arena(const struct copying *k, uint64_t at, uint64_t end)
{
	uint64_t head[4];
	return target_read(k->t, at, head, sizeof(head)) && head[0] && head[0] % ARENA <= 64 && !(head[1] % ARENA) &&
	       head[2] >= k->page && head[2] <= end - at && head[3] >= head[2] && head[3] <= ARENA;
}

/* The thread whose stack it is: its stack pointer and its own data are in it. */
static const struct stopped *stack_of(const struct copying *k, const struct target_range *r)
{
	for (size_t i = 0; i < k->thread_count; i++) {
		const struct arch_thread *a = &k->threads[i].at;
		bool first = !strcmp(r->path, "[stack]") && k->threads[i].tid == k->t->pid;
		if (a->sp >= r->start && a->sp < r->end && (first || (a->thread >= r->start && a->thread < r->end)))
			return &k->threads[i];
	}
	return NULL;
}

/* glibc keeps stacks of threads that have ended for others. At their end are the thread's own data, which begin with
 * their address. */
static bool is_left(const struct copying *k, const struct target_range *r)
{
	uint64_t words[OWN_BYTES / 8];
	if (r->end - r->start < 4 * OWN_BYTES || !target_read(k->t, r->end - OWN_BYTES, words, OWN_BYTES))
		return false;
	for (size_t i = 0; i + 2 < OWN_BYTES / 8; i++)
		if (words[i] == r->end - OWN_BYTES + 8 * i && words[i + 2] == words[i])
			return true;
	return false;
}

static int add_anonymous(struct copying *k, const struct target_range *r)
{
	const struct stopped *stack = stack_of(k, r);
	if (!stack && k->thread_count && is_left(k, r))
		return 0;
	if (stack)
		return add(k, (stack->at.sp - ARCH_RED_ZONE) & ~7ull, r->end, COPY_STACK, (uint32_t)stack->tid);
	uint64_t at = r->start, next = (at + ARENA - 1) & ~(ARENA - 1);
	int e = 0;
	for (; !e && next < r->end; next += ARENA) {
		if (!is_arena(k, next, r->end))
			continue;
		if (at < next)
			e = add(k, at, next, COPY_OTHER, 0);
		at = next + ARENA < r->end ? next + ARENA : r->end;
		e = e ? e : add(k, next, at, COPY_MALLOC, 0);
	}
	return e || at == r->end ? e : add(k, at, r->end, COPY_OTHER, 0);
}

/* The library that records, whose variables are none of the program's. */
static bool is_ours(const struct target_range *r)
{
	const char *name = strrchr(r->path, '/');
	return name && !strncmp(name, "/libmemtrace", 12) && strstr(name, ".so");
}

static bool is_hidden(const struct copying *k, const struct target_range *r)
{
	const size_t n = strlen(k->session);
	return r->prot[0] != 'r' || !strncmp(r->path, "[v", 2) || is_ours(r) ||
	       (!strncmp(r->path, k->session, n) && r->path[n] == '/') ||
	       (!strncmp(r->path, "/dev/", 5) && strncmp(r->path, "/dev/shm/", 9) && strncmp(r->path, "/dev/zero", 9));
}

static int list_ranges(struct copying *k)
{
	const struct target *t = k->t;
	k->c->count = 0;
	int e = add(k, 0, k->kernel.count * 8, COPY_WORDS, 0);
	for (size_t i = 0; !e && i < k->thread_count; i++) {
		const struct arch_thread *a = &k->threads[i].at;
		const size_t bytes = arch_words(a, NULL);
		e = k->threads[i].is_stopped ? add(k, 0, bytes, COPY_WORDS, (uint32_t)k->threads[i].tid) : 0;
	}
	for (size_t i = 0; !e && i < t->range_count; i++) {
		const struct target_range *r = &t->ranges[i], *before = i ? &t->ranges[i - 1] : NULL;
		const bool named = *r->path && r->path[0] != '[', writes = r->prot[1] == 'w';
		if (is_hidden(k, r) || (!writes && (r->prot[2] == 'x' || r->prot[3] != 'p')))
			continue;
		if (!strcmp(r->path, "[heap]"))
			e = add(k, r->start, r->end, COPY_MALLOC, 0);
		else if (named)
			e = add(k, r->start, r->end, r->prot[3] == 'p' ? COPY_GLOBALS : COPY_OTHER, 0);
		else if (before && before->end == r->start && before->path[0] == '/' && before->prot[1] == 'w' &&
			 before->prot[3] == 'p') /* .bss */
			e = is_ours(before) ? 0 : add(k, r->start, r->end, COPY_GLOBALS, 0);
		else
			e = add_anonymous(k, r);
	}
	return e;
}

/* Where a range is in the copy: as far from the beginning of a page as in the program. */
static size_t place(const struct copying *k, const struct copy_range *r, size_t at)
{
	return ((at + k->page - 1) & ~(k->page - 1)) + r->start % k->page;
}

/* Room for all, as address space: of what is not copied no memory is taken. The first copy's pages are used again. */
static int make_room(struct copying *k)
{
	struct memory_copy *c = k->c;
	size_t bytes = 0;
	for (int words = 0; words < 2; words++)
		for (size_t i = 0; i < c->count; i++) {
			struct copy_range *r = &c->ranges[i];
			if ((r->kind == COPY_WORDS) != words)
				continue;
			bytes = place(k, r, bytes);
			r->offset = bytes;
			bytes += r->end - r->start;
		}
	if (bytes > c->memory_bytes) {
		memory_copy_unmap(c);
		c->memory_bytes = bytes + bytes / 4 + ARENA;
		c->memory = mmap(NULL, c->memory_bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (c->memory == MAP_FAILED) {
			c->memory = NULL;
			return error_memory();
		}
	}
	return 0;
}

/* ---- copying ---- */

/* Half of what the machine has left is ours at most. */
static uint64_t room_here(void)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "MemAvailable: %llu", &kib) != 1)
		continue;
	if (f)
		fclose(f);
	return kib ? kib * 512 : UINT64_MAX;
}

static uint8_t *data_of(const struct copying *k, const struct copy_range *r)
{
	return (uint8_t *)k->c->memory + r->offset;
}

/* Of pages that are not copied nothing is left of the first copy. */
static void leave_out(const struct copying *k, const struct copy_range *r, uint64_t at, uint64_t end)
{
	uint8_t *from = data_of(k, r) + (at - r->start);
	if (at < end && madvise(from, end - at, MADV_DONTNEED))
		memset(from, 0, end - at);
}

static bool copy_piece(const struct copying *k, const struct copy_range *r, uint64_t at, uint64_t end)
{
	struct iovec to = { data_of(k, r) + (at - r->start), end - at }, from = { (void *)(uintptr_t)at, end - at };
	if (process_vm_readv(k->t->pid, &to, 1, &from, 1, 0) == (ssize_t)(end - at))
		return true;
	return target_read(k->t, at, to.iov_base, end - at);
}

/* Is there something to copy: is it in memory (bit 63) or swapped out (62)? What a file still backs (61) of a module
 * has never been written to. */
static bool is_there(const struct copy_range *r, uint64_t page)
{
	return page >> 62 & 1 || (page >> 63 && !(r->kind == COPY_GLOBALS && page >> 61 & 1));
}

static int copy_range(struct copying *k, const struct copy_range *r, uint64_t most)
{
	static uint64_t pages[PIECE];
	const uint64_t page = k->page;
	for (uint64_t at = r->start, next; at < r->end; at = next) {
		const uint64_t first = at / page;
		next = (first + PIECE) * page < r->end ? (first + PIECE) * page : r->end;
		const uint64_t count = (next - first * page + page - 1) / page;
		ssize_t n = k->pagemap < 0 ? -1 : pread(k->pagemap, pages, count * 8, (off_t)(first * 8));
		for (uint64_t i = 0; n != (ssize_t)(count * 8) && i < count; i++)
			pages[i] = 1ull << 63;
		for (uint64_t i = 0, j; i < count; i = j) {
			const bool there = is_there(r, pages[i]);
			for (j = i; j < count && is_there(r, pages[j]) == there;)
				j++;
			const uint64_t from = i ? (first + i) * page : at, to = j < count ? (first + j) * page : next;
			k->c->bytes += there ? to - from : 0;
			if (k->c->bytes > most)
				return error_set(MT_ELARGE, "--scan", ERROR_NO_OFFSET,
						 "a copy of its memory, which half of what is left on this machine "
						 "must hold");
			if (!there || !copy_piece(k, r, from, to)) /* it went meanwhile, or nobody may read it */
				leave_out(k, r, from, to);
		}
	}
	return 0;
}

static int copy_all(struct copying *k, uint64_t most)
{
	int e = list_ranges(k);
	e = e ? e : make_room(k);
	k->c->bytes = 0;
	size_t thread = 0;
	for (size_t i = 0; !e && i < k->c->count; i++) {
		const struct copy_range *r = &k->c->ranges[i];
		if (r->kind != COPY_WORDS) {
			e = copy_range(k, r, most);
		} else if (!r->thread) {
			if (r->end)
				memcpy(data_of(k, r), k->kernel.list, r->end);
		} else {
			while ((uint32_t)k->threads[thread].tid != r->thread)
				thread++;
			arch_words(&k->threads[thread].at, data_of(k, r));
		}
	}
	return e;
}

/* ---- what the kernel keeps ---- */

static int add_epoll(struct copying *k, const char *fd)
{
	char path[96], line[256];
	unsigned long long data;
	int e = 0;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.20s", (int)k->t->pid, fd);
	FILE *f = fopen(path, "re");
	while (f && !e && fgets(line, sizeof(line), f)) {
		const char *at = strncmp(line, "tfd:", 4) ? NULL : strstr(line, "data:");
		if (!at || sscanf(at, "data: %llx", &data) != 1)
			continue;
		e = vec_reserve_raw(k->kernel.list, k->kernel.room, k->kernel.count + 1);
		if (!e)
			k->kernel.list[k->kernel.count++] = data;
	}
	if (f)
		fclose(f);
	return e;
}

static int ask_kernel(struct copying *k)
{
	char path[64], link[32];
	int e = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)k->t->pid);
	DIR *d = opendir(path);
	for (struct dirent *entry; d && !e && (entry = readdir(d));) {
		ssize_t n = readlinkat(dirfd(d), entry->d_name, link, sizeof(link) - 1);
		if (n > 0 && !strncmp(link, "anon_inode:[eventpoll]", (size_t)n))
			e = add_epoll(k, entry->d_name);
	}
	if (d)
		closedir(d);
	return e;
}

/* ---- stopping ---- */

static struct stopped *find(const struct copying *k, pid_t tid)
{
	for (size_t i = 0; i < k->thread_count; i++)
		if (k->threads[i].tid == tid)
			return &k->threads[i];
	return NULL;
}

/* Threads that are not known yet. Less than 0: an error. */
static int seize_new(struct copying *k)
{
	char path[64];
	int found = 0, e = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)k->t->pid);
	DIR *d = opendir(path);
	for (struct dirent *entry; d && !e && (entry = readdir(d));) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (tid <= 0 || find(k, tid) || ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD))
			continue;
		e = vec_reserve(k->threads, k->thread_room, k->thread_count + 1);
		if (e)
			break;
		struct stopped *s = &k->threads[k->thread_count++];
		s->tid = tid;
		s->is_stopped = false;
		arch_look(tid, &s->at);
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
		found++;
	}
	if (d)
		closedir(d);
	return e ? e : found;
}

static int wait_stopped(struct copying *k, struct stopped *s, uint64_t until)
{
	int status;
	pid_t got;
	while ((got = waitpid(s->tid, &status, WNOHANG | __WALL)) == 0 || (got < 0 && errno == EINTR)) {
		if (ticks_mono_ns() > until)
			return failed(k, "one of its threads can't be stopped: it waits for a disk or a device");
		usleep(50);
	}
	if (got < 0 || !WIFSTOPPED(status))
		return 0; /* it has ended */
	s->signal = status >> 16 == EVENT_STOP ? 0 : WSTOPSIG(status);
	s->is_stopped = arch_save(s->tid, &s->at);
	if (!s->is_stopped)
		ptrace(PTRACE_DETACH, s->tid, NULL, s->signal);
	return s->is_stopped ? 0 : failed(k, "the registers of one of its threads can't be read");
}

static int stop_all(struct copying *k)
{
	const uint64_t until = ticks_mono_ns() + STOP_WITHIN;
	int n = 0, e = 0;
	for (size_t i = 0; !e && (n = seize_new(k)) > 0;)
		for (; !e && i < k->thread_count; i++)
			e = wait_stopped(k, &k->threads[i], until);
	e = e ? e : n < 0 ? n : 0;
	return e || k->thread_count ? e : failed(k, "nobody may look at it, or it is traced already (by a debugger)");
}

static void go_on(struct copying *k)
{
	for (size_t i = 0; i < k->thread_count; i++)
		if (k->threads[i].is_stopped)
			arch_let_go(k->threads[i].tid, &k->threads[i].at, k->threads[i].signal);
}

static int name_threads(struct copying *k)
{
	struct memory_copy *c = k->c;
	int e = 0;
	for (size_t i = 0; !e && i < k->thread_count; i++) {
		char path[80];
		struct copy_thread t = { .id = (uint32_t)k->threads[i].tid, .own = k->threads[i].at.thread };
		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)k->t->pid, (int)k->threads[i].tid);
		FILE *f = fopen(path, "re");
		if (f && fgets(t.name, sizeof(t.name), f))
			t.name[strcspn(t.name, "\n")] = '\0';
		if (f)
			fclose(f);
		e = vec_reserve(c->threads, c->thread_room, c->thread_count + 1);
		if (!e)
			c->threads[c->thread_count++] = t;
	}
	return e;
}

static int copy_stopped(struct copying *k, uint32_t clock)
{
	const uint64_t begin = ticks_mono_ns();
	int e = stop_all(k);
	k->c->ticks = ticks_now(clock);
	e = e ? e : target_ranges(k->t);
	e = e ? e : copy_all(k, UINT64_MAX);
	go_on(k);
	k->c->stopped_ns = ticks_mono_ns() - begin;
	return e ? e : name_threads(k);
}

int copy_memory(struct memory_copy *c, pid_t pid, const char *session, uint32_t clock)
{
	struct target t;
	struct copying k = {
		.c = c, .t = &t, .session = session, .pagemap = -1, .page = (uint64_t)sysconf(_SC_PAGESIZE)
	};
	char path[64];
	*c = (struct memory_copy){ 0 };
	int e = target_open(&t, pid);
	if (!e && !ARCH_SCANS)
		e = failed(&k, "its memory can't be scanned on this machine: only on x86-64");
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	k.pagemap = e ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	e = e ? e : copy_all(&k, room_here());
	e = e ? e : ask_kernel(&k);
	e = e ? e : copy_stopped(&k, clock);
	if (k.pagemap >= 0)
		close(k.pagemap);
	free(k.threads);
	free(k.kernel.list);
	target_close(&t);
	return e;
}
