/*
 * Makes the recorded calls of a heap again, each thread's by a thread of its own, in the recorded order: there is one
 * turn, which goes from thread to thread as the recording's calls did. So arenas and thread caches come to be as they
 * were, and nothing but the turn needs a lock: a semaphore per thread, which also orders all that they share.
 *
 * What is measured is the process's anonymous memory. So the player has none of its own: its tables, and what comes
 * over the socket, lie in shared memory, which is counted elsewhere.
 */
#include "analyzer/replay/heap/heap_player.h"

#include "analyzer/replay/heap/heap_wire.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/recorded_clock.h"
#include "format/varint.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 256 << 10, PAGE = 4096, STACK = 256 << 10 };

struct player;

struct worker {
	struct player *player;
	pthread_t thread;
	sem_t turn;
	bool runs, over;
};

struct player {
	struct heap_orders orders;
	struct heap_answer answer;
	int socket, statm;
	struct worker *workers;
	char **blocks;
	struct heap_seen *seen;
	uint64_t most, since;            /* since the point before; bytes touched since the last look */
	uint64_t watch_ns, watch_cpu_ns; /* of the thread that has the turn, when it was last looked at */
	uint64_t time_ns;                /* of the recording */
	bool ended;
	struct varint_in in; /* of buffer */
	uint8_t *buffer;
	bool closed;
};

