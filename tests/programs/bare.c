/* Code without unwind tables, as a JIT makes it, that calls malloc with a frame pointer of its own choice: into memory
 * above its stack that libc unmaps by itself, where no hook passes.
 *   bare block|chain|stack|own LOOPS
 * block: a large block. chain: with what looks like frames in it. stack: another thread's stack. own: what nearly all
 * have, the stack that it runs on; LOOPS calls on the first thread's and on another one's. */
#include "test.h"

#include <pthread.h>

#define STACK (256 << 10)
#define BLOCK (512 << 10)

typedef void *code(void *frame, void *(*malloc)(size_t));

static int chained, loops;
static char *block, *own_stack;
static code *jit;
static volatile int let_go;

/* push rbp; mov rbp, rdi; mov edi, 64; call rsi; pop rbp; ret */
static const unsigned char bytes[] = { 0x55, 0x48, 0x89, 0xfd, 0xbf, 0x40, 0, 0, 0, 0xff, 0xd6, 0x5d, 0xc3 };

static void make_code(void)
{
	void *p = raw_map(NULL, 4096);

	memcpy(p, bytes, sizeof(bytes));
	CHECK(!mprotect(p, 4096, PROT_READ | PROT_EXEC));
	jit = (code *)(uintptr_t)p;
}

/* Two frames, of which the outer one is the last. */
static void *make_frames(char *at)
{
	uintptr_t *f = (uintptr_t *)(at + 8192), behind_call = (uintptr_t)jit + 11;

	f[0] = (uintptr_t)(f + 100);
	f[1] = behind_call;
	f[100] = 0;
	f[101] = chained ? behind_call : 0;
	return f;
}

static void *stay(void *unused)
{
	(void)unused;
	while (!let_go)
		usleep(100);
	return NULL;
}

/* Its stack is larger than all that libc keeps. */
static void start_neighbour(pthread_t *t)
{
	pthread_attr_t attr;

	let_go = 0;
	pthread_attr_init(&attr);
	pthread_attr_setguardsize(&attr, 0);
	pthread_attr_setstacksize(&attr, 64 << 20);
	CHECK(!pthread_create(t, &attr, stay, NULL));
	pthread_getattr_np(*t, &attr);
	size_t size;
	CHECK(!pthread_attr_getstack(&attr, (void **)&block, &size));
}

static void use(void *frame)
{
	for (int i = 0; i < 3; i++)
		free(opaque(jit(frame, malloc)));
}

static void *run(void *neighbour)
{
	void *frame = make_frames(block);

	use(frame);
	if (neighbour) {
		let_go = 1;
		CHECK(!pthread_join(*(pthread_t *)neighbour, NULL));
	} else {
		free(block);
	}
	use(frame);
	return NULL;
}

static __attribute__((noinline)) void *use_own(void *unused)
{
	for (int i = 0; i < loops; i++)
		free(opaque(jit(__builtin_frame_address(0), malloc)));
	return unused;
}

/* The kernel puts a mapping below the one before it. */
static void place_stack(void)
{
	char *start = (char *)((uintptr_t)block & ~4095ul);

	own_stack = (char *)syscall(SYS_mmap, start - STACK, STACK, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | 0x100000 /* MAP_FIXED_NOREPLACE */, -1, 0);
	CHECK(own_stack == start - STACK);
}

int main(int argc, char **argv)
{
	int of_thread = argc > 1 && !strcmp(argv[1], "stack");
	pthread_attr_t attr;
	pthread_t t, neighbour;

	loops = argc > 2 ? atoi(argv[2]) : 1;
	chained = argc > 1 && !strcmp(argv[1], "chain");
	make_code();
	if (argc > 1 && !strcmp(argv[1], "own")) {
		use_own(NULL);
		CHECK(!pthread_create(&t, NULL, use_own, NULL) && !pthread_join(t, NULL));
		return 0;
	}
	while (loops--) {
		if (of_thread)
			start_neighbour(&neighbour);
		else
			block = malloc(BLOCK);
		place_stack();
		pthread_attr_init(&attr);
		CHECK(!pthread_attr_setstack(&attr, own_stack, STACK));
		CHECK(!pthread_create(&t, &attr, run, of_thread ? &neighbour : NULL));
		pthread_join(t, NULL);
		syscall(SYS_munmap, own_stack, STACK);
	}
	say("done\n");
	return 0;
}
