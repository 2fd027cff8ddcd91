/*
 * SIGKILL at each instruction: a child puts blocks into the table, frees them, evicts and tells sums, step by step
 * under ptrace. After each of its instructions what a reader finds in its files must be the state before the call that
 * it is in, or the state after it.
 */
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "tests/unit/young_harness.h"

#define ADDRESSES 12
#define USED_SETS 2
#define OPS       90

/* What the child has done, and is about to do. */
static struct {
	uint32_t begun, done;
	int which[OPS]; /* address: it is allocated, or freed if it is; -1: sums are told */
} *shared;

static uint64_t addresses[ADDRESSES];
static const char *wrong;

static void perform(struct mt_ring *ring, int which, int *alive)
{
	if (which == -1) {
		tell_sums(ring, mt_ticks());
	} else if (alive[which]) {
		harness_free(ring, addresses[which]);
	} else {
		harness_alloc(ring, addresses[which], 32, 1 + (uint32_t)which % 3);
	}
	if (which >= 0)
		alive[which] = !alive[which];
}

static void child(struct mt_ring *ring)
{
	int alive[ADDRESSES] = { 0 };

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (uint32_t i = 0; i < OPS; i++) {
		__atomic_store_n(&shared->begun, i + 1, __ATOMIC_SEQ_CST);
		perform(ring, shared->which[i], alive);
		__atomic_store_n(&shared->done, i + 1, __ATOMIC_SEQ_CST);
	}
	_exit(0);
}

/* After the first `ops` of them. */
static void expect(uint32_t ops, int *alive, uint64_t *made, uint64_t *gone)
{
	memset(alive, 0, ADDRESSES * sizeof(*alive));
	*made = *gone = 0;
	for (uint32_t i = 0; i < ops; i++)
		if (shared->which[i] >= 0) {
			int *a = &alive[shared->which[i]];
			*(*a ? gone : made) += 1;
			*a = !*a;
		}
}

static int is_as_after(uint32_t ops, const int *found, uint64_t made, uint64_t gone)
{
	int alive[ADDRESSES];
	uint64_t m, g;

	expect(ops, alive, &m, &g);
	return !memcmp(alive, found, sizeof(alive)) && m == made && g == gone;
}

static void look(uint64_t before_made, uint64_t before_gone)
{
	int alive[ADDRESSES] = { 0 };
	uint64_t made = 0, gone = 0;
	struct harness_trace t;

	if (harness_read(&t))
		wrong = "no memory";
	for (size_t i = 0; i < t.count; i++) {
		const struct mt_event *e = &t.slots[i];
		made += e->kind == MT_FOLD ? e->addr : e->kind == MT_ALLOC;
		gone += e->kind == MT_FOLD ? e->addr : e->kind == MT_FREE;
		for (int k = 0; k < ADDRESSES; k++)
			if (addresses[k] == e->addr && (e->kind == MT_ALLOC || e->kind == MT_FREE)) {
				if (alive[k] == (e->kind == MT_ALLOC))
					wrong = "an address is allocated or freed twice";
				alive[k] = e->kind == MT_ALLOC;
			}
	}
	made -= before_made;
	gone -= before_gone;
	if (!is_as_after(shared->done, alive, made, gone) && !is_as_after(shared->begun, alive, made, gone)) {
		wrong = "neither the state before a call nor that after it";
		printf("# in call %u of %u: %d; made %llu, gone %llu\n", shared->begun, shared->done,
		       shared->which[shared->begun - 1], (unsigned long long)made, (unsigned long long)gone);
	}
	free(t.slots);
	free(t.rings);
}

/* Whether anything is there that was not when this was asked last. */
static int has_changed(void)
{
	static struct {
		char area[4096]; /* more than the sums that there are */
		struct mt_young_block blocks[2 * USED_SETS];
		uint32_t used, begun, done;
	} last, now;

	memcpy(now.area, areas[0], sizeof(now.area));
	memcpy(now.blocks, mt_young_table, sizeof(now.blocks)); /* the sets' numbers are the lowest */
	now.used = chunk_at[0]->used;
	now.begun = shared->begun;
	now.done = shared->done;
	if (!memcmp(&last, &now, sizeof(now)))
		return 0;
	memcpy(&last, &now, sizeof(now));
	return 1;
}

static uint64_t step_through(pid_t pid, uint64_t made, uint64_t gone)
{
	uint64_t steps = 0;
	int status;

	waitpid(pid, &status, 0);
	while (WIFSTOPPED(status) && !wrong) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL))
			break;
		waitpid(pid, &status, 0);
		steps++;
		if (has_changed())
			look(made, gone);
	}
	return steps;
}

int main(void)
{
	static char room[MT_MAX_CHUNKS * 32];
	struct mt_tables tables = { room, 0 };
	struct mt_ring *ring;
	uint64_t x = 88172645463325252ull, made = 0;
	pid_t pid;

	mt_clock = MT_ARCH_CLOCK;
	mt_ring_tables(&tables);
	mt_young_tables(&tables);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	stub_shared = 1;
	stub_start(64ull * MT_CHUNK_BYTES);
	for (uint32_t i = 0; i < ADDRESSES; i++)
		addresses[i] = harness_address(i, USED_SETS);
	ring = mt_ring_take();
	for (; !ring->young.area; made++) { /* until the thread is worth an area */
		harness_alloc(ring, 1ull << 40 | made << 4, 32, 1);
		harness_free(ring, 1ull << 40 | made << 4);
	}
	for (int i = 0; i < OPS; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		shared->which[i] = x % 13 == 0 ? -1 : (int)(x % ADDRESSES);
	}
	ring->young.due = UINT64_MAX; /* a look at the whole table takes a minute, step by step */
	pid = fork();
	if (!pid)
		child(ring);
	printf("# %llu instructions\n", (unsigned long long)step_through(pid, made, made));
	if (!wrong && shared->done != OPS)
		wrong = "the child did not get to its end";
	kill(pid, SIGKILL);
	return stub_result("young blocks, killed at each instruction", wrong);
}
