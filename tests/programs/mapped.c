/* Mappings of every sort that stay until the end, and one that is replaced. Prints what was mapped. */
#include "test.h"

int main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY), mem = syscall(SYS_memfd_create, "some memory", 0);
	CHECK(!ftruncate(mem, 1 << 20));
	char *anon = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *file = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	char *memfd = mmap64(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	char *space = mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(anon != MAP_FAILED && shared != MAP_FAILED && file != MAP_FAILED && memfd != MAP_FAILED && space != MAP_FAILED);
	CHECK(mmap(anon + 8192, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == anon + 8192);
	CHECK(!munmap(anon + (512 << 10), 256 << 10));
	CHECK(munmap(anon + 1, 4096) == -1 && errno == EINVAL); /* undone */
	CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	char *grown = mremap(shared, 2 << 20, 3 << 20, MREMAP_MAYMOVE);
	say("%d\n", grown == MAP_FAILED);
	return 0;
}
