/*
 * Threads allocate and free at random, also each other's blocks, at addresses that share a few places of the table of
 * young blocks, while windows end and forks are near. Then what is in rings, table and sums must be what they did: each
 * address by turns allocated and freed, as many as they counted, and alive what they have.
 */
#include "tests/unit/young_harness.h"

#define THREADS   4
#define ADDRESSES 600
#define USED_SETS 40
#define HELD      60
#define OPS       120000
#define CHUNKS    400

static uint64_t addresses[ADDRESSES];
static int taken[ADDRESSES]; /* by the "allocator" */
static int boxes[16];        /* address + 1 that is handed over */
static uint64_t made, gone;
static const char *wrong;

static uint64_t rnd(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static int get(uint64_t *x)
{
	for (;;) {
		int i = (int)(rnd(x) % ADDRESSES), none = 0;
		if (__atomic_compare_exchange_n(&taken[i], &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return i;
	}
}

static void give(struct mt_ring *ring, int i)
{
	harness_free(ring, addresses[i]);
	__atomic_store_n(&taken[i], 0, __ATOMIC_RELEASE);
	__atomic_fetch_add(&gone, 1, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
	struct mt_ring *ring = mt_ring_take();
	uint64_t x = 88172645463325252ull * ((uintptr_t)arg + 1);
	int held[HELD];

	memset(held, -1, sizeof(held));
	for (int op = 0; op < OPS; op++) {
		int *h = &held[rnd(&x) % HELD];
		if (op % 20000 == 9999) {
			mt_young_before_fork(ring);
			mt_young_after_fork();
		}
		if (*h < 0) {
			*h = get(&x);
			harness_alloc(ring, addresses[*h], rnd(&x) % 40 ? 32 : 4096, 1 + (uint32_t)(rnd(&x) % 5000));
			__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
		} else if (rnd(&x) % 4) {
			give(ring, *h);
			*h = -1;
		} else {
			int other = __atomic_exchange_n(&boxes[rnd(&x) % 16], *h + 1, __ATOMIC_ACQ_REL) - 1;
			*h = -1;
			if (other >= 0)
				give(ring, other);
		}
	}
	return NULL;
}

/* ---- afterwards ---- */

static int index_of(uint64_t addr)
{
	for (int i = 0; i < ADDRESSES; i++)
		if (addresses[i] == addr)
			return i;
	return -1;
}

static void compare(void)
{
	static int alive[ADDRESSES];
	uint64_t allocs = 0, frees = 0, sums = 0;
	struct harness_trace t;

	if (harness_read(&t))
		wrong = "no memory";
	for (size_t i = 0; i < t.count; i++) {
		const struct mt_event *e = &t.slots[i];
		int which = e->kind == MT_ALLOC || e->kind == MT_FREE ? index_of(e->addr) : -1;
		if (e->kind == MT_FOLD)
			sums += e->addr;
		if (which >= 0 && alive[which] == (e->kind == MT_ALLOC))
			wrong = e->kind == MT_ALLOC ? "an address is allocated twice" : "a free has no allocation";
		if (which >= 0)
			alive[which] = e->kind == MT_ALLOC;
		allocs += e->kind == MT_ALLOC;
		frees += e->kind == MT_FREE;
	}
	for (int i = 0; i < ADDRESSES; i++)
		if (alive[i] != taken[i])
			wrong = alive[i] ? "a block that was freed is alive" : "a block that is alive is not there";
	if (allocs + sums != made || frees + sums != gone)
		wrong = "not as many as were made";
	if (sums < made / 20 || allocs < made / 20)
		wrong = "the test does not try what it should";
	if (stub_info.lost_events)
		wrong = "events were lost";
	printf("# %llu made, %llu as sums\n", (unsigned long long)made, (unsigned long long)sums);
	free(t.slots);
	free(t.rings);
}

int main(void)
{
	static char room[MT_MAX_CHUNKS * 32];
	struct mt_tables tables = { room, 0 };
	pthread_t threads[THREADS];

	mt_clock = MT_ARCH_CLOCK;
	mt_clock_shared = 1;
	mt_ring_tables(&tables);
	mt_young_tables(&tables);
	stub_start((uint64_t)CHUNKS * MT_CHUNK_BYTES);
	for (uint32_t i = 0; i < ADDRESSES; i++)
		addresses[i] = harness_address(i, USED_SETS);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	compare();
	return stub_result("young blocks under ThreadSanitizer", wrong);
}
