/* Random operations on the heap and on mappings in several threads, all of them written to the program's own log.
 *
 *   oracle LOG SEED THREADS ROUNDS OPS FLAGS [PACE]
 *
 * FLAGS: m = also mappings, f = fork at barriers, b = a short-lived thread is born each round, h = blocks are handed from
 * thread to thread without locks, n = no spikes. PACE = loops spun after each operation.
 *
 * A round is OPS operations in each thread, then a barrier at which thread 0 alone allocates a block (and a mapping) that
 * is larger than everything the threads may hold, so that the peak is at a barrier, where it is exact. */
#include "oplog.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

#define SLOTS 256
#define HELD_MAX (16u << 20)  /* bytes a thread may hold */
#define SPIKE (2ul << 30)
#define MAP_SPIKE (8ul << 30)
#define MAX_THREADS 16
#define BOXES 64

struct block { char *p; uint64_t size; };

struct worker {
	pthread_t thread;
	unsigned index;
	uint64_t random, held;
	struct block block[SLOTS];
	struct block map[32]; /* contiguous ranges we own */
};

static struct worker workers[MAX_THREADS + 1];
static _Atomic(char *) boxes[BOXES];
static pthread_barrier_t barrier;
static atomic_int stop;
static unsigned threads, rounds, ops, pace;
static int with_maps, with_forks, with_births, with_boxes, with_spikes;

