// Stacks of boost.context: made by hand, switched to in assembler without unwind tables, deeper and less deep at each switch.
#include <boost/context/fiber.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ctx = boost::context;

static unsigned state = 1;
static volatile char *kept;

static unsigned draw(unsigned below)
{
	state = state * 1664525 + 1013904223;
	return (state >> 16) % below;
}

[[gnu::noinline]] static void take()
{
	char *p = static_cast<char *>(std::malloc(16 + draw(200)));
	kept = p;
	std::free(p);
}

[[gnu::noinline]] static void deeper(unsigned depth, ctx::fiber &back)
{
	take();
	if (depth) {
		deeper(depth - 1, back);
		take();
	} else {
		back = std::move(back).resume();
		take();
	}
	asm volatile("" ::: "memory");
}

[[gnu::noinline]] static void thrower(unsigned depth)
{
	if (depth)
		thrower(depth - 1);
	else
		throw std::runtime_error("on purpose");
	asm volatile("" ::: "memory");
}

static ctx::fiber work(ctx::fiber &&back)
{
	for (int i = 0; i < 200; i++) {
		deeper(draw(30), back);
		try {
			thrower(draw(5));
		} catch (const std::runtime_error &) {
			take();
		}
	}
	return std::move(back);
}

int main()
{
	std::vector<ctx::fiber> fibers;
	for (int i = 0; i < 8; i++)
		fibers.emplace_back(work);
	for (bool any = true; any;) {
		any = false;
		for (auto &f : fibers) {
			take();
			if (f) {
				f = std::move(f).resume();
				any = true;
			}
		}
	}
	std::puts("done");
	return 0;
}
