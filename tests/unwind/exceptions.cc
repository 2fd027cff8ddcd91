// Allocations while C++ exceptions fly, in destructors and in handlers; run under libverify.so.
#include <stdexcept>
#include <string>
#include <vector>

static unsigned seed = 1;

static unsigned random_up_to(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

struct Guard {
	~Guard() { std::vector<int> v(random_up_to(100) + 1); sink += v.size(); }
	static inline volatile size_t sink;
};

template <typename T> [[gnu::noinline]] static void thrower(T depth)
{
	Guard guard;
	if (depth == 0)
		throw std::runtime_error(std::string(40 + random_up_to(40), 'x'));
	thrower<T>(depth - 1);
	std::string after(50, 'y');
}

[[gnu::noinline]] static size_t catcher(int depth)
{
	try {
		thrower<int>(depth);
	} catch (const std::exception &e) {
		std::string copy(e.what());
		if (random_up_to(3) == 0) {
			try {
				throw;
			} catch (const std::runtime_error &again) {
				return std::string(again.what()).size() + copy.size();
			}
		}
		return copy.size();
	}
	return 0;
}

int main()
{
	size_t n = 0;
	for (int i = 0; i < 3000; i++)
		n += catcher((int)random_up_to(30));
	return n == 0;
}
