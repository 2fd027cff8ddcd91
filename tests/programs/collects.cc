/* A runtime with a heap of its own that no malloc serves, for 3 s: "managed" reserves address space and makes it usable as V8 does, "unseen" maps
 * by system calls as Go does. */
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace v8 { namespace internal {
__attribute__((noinline)) static char *AllocatePages(char *space, size_t bytes)
{
	if (mprotect(space, bytes, PROT_READ | PROT_WRITE))
		std::abort();
	return static_cast<char *>(std::memset(space, 1, bytes));
}
} }

int main(int argc, char **argv)
{
	const size_t bytes = 256u << 20, chunk = 4u << 20;
	const bool unseen = argc > 1 && std::string_view(argv[1]) == "unseen";
	char *before[64];
	for (char *&p : before) /* what was freed, to be kept by nobody */
		p = static_cast<char *>(std::memset(std::malloc(100000), 1, 100000));
	for (char *p : before)
		std::free(p);
	if (unseen) {
		long p = syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		std::memset(reinterpret_cast<char *>(p), 1, bytes);
	} else {
		char *space = static_cast<char *>(mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
		for (size_t at = 0; at < bytes; at += chunk)
			v8::internal::AllocatePages(space + at, chunk);
	}
	usleep(3000000);
	return 0;
}
