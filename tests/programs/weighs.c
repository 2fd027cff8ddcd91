/* weighs FD SECONDS COMMAND...: runs the command with that bound of processor time, and writes to FD what it used: its status as wait()
   gives it, microseconds, KiB. What a process weighs includes what it was before exec: a large program that starts the command itself
   is told its own size. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long long micros(struct timeval t)
{
	return t.tv_sec * 1000000LL + t.tv_usec;
}

int main(int argc, char **argv)
{
	struct rusage used;
	int status, to = argc < 4 ? -1 : atoi(argv[1]);
	pid_t child = argc < 4 ? -1 : fork();

	if (child == 0) {
		rlim_t seconds = strtoul(argv[2], NULL, 10);
		setrlimit(RLIMIT_CPU, &(struct rlimit){ seconds, seconds });
		close(to);
		execv(argv[3], argv + 3);
		_exit(126);
	}
	if (child < 0 || wait4(child, &status, 0, &used) != child)
		return 125;
	dprintf(to, "%d %lld %ld\n", status, micros(used.ru_utime) + micros(used.ru_stime), used.ru_maxrss);
	return 0;
}
