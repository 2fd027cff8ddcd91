/*
 * Uses a pool with TensorFlow's names (libbfc.cc), loaded as Python loads TensorFlow, and keeps its own account, which
 * it prints: what each function holds, in the pool's own figures. `bfc LIBRARY heap|device|failures|full|threads|two`.
 */
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "libbfc.h"

static decltype(&bfc_new) make;
static decltype(&bfc_delete) destroy;
static decltype(&bfc_take) take;
static decltype(&bfc_give) give;
static decltype(&bfc_size) size_of;
static decltype(&bfc_reserved) reserved;

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		std::abort();
#define FIND(name, symbol) name = reinterpret_cast<decltype(name)>(dlsym(library, symbol))
	FIND(make, "bfc_new");
	FIND(destroy, "bfc_delete");
	FIND(take, "bfc_take");
	FIND(give, "bfc_give");
	FIND(size_of, "bfc_size");
	FIND(reserved, "bfc_reserved");
}

struct Account {
	const char *name;
	std::vector<void *> blocks;
	size_t bytes = 0;
};

static void hold(Account &a, void *pool, void *p)
{
	a.blocks.push_back(p);
	a.bytes += size_of(pool, p);
}

extern "C" __attribute__((noinline)) void *keep(void *pool, size_t bytes)
{
	void *p = take(pool, bytes, 1);
	return p ? p : (std::abort(), nullptr);
}
extern "C" __attribute__((noinline)) void *churn(void *pool, size_t bytes)
{
	void *p = take(pool, bytes, 1);
	return p ? p : (std::abort(), nullptr);
}

extern "C" __attribute__((noinline)) void *ask(void *pool, size_t bytes, int retry)
{
	void *p = take(pool, bytes, retry);
	return p ? p : nullptr;
}

/* `most`: in use at once so far; the same of `other`s. */
struct Sums {
	size_t now = 0, most = 0, allocations = 0;
	void add(size_t n)
	{
		now += n;
		most = now > most ? now : most;
		allocations++;
	}
};

static void play(void *pool, unsigned seed, Account &kept, Account &left, Sums &sums)
{
	std::mt19937 random(seed);
	std::vector<void *> some;
	for (int i = 0; i < 400; i++) {
		const size_t bytes = 1 + (random() % 8 ? random() % 40000 : random() % 3000000);
		if (i % 5 == 0) {
			hold(kept, pool, keep(pool, bytes));
			sums.add(size_of(pool, kept.blocks.back()));
			continue;
		}
		some.push_back(churn(pool, bytes));
		sums.add(size_of(pool, some.back()));
		while (some.size() > 12) {
			const size_t k = random() % some.size();
			sums.now -= size_of(pool, some[k]);
			give(pool, some[k]);
			some.erase(some.begin() + static_cast<long>(k));
		}
	}
	for (void *p : some)
		hold(left, pool, p);
}

static void print(const char *what, void *pool, const Account &kept, const Account &left, const Sums &sums)
{
	std::printf("{\"what\": \"%s\", \"keep\": %zu, \"keep_blocks\": %zu, \"churn\": %zu, \"churn_blocks\": %zu, "
		    "\"most\": %zu, \"allocations\": %zu, \"reserved\": %zu}\n",
		    what, kept.bytes, kept.blocks.size(), left.bytes, left.blocks.size(), sums.most, sums.allocations,
		    reserved(pool));
}

int main(int argc, char **argv)
{
	const std::string how = argc > 2 ? argv[2] : "heap";
	Account kept = { "keep", {}, 0 }, left = { "churn", {}, 0 };
	Sums sums;
	load(argv[1]);
	void *pool = make(how == "failures" ? 8u << 20 : size_t(1) << 32, how == "device" || how == "full");
	if (how == "full") { /* more than a device of 2 GiB has; and what it has only after a few refusals */
		void *p = keep(pool, 1u << 20), *q = ask(pool, 3u << 30, 0), *r = ask(pool, 3u << 30, 1),
		     *s = keep(pool, 1200u << 20);
		std::printf("%d %d\n", q != nullptr, r != nullptr);
		give(pool, s);
		give(pool, p);
		return 0;
	}
	if (how == "failures") {
		void *p = take(pool, 1u << 20, 1), *q = take(pool, 16u << 20, 0), *r = take(pool, 32u << 20, 1);
		std::printf("%d %d %d\n", p != nullptr, q != nullptr, r != nullptr);
		give(pool, p);
		return 0;
	}
	if (how == "threads") {
		std::vector<std::thread> threads;
		for (unsigned t = 0; t < 4; t++)
			threads.emplace_back([pool, t] {
				Account mine = { "keep", {}, 0 }, rest = { "churn", {}, 0 };
				Sums all;
				for (unsigned i = 0; i < 3; i++) {
					play(pool, t * 10 + i, mine, rest, all);
					for (void *p : mine.blocks)
						give(pool, p);
					for (void *p : rest.blocks)
						give(pool, p);
					mine.blocks.clear();
					rest.blocks.clear();
				}
			});
		for (std::thread &t : threads)
			t.join();
		hold(kept, pool, keep(pool, 12345));
		print("threads", pool, kept, left, sums);
		return 0;
	}
	play(pool, 7, kept, left, sums);
	print(how.c_str(), pool, kept, left, sums);
	if (how == "two") { /* a pool that ends, with blocks in use, gives its regions back */
		void *other = make(size_t(1) << 32, 0);
		Account a = { "keep", {}, 0 }, b = { "churn", {}, 0 };
		Sums s;
		play(other, 8, a, b, s);
		for (void *p : a.blocks)
			give(other, p);
		for (void *p : b.blocks)
			give(other, p);
		destroy(other);
	}
	return 0;
}
