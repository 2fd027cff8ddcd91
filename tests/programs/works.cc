/*
 * What is asked for is allocated on a thread of its own, by functions with the names of a library's: the one that asks
 * keeps half of it. `works xla|tensorflow`.
 */
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

static constexpr int rounds = 300;
static constexpr std::size_t bytes = 100000;

namespace xla {
struct CpuDeviceMemory {
	static void *AllocateInto(std::size_t n);
};

__attribute__((noinline)) void *CpuDeviceMemory::AllocateInto(std::size_t n)
{
	void *volatile p = std::malloc(n);
	return p;
}
}

namespace tensorflow {
namespace {
template <class State> struct ExecutorState {
	static void *Process(std::size_t n);
};

template <class State> __attribute__((noinline)) void *ExecutorState<State>::Process(std::size_t n)
{
	void *volatile p = std::malloc(n);
	return p;
}
}
}

static std::mutex lock;
static std::condition_variable changed;
static bool asked, done, over;
static void *made;

static void work(void *(*allocate)(std::size_t))
{
	std::unique_lock<std::mutex> held(lock);
	for (;;) {
		changed.wait(held, [] { return asked || over; });
		if (over)
			return;
		made = allocate(bytes);
		asked = false;
		done = true;
		changed.notify_all();
	}
}

static void *ask()
{
	std::unique_lock<std::mutex> held(lock);
	asked = true;
	changed.notify_all();
	changed.wait(held, [] { return done; });
	done = false;
	return made;
}

int main(int, char **argv)
{
	std::thread worker(work, std::strcmp(argv[1], "xla") ? tensorflow::ExecutorState<int>::Process :
							       xla::CpuDeviceMemory::AllocateInto);
	std::vector<void *> kept;
	for (int i = 0; i < rounds; i++) {
		kept.push_back(ask());
		for (int k = 0; k < 2; k++)
			std::free(ask());
	}
	{
		std::lock_guard<std::mutex> held(lock);
		over = true;
		changed.notify_all();
	}
	worker.join();
	return 0;
}
