/* Every form of operator new and delete; prints allocations, frees and bytes alive. With "fail" how a failure is told, with "idle" nothing. */
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>

static size_t allocations, frees, alive;
static int handled;

struct wide { alignas(128) char bytes[256]; };

static void *keep(void *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }

static void *got(void *p, size_t n) { allocations += p != nullptr; alive += p ? n : 0; return keep(p); }
static void gone(size_t n) { frees++; alive -= n; }

__attribute__((noinline)) static void plain()
{
	const std::align_val_t align{64};
	void *p[8] = { got(::operator new(100), 100), got(::operator new[](200), 200), got(::operator new(300, std::nothrow), 300),
		       got(::operator new[](400, std::nothrow), 400), got(::operator new(500, align), 500), got(::operator new[](600, align), 600),
		       got(::operator new(700, align, std::nothrow), 700), got(::operator new[](800, align, std::nothrow), 800) };
	for (int i = 4; i < 8; i++)
		if (reinterpret_cast<size_t>(p[i]) % 64)
			std::printf("misaligned\n");
	::operator delete(p[0]); gone(100);
	::operator delete[](p[1]); gone(200);
	::operator delete(p[2], std::nothrow); gone(300);
	::operator delete[](p[3], std::nothrow); gone(400);
	::operator delete(p[4], align); gone(500);
	::operator delete[](p[5], align); gone(600);
	::operator delete(p[6], align, std::nothrow); gone(700);
	::operator delete[](p[7], align, std::nothrow); gone(800);
	::operator delete(keep(nullptr));
}

__attribute__((noinline)) static void sized()
{
	const std::align_val_t align{64};
	void *a = got(::operator new(100), 100), *b = got(::operator new[](200), 200), *c = got(::operator new(300, align), 300);
	void *d = got(::operator new[](400, align), 400);
	::operator delete(a, 100); gone(100);
	::operator delete[](b, 200); gone(200);
	::operator delete(c, 300, align); gone(300);
	::operator delete[](d, 400, align); gone(400);
	wide *w = new wide[3];
	got(w, 3 * sizeof(wide));
	delete[] w; gone(3 * sizeof(wide));
}

static void handler()
{
	std::free(keep(std::malloc(77))); /* as a handler that gives something back */
	allocations++;
	frees++;
	if (++handled == 3)
		std::set_new_handler(nullptr);
}

/* An exception of the allocator's goes through to us, after the handler had its turns. */
static void too_much()
{
	volatile size_t most = static_cast<size_t>(-1) / 4;
	int caught = 0;
	std::set_new_handler(handler);
	try { keep(::operator new(most)); } catch (const std::bad_alloc &) { caught++; }
	try { keep(::operator new[](most, std::align_val_t{64})); } catch (const std::bad_alloc &) { caught++; }
	caught += !keep(::operator new(most, std::nothrow));
	std::printf("%d caught, %d handled\n", caught, handled);
}

__attribute__((noinline)) static int *survivor() { return new int[1000]; }

int main(int argc, char **argv)
{
	static char buffer[4096];
	std::setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	const std::string_view what = argc > 1 ? argv[1] : "";
	if (what == "fail")
		too_much();
	if (what != "")
		return 0;
	plain();
	sized();
	for (int i = 0; i < 1000; i++)
		delete static_cast<wide *>(got(new wide, sizeof(wide))), gone(sizeof(wide));
	got(survivor(), 4000);
	std::printf("%zu %zu %zu\n", allocations, frees, alive);
	return 0;
}
