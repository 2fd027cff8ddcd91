/*
 * Stacks that are hard to unwind, each allocating a lot; run under libverify.so, which compares every capture
 * with libunwind. `traps NAME` runs one of them and exits with 0 if the program itself went well.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define FRAME __attribute__((noinline))
/* after a call: keeps it from being a tail call, and its frame alive */
#define STAY __asm__ volatile("" ::: "memory")

static volatile unsigned sink;
static unsigned seed = 1;

static unsigned random_up_to(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

FRAME static void leaf(void)
{
	free(malloc(16 + random_up_to(64)));
	STAY;
}

/* ---- alloca under an indirect call from one site ---- */

FRAME static void with_alloca(size_t n)
{
	char *p = alloca(n);

	p[0] = (char)n;
	sink += (unsigned)p[0];
	leaf();
	STAY;
}

FRAME static void forward(size_t n)
{
	volatile char room[64];

	room[0] = 0;
	with_alloca(n);
	sink += (unsigned)room[0];
	STAY;
}

FRAME static void backward(size_t n)
{
	volatile char room[32];

	room[0] = 0;
	with_alloca(n);
	leaf();
	sink += (unsigned)room[0];
	STAY;
}

static void (*const directions[])(size_t) = { forward, backward };

FRAME static void one_site(unsigned which, size_t n)
{
	directions[which](n);
	STAY;
}

static int trap_alloca(void)
{
	for (unsigned i = 0; i < 20000; i++)
		one_site(i & 1, 16 * random_up_to(40) + 16);
	return 0;
}

/* ---- frames that moved and left their return address behind ----
 *
 * outer() makes room for n bytes and calls middle(), which makes room for the rest, so that everything further in
 * stays where it is. The return address of the other call of middle() is still where it was: in memory that
 * nobody has written since. Only the frame pointer (or the cell of the realigned frame) tells. */

FRAME static void inner(size_t n)
{
	char *p = alloca(n);

	__asm__ volatile("" : : "r"(p) : "memory");
	leaf();
	if (sink & 4)
		leaf();
	STAY;
}

FRAME static void middle(size_t n)
{
	char *p = alloca(n);

	__asm__ volatile("" : : "r"(p) : "memory");
	inner(64);
	STAY;
}

FRAME static void middle_realigned(size_t n)
{
	__attribute__((aligned(256))) volatile char room[256];
	char *p = alloca(n);

	__asm__ volatile("" : : "r"(p), "r"(room) : "memory");
	inner(64);
	STAY;
}

FRAME static void outer(unsigned which, void (*f)(size_t), size_t n, size_t m)
{
	char *p = alloca(n);

	__asm__ volatile("" : : "r"(p) : "memory");
	if (which) {
		f(m);
		sink++;
	} else {
		f(m);
		sink = sink * 3;
	}
	STAY;
}

static int trap_stale(void)
{
	for (unsigned i = 0; i < 4000; i++)
		outer(i & 1, middle, i & 1 ? 64 : 128, i & 1 ? 128 : 64);
	for (unsigned i = 0; i < 2000; i++)
		outer(i & 1, middle_realigned, 16 * (i / 2 % 16) + (i & 1) * 16, 64);
	return 0;
}

/* ---- noreturn call at a function's end ---- */

static jmp_buf back;

__attribute__((noreturn)) FRAME static void leave(int how)
{
	leaf();
	longjmp(back, how);
}

FRAME static void ends_in_call(int how)
{
	if (how > 2)
		leaf();
	leave(how);
}

/* Lies behind ends_in_call: a return address of it is the first pc here, where the frame looks different. */
FRAME static void neighbour(void)
{
	volatile char room[400];

	room[0] = 1;
	leaf();
	sink += (unsigned)room[0];
}

static int trap_noreturn(void)
{
	for (volatile int i = 1; i < 5000; i++) {
		if (!setjmp(back))
			ends_in_call(i);
		neighbour();
	}
	return 0;
}

/* ---- frames that realign the stack, wide frames ---- */

FRAME static void realigned(unsigned depth, ...)
{
	__attribute__((aligned(64))) volatile char room[128];
	va_list args;

	va_start(args, depth);
	room[0] = (char)va_arg(args, int);
	va_end(args);
	if (random_up_to(2)) {
		char *p = alloca(random_up_to(100) + 1);
		p[0] = 1;
		sink += (unsigned)p[0];
	}
	leaf();
	if (depth)
		realigned(depth - 1, 1, 2, 3, 4, 5, 6, 7, 8, 9);
	leaf();
	sink += (unsigned)room[0];
}

FRAME static void wide(unsigned depth)
{
	volatile char room[100000];

	room[0] = 0;
	leaf();
	if (depth)
		wide(depth - 1);
	sink += (unsigned)room[0];
}

FRAME static void very_wide(void)
{
	volatile char room[1500000];

	room[0] = 0;
	leaf();
	wide(3);
	sink += (unsigned)room[0];
}

static int trap_realigned(void)
{
	for (int i = 0; i < 1000; i++) {
		realigned(random_up_to(6), 5, 1, 2, 3, 4, 5, 6, 7);
		if (i % 10 == 0)
			very_wide();
	}
	return 0;
}

/* ---- deep recursion ---- */

FRAME static unsigned down(unsigned depth)
{
	unsigned n;

	if (depth % 16 == 0)
		leaf();
	n = depth ? down(depth - 1) + 1 : 0;
	if (depth % 1024 == 0)
		leaf();
	STAY;
	return n;
}

static int trap_deep(void)
{
	return down(100000) != 100000;
}

FRAME static void up_and_down(unsigned depth)
{
	leaf();
	if (depth) {
		up_and_down(depth - 1);
		if (depth % 64 == 0)
			up_and_down(depth / 2);
	}
	leaf();
}

static int trap_around_depth(void)
{
	up_and_down(520);
	return 0;
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static void handler(int signal)
{
	(void)signal;
	leaf();
	if (random_up_to(4) == 0)
		with_alloca(100);
	handled++;
}

static void handle(int signal, void (*how)(int), int flags)
{
	struct sigaction act = { .sa_handler = how, .sa_flags = flags };

	sigaction(signal, &act, NULL);
}

FRAME static void raises(unsigned depth)
{
	leaf();
	raise(SIGUSR1);
	if (depth)
		raises(depth - 1);
	leaf();
}

static void nested_handler(int signal)
{
	(void)signal;
	leaf();
	raises(2);
}

static int trap_signal(void)
{
	handle(SIGUSR1, handler, 0);
	for (int i = 0; i < 300; i++)
		raises(10);
	handle(SIGUSR2, nested_handler, 0);
	for (int i = 0; i < 300; i++)
		raise(SIGUSR2);
	return handled != 300 * 11 + 300 * 3;
}

/* An 8 KiB alternate stack between two pages that can't be touched. */
static int trap_altstack(void)
{
	char *mem = mmap(NULL, 8192 + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t st = { .ss_sp = mem + 4096, .ss_size = 8192 };

	mprotect(mem, 4096, PROT_NONE);
	mprotect(mem + 4096 + 8192, 4096, PROT_NONE);
	sigaltstack(&st, NULL);
	handle(SIGUSR1, handler, SA_ONSTACK);
	for (int i = 0; i < 1000; i++)
		raises(5);
	return handled != 6000;
}

/* The alternate stack is in a frame of the normal one. */
static int trap_altstack_inside(void)
{
	char room[65536] __attribute__((aligned(16)));
	stack_t st = { .ss_sp = room, .ss_size = sizeof(room) };

	sigaltstack(&st, NULL);
	handle(SIGUSR1, handler, SA_ONSTACK);
	for (int i = 0; i < 1000; i++)
		raises(5);
	st.ss_flags = SS_DISABLE;
	sigaltstack(&st, NULL);
	return handled != 6000;
}

/* Interrupted anywhere: in prologues, epilogues, the PLT, a system call. */
FRAME static unsigned busy_inner(unsigned a, unsigned b, unsigned c)
{
	unsigned room[20];

	for (unsigned i = 0; i < 20; i++)
		room[i] = a * i + b;
	return room[c % 20] + (unsigned)getppid();
}

FRAME static unsigned busy(unsigned n)
{
	__attribute__((aligned(64))) volatile unsigned room[16];

	room[n % 16] = n;
	return n ? busy_inner(n, room[3], room[5]) + busy(n - 1) : 0;
}

static int trap_anywhere(void)
{
	struct itimerval every = { { 0, 137 }, { 0, 137 } };

	handle(SIGALRM, handler, SA_RESTART);
	setitimer(ITIMER_REAL, &every, NULL);
	while (handled < 4000)
		sink += busy(20);
	every = (struct itimerval){ 0 };
	setitimer(ITIMER_REAL, &every, NULL);
	return 0;
}

/* ---- other stacks ---- */

static ucontext_t main_context, co_context[3];

FRAME static void coroutine_deep(unsigned depth, int me)
{
	leaf();
	if (depth)
		coroutine_deep(depth - 1, me);
	else
		swapcontext(&co_context[me], random_up_to(2) ? &co_context[(me + 1) % 3] : &main_context);
	with_alloca(48);
}

static void coroutine(int me)
{
	for (;;)
		coroutine_deep(random_up_to(10), me);
}

static int trap_coroutines(void)
{
	for (int i = 0; i < 3; i++) {
		char *stack = i ? malloc(65536)
		                : mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		getcontext(&co_context[i]);
		co_context[i].uc_stack.ss_sp = stack;
		co_context[i].uc_stack.ss_size = 65536;
		makecontext(&co_context[i], (void (*)(void))coroutine, 1, i);
	}
	for (int i = 0; i < 3000; i++) {
		swapcontext(&main_context, &co_context[random_up_to(3)]);
		leaf();
	}
	return 0;
}

FRAME static void jumps(unsigned depth)
{
	leaf();
	if (depth == 0)
		longjmp(back, (int)random_up_to(3) + 1);
	if (sink != 1)
		jumps(depth - 1);
	leaf();
}

static int trap_longjmp(void)
{
	for (volatile int i = 0; i < 2000; i++) {
		if (!setjmp(back))
			jumps(random_up_to(30));
		leaf();
	}
	return 0;
}

/* ---- threads, fork ---- */

static void *thread(void *arg)
{
	for (int i = 0; i < 500; i++) {
		one_site((uintptr_t)arg & 1, 64);
		down(40);
		realigned(3, 1, 2, 3, 4, 5, 6, 7);
	}
	return NULL;
}

static int trap_threads(void)
{
	pthread_t t[16];

	for (int round = 0; round < 3; round++) {
		for (uintptr_t i = 0; i < 16; i++)
			pthread_create(&t[i], NULL, thread, (void *)i);
		for (int i = 0; i < 16; i++)
			pthread_join(t[i], NULL);
	}
	return 0;
}

FRAME static int forks(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		up_and_down(50);
		exit(7);
	}
	leaf();
	waitpid(child, &status, 0);
	return WEXITSTATUS(status) != 7;
}

static int trap_fork(void)
{
	int bad = 0;

	for (int i = 0; i < 5; i++)
		bad |= forks();
	return bad;
}

/* ---- functions that are bound at their first call ---- */

FRAME static int through_lazy(const char *path)
{
	void *lib = dlopen(path, RTLD_LAZY);
	void (*all)(void (*)(void)) = lib ? (void (*)(void (*)(void)))(uintptr_t)dlsym(lib, "lazy_all") : NULL;

	if (!all) {
		puts(dlerror());
		return 1;
	}
	all(leaf);
	dlclose(lib);
	return 0;
}

static int trap_lazy(const char *folder)
{
	char path[4096];
	int bad = 0;

	snprintf(path, sizeof(path), "%s/liblazy.so", folder);
	for (int i = 0; i < 100; i++)
		bad |= through_lazy(path);
	return bad;
}

/* ---- modules that come and go at the same place ---- */

static void (*plugin_call)(void (*)(void));

FRAME static void through_plugin(void)
{
	plugin_call(leaf);
	STAY;
}

static int trap_dlclose(const char *folder)
{
	char path[2][4096];
	void *at[2] = { NULL, NULL };
	int same = 0;

	for (int i = 0; i < 2; i++)
		snprintf(path[i], sizeof(path[i]), "%s/libplugin%d.so", folder, i);
	for (int i = 0; i < 200; i++) {
		void *lib = dlopen(path[i & 1], RTLD_NOW);
		if (!lib) {
			puts(dlerror());
			return 1;
		}
		plugin_call = (void (*)(void (*)(void)))(uintptr_t)dlsym(lib, "plugin_call");
		at[i & 1] = (void *)(uintptr_t)plugin_call;
		same += at[0] == at[1];
		through_plugin();
		through_plugin();
		dlclose(lib);
		leaf();
	}
	printf("same place %d times\n", same);
	return same < 100;
}

#if defined(__x86_64__)
/* ---- code without unwind tables, and with unusual ones ---- */

static void *code(const uint8_t *bytes, size_t n)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(p, bytes, n);
	return p;
}

/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const uint8_t framed[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };

FRAME static void through_code(void (*f)(void (*)(void)))
{
	f(leaf);
	STAY;
}

static int trap_jit(void)
{
	void (*f)(void (*)(void)) = (void (*)(void (*)(void)))(uintptr_t)code(framed, sizeof(framed));

	for (int i = 0; i < 2000; i++)
		through_code(f);
	return 0;
}

/* push %rbx; mov %rsi,%rbp (anything); sub $32,%rsp; call *%rdi; add $32,%rsp; pop %rbx; ret */
static const uint8_t frameless[] = { 0x55, 0x48, 0x89, 0xf5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7,
                                     0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3 };

FRAME static void through_frameless(void (*f)(void (*)(void), uintptr_t), uintptr_t rbp)
{
	f(leaf, rbp);
	STAY;
}

/* Nobody can unwind these; it must end well. libunwind guesses, so captures are not compared. */
static int trap_frameless(void)
{
	void (*f)(void (*)(void), uintptr_t) = (void (*)(void (*)(void), uintptr_t))(uintptr_t)code(frameless, sizeof(frameless));
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0), wild[16];

	for (int i = 0; i < 16; i++)
		wild[i] = 0x4141414141414141;
	for (unsigned i = 0; i < 20000; i++)
		through_frameless(f, i % 4 == 0 ? i : i % 4 == 1 ? stack + random_up_to(4096)
		                     : i % 4 == 2 ? (uintptr_t)&wild[random_up_to(8) * 2] : 0x7fffffffffffull - i);
	return wild[0] != 0x4141414141414141;
}

