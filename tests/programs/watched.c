/* watched [WHAT]: what debuggers, sanitizers and tracers look at: threads, a forked child, a spawned one, mappings, C's heap. WHAT adds
 * what they complain about: leak, race, overflow, after (use after free), unset (a branch on memory that nobody wrote). */
#include "test.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 500 };

extern char **environ;
static int shared;

static void *allocate(void *race)
{
	for (int i = 0; i < ROUNDS; i++) {
		char *block = opaque(calloc(1, 16 + i));
		block = opaque(realloc(block, 5000));
		free(block);
	}
	if (race)
		shared++;
	return NULL;
}

static void threads(void *race)
{
	pthread_t id[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&id[i], NULL, allocate, race));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(id[i], NULL));
}

static void map(void)
{
	for (int i = 0; i < 20; i++) {
		char *area = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(area != MAP_FAILED);
		area[1 << 19] = 1;
		CHECK(!mprotect(area, 1 << 19, PROT_READ) && !munmap(area, 1 << 20));
	}
}

static int status_of(pid_t pid)
{
	int status = -1;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void children(char *self)
{
	pid_t pid = fork();
	if (!pid) {
		free(opaque(malloc(100)));
		exit(5);
	}
	printf("forked: %d\n", status_of(pid));
	char *command[] = {self, "child", NULL};
	CHECK(!posix_spawn(&pid, self, NULL, NULL, command, environ));
	printf("spawned: %d\n", status_of(pid));
}

__attribute__((noinline)) static void complain(const char *what)
{
	volatile char *block = opaque(malloc(40));
	if (!strcmp(what, "overflow"))
		block[40] = 1;
	if (!strcmp(what, "unset") && block[3])
		puts("was set");
	if (strcmp(what, "leak"))
		free((void *)block);
	if (!strcmp(what, "after"))
		block[0] = 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	threads(!strcmp(what, "race") ? &shared : NULL);
	map();
	if (!strcmp(what, "child"))
		return 6;
	children(argv[0]);
	complain(what);
	puts("end");
	return 3;
}
