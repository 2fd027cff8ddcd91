/* A plug-in with operators of its own, which count. */
#include <cstdlib>
#include <new>

static int count;

void *operator new(std::size_t n) { count++; return std::malloc(n); }
void operator delete(void *p) noexcept { count++; std::free(p); }
void operator delete(void *p, std::size_t) noexcept { count++; std::free(p); }

extern "C" void *make(unsigned long n) { return ::operator new(n); }
extern "C" void drop(void *p) { ::operator delete(p); }
extern "C" int served() { return count; }
