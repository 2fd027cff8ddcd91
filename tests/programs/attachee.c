/*
 * A program that is attached to: attachee KIND SECONDS. Threads do what KIND says until the time is over and stdin is at
 * its end, and count what would be felt of it: waits that were interrupted or ended too early or late, vector registers and errno that changed, signals.
 * At the end "attachee ended: N faults" on stdout, and status 7.
 *   malloc     four threads at full speed, with blocks that live for a while
 *   dlopen     a thread loads and unloads a library, another allocates
 *   fork       a thread forks and waits, another allocates
 *   vector     registers hold values that are checked in a loop, with errno
 *   wait       all threads wait: sleep, poll, a condition, a pipe
 *   signals    a timer's signal comes every millisecond; main waits in pause()
 *   suspend    another process sends a signal and waits for the answer, at random moments; main waits in sigsuspend()
 *   naps       one thread: waits of each kind that end after a while, by the clock
 *   talk       answers lines of stdin: "w" where malloc leads to and what children would get, "a N" N blocks more, "s" runs
 *              a shell, "l" loads a library and allocates there, "q" ends
 *   leak       SIGUSR1 ends the warm-up: from then on blocks are counted as in an account (argument 3: its file)
 * With "steps" as argument 3 a line follows: how many steps the kind's own threads made, the seconds of that and of CPU, and the longest that a step
 * of any thread took beyond what it waits for.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile bool over;
static volatile sig_atomic_t alarms, asked;
static long faults;

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fault(const char *what)
{
	fprintf(stderr, "attachee: %s\n", what);
	__atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
}

/* ---- steps ---- */

static long steps;
static uint64_t longest_ns;

struct pace {
	uint64_t last;
	long steps;
};

