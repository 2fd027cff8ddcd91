/* fds MODE: the program's descriptors are its own. Prints the numbers it gets.
 *   numbers, closeall, closefrom, close_range, steal (writes to numbers somebody else might believe to own),
 *   keeper (one thread closes all numbers up to 7 and opens its own there, again and again, while another one allocates) */
#include "test.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>

static void work(int n)
{
	for (int i = 0; i < n; i++)
		free(opaque(malloc(10 + i % 100)));
}

static void show_fds(void)
{
	for (int fd = 0; fd < 1100; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			say("%d ", fd);
	say("are open\n");
}

static void numbers(void)
{
	for (int i = 0; i < 4; i++) {
		say("open: %d\n", open("/dev/null", O_RDONLY));
		work(30000);
	}
	int p[2];
	CHECK(!pipe(p));
	say("pipe: %d %d\n", p[0], p[1]);
}

/* Files at all low numbers: what we wrote is all there is in them afterwards. */
static void steal(void)
{
	int fd[100];
	for (int i = 0; i < 100; i++) {
		char name[20];
		snprintf(name, sizeof(name), "f%d", i);
		int opened = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		fd[i] = dup2(opened, 200 + i);
		CHECK(write(fd[i], name, 3) == 3);
		close(opened);
	}
	work(100000);
	usleep(1500000);
	work(100000);
	for (int i = 0; i < 100; i++)
		CHECK(lseek(fd[i], 0, SEEK_END) == 3);
}

static volatile int done;

static void *allocate(void *unused)
{
	work(2000000);
	done = 1;
	return unused;
}

/* Nothing is ever written to the file, and nobody else opens anything. One of its numbers may be closed, rarely: no
 * system call closes a number only if it is a certain file. */
static void keeper(void)
{
	pthread_t thread;
	int gone = 0;
	CHECK(!pthread_create(&thread, NULL, allocate, NULL));
	for (int fd = open("mine", O_RDWR | O_CREAT, 0600); !done; fd = 7) {
		for (; fd > 2; fd--)
			close(fd);
		for (int i = 3; i < 7; i++) {
			char byte;
			fd = open("mine", O_RDWR);
			off_t end = lseek(fd, 0, SEEK_END);
			ssize_t n = read(fd, &byte, 1);
			gone += end < 0 || n < 0;
			if (fd < 3 || end > 0 || n > 0)
				done = 2;
		}
	}
	CHECK(done == 1);
	CHECK(gone <= 1);
	CHECK(!pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	struct rlimit files = { 1024, 1024 };
	setrlimit(RLIMIT_NOFILE, &files);
	show_fds();
	work(50000);
	if (!strcmp(mode, "numbers"))
		numbers();
	else if (!strcmp(mode, "closeall"))
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
	else if (!strcmp(mode, "closefrom"))
		closefrom(3);
	else if (!strcmp(mode, "close_range"))
		CHECK(!close_range(0 + 3, ~0u, 0));
	else if (!strcmp(mode, "steal"))
		steal();
	else if (!strcmp(mode, "keeper"))
		keeper();
	work(50000);
	if (strcmp(mode, "steal")) {
		usleep(1200000);
		work(50000);
	}
	show_fds();
	return 0;
}