/* The CFA is in rbx, as in the dynamic loader's _dl_runtime_resolve. */
__asm__(".text\n.type by_rbx, @function\nby_rbx:\n.cfi_startproc\n"
        "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\n"
        "mov %rsp, %rbx\n.cfi_def_cfa_register 3\n"
        "and $-64, %rsp\nsub $192, %rsp\ncall *%rdi\n"
        "mov %rbx, %rsp\n.cfi_def_cfa_register 7\npop %rbx\n.cfi_def_cfa_offset 8\nret\n"
        ".cfi_endproc\n.size by_rbx, .-by_rbx\n");
void by_rbx(void (*)(void));

FRAME static void nested_rbx(void)
{
	leaf();
	by_rbx(leaf);
	STAY;
}

static int trap_rbx(void)
{
	for (int i = 0; i < 1000; i++) {
		by_rbx(leaf);
		by_rbx(nested_rbx);
		leaf();
	}
	return 0;
}

/* A stack of somebody's own making, full of nonsense, at the end of its mapping. */
static void *resume_sp;

__attribute__((used)) static void on_wild_stack(void)
{
	leaf();
	with_alloca(64);
}

static int trap_wild_stack(void)
{
	for (int i = 0; i < 100; i++) {
		char *mem = mmap(NULL, 32768, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(mem, 0x41 + i % 3 * 0x7f, 28672);
		mprotect(mem + 28672, 4096, PROT_NONE);
		__asm__ volatile("movq %%rsp, %0\n\tmovq %1, %%rsp\n\tpush %%rbp\n\tpush %%rbp\n\tmovq %2, %%rbp\n\tcall on_wild_stack\n\t"
		                 "pop %%rbp\n\tpop %%rbp\n\tmovq %0, %%rsp"
		                 : "+m"(resume_sp) : "r"(mem + 28672 - i % 2 * 16), "r"((uintptr_t)mem + 28672 - 8)
		                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
		munmap(mem, 32768);
	}
	return 0;
}
#endif

static const struct {
	const char *name;
	int (*run)(void);
} traps[] = {
	{ "alloca", trap_alloca }, { "stale", trap_stale }, { "noreturn", trap_noreturn }, { "realigned", trap_realigned }, { "deep", trap_deep },
	{ "around-depth", trap_around_depth }, { "signal", trap_signal }, { "altstack", trap_altstack },
	{ "altstack-inside", trap_altstack_inside }, { "anywhere", trap_anywhere }, { "coroutines", trap_coroutines },
	{ "longjmp", trap_longjmp }, { "threads", trap_threads }, { "fork", trap_fork },
#if defined(__x86_64__)
	{ "jit", trap_jit }, { "frameless", trap_frameless }, { "rbx", trap_rbx }, { "wild-stack", trap_wild_stack },
#endif
};

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "dlclose"))
		return trap_dlclose(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "lazy"))
		return trap_lazy(argv[2]);
	for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++)
		if (argc > 1 && !strcmp(argv[1], traps[i].name))
			return traps[i].run();
	fprintf(stderr, "usage: traps NAME [FOLDER]\n");
	return 2;
}
