/* A program with an allocator of its own, which (like jemalloc in rustc) asks libc for memory while it holds its own
 * lock for the first time: whoever calls malloc on its behalf then waits for ever. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *arena;
static size_t used;

void *malloc(size_t n)
{
	char *p;

	pthread_mutex_lock(&lock);
	if (!arena) {
		syscall(SYS_getpid);
		arena = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	p = arena + used;
	used += (n + 31) & ~(size_t)15;
	pthread_mutex_unlock(&lock);
	return p;
}

void *calloc(size_t k, size_t n) { return malloc(k * n); }
void free(void *p) { (void)p; }
void *realloc(void *p, size_t n)
{
	void *q = malloc(n);
	if (p)
		memcpy(q, p, n);
	return q;
}

/* Before any constructor: the first call comes while libraries are being loaded. */
static void early(void) { malloc(1); }
__attribute__((section(".preinit_array"), used)) static void (*early_init)(void) = early;

int main(void)
{
	printf("%d\n", malloc(10) != NULL);
	return 0;
}
