/* A program that would notice a stranger: it counts its children, threads and SIGCHLDs for as long as a recorder needs
 * to be started (and a full chunk to be there), but at least 60 times. waits [subreaper] */
#include "test.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static volatile int signals;

static void on_child(int sig)
{
	(void)sig;
	signals++;
}

static void look(void)
{
	char path[64], text[256] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	int fd = open(path, O_RDONLY);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		say("children: %s\n", text);
	close(fd);
	int status, pid = waitpid(-1, &status, WNOHANG | __WALL);
	if (pid >= 0 || errno != ECHILD)
		say("waitpid gives %d errno %d\n", pid, errno);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "subreaper")) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		execl("/proc/self/exe", argv[0], "subreaped", NULL); /* before the shim of this image starts anything */
	}
	signal(SIGCHLD, on_child);
	struct timespec t, end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	int looks = 0;
	do {
		for (int i = 0; i < 2000; i++)
			free(opaque(malloc(10 + i % 100)));
		look();
		usleep(10000);
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while (++looks < 60 || (t.tv_sec - end.tv_sec) * 1000 + (t.tv_nsec - end.tv_nsec) / 1000000 < 1800);
	char line[4096] = "";
	int fd = open("/proc/self/status", O_RDONLY);
	CHECK(read(fd, line, sizeof(line) - 1) > 0);
	char *threads = strstr(line, "Threads:");
	say("signals %d %.12s\n", signals, threads ? threads : "?");
	return 0;
}
