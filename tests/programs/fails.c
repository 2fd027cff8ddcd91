/* fails SEED COUNT: calls that fail by their contract and leave the program as it was, each with arguments drawn by the seed: NULL, MAP_FAILED,
 * huge, overlapping, misaligned, of blocks and mappings that live on. Whatever succeeds or changes one of those ends it with a message. */
#include "test.h"

#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>

#define PAGE  4096ul
#define BYTES (16 * PAGE)
#define KEPT  8

extern void free_sized(void *p, size_t n) __attribute__((weak));

static uint64_t state;
static char *maps[KEPT], *blocks[KEPT];

static uint64_t draw(uint64_t below)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return state % below;
}

static char *some_map(void)
{
	return maps[draw(KEPT)];
}

/* More than there can be, also behind any of ours. */
static size_t huge(void)
{
	static const size_t sizes[] = { SIZE_MAX,	SIZE_MAX - 1, SIZE_MAX - PAGE,	   SIZE_MAX / 2,
					SIZE_MAX / 2 + 2, 1ul << 62,    (1ul << 63) + PAGE, (1ul << 60) + 1 };
	return sizes[draw(8)];
}

/* No address that something is mapped at, or that a mapping may begin at. */
static void *nowhere(void)
{
	switch (draw(6)) {
	case 0: return NULL;
	case 1: return MAP_FAILED;
	case 2: return (void *)(SIZE_MAX - PAGE + 1);
	case 3: return (void *)(uintptr_t)(1ul << 63);
	case 4: return some_map() + 1 + draw(PAGE - 1);
	default: return (void *)draw(PAGE);
	}
}

static void *misaligned(void)
{
	return draw(2) ? MAP_FAILED : (void *)(some_map() + 1 + draw(PAGE - 1));
}

static int refused_block(void)
{
	void *out = NULL;
	switch (draw(11)) {
	case 0: return malloc(huge()) == NULL;
	case 1: return calloc(huge(), 1 + draw(9)) == NULL;
	case 2: return realloc(blocks[draw(KEPT)], huge()) == NULL;
	case 3: return realloc(NULL, huge()) == NULL;
	case 4: return reallocarray(draw(2) ? blocks[draw(KEPT)] : NULL, huge(), 16 + draw(9)) == NULL;
	case 5: return memalign(1ul << draw(20), huge()) == NULL;
	case 6: return aligned_alloc(1ul << draw(20), huge()) == NULL;
	case 7: return draw(2) ? valloc(huge()) == NULL : pvalloc(huge()) == NULL;
	case 8: return posix_memalign(&out, 1 + draw(7), 100) == EINVAL;
	case 9: return posix_memalign(&out, 1ul << (3 + draw(17)), huge()) == ENOMEM;
	default:
		free(NULL);
		if (free_sized)
			free_sized(NULL, huge());
		return 1;
	}
}

