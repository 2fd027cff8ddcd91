#include "analyzer/replay/heap/heap_child.h"

#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/ticks.h"
#include "analyzer/util/vec.h"
#include "format/varint.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUFFER = 64 << 10, PROGRESS = 1 << 16, NICE = 10 };
#define CHILD_LEAST_STEP (256ull << 10) /* bytes touched between two looks */
#define TIME_STEP        1000000ull     /* ns that the child's clock may be behind */

extern char **environ;

struct child {
	const struct heap_plan *plan;
	pid_t pid;
	int socket;
	bool gone;         /* it wants no more: what it says tells why */
	bool slow;         /* it had no more time */
	uint64_t until_ns; /* that it has; 0 = any */
	uint8_t buffer[BUFFER];
	size_t filled;
	uint32_t turn;
	uint32_t *threads; /* by ring: index and 1 of the thread that has it, and runs */
	bool trims;        /* malloc_trim(0) when the process was looked at last, and at the end */
	size_t next_point, next_stop;
	uint64_t told_ns; /* as the child knows it; 0 = nothing yet */
};

/* ---- starting ---------------------------------------------------------------------------------------------- */

static bool is_dropped(const char *variable)
{
	return heap_setting_heeds(variable) || !strncmp(variable, "LD_PRELOAD=", 11) ||
	       !strncmp(variable, "LD_AUDIT=", 9) || !strncmp(variable, "MEMTRACE_", 9);
}