static void pace_step(struct pace *p, uint64_t waits_ns)
{
	uint64_t now = now_ns(), took = p->last ? now - p->last : 0, longest = __atomic_load_n(&longest_ns, __ATOMIC_RELAXED);
	took = took > waits_ns ? took - waits_ns : 0;
	p->last = now;
	p->steps++;
	while (took > longest && !__atomic_compare_exchange_n(&longest_ns, &longest, took, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

static void pace_end(const struct pace *p)
{
	__atomic_fetch_add(&steps, p->steps, __ATOMIC_RELAXED);
}

static void tell_steps(uint64_t since)
{
	printf("steps %ld %.6f %.6f %.6f\n", steps, (double)(now_ns() - since) / 1e9, (double)clock() / CLOCKS_PER_SEC, (double)longest_ns / 1e9);
}

/* ---- what threads do ---- */

/* `seed` 5: beside a kind that does something else, whose steps count. */
static void *churn(void *seed)
{
	void *blocks[64] = { 0 };
	unsigned s = (unsigned)(uintptr_t)seed;
	struct pace pace = { 0 };
	for (unsigned n = 1; !over; n++) {
		if (n % 256 == 0)
			pace_step(&pace, 0);
		unsigned i = (s = s * 1664525u + 1013904223u) >> 26;
		unsigned char *p = blocks[i];
		if (p && p[0] != (i & 255))
			fault("a block has changed");
		free(p);
		blocks[i] = p = s & 64 ? malloc(1 + (s >> 8) % 3000) : calloc(1, 1 + (s >> 8) % 3000);
		p[0] = i & 255;
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
	if ((uintptr_t)seed != 5)
		pace_end(&pace);
	return NULL;
}

static void *load(void *name)
{
	struct pace pace = { 0 };
	while (!over) {
		void *handle = dlopen(name, RTLD_NOW);
		if (!handle || !dlsym(handle, "sqrt"))
			fault("dlopen failed");
		dlclose(handle);
		pace_step(&pace, 0);
	}
	pace_end(&pace);
	return NULL;
}

static void *forks(void *unused)
{
	struct pace pace = { 0 };
	while (!over) {
		int status = 0;
		pid_t child = fork();
		if (child == 0) {
			free(malloc(100));
			_exit(3);
		}
		if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
			fault("a child ended otherwise");
		pace_step(&pace, 0);
	}
	pace_end(&pace);
	return unused;
}

/* Registers that hold values over a loop. On aarch64 also flags and the control register of floating point. */
static bool registers_hold(const uint64_t kept[4], uint64_t got[4])
{
	memcpy(got, kept, 4 * sizeof(*got));
#if defined(__x86_64__)
	if (!__builtin_cpu_supports("avx"))
		return true;
	__asm__ volatile("vmovdqu (%0), %%ymm7\n\tvmovdqu (%0), %%ymm15\n\tmovl $4000, %%ecx\n"
			 "1:\tdecl %%ecx\n\tjnz 1b\n\tvpxor %%ymm7, %%ymm15, %%ymm15\n\tvmovdqu %%ymm7, (%1)\n\t"
			 "vptest %%ymm15, %%ymm15\n\tjz 2f\n\tmovq $0, (%1)\n2:\tvzeroupper"
			 :
			 : "r"(kept), "r"(got)
			 : "rcx", "memory", "xmm7", "xmm15", "cc");
#elif defined(__aarch64__)
	__asm__ volatile("ldp q9, q30, [%0]\n\tldp q0, q17, [%0]\n\tmov x17, #4000\n\tmov x3, x17\n\tmov x16, %0\n"
			 "1:\tsub x17, x17, #1\n\tcbnz x17, 1b\n\tcmp x16, %0\n\tb.ne 2f\n\tcmp x3, #4000\n\tb.ne 2f\n\t"
			 "stp q9, q30, [%1]\n\teor v9.16b, v9.16b, v0.16b\n\teor v30.16b, v30.16b, v17.16b\n\t"
			 "orr v9.16b, v9.16b, v30.16b\n\tumaxv b9, v9.16b\n\tumov w3, v9.b[0]\n\tcbz w3, 3f\n2:\tstr xzr, [%1]\n3:"
			 :
			 : "r"(kept), "r"(got)
			 : "x3", "x16", "x17", "memory", "v0", "v9", "v17", "v30", "cc");
#endif
	return !memcmp(got, kept, 4 * sizeof(*got));
}

/* Longer registers, and those of predicates. */
#if defined(__aarch64__)
__attribute__((target("arch=armv8-a+sve"))) static bool long_registers_hold(void)
{
	uint64_t wrong = 0;
	if (!(getauxval(AT_HWCAP) & 1 << 22))
		return true;
	__asm__ volatile("ptrue p5.b\n\tptrue p6.b, vl3\n\tindex z20.b, #3, #7\n\tmov x17, #4000\n1:\tsub x17, x17, #1\n\tcbnz x17, 1b\n\t"
			 "index z21.b, #3, #7\n\tcmpne p7.b, p5/z, z20.b, z21.b\n\tb.any 2f\n\tptrue p7.b, vl3\n\teors p7.b, p5/z, p6.b, p7.b\n\t"
			 "b.none 3f\n2:\tmov %0, #1\n3:"
			 : "+r"(wrong)
			 :
			 : "x17", "z20", "z21", "p5", "p6", "p7", "cc", "memory");
	return !wrong;
}
#else
static bool long_registers_hold(void)
{
	return true;
}
#endif

static void *vectors(void *unused)
{
	const uint64_t kept[4] = { 0x1122334455667788, 2, 0x99aabbccddeeff00, 4 };
	uint64_t got[4];
	struct pace pace = { 0 };
	while (!over) {
		errno = 77;
		if (!registers_hold(kept, got) || !long_registers_hold())
			fault("a vector register has changed");
		if (errno != 77)
			fault("errno has changed");
		pace_step(&pace, 0);
	}
	pace_end(&pace);
	return unused;
}

static void check_wait(const char *what, int result, int error, uint64_t from, uint64_t ns)
{
	uint64_t took = now_ns() - from;
	char text[100];
	if (result == 0 && took >= ns && took < ns + 1500000000)
		return;
	snprintf(text, sizeof(text), "%s returned %d (%s) after %.3f s of %.3f", what, result, strerror(error),
		 (double)took / 1e9, (double)ns / 1e9);
	fault(text);
}

static void *sleeps(void *unused)
{
	struct pace pace = { 0 };
	pace_step(&pace, 0);
	while (!over) {
		struct timespec t = { 0, 300000000 };
		uint64_t from = now_ns();
		int result = nanosleep(&t, NULL);
		check_wait("nanosleep", result, errno, from, 300000000);
		pace_step(&pace, 300000000);
	}
	pace_end(&pace);
	return unused;
}

static void *polls(void *unused)
{
	struct pace pace = { 0 };
	pace_step(&pace, 0);
	while (!over) {
		uint64_t from = now_ns();
		int result = poll(NULL, 0, 300);
		check_wait("poll", result, errno, from, 300000000);
		pace_step(&pace, 300000000);
	}
	pace_end(&pace);
	return unused;
}

static void *reads(void *end)
{
	char c;
	ssize_t n = read(*(int *)end, &c, 1);
	if (n != 1)
		fault("read was interrupted");
	return NULL;
}

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

static void on_signal(int number)
{
	(void)number;
	alarms++;
}

/* A process that is nobody's child: SIGUSR2 at random moments, each answered in 20 seconds, or SIGABRT. It ends with the program. */
static void send_signals(const int answers[2], pid_t to)
{
	struct pollfd answer = { .fd = answers[0], .events = POLLIN };
	char c;
	pid_t child = fork();
	if (child) {
		waitpid(child, NULL, 0);
		return;
	}
	if (fork())
		_exit(0);
	close(0), close(1), close(2), close(answers[1]);
	for (unsigned s = 1;; s = s * 1664525u + 1013904223u) {
		nanosleep(&(struct timespec){ 0, (long)(s >> 9) % 3000000 }, NULL);
		if (kill(to, SIGUSR2))
			_exit(0);
		if (poll(&answer, 1, 20000) != 1)
			kill(to, SIGABRT);
		if (read(answers[0], &c, 1) != 1)
			_exit(0);
	}
}

/* A busy machine takes longer to attach than the time that was asked for. */
static bool is_over(uint64_t until)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	return now_ns() >= until && poll(&in, 1, 0) != 0;
}

/* SIGUSR2 is let through by sigsuspend() alone, so each must end it. */
static void suspend_until(uint64_t until, int answers, struct pace *pace)
{
	sigset_t none;
	sigemptyset(&none);
	for (long before = alarms; !is_over(until); before = alarms) {
		if (sigsuspend(&none) != -1 || errno != EINTR || alarms != before + 1)
			fault("sigsuspend ended otherwise");
		pace_step(pace, 3000000);
		if (write(answers, "x", 1) != 1)
			fault("nobody sends signals");
	}
}

static void nap(int kind)
{
	struct timespec t = { 0, 300000000 };
	struct timeval v = { 0, 300000 };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	static int epoll = -1;
	sigset_t set;
	const char *names[] = { "nanosleep", "poll", "select", "epoll_wait", "sigtimedwait", "semtimedop", "pthread_cond_timedwait", "clock_nanosleep" };
	uint64_t from = now_ns();
	int result = -9, wants = 0, wanted_error = 0;
	errno = 0;
	if (kind == 0) {
		result = nanosleep(&t, NULL);
	} else if (kind == 1) {
		result = poll(NULL, 0, 300);
	} else if (kind == 2) {
		result = select(0, NULL, NULL, NULL, &v);
	} else if (kind == 3) {
		struct epoll_event e;
		epoll = epoll < 0 ? epoll_create1(0) : epoll;
		result = epoll_wait(epoll, &e, 1, 300);
	} else if (kind == 4) {
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		result = sigtimedwait(&set, NULL, &t);
		wants = -1, wanted_error = EAGAIN;
	} else if (kind == 5) {
		struct sembuf wait = { 0, -1, 0 };
		int semaphore = semget(IPC_PRIVATE, 1, 0600);
		result = semtimedop(semaphore, &wait, 1, &t);
		int error = errno;
		semctl(semaphore, 0, IPC_RMID);
		errno = error;
		wants = -1, wanted_error = EAGAIN;
	} else if (kind == 6) {
		struct timespec end;
		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_nsec += 300000000;
		end.tv_sec += end.tv_nsec / 1000000000;
		end.tv_nsec %= 1000000000;
		pthread_mutex_lock(&lock);
		result = pthread_cond_timedwait(&never, &lock, &end);
		pthread_mutex_unlock(&lock);
		wants = ETIMEDOUT;
	} else {
		result = clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	}
	/* these two end with EINTR whenever their thread is stopped; a short epoll_wait begins anew */
	if ((kind == 4 || kind == 5) && result == -1 && errno == EINTR)
		return;
	if (result != wants || (wanted_error && errno != wanted_error))
		check_wait(names[kind], -1, errno, from, 0);
	else
		check_wait(names[kind], 0, 0, from, 300000000 - 1000000);
}

static void on_over(int number)
{
	(void)number;
	over = is_over(0);
}

static void on_asked(int number)
{
	(void)number;
	asked = 1;
}

/* What lives at the end, and how often was allocated and freed, as it is known here. */
static __attribute__((noinline)) void *grow(size_t n)
{
	return malloc(n);
}

static void keep_account(const char *path, uint64_t until)
{
	static void *before[100], *after[100000];
	long allocations = 0, frees = 0, live = 0, bytes = 0;
	for (int i = 0; i < 100; i++)
		before[i] = malloc(5000);
	while (!asked)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	for (int i = 0; i < 100; i++)
		free(before[i]);
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < 1000; i++) {
			int at = round * 1000 + i;
			after[at] = grow(1000 + (size_t)i);
			allocations++;
			if (i % 10) {
				free(after[at]);
				frees++;
			} else {
				live++;
				bytes += 1000 + i;
			}
		}
	FILE *f = fopen(path, "w");
	fprintf(f, "{\"allocations\": %ld, \"frees\": %ld, \"live\": %ld, \"bytes\": %ld, \"before\": 100}\n", allocations,
		frees, live, bytes);
	fclose(f);
	while (now_ns() < until)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* The word is read each time: it may be rewritten. */
static void tell_words(void)
{
	void *(*volatile lead)(size_t) = malloc;
	Dl_info info = { .dli_fname = "?" };
	const char *preload = getenv("LD_PRELOAD"), *session = getenv("MEMTRACE_SESSION");
	void *handle = dlsym(RTLD_DEFAULT, "calloc");
	Dl_info other = { .dli_fname = "?" };

	dladdr((void *)(uintptr_t)lead, &info);
	dladdr(handle, &other);
	printf("%s %s %s %s\n", strrchr(info.dli_fname, '/') + 1, strrchr(other.dli_fname, '/') + 1,
	       preload ? preload : "-", session ? session : "-");
}

static void talk(void)
{
	char line[200];
	while (fgets(line, sizeof(line), stdin)) {
		if (*line == 'q')
			return;
		if (*line == 'w')
			tell_words();
		for (int n = *line == 'a' ? atoi(line + 1) : 0; n; n--)
			if (!grow(10000))
				fault("no memory");
		if (*line == 's')
			printf("%d\n", system("exit 3"));
		if (*line == 'l') {
			void *handle = dlopen("libstdc++.so.6", RTLD_NOW);
			void *(*make)(size_t) = handle ? (void *(*)(size_t))(uintptr_t)dlsym(handle, "_Znwm") : NULL;
			printf("%d\n", make && make(777777));
		}
		if (*line == 'a')
			puts("done");
		fflush(stdout);
	}
}

int main(int count, char **words)
{
	const char *kind = count > 1 ? words[1] : "malloc";
	const uint64_t since = now_ns();
	struct pace pace = { 0 };
	uint64_t until = since + (uint64_t)((count > 2 ? atof(words[2]) : 1) * 1e9);
	pthread_t threads[8];
	int n = 0, ends[2];
	if (pipe(ends))
		return 1;
	const bool suspends = !strcmp(kind, "suspend");
	if (suspends) {
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		sigprocmask(SIG_BLOCK, &set, NULL);
		signal(SIGUSR2, on_signal);
		signal(SIGPIPE, SIG_IGN);
		send_signals(ends, getpid());
	}
	signal(SIGUSR1, on_asked);
	puts("ready");
	fflush(stdout);
	if (!strcmp(kind, "malloc"))
		for (; n < 4; n++)
			pthread_create(&threads[n], NULL, churn, (void *)(uintptr_t)(n + 1));
	if (!strcmp(kind, "dlopen"))
		pthread_create(&threads[n++], NULL, load, "libm.so.6");
	if (!strcmp(kind, "fork"))
		pthread_create(&threads[n++], NULL, forks, NULL);
	if (!strcmp(kind, "dlopen") || !strcmp(kind, "fork"))
		pthread_create(&threads[n++], NULL, churn, (void *)5);
	if (!strcmp(kind, "wait")) {
		pthread_create(&threads[n++], NULL, sleeps, NULL);
		pthread_create(&threads[n++], NULL, polls, NULL);
		pthread_create(&threads[n++], NULL, reads, &ends[0]);
	}
	if (!strcmp(kind, "signals")) {
		struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
		signal(SIGALRM, on_alarm);
		setitimer(ITIMER_REAL, &often, NULL);
		for (long before = alarms; !is_over(until); before = alarms) {
			pause();
			free(malloc(100));
			if (alarms == before)
				fault("pause ended without a signal");
			pace_step(&pace, 0);
		}
		pace_end(&pace);
		setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
	}
	if (!strcmp(kind, "vector")) { /* the only thread, so it is the one that is stopped */
		signal(SIGALRM, on_over);
		double seconds = atof(words[2]);
		struct itimerval times = { { 0, 50000 }, { (time_t)seconds, (suseconds_t)(1e6 * (seconds - (double)(time_t)seconds)) } };
		setitimer(ITIMER_REAL, &times, NULL);
		vectors(NULL);
		setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
	}
	if (suspends) {
		suspend_until(until, ends[1], &pace);
		pace_end(&pace);
	}
	if (!strcmp(kind, "naps")) {
		for (int i = 0; !is_over(until); i++) {
			nap(i % 8);
			pace_step(&pace, 300000000);
		}
		pace_end(&pace);
	}
	if (!strcmp(kind, "talk"))
		talk();
	if (!strcmp(kind, "leak") && count > 3)
		keep_account(words[3], until);
	while (!is_over(until)) {
		struct timespec t = { 0, 20000000 };
		if (nanosleep(&t, NULL))
			fault("nanosleep was interrupted");
	}
	over = true;
	if (write(ends[1], "x", 1) != 1)
		fault("write");
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("attachee ended: %ld faults\n", faults);
	if (count > 3 && !strcmp(words[3], "steps"))
		tell_steps(since);
	return 7;
}
