/* Blocks with known owners, and some lost: tests/cases/holders_scan.py. With an argument it says "ready" twice: before
 * and after what cache refers to is made. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

std::vector<char *> cache;
std::map<int, char *> table;
thread_local char *volatile own;
struct chain {
	chain *volatile next;
	char body[1992];
};

__attribute__((noinline)) static char *make(size_t n) { return (char *)calloc(1, n); }

static void *keep_static(void)
{
	static char *volatile kept = make(5000);
	return kept;
}

__attribute__((noinline)) static void make_chain(void)
{
	chain *volatile first = nullptr;
	for (int i = 0; i < 3; i++) {
		chain *volatile c = (chain *)calloc(1, sizeof(chain));
		c->next = first;
		first = c;
	}
}

__attribute__((noinline)) static void lose(void)
{
	for (int i = 0; i < 2; i++)
		*(volatile char *)calloc(1, 600) = 1;
}

static void *waiter(void *arg)
{
	pthread_setname_np(pthread_self(), getenv("THREAD") ? getenv("THREAD") : "waiter");
	char *volatile local = make(8000);
	own = make(9000);
	pthread_barrier_wait((pthread_barrier_t *)arg);
	for (;;) {
		pause();
		if (*local)
			return local;
	}
}

__attribute__((noinline)) static void fill_cache(void)
{
	for (int i = 0; i < 40; i++)
		cache[(size_t)i] = make(1000);
}

__attribute__((noinline)) static void build(void)
{
	struct epoll_event e = { EPOLLIN, { make(7000) } };
	int poll = epoll_create1(0);
	epoll_ctl(poll, EPOLL_CTL_ADD, eventfd(0, 0), &e);
	for (int i = 0; i < 10; i++)
		table[i] = make(3000);
	keep_static();
}

__attribute__((noinline)) static void wipe(void)
{
	volatile char stack[16384];
	for (volatile char &c : stack)
		c = 0;
}

static bool ready(void)
{
	char line[8];
	puts("ready");
	return read(0, line, 1) >= 0;
}

int main(int argc, char **)
{
	static pthread_barrier_t began;
	pthread_t thread;
	setvbuf(stdout, nullptr, _IONBF, 0);
	pthread_barrier_init(&began, nullptr, 2);
	cache.resize(40);
	build();
	pthread_create(&thread, nullptr, waiter, &began);
	pthread_barrier_wait(&began);
	make_chain();
	if (argc > 1 && !ready())
		return 1;
	fill_cache();
	lose();
	wipe();
	_exit(!ready());
}