/* Zeros that are in no figure; NULL = no memory. */
static void *shared(size_t bytes)
{
	void *p = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void end(struct player *p, enum heap_end why, uint64_t bytes)
{
	if (!p->ended)
		p->answer.bytes = bytes;
	p->answer.end = p->ended ? p->answer.end : why;
	p->ended = true;
}

/* ---- the time in calls --------------------------------------------------------------------------------------- */

/* A call that takes longer may have waited for a processor, as this process comes last of all. */
enum { SLOW_NS = 20000 };

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Here the thread has waited for nothing that counts. */
static void begin_watch(struct player *p)
{
	p->watch_ns = recorded_clock_real_ns();
	p->watch_cpu_ns = cpu_ns();
}

/* A call took from `from_ns` to `to_ns`. Of a slow one, what the thread has waited since it was last looked at is taken
 * off. */
static void count_time(struct player *p, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = to_ns - from_ns;
	if (ns > SLOW_NS) {
		const uint64_t wall = to_ns - p->watch_ns, watch = p->watch_cpu_ns;
		begin_watch(p);
		ns = less(ns, less(wall, p->watch_cpu_ns - watch));
	}
	p->answer.call_ns += ns;
}

/* ---- looking at the memory --------------------------------------------------------------------------------- */

static uint64_t number_at(const char **text)
{
	uint64_t n = 0;
	while (**text == ' ')
		++*text;
	for (; **text >= '0' && **text <= '9'; ++*text)
		n = n * 10 + (uint64_t)(**text - '0');
	return n;
}

/* Resident pages that are no file's and not shared. */
static uint64_t anonymous_bytes(const struct player *p)
{
	char text[256];
	const ssize_t n = pread(p->statm, text, sizeof(text) - 1, 0);
	const char *at = text;
	text[n > 0 ? n : 0] = '\0';
	number_at(&at); /* size */
	const uint64_t resident = number_at(&at), of_others = number_at(&at);
	return resident > of_others ? (resident - of_others) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t look(struct player *p)
{
	const uint64_t now = anonymous_bytes(p);
	begin_watch(p);
	p->since = 0;
	p->most = now > p->most ? now : p->most;
	if (now > p->orders.most_bytes)
		end(p, HEAP_END_FULL, now);
	return now;
}

static void note_point(struct player *p)
{
	const uint64_t now = look(p);
	if (p->answer.points < p->orders.points)
		p->seen[p->answer.points++] = (struct heap_seen){ now, p->most };
	p->most = now;
}

/* Bytes [from, to) of a block are written to, a byte in each page. */
static void touch(struct player *p, char *block, uint64_t from, uint64_t to)
{
	volatile char *at = block;
	while (from < to && !p->ended) {
		const uint64_t stop = to - from > p->orders.step ? from + p->orders.step : to;
		p->since += stop - from;
		for (; from < stop; from += PAGE)
			at[from] = 1;
		from = stop;
		at[stop - 1] = 1;
		if (p->since >= p->orders.step)
			look(p);
	}
}

/* ---- operations -------------------------------------------------------------------------------------------- */

/* Makes sure that a whole operation is there, if one comes. */
static void fill(struct player *p)
{
	size_t left = (size_t)(p->in.end - p->in.at);
	if (left >= HEAP_OP_BYTES || p->closed)
		return;
	memmove(p->buffer, p->in.at, left);
	while (left < HEAP_OP_BYTES && !p->closed) {
		const ssize_t n = read(p->socket, p->buffer + left, BUFFER - left);
		if (n > 0)
			left += (size_t)n;
		else if (n == 0 || errno != EINTR)
			p->closed = true;
	}
	p->in = (struct varint_in){ .at = p->buffer, .end = p->buffer + left };
}

static void *aligned(uint64_t bytes, unsigned bits)
{
	void *p;
	return posix_memalign(&p, (size_t)1 << (bits > 3 ? bits & 31 : 3), bytes) ? NULL : p;
}

/* One call, timed; NULL where it was refused. */
static char *call(struct player *p, enum heap_op op, char *old, uint64_t bytes, unsigned bits)
{
	const uint64_t from = recorded_clock_real_ns();
	char *block = op == HEAP_OP_MALLOC    ? malloc(bytes)
		      : op == HEAP_OP_CALLOC  ? calloc(1, bytes)
		      : op == HEAP_OP_ALIGNED ? aligned(bytes, bits)
					      : realloc(old, bytes);
	count_time(p, from, recorded_clock_real_ns());
	return block;
}

static void allocate(struct player *p, enum heap_op op)
{
	const uint64_t number = varint_get(&p->in), bytes = varint_get(&p->in), touched = varint_get(&p->in);
	const uint64_t more = op == HEAP_OP_ALIGNED || op == HEAP_OP_REALLOC ? varint_get(&p->in) : 0;
	if (number >= p->orders.blocks)
		return end(p, HEAP_END_NO_MEMORY, 0);
	char **block = &p->blocks[number];
	*block = call(p, op, *block, bytes, (unsigned)more);
	p->answer.calls++;
	if (*block)
		touch(p, *block, op == HEAP_OP_REALLOC && more < touched ? more & ~(uint64_t)(PAGE - 1) : 0, touched);
	else if (bytes)
		end(p, HEAP_END_REFUSED, bytes);
}

static void release(struct player *p)
{
	const uint64_t number = varint_get(&p->in);
	if (number >= p->orders.blocks)
		return end(p, HEAP_END_NO_MEMORY, 0);
	const uint64_t from = recorded_clock_real_ns();
	free(p->blocks[number]);
	count_time(p, from, recorded_clock_real_ns());
	p->blocks[number] = NULL;
	p->answer.calls++;
}

/* The C library's, of which another allocator knows nothing. */
static void trim(struct player *p)
{
	if (*p->orders.library)
		return end(p, HEAP_END_NO_TRIM, 0);
#ifdef __GLIBC__
	const uint64_t from = recorded_clock_real_ns();
	malloc_trim(0);
	count_time(p, from, recorded_clock_real_ns());
#else
	end(p, HEAP_END_NO_TRIM, 0);
#endif
}

/* ---- turns ------------------------------------------------------------------------------------------------- */

static bool play(struct player *p, uint32_t self);

static void *work(void *arg)
{
	struct worker *w = arg;
	const uint32_t self = (uint32_t)(w - w->player->workers);
	for (;;) {
		while (sem_wait(&w->turn))
			;
		if (w->over)
			return NULL;
		play(w->player, self);
	}
}

static void stop(struct player *p, uint64_t number)
{
	if (number == HEAP_MAIN || number >= p->orders.workers)
		return end(p, HEAP_END_NO_MEMORY, 0);
	struct worker *w = &p->workers[number];
	if (!w->runs)
		return;
	w->over = true;
	sem_post(&w->turn);
	pthread_join(w->thread, NULL);
	w->runs = false;
}

static void start(struct player *p, uint64_t number)
{
	pthread_attr_t attributes;
	stop(p, number);
	if (p->ended)
		return;
	struct worker *w = &p->workers[number];
	w->player = p;
	w->over = false;
	sem_init(&w->turn, 0, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	w->runs = !pthread_create(&w->thread, &attributes, work, w);
	pthread_attr_destroy(&attributes);
	if (!w->runs)
		end(p, HEAP_END_NO_THREAD, 0);
}

/* The turn is `next`'s; who had it waits for the next one. */
static void pass_turn(struct player *p, uint64_t next)
{
	if (next >= p->orders.workers || (next != HEAP_MAIN && !p->workers[next].runs))
		next = HEAP_MAIN;
	sem_post(&p->workers[next].turn);
}

/* Threads begin and end by the first one's hand, as none can wait for itself. True: the turn is still `self`'s. */
static bool make_one(struct player *p, uint32_t self)
{
	const uint8_t *at = p->in.at;
	const enum heap_op op = (enum heap_op)varint_get(&p->in);
	uint64_t next;
	switch (op) {
	case HEAP_OP_START:
	case HEAP_OP_STOP:
		next = varint_get(&p->in);
		if (self == HEAP_MAIN) {
			(op == HEAP_OP_START ? start : stop)(p, next);
			return true;
		}
		p->in.at = at;
		pass_turn(p, HEAP_MAIN);
		return false;
	case HEAP_OP_TURN:
		next = varint_get(&p->in);
		if (next == self)
			return true;
		pass_turn(p, next);
		return false;
	case HEAP_OP_FREE:
		release(p);
		return true;
	case HEAP_OP_TIME:
		p->time_ns += varint_get(&p->in);
		recorded_clock_set(p->time_ns);
		return true;
	case HEAP_OP_POINT:
		note_point(p);
		return true;
	case HEAP_OP_TRIM:
		trim(p);
		return true;
	case HEAP_OP_END:
		end(p, HEAP_END_WELL, 0);
		return true;
	default:
		allocate(p, op);
		return true;
	}
}

/* True: somebody else has the turn. The first thread's is the last one. */
static bool play(struct player *p, uint32_t self)
{
	begin_watch(p);
	while (!p->ended) {
		fill(p);
		if (p->in.at == p->in.end)
			_exit(1); /* memtrace has gone */
		if (!make_one(p, self))
			return true;
	}
	if (self != HEAP_MAIN)
		pass_turn(p, HEAP_MAIN);
	return self != HEAP_MAIN;
}

/* ---- all --------------------------------------------------------------------------------------------------- */

static bool send_all(int socket, const void *data, size_t bytes)
{
	for (size_t gone = 0; gone < bytes;) {
		const ssize_t n = send(socket, (const char *)data + gone, bytes - gone, MSG_NOSIGNAL);
		if (n > 0)
			gone += (size_t)n;
		else if (errno != EINTR)
			return false;
	}
	return true;
}

/* The loader goes on without what it can't load, and not every library is an allocator. */
static bool is_allocator(const char *library)
{
	Dl_info info;
	void *function = dlsym(RTLD_DEFAULT, "malloc");
	const char *name = function && dladdr(function, &info) ? strrchr(info.dli_fname, '/') : NULL;
	return name && !strcmp(name + 1, library);
}

static bool make_tables(struct player *p)
{
	p->buffer = shared(BUFFER);
	p->blocks = shared((p->orders.blocks + 1ul) * sizeof(*p->blocks));
	p->workers = shared((p->orders.workers + 1ul) * sizeof(*p->workers));
	p->seen = shared((p->orders.points + 1ul) * sizeof(*p->seen));
	p->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	p->in = (struct varint_in){ .at = p->buffer, .end = p->buffer };
	return p->buffer && p->blocks && p->workers && p->seen && p->statm >= 0;
}

static void play_all(struct player *p)
{
	p->workers[HEAP_MAIN].player = p;
	sem_init(&p->workers[HEAP_MAIN].turn, 0, 0);
	while (play(p, HEAP_MAIN))
		while (sem_wait(&p->workers[HEAP_MAIN].turn))
			;
}

int heap_play(int socket)
{
	struct player *p = shared(sizeof(*p));
	if (!p || !heap_wire_read(socket, &p->orders, sizeof(p->orders)))
		return 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if ((uint32_t)getppid() != p->orders.parent)
		return 1;
	p->socket = socket;
	p->orders.library[sizeof(p->orders.library) - 1] = '\0';
	if (!make_tables(p))
		end(p, HEAP_END_NO_MEMORY, 0);
	else if (*p->orders.library && !is_allocator(p->orders.library))
		end(p, HEAP_END_NO_ALLOCATOR, 0);
	p->time_ns = recorded_clock_real_ns();
	if (!p->ended)
		play_all(p);
	shutdown(socket, SHUT_RD); /* who still sends learns that nobody wants it */
	const bool sent = send_all(socket, &p->answer, sizeof(p->answer)) &&
			  send_all(socket, p->seen, p->answer.points * sizeof(*p->seen));
	_exit(!sent);
}