/* Ours, less what would change an allocator, with the setting's. Entries are borrowed but the first. */
static char **make_environment(const struct heap_setting *s)
{
	size_t count = 0;
	while (environ[count])
		count++;
	char **list = calloc(count + s->count + 2, sizeof(*list));
	char preload[sizeof(s->library) + 12];
	size_t n = 0;
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", s->library);
	if (!list || !(list[n++] = strdup(preload))) {
		free(list);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		if (!is_dropped(environ[i]))
			list[n++] = environ[i];
	for (unsigned i = 0; i < s->count; i++)
		list[n++] = s->variables[i];
	return list;
}

/* The kernel takes it first where memory ends. What reading a trace may take is no limit of the program's. */
static void be_humble(void)
{
	struct rlimit limit;
	const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	const int level = nice(NICE);
	(void)level;
	if (fd >= 0 && write(fd, "1000", 4) == 4)
		close(fd);
	if (!getrlimit(RLIMIT_DATA, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_DATA, &limit);
	}
}

static void become(int socket, char **environment)
{
	char number[16];
	const int null = open("/dev/null", O_RDWR), kept = fcntl(socket, F_DUPFD, 3);
	snprintf(number, sizeof(number), "%d", kept);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	be_humble();
	execve("/proc/self/exe", (char *[]){ "memtrace", HEAP_CHILD_COMMAND, number, NULL }, environment);
	_exit(127);
}

static int start(struct child *c, const struct heap_setting *s)
{
	int pair[2];
	char **environment = make_environment(s);
	if (!environment)
		return error_memory();
	int e = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ? error_errno(MT_ERUN, "the replay", -1) : 0;
	if (!e) {
		c->pid = fork();
		if (c->pid == 0)
			become(pair[1], environment);
		close(pair[1]);
		c->socket = pair[0];
		e = c->pid < 0 ? error_errno(MT_ERUN, "the replay", ERROR_NO_OFFSET) : 0;
	}
	free(environment[0]);
	free(environment);
	return e;
}

/* ---- how long ---------------------------------------------------------------------------------------------- */

/* A child that hangs takes nothing and says nothing: then waiting for it ends, too. */
static void limit_time(struct child *c, uint64_t most_ns)
{
	const struct timeval wait = { .tv_sec = (time_t)(most_ns / 1000000000u) + 1 };
	if (!most_ns)
		return;
	c->until_ns = ticks_mono_ns() + most_ns;
	setsockopt(c->socket, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	setsockopt(c->socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
}

static bool is_late(struct child *c)
{
	c->slow |= c->until_ns && ticks_mono_ns() > c->until_ns;
	return c->slow;
}

/* ---- telling ----------------------------------------------------------------------------------------------- */

static void flush(struct child *c)
{
	for (size_t sent = 0; sent < c->filled && !c->gone;) {
		const ssize_t n = send(c->socket, c->buffer + sent, c->filled - sent, MSG_NOSIGNAL);
		if (n > 0) {
			sent += (size_t)n;
		} else if (errno != EINTR) {
			c->gone = true;
			c->slow |= errno == EAGAIN;
		}
	}
	c->filled = 0;
}

static void tell(struct child *c, enum heap_op op, const uint64_t *numbers, size_t count)
{
	if (c->filled + HEAP_OP_BYTES > sizeof(c->buffer))
		flush(c);
	uint8_t *at = c->buffer + c->filled;
	*at++ = (uint8_t)op;
	for (size_t i = 0; i < count; i++)
		at = varint_put(at, numbers[i]);
	c->filled = (size_t)(at - c->buffer);
}
#define TELL(c, op, ...) \
	tell(c, op, (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* The thread that makes the call gets the turn; a ring whose thread is another one now was left by the one before. */
static void give_turn(struct child *c, const struct heap_call *call)
{
	uint32_t worker = HEAP_MAIN;
	if (!heap_plan_is_main(c->plan, call->thread)) {
		worker = call->ring + 1;
		if (c->threads[call->ring] != call->thread + 1) {
			TELL(c, HEAP_OP_START, worker);
			c->threads[call->ring] = call->thread + 1;
			c->turn = HEAP_MAIN; /* which begins and ends threads */
		}
	}
	if (worker != c->turn)
		TELL(c, HEAP_OP_TURN, worker);
	c->turn = worker;
}

static int on_call(void *arg, const struct heap_call *call)
{
	struct child *c = arg;
	const struct heap_plan *plan = c->plan;
	const uint64_t touched = heap_plan_touched(plan, call->what, call->addr, call->size);
	give_turn(c, call);
	switch (call->what) {
	case HEAP_MALLOC:
		TELL(c, HEAP_OP_MALLOC, call->block, call->size, touched);
		break;
	case HEAP_CALLOC:
		TELL(c, HEAP_OP_CALLOC, call->block, call->size, touched);
		break;
	case HEAP_ALIGNED:
		TELL(c, HEAP_OP_ALIGNED, call->block, call->size, touched, heap_plan_alignment(plan, call));
		break;
	case HEAP_REALLOC:
		TELL(c, HEAP_OP_REALLOC, call->block, call->size, touched,
		     heap_plan_touched(plan, HEAP_REALLOC, call->old_addr, call->old_size));
		break;
	case HEAP_FREE:
		TELL(c, HEAP_OP_FREE, call->block);
		break;
	}
	return 0;
}

static void tell_time(struct child *c, uint64_t ns)
{
	if (c->told_ns && ns < c->told_ns + TIME_STEP)
		return;
	if (c->told_ns)
		TELL(c, HEAP_OP_TIME, ns - c->told_ns);
	c->told_ns = ns;
}

static void tell_stops(struct child *c, uint64_t events)
{
	const struct heap_plan *plan = c->plan;
	for (; c->next_stop < plan->stop_count && plan->stops[c->next_stop].at <= events; c->next_stop++) {
		const struct heap_stop *s = &plan->stops[c->next_stop];
		if (c->threads[s->ring] != s->thread + 1)
			continue;
		TELL(c, HEAP_OP_STOP, s->ring + 1);
		c->threads[s->ring] = 0;
		c->turn = HEAP_MAIN;
	}
}

static void tell_points(struct child *c, uint64_t events)
{
	const struct heap_plan *plan = c->plan;
	tell_stops(c, events);
	for (; c->next_point < plan->point_count && plan->points[c->next_point].at <= events; c->next_point++) {
		if (c->trims && (c->next_point == plan->looked || c->next_point == plan->point_count - 1))
			tell(c, HEAP_OP_TRIM, NULL, 0);
		tell(c, HEAP_OP_POINT, NULL, 0);
	}
}

static int tell_step(struct child *c, struct heap_calls *calls, const struct reader_step *step)
{
	int e = 0;
	for (size_t i = 0; i < step->count && !e; i++) {
		tell_points(c, heap_calls_counts(calls)->events);
		tell_time(c, process_ns(c->plan->process, step->slots[i].ticks));
		e = heap_calls_event(calls, &step->slots[i], step->rings[i], step->threads[i]);
	}
	return e;
}

static int tell_calls(struct child *c, struct reader *first, void (*on_progress)(double done, uint64_t events))
{
	struct heap_calls *calls = heap_calls_new(c->plan->process, on_call, c);
	struct reader *r = NULL;
	struct reader_step step;
	uint64_t seen = 0;
	int e = calls ? reader_open_again(&r, first) : error_memory();
	while (!e && !c->gone && !is_late(c) && (e = reader_next(r, &step)) > 0) {
		e = step.what == READER_EVENTS && step.process->id == c->plan->process->id ? tell_step(c, calls, &step)
											   : 0;
		seen += step.what == READER_EVENTS ? step.count : 0;
		if (on_progress && seen >= PROGRESS) {
			const struct reader_progress p = reader_progress(r);
			on_progress(p.done, p.events);
			seen = 0;
		}
	}
	reader_close(r);
	heap_calls_free(calls);
	return e;
}

static void tell_end(struct child *c)
{
	static const uint8_t zeros[HEAP_OP_BYTES];
	tell_points(c, UINT64_MAX);
	tell(c, HEAP_OP_END, NULL, 0);
	flush(c);
	memcpy(c->buffer, zeros, sizeof(zeros));
	c->filled = sizeof(zeros);
	flush(c);
}

/* ---- all --------------------------------------------------------------------------------------------------- */

/* Where the kernel or the allocator itself ended it there is no answer. */
static int hear(struct child *c, struct heap_result *out)
{
	int status;
	const size_t most = c->plan->point_count;
	bool well =
		!c->slow && heap_wire_read(c->socket, &out->answer, sizeof(out->answer)) && out->answer.points <= most;
	well = well && heap_wire_read(c->socket, out->seen, out->answer.points * sizeof(*out->seen));
	if (!well && is_late(c)) {
		out->answer = (struct heap_answer){ .end = HEAP_END_SLOW };
		return 0;
	}
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	if (well)
		return 0;
	if (WIFSIGNALED(status))
		return error_set(MT_ERUN, "the replay", ERROR_NO_OFFSET, "was ended by %s",
				 strsignal(WTERMSIG(status)));
	return error_set(MT_ERUN, "the replay", ERROR_NO_OFFSET, "ended with status %d", WEXITSTATUS(status));
}

static struct heap_orders orders_of(const struct heap_plan *plan, const struct heap_setting *s, uint64_t most_bytes)
{
	struct heap_orders o = { .most_bytes = most_bytes,
				 .step = higher(CHILD_LEAST_STEP, plan->most_live / 256),
				 .blocks = plan->counts.blocks,
				 .workers = plan->rings + 1,
				 .points = (uint32_t)plan->point_count,
				 .parent = (uint32_t)getpid() };
	const char *name = strrchr(s->library, '/');
	snprintf(o.library, sizeof(o.library), "%s", name ? name + 1 : s->library);
	return o;
}

int heap_child_run(struct heap_result *out, struct reader *first, const struct heap_plan *plan,
		   const struct heap_setting *setting, uint64_t most_bytes, uint64_t most_ns,
		   void (*on_progress)(double done, uint64_t events))
{
	struct child *c = calloc(1, sizeof(*c));
	*out = (struct heap_result){ .seen = calloc(plan->point_count + 1, sizeof(*out->seen)) };
	if (!c || !out->seen || !(c->threads = calloc(plan->rings + 1ul, sizeof(*c->threads)))) {
		free(c);
		return error_memory();
	}
	const struct heap_orders orders = orders_of(plan, setting, most_bytes);
	c->plan = plan;
	c->trims = setting->trim;
	c->turn = HEAP_MAIN;
	c->socket = -1;
	const uint64_t began = ticks_mono_ns();
	int e = start(c, setting);
	if (!e) {
		memcpy(c->buffer, &orders, sizeof(orders));
		c->filled = sizeof(orders);
		limit_time(c, most_ns);
		e = tell_calls(c, first, on_progress);
	}
	if (!e) {
		if (!c->slow)
			tell_end(c);
		e = hear(c, out);
	}
	if (c->socket >= 0)
		close(c->socket);
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	free(c->threads);
	free(c);
	out->took_ns = ticks_mono_ns() - began;
	return e;
}

void heap_result_fini(struct heap_result *r)
{
	free(r->seen);
	*r = (struct heap_result){ 0 };
}
