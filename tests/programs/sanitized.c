/* One fault of each kind that a sanitizer reports, through functions that memtrace hooks: sanitized KIND. Built by
 * tests/cases/sanitizers.py with -fsanitize=... */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int *shared;
static void *volatile kept;

static void *add(void *x)
{
	++*shared;
	return x;
}

/* The second begins when the first has ended, and nothing but time orders them: the report is always the same. */
static void race(void)
{
	pthread_t threads[2];

	shared = malloc(sizeof(*shared));
	*shared = 0;
	for (int i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, add, NULL);
		usleep(200000);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void *leak(void)
{
	return realloc(malloc(1234), 2345);
}

static void wipe(void)
{
	char stack[8192];

	memset(stack, 0, sizeof(stack));
	kept = stack;
	kept = NULL;
}

static void use_page(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(page, 4096);
}

static void child(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		kept = malloc(100);
		free(kept);
		use_page();
		_exit(9);
	}
	waitpid(pid, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	char *volatile block = malloc(10);
	volatile int number = 0x7fffffff;
	void *aligned;

	printf("%s\n", kind);
	fflush(stdout);
	if (!strcmp(kind, "race"))
		race();
	if (!strcmp(kind, "over"))
		block[argc * 5] = 1;
	if (!strcmp(kind, "late")) {
		free(block);
		return block[3];
	}
	if (!strcmp(kind, "twice")) {
		free(block);
		free(block);
	}
	if (!strcmp(kind, "aligned") && !posix_memalign(&aligned, 64, 64))
		((char *volatile)aligned)[argc * 32] = 1;
	if (!strcmp(kind, "status")) /* what wait stores goes past the block */
		waitpid(fork() ? -1 : (_exit(0), 0), (int *)(void *)(block + 8), 0);
	if (!strcmp(kind, "huge"))
		kept = malloc((size_t)1 << 60);
	if (!strcmp(kind, "leak")) {
		kept = leak();
		kept = NULL;
		wipe();
	}
	if (!strcmp(kind, "undefined"))
		printf("%d\n", number += argc);
	if (!strcmp(kind, "child"))
		child();
	use_page();
	free(block);
	printf("end\n");
	return 3;
}
