/* A random graph of blocks, the same for a seed, of which some are lost: scan_random SEED. Says by line what is lost,
 * as it knows itself: "lost LINE BLOCKS BYTES"; then "ready", and waits for a line. With LeakSanitizer, that says it,
 * too. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <malloc.h>
#include <map>
#include <memory>
#include <pthread.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

extern "C" int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

namespace {
enum { MOST = 400, LINKS = 3, THREADS = 3, KINDS = 7, WAYS = 11 };

struct node {
	void *to[LINKS];
};

struct plan {
	node *at;
	size_t bytes;
	int kind;
	int to[LINKS];
	bool reached;
};

} // namespace

/* ---- who holds: what nobody reads must be there nonetheless ---- */
extern node *volatile variable[4];
extern thread_local node *volatile own;
node *volatile variable[4];
thread_local node *volatile own;

namespace {
std::vector<char *> vector;
std::map<int, node *> map;
std::list<node *> list;
std::shared_ptr<void> shared;
struct {
	node *local, *own, *specific;
} passed[THREADS];
pthread_key_t key;
pthread_barrier_t began;

node **hidden(void)
{
	static node *inside;
	return &inside;
}

__attribute__((noinline)) void *hold(void *arg)
{
	auto *p = &passed[(size_t)arg];
	node *volatile local = p->local;
	own = p->own;
	pthread_setspecific(key, p->specific);
	memset(p, 0, sizeof(*p));
	pthread_barrier_wait(&began);
	for (;;) {
		pause();
		if (local && local->to[0] == (void *)1)
			return local;
	}
}

/* ---- who makes: a line for each kind ---- */
__attribute__((noinline)) node *make(int kind, size_t bytes)
{
	void *p = nullptr;
	switch (kind) {
	case 0: return (node *)malloc(bytes);
	case 1: return (node *)calloc(1, bytes);
	case 2: return (node *)new char[bytes];
	case 3: return (node *)memalign(256, bytes);
	case 4: return posix_memalign(&p, 4096, bytes) ? nullptr : (node *)p;
	case 5: return (node *)realloc(malloc(24), bytes);
	}
	return (node *)operator new(bytes);
}
const int first_line = __LINE__ - 9; /* of kind 0 */

void reach(plan *all, int i)
{
	if (all[i].reached)
		return;
	all[i].reached = true;
	for (int to : all[i].to)
		if (to >= 0)
			reach(all, to);
}

void keep(node *n, size_t inside, int way)
{
	if (way < 4)
		variable[way] = (node *)((char *)n + inside);
	else if (way == 4)
		vector.push_back((char *)n + inside);
	else if (way == 5)
		map[(int)map.size()] = n;
	else if (way == 6)
		list.push_back(n);
	else if (way == 7)
		*hidden() = n;
	else if (way == 8)
		own = n;
	else if (way == 9)
		shared = std::shared_ptr<void>(n, [](void *) {});
	else
		passed[0].local = n;
}

/* Ways that hold one block alone are given away once. */
void keep_some(plan *all, int count, std::mt19937 &random)
{
	node **threads[] = { &passed[0].own, &passed[1].local, &passed[1].specific, &passed[2].own, &passed[2].local };
	bool used[WAYS] = {};
	for (auto **t : threads) {
		int i = (int)(random() % (unsigned)count);
		*t = all[i].at;
		reach(all, i);
	}
	for (int k = 0; k < count / 12; k++) {
		int i = (int)(random() % (unsigned)count), way = (int)(random() % WAYS);
		if (used[way] && (way < 4 || way > 6))
			continue;
		used[way] = true;
		keep(all[i].at, random() % 2 ? random() % all[i].bytes : 0, way);
		reach(all, i);
	}
}

__attribute__((noinline)) void build(unsigned seed)
{
	std::mt19937 random(seed);
	const size_t room = MOST * sizeof(plan);
	auto *all = (plan *)mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int count = 100 + (int)(random() % (MOST - 100));
	size_t blocks[KINDS] = {}, bytes[KINDS] = {};
	for (int i = 0; i < count; i++) {
		plan *p = &all[i];
		p->bytes = 8 * (sizeof(node) / 8 + random() % (random() % 20 ? 300 : 40000));
		p->kind = (int)(random() % KINDS);
		p->at = make(p->kind, p->bytes);
		memset((void *)p->at, 0, p->bytes);
	}
	for (int i = 0; i < count; i++)
		for (int k = 0; k < LINKS; k++) {
			int to = all[i].to[k] = random() % 4 ? -1 : (int)(random() % (unsigned)count);
			if (to >= 0)
				all[i].at->to[k] = (char *)all[to].at + (random() % 3 ? 0 : random() % all[to].bytes);
		}
	keep_some(all, count, random);
	for (int i = 0; i < count; i++)
		if (!all[i].reached) {
			blocks[all[i].kind]++;
			bytes[all[i].kind] += all[i].bytes;
		}
	for (int i = 0; i < KINDS; i++)
		printf("lost %d %zu %zu\n", first_line + i, blocks[i], bytes[i]);
	munmap(all, room);
}

/* Where build() had its variables. */
__attribute__((noinline)) void wipe(void)
{
	volatile char stack[16384];
	for (volatile char &c : stack)
		c = 0;
}
} // namespace

int main(int, char **argv)
{
	char line[8];
	pthread_t thread;
	pthread_key_create(&key, nullptr);
	pthread_barrier_init(&began, nullptr, THREADS + 1);
	setvbuf(stdout, nullptr, _IONBF, 0);
	build((unsigned)atoi(argv[1]));
	wipe();
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&thread, nullptr, hold, (void *)i);
	pthread_barrier_wait(&began);
	if (__lsan_do_recoverable_leak_check)
		__lsan_do_recoverable_leak_check();
	puts("ready");
	if (read(0, line, 1) < 0)
		return 1;
	_exit(0);
}
