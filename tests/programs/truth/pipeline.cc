// A pipeline of two threads: frames are decoded faster than they are written out, and wait in a queue without a bound
// truth: backlog
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex lock;
static std::condition_variable changed;
static std::deque<std::vector<char>> queue;
static bool over;
static size_t bound = 1u << 30;

static std::vector<char> decode(int number)
{
	return std::vector<char>(40000 + number % 5, static_cast<char>(number));
}

static void write_out()
{
	for (int written = 0;; written++) {
		std::unique_lock<std::mutex> held(lock);
		changed.wait(held, [] { return !queue.empty() || over; });
		if (queue.empty())
			return;
		auto frame = std::move(queue.front());
		queue.pop_front();
		changed.notify_all();
		held.unlock();
		std::this_thread::sleep_for(std::chrono::microseconds(900));
	}
}

int main(int argc, char **)
{
	if (argc > 1)
		bound = 16;
	std::thread writer(write_out);
	for (int number = 0; number < 4000; number++) {
		auto frame = decode(number);
		std::unique_lock<std::mutex> held(lock);
		changed.wait(held, [] { return queue.size() < bound; });
		queue.push_back(std::move(frame));
		changed.notify_all();
		held.unlock();
		std::this_thread::sleep_for(std::chrono::microseconds(500));
	}
	{
		std::lock_guard<std::mutex> held(lock);
		over = true;
		queue.clear();
	}
	changed.notify_all();
	writer.join();
}