static int refused_map(void)
{
	const int plain = MAP_PRIVATE | MAP_ANONYMOUS, both = PROT_READ | PROT_WRITE;
	switch (draw(8)) {
	case 7: return shmat(-1, draw(2) ? NULL : misaligned(), draw(2) ? SHM_RDONLY : 0) == MAP_FAILED;
	case 0: return mmap(nowhere(), 0, both, plain, -1, 0) == MAP_FAILED;
	case 1: return mmap(nowhere(), huge(), both, plain, -1, 0) == MAP_FAILED;
	case 2: return mmap(misaligned(), PAGE, both, plain | MAP_FIXED, -1, 0) == MAP_FAILED;
	case 3: return mmap(NULL, PAGE, both, MAP_PRIVATE, draw(2) ? -1 : 100000, 0) == MAP_FAILED;
	case 4: return mmap(NULL, PAGE, both, plain, -1, 1 + (off_t)draw(PAGE - 1)) == MAP_FAILED;
	case 5: return mmap(some_map(), PAGE, both, plain | 0x100000 /* MAP_FIXED_NOREPLACE */, -1, 0) == MAP_FAILED;
	default: return mmap64(NULL, PAGE, both, 0x40 /* no type */ | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
	}
}

static int refused_unmap(void)
{
	char *gone;
	switch (draw(7)) {
	case 6: return shmdt(draw(2) ? nowhere() : some_map()) != 0;
	case 0: return munmap(draw(2) ? nowhere() : some_map(), 0) != 0;
	case 1: return munmap(misaligned(), draw(2) ? PAGE : huge()) != 0;
	case 2: return munmap(some_map(), huge()) != 0;
	case 3: return munmap(NULL, draw(2) ? 0 : huge()) != 0;
	case 4: return munmap((void *)(SIZE_MAX - PAGE + 1), PAGE * (1 + draw(9))) != 0;
	default: /* where a block of the heap was */
		free(gone = opaque(memalign(PAGE, PAGE)));
		return munmap(gone, 0) != 0;
	}
}

static int refused_move(void)
{
	char *p = some_map();
	switch (draw(7)) {
	case 0: return mremap(nowhere(), draw(2) ? BYTES : huge(), PAGE, MREMAP_MAYMOVE) == MAP_FAILED;
	case 1: return mremap(p, BYTES, huge(), MREMAP_MAYMOVE) == MAP_FAILED;
	case 2: return mremap(p, BYTES, 0, MREMAP_MAYMOVE) == MAP_FAILED;
	case 3: return mremap(p, BYTES, 2 * BYTES, 1 << 20) == MAP_FAILED;
	case 4: return mremap(p, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, p) == MAP_FAILED; /* overlaps */
	case 5: return mremap(p, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, misaligned()) == MAP_FAILED;
	default: return mremap(p, 0, BYTES, draw(2) ? 0 : MREMAP_MAYMOVE) == MAP_FAILED; /* private */
	}
}

static int refused_change(void)
{
	switch (draw(6)) {
	case 0: return mprotect(misaligned(), PAGE, PROT_READ) != 0;
	case 1: return mprotect(some_map(), BYTES, 1 << 20) != 0;
	case 2: return mprotect((void *)(SIZE_MAX - PAGE + 1), PAGE * (2 + draw(9)), PROT_READ) != 0;
	case 3: return pkey_mprotect(some_map(), BYTES, PROT_READ, 1000) != 0;
	case 4: return madvise(misaligned(), PAGE, MADV_DONTNEED) != 0;
	default: return madvise(some_map(), draw(2) ? BYTES : huge(), 4711) != 0;
	}
}

static int refused_process(void)
{
	char *none[] = { NULL };
	int status;
	siginfo_t info;
	switch (draw(9)) {
	case 0: return execve(draw(2) ? "" : "/no/such/file", none, none) != 0;
	case 1: return execvp("no-such-command-anywhere", (char *[]){ "x", NULL }) != 0;
	case 2: return fexecve(-1, none, none) != 0;
	case 3: return waitpid(draw(2) ? -1 : 1, &status, 0) < 0;
	case 4: return wait4(-1, NULL, 0, NULL) < 0 && wait(NULL) < 0;
	case 5: return waitid(P_ALL, 0, &info, WEXITED) < 0;
	case 6: return prctl(123456, 0, 0, 0, 0) < 0;
	case 7: return syscall(100000, huge()) < 0;
	default: return clone(NULL, NULL, CLONE_SIGHAND, NULL) < 0;
	}
}

int main(int argc, char **argv)
{
	static int (*const kinds[])(void) = { refused_block, refused_map,	refused_unmap,
					      refused_move,  refused_change, refused_process };
	CHECK(argc == 3);
	state = 0x9E3779B97F4A7C15ul * (strtoul(argv[1], NULL, 10) + 1);
	for (int i = 0; i < KEPT; i++) {
		maps[i] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		blocks[i] = malloc(1000 + (size_t)i);
		CHECK(maps[i] != MAP_FAILED && blocks[i]);
		memset(maps[i], 'm', BYTES);
		memset(blocks[i], 'b', 1000);
	}
	for (long n = strtol(argv[2], NULL, 10); n > 0; n--) {
		uint64_t before = state, kind = draw(6);
		if (!kinds[kind]()) {
			printf("kind %d succeeded, %ld before the end, state %#lx\n", (int)kind, n, (unsigned long)before);
			return 1;
		}
	}
	for (int i = 0; i < KEPT; i++)
		CHECK(maps[i][0] == 'm' && maps[i][BYTES - 1] == 'm' && blocks[i][999] == 'b');
	printf("all failed\n");
	return 0;
}
