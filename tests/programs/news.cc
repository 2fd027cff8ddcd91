// C++ reaches malloc: new, delete, arrays, over-aligned types, thread_local destructors, exceptions.
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct alignas(128) Wide { char c[128]; };
static Wide *volatile wide;
static int *volatile number;

struct Holder {
	std::vector<int> *v = new std::vector<int>(100);
	~Holder() { delete v; }
};
static thread_local Holder holder;

static size_t throws(int i)
{
	try {
		if (i % 2)
			throw std::runtime_error(std::string(100, 'x'));
		number = new int[1ul << 60];
	} catch (const std::exception &e) {
		return std::string(e.what()).size();
	}
	return 0;
}

int main()
{
	size_t n = 0;
	for (int i = 0; i < 20; i++) {
		std::thread t([&] { n += holder.v->size(); });
		t.join();
		n += throws(i);
		delete (wide = new Wide);
		delete[] (number = new (std::nothrow) int[100]);
		n += (number = new (std::nothrow) int[1ul << 60]) == nullptr;
	}
	std::printf("%zu\n", n);
	return 0;
}