static uint64_t rnd(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static uint64_t random_size(struct worker *w)
{
	uint64_t r = rnd(w);
	if (!with_boxes && r % 50 == 0)
		return 0;
	if (r % 211 == 0)
		return 200000 + rnd(w) % 2000000; /* beyond the mmap threshold */
	return 16 + rnd(w) % (16ull << (rnd(w) % 11));
}

/* In handed-over blocks the size travels in the block itself. */
static void tag(char *p, uint64_t size)
{
	if (size >= 16)
		memcpy(p, &size, 8);
}

static void put(struct worker *w, unsigned i, char *p, uint64_t size)
{
	tag(p, size);
	w->block[i] = (struct block){ p, size };
	w->held += size;
}

static void *any_alloc(struct worker *w, uint64_t *size)
{
	void *p = NULL;
	size_t align = 8ul << (rnd(w) % 8), n = *size;
	switch (rnd(w) % 9) {
	case 0: return calloc(1, n);
	case 1: return *size = (n / 16 + 1) * 16, calloc(16, n / 16 + 1);
	case 2: return aligned_alloc(align, n);
	case 3: return memalign(align, n);
	case 4: return posix_memalign(&p, align, n) ? NULL : p;
	case 5: return reallocarray(NULL, 1, n);
	case 6: return realloc(NULL, n);
	default: return malloc(n);
	}
}

static void op_alloc(struct worker *w, unsigned i)
{
	uint64_t size = random_size(w);
	if (w->held + size > HELD_MAX)
		return;
	char *p = opaque(any_alloc(w, &size));
	if (!p)
		_exit(95);
	oplog_add(OP_ALLOC, p, size, NULL, 0);
	put(w, i, p, size);
}

static void op_free(struct worker *w, struct block *b)
{
	free(b->p);
	oplog_add(OP_FREE, b->p, b->size, NULL, 0);
	w->held -= b->size;
	b->p = NULL;
}

static void op_realloc(struct worker *w, unsigned i)
{
	struct block b = w->block[i];
	uint64_t size = random_size(w) | 1; /* 0 would free */
	if (w->held + size > HELD_MAX)
		return;
	char *p = opaque(rnd(w) % 2 ? realloc(b.p, size) : reallocarray(b.p, 1, size));
	if (!p)
		_exit(95);
	uint64_t kept = 0;
	if (size >= 16 && b.size >= 16 && (memcpy(&kept, p, 8), kept != b.size))
		_exit(94);
	oplog_add(OP_REALLOC, p, size, b.p, b.size);
	w->held -= b.size;
	put(w, i, p, size);
}

static void op_fail(struct worker *w, unsigned i)
{
	void *p = NULL, *old = w->block[i].p;
	uint64_t size = (1ull << 47) + rnd(w) % (1ull << 46);
	switch (rnd(w) % 4) {
	case 0: p = malloc(size); break;
	case 1: p = realloc(old, size); break;
	case 2: p = calloc(size >> 8, 256); size = size >> 8 << 8; break;
	case 3: if (!posix_memalign(&p, 64, size)) _exit(93); break;
	}
	if (opaque(p))
		_exit(93);
	oplog_add(OP_FAIL, NULL, size, NULL, 0);
}

/* ---- handing over ---- */

static void op_box(struct worker *w, unsigned i)
{
	struct block *b = &w->block[i];
	char *p = atomic_exchange(&boxes[rnd(w) % BOXES], b->p);
	w->held -= b->p ? b->size : 0;
	b->p = NULL;
	if (!p)
		return;
	uint64_t size;
	memcpy(&size, p, 8);
	*b = (struct block){ p, size };
	w->held += size;
	op_free(w, b);
}

/* ---- mappings ---- */

#define PAGE 4096ul

static void op_map(struct worker *w, struct block *m)
{
	uint64_t size = (1 + rnd(w) % 32) * PAGE;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		_exit(92);
	oplog_add(OP_MAP, p, size, NULL, 0);
	*m = (struct block){ p, size };
}

static void op_unmap(struct worker *w, struct block *m, struct block *rest)
{
	uint64_t pages = m->size / PAGE, from = 0, count = pages;
	if (rnd(w) % 3 && pages > 2) { /* a part, perhaps in the middle */
		from = rnd(w) % pages;
		count = 1 + rnd(w) % (pages - from);
		if (from && from + count < pages && rest->p)
			count = pages - from; /* no slot for the second rest */
	}
	char *p = m->p + from * PAGE;
	if (munmap(p, count * PAGE))
		_exit(92);
	oplog_add(OP_UNMAP, p, count * PAGE, NULL, 0);
	uint64_t after = pages - from - count;
	if (from && after)
		*rest = (struct block){ p + count * PAGE, after * PAGE };
	else if (after)
		*m = (struct block){ p + count * PAGE, after * PAGE };
	if (from)
		m->size = from * PAGE;
	else if (!after)
		m->p = NULL;
}

static void op_remap(struct worker *w, struct block *m)
{
	uint64_t size = (1 + rnd(w) % 64) * PAGE;
	char *p = mremap(m->p, m->size, size, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		_exit(92);
	oplog_add(OP_REMAP, p, size, m->p, m->size);
	*m = (struct block){ p, size };
}

static void op_any_map(struct worker *w)
{
	struct block *m = &w->map[rnd(w) % 32], *other = &w->map[rnd(w) % 32];
	if (!m->p)
		op_map(w, m);
	else if (rnd(w) % 3)
		op_unmap(w, m, other);
	else
		op_remap(w, m);
}

/* ---- rounds ---- */

static void one(struct worker *w)
{
	unsigned i = rnd(w) % SLOTS;
	uint64_t r = rnd(w) % 64;
	if (r == 0)
		op_fail(w, i);
	else if (with_maps && r < 6)
		op_any_map(w);
	else if (with_boxes && r < 24)
		op_box(w, i);
	else if (!w->block[i].p)
		op_alloc(w, i);
	else if (r < 36)
		op_realloc(w, i);
	else
		op_free(w, &w->block[i]);
	for (volatile unsigned k = 0; k < pace; k++)
		;
}

static void spike(void)
{
	char *p = opaque(malloc(SPIKE));
	if (!p)
		_exit(91);
	oplog_add(OP_ALLOC, p, SPIKE, NULL, 0);
	free(p);
	oplog_add(OP_FREE, p, SPIKE, NULL, 0);
	if (!with_maps)
		return;
	p = mmap(NULL, MAP_SPIKE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		_exit(91);
	oplog_add(OP_MAP, p, MAP_SPIKE, NULL, 0);
	munmap(p, MAP_SPIKE);
	oplog_add(OP_UNMAP, p, MAP_SPIKE, NULL, 0);
}

/* The child frees some of what it inherited from every thread and goes on with operations of its own. */
static void child(struct worker *w, unsigned index);

/* The log of round R's child is THREADS + 2 R, the next one its own child's. */
static void fork_here(struct worker *w, unsigned index)
{
	pid_t pid = index < LOGS - 1 ? fork() : -1;
	int status = 0;
	if (pid == 0) {
		oplog_use(index);
		child(w, index);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		_exit(90);
}

static void child(struct worker *w, unsigned index)
{
	char *p = opaque(malloc(1)); /* a child that does nothing at all leaves no trace */
	oplog_add(OP_ALLOC, p, 1, NULL, 0);
	free(p);
	oplog_add(OP_FREE, p, 1, NULL, 0);
	for (unsigned t = 0; t < threads; t++)
		for (unsigned i = t; i < SLOTS; i += 3)
			if (workers[t].block[i].p)
				op_free(&workers[t], &workers[t].block[i]);
	with_boxes = 0;
	for (unsigned i = 0; i < ops; i++)
		one(w);
	if ((index - threads) % 4 == 0)
		fork_here(w, index + 1);
}

static void *born(void *arg)
{
	struct worker *w = arg;
	w->index = MAX_THREADS;
	oplog_use(LOGS - 1);
	for (unsigned i = 0; i < 20 && !oplog_full(); i++)
		one(w);
	for (unsigned i = 0; i < SLOTS; i++)
		if (w->block[i].p)
			op_free(w, &w->block[i]);
	return NULL;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	oplog_use(w->index);
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < ops && !oplog_full(); i++)
			one(w);
		oplog_add(OP_BARRIER, NULL, r, NULL, 0);
		if (oplog_full())
			atomic_store(&stop, 1);
		pthread_barrier_wait(&barrier);
		if (w->index == 0) {
			if (with_spikes)
				spike();
			if (with_forks)
				fork_here(w, threads + 2 * r);
			if (with_births) {
				workers[MAX_THREADS].random = r * 77 + 5;
				pthread_create(&workers[MAX_THREADS].thread, NULL, born, &workers[MAX_THREADS]);
				pthread_join(workers[MAX_THREADS].thread, NULL);
			}
		}
		int last = atomic_load(&stop); /* nobody sets it between the barriers */
		pthread_barrier_wait(&barrier);
		if (last)
			break;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 7)
		return 2;
	oplog_open(argv[1]);
	threads = atoi(argv[3]);
	rounds = atoi(argv[4]);
	ops = atoi(argv[5]);
	with_maps = !!strchr(argv[6], 'm');
	with_forks = !!strchr(argv[6], 'f');
	with_births = !!strchr(argv[6], 'b');
	with_boxes = !!strchr(argv[6], 'h');
	with_spikes = !strchr(argv[6], 'n');
	pace = argc > 7 ? atoi(argv[7]) : 0;
	pthread_barrier_init(&barrier, NULL, threads);
	for (unsigned t = 0; t < threads; t++) {
		workers[t].index = t;
		workers[t].random = (atoi(argv[2]) + 1) * 0x9e3779b97f4a7c15ull + t * 0xbf58476d1ce4e5b9ull;
	}
	for (unsigned t = 1; t < threads; t++)
		if (pthread_create(&workers[t].thread, NULL, work, &workers[t]))
			return 1;
	work(&workers[0]);
	for (unsigned t = 1; t < threads; t++)
		pthread_join(workers[t].thread, NULL);
	say("done\n");
	return 0;
}
