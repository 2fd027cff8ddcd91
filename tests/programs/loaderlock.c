/*
 * The loader's lock on its list of modules, held by dl_iterate_phdr while it calls back.
 *
 *   fork LOOPS      forks while another thread holds it: in the children it stays held for ever
 *   callback A B    allocates under it in code of a module that is new (A), while another thread, in another one (B), allocates too
 *   many FOLDER N   loads N modules, 0.so and so on, and allocates in each
 */
#include "test.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static volatile int go, done, tid;
static void *(*in_a)(void), *(*in_b)(void);

static int dawdle(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	(void)data;
	go = 1;
	for (volatile int i = 0; i < 20000; i++)
		;
	return 0;
}

static void *hold(void *unused)
{
	while (!done)
		dl_iterate_phdr(dawdle, NULL);
	return unused;
}

__attribute__((noinline)) static int child_allocates(void)
{
	return opaque(malloc(77)) == NULL;
}

static void fork_often(int loops)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, hold, NULL));
	while (!go)
		;
	for (int i = 0; i < loops; i++) {
		pid_t child = fork();
		int status;
		CHECK(child >= 0);
		if (!child)
			_exit(child_allocates());
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	done = 1;
	pthread_join(thread, NULL);
}

static void *open_module(const char *path)
{
	void *module = dlopen(path, RTLD_NOW);

	CHECK(module);
	return dlsym(module, "mod_alloc");
}

static void *allocate(void *unused)
{
	tid = (int)syscall(SYS_gettid);
	while (!go)
		;
	in_b();
	done = 1;
	return unused;
}

/* The thread waits for something, or has ended. */
static int is_idle(int thread)
{
	char path[64], text[256] = "", *end;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || !(end = strrchr(text, ')')))
		end = NULL;
	close(fd);
	return !end || end[2] == 'S';
}

static int meet(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	(void)data;
	go = 1;
	while (!done && !is_idle(tid))
		;
	in_a();
	return 1;
}

static void allocate_in_callback(const char *a, const char *b)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, allocate, NULL));
	while (!tid)
		;
	in_a = (void *(*)(void))open_module(a);
	in_b = (void *(*)(void))open_module(b);
	dl_iterate_phdr(meet, NULL);
	pthread_join(thread, NULL);
}

static void load_many(const char *folder, int n)
{
	for (int i = 0; i < n; i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s/%d.so", folder, i);
		CHECK(opaque(((void *(*)(void))open_module(path))()));
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "fork"))
		fork_often(atoi(argv[2]));
	else if (!strcmp(argv[1], "callback"))
		allocate_in_callback(argv[2], argv[3]);
	else
		load_many(argv[2], atoi(argv[3]));
	say("done\n");
	return 0;
}
