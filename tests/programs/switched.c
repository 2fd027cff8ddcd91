/* Does what it is told, a line at a time, and says "done" to each; it allocates nothing else.
 *
 *   a N   allocates N blocks of 1000 bytes and keeps them      f N   frees the oldest N
 *   k N   the same in a forked child, which ends               e N   in a child that executes this program anew
 *   t N   in each of four threads N blocks, freed at once      q     ends
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept[1 << 20];
static size_t from, to;

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(3);
}

static __attribute__((noinline)) void take(long n)
{
	while (n-- > 0)
		kept[to++] = malloc(1000);
}

static void give(long n)
{
	while (n-- > 0)
		free(kept[from++]);
}

static void *churn(void *n)
{
	for (long i = (long)n; i > 0; i--) {
		void *volatile p = malloc(1000);
		free(p);
	}
	return NULL;
}

static void threads(long n)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, churn, (void *)n))
			_exit(4);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void child(long n, const char *digits, char **argv)
{
	pid_t pid = fork();
	if (pid == 0 && digits)
		execl(argv[0], argv[0], digits, (char *)NULL);
	if (pid == 0) {
		take(n);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static int line(char *out, size_t size)
{
	size_t n = 0;
	while (n + 1 < size && read(0, out + n, 1) == 1 && out[n] != '\n')
		n++;
	out[n] = 0;
	return n > 0;
}

int main(int argc, char **argv)
{
	char text[64];
	if (argc > 1) {
		take(atol(argv[1]));
		return 0;
	}
	say("ready\n");
	while (line(text, sizeof(text)) && *text != 'q') {
		long n = atol(text + 1);
		switch (*text) {
		case 'a':
			take(n);
			break;
		case 'f':
			give(n);
			break;
		case 'k':
			child(n, NULL, argv);
			break;
		case 'e':
			child(n, text + 2, argv);
			break;
		case 't':
			threads(n);
			break;
		}
		say("done\n");
	}
	return 0;
}
