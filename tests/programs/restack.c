/* Coroutines on blocks of malloc. When one has ended, another thread, as a pool of stacks has it, frees its block and
 * takes a smaller one, which lies where the inner half was: libc unmaps the outer half inside free(), where no hook
 * passes. The same recursion then comes to the same frames on both stacks, but for what is further out.
 *   restack    prints "same" if both ended at the same frame, "elsewhere" if there was no such block. */
#include "test.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <ucontext.h>

#define WHOLE (256 << 10)
#define HALF  (WHOLE / 2)
#define TAKEN 500

static ucontext_t back, routine;
static sem_t want, done;
static void *whole;
static char *stack, *inner; /* pages of the blocks */
static char *until;         /* how deep both go */
static char *last, *before; /* frames of the recursion, the innermost ones */
static void *volatile kept; /* the block of the second one */

static char *page_of(void *block)
{
	return (char *)((uintptr_t)block & ~4095ul);
}

static __attribute__((noinline)) void leaf(void)
{
	kept = malloc(24);
}

static __attribute__((noinline)) int down(int depth)
{
	volatile char pad[1024];
	char *frame = __builtin_frame_address(0);
	int deeper = 0;

	pad[0] = (char)depth;
	before = last;
	last = frame;
	if (frame > until)
		deeper = down(depth + 1);
	else
		leaf();
	return deeper + pad[0];
}

static void run(void)
{
	down(0);
}

static void go_on(char *base, size_t bytes)
{
	CHECK(!getcontext(&routine));
	routine.uc_stack.ss_sp = base;
	routine.uc_stack.ss_size = bytes;
	routine.uc_link = &back;
	makecontext(&routine, run, 0);
	CHECK(!swapcontext(&back, &routine));
}

static void *pool(void *unused)
{
	void *taken[TAKEN];
	int n = 0;

	CHECK(!sem_wait(&want));
	free(whole);
	while (n < TAKEN && !inner) {
		taken[n] = malloc(HALF - 64);
		inner = page_of(taken[n++]) == stack ? stack : NULL;
	}
	while (n-- > 1)
		free(taken[n - 1]);
	CHECK(!sem_post(&done));
	return unused;
}

int main(void)
{
	size_t frame, gone;
	pthread_t t;
	char *end;

	CHECK(mallopt(M_MMAP_THRESHOLD, 64 << 10));
	CHECK(!sem_init(&want, 0, 0) && !sem_init(&done, 0, 0) && !pthread_create(&t, NULL, pool, NULL));
	whole = malloc(WHOLE - 64);
	stack = page_of(whole);
	until = stack + HALF / 2;
	go_on(stack + 4096, WHOLE - 4096);
	end = last;
	frame = (size_t)(before - last);
	gone = (HALF / frame + 1) * frame;
	CHECK(!sem_post(&want) && !sem_wait(&done));
	if (inner)
		go_on(inner + 4096, WHOLE - 4096 - gone);
	CHECK(!pthread_join(t, NULL));
	say("%s\n", !inner ? "elsewhere" : last == end ? "same" : "another");
	return 0;
}
