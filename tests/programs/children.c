/* children COUNT WIDTH BLOCKS [SECONDS]: COUNT children one after the other, at most WIDTH of them at once, each of which makes BLOCKS blocks,
 * frees half of them, and ends when its place is needed (or when all are there). The parent allocates nothing once it has begun,
 * and waits SECONDS before it does. */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>

__attribute__((noinline)) static void work(int blocks)
{
	void *last = NULL;
	for (int i = 0; i < blocks; i++) {
		void *block = opaque(malloc(16 + i % 100));
		free(i % 2 ? last : NULL);
		last = block;
	}
}

static void reap(void)
{
	int status = -1;
	CHECK(wait(&status) > 0 && status == 0);
}

int main(int argc, char **argv)
{
	int count = atoi(argv[1]), width = atoi(argv[2]), blocks = atoi(argv[3]), fd[2];
	CHECK(!pipe(fd));
	sleep(argc > 4 ? atoi(argv[4]) : 0);
	for (int i = 0; i < count; i++) {
		if (i >= width) {
			CHECK(write(fd[1], "", 1) == 1);
			reap();
		}
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			char c;
			work(blocks);
			_exit(read(fd[0], &c, 1) != 1);
		}
	}
	for (int i = count < width ? count : width; i > 0; i--) {
		CHECK(write(fd[1], "", 1) == 1);
		reap();
	}
	say("%d children\n", count);
	return 0;
}
