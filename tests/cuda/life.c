/*
 * A program's life with CUDA, by the name in argv[1]: exit, fork, majors, masked, reload, longjmp, weak. Prints CALL lines as
 * matrix.c does for what must be in the trace; linked against libcuda.so.1 and libcudart.so.13.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/device/cuda_abi.h"

extern cudaError_t cudaMalloc(void **p, size_t n);
extern cudaError_t cudaFree(void *p);
extern CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n);
extern CUresult cuMemFree_v2(CUdeviceptr p);
extern void fake_set(int status, int device, int alive);
__attribute__((weak)) extern cudaError_t cudaGetDeviceProperties_v2(void *p, int device);

static void *blocks[8];

static void say(int kind, const char *name, const void *p, size_t n, int status)
{
	printf("CALL %d 1 %s %" PRIu64 " %zu 0 %d\n", kind, name, (uint64_t)(uintptr_t)p, n, status);
	fflush(stdout);
}

static void allocate(int i, size_t n)
{
	int status = (int)cudaMalloc(&blocks[i], n);

	say(10, "cudaMalloc", blocks[i], n, status);
}

static void release(int i)
{
	int status = (int)cudaFree(blocks[i]);

	say(11, "cudaFree", blocks[i], 0, status);
	blocks[i] = NULL;
}

/* ---- exit: freed by a handler, by a destructor, and after those ---- */

static void late(void) { release(0); }
__attribute__((destructor)) static void later(void) { if (blocks[1]) release(1); }
static void latest(int status, void *arg) { (void)status; (void)arg; if (blocks[2]) release(2); }

static void at_exit(void)
{
	for (int i = 0; i < 4; i++)
		allocate(i, 100 + (size_t)i);
	on_exit(latest, NULL);
	atexit(late);
}

/* ---- fork ---- */

static void fork_and_free(void)
{
	int status;

	allocate(0, 100);
	allocate(1, 101);
	fflush(stdout);
	if (fork() == 0) {
		fake_set(3, 0, 0); /* not initialised: what the driver says in a child */
		release(0);
		fake_set(0, 0, 0);
		allocate(2, 102);
		release(2);
		_exit(0);
	}
	wait(&status);
	release(0);
	release(1);
}

/* ---- two majors: this program is linked with 13; a plugin with 12, and both by handle ---- */

static void use(const char *file)
{
	void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL), *p = NULL;
	cudaError_t (*make)(void **, size_t) = (cudaError_t(*)(void **, size_t))(uintptr_t)dlsym(library, "cudaMalloc");
	cudaError_t (*drop)(void *) = (cudaError_t(*)(void *))(uintptr_t)dlsym(library, "cudaFree");
	int status = (int)make(&p, 200);

	say(10, "cudaMalloc", p, 200, status);
	say(11, "cudaFree", p, 0, (int)drop(p));
}

static int plugin(const char *path, const char *function, size_t n)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	int (*go)(size_t) = library ? (int (*)(size_t))(uintptr_t)dlsym(library, function) : NULL;
	int ret = go ? go(n) : -9;

	printf("PLUGIN %s %d\n", function, ret);
	if (library)
		dlclose(library);
	return ret;
}

/* ---- a thread with every signal blocked ---- */

static void *masked(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	allocate(5, 500);
	release(5);
	return unused;
}

/* ---- left by longjmp: what comes after is an event again ---- */

static jmp_buf back;
static void jump(int signal) { (void)signal; siglongjmp(back, 1); }

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread;

	if (!strcmp(what, "exit"))
		at_exit();
	if (!strcmp(what, "fork"))
		fork_and_free();
	if (!strcmp(what, "majors")) {
		allocate(0, 100);
		plugin(argv[2], "plugin_linked", 300);
		plugin(argv[2], "plugin_default", 301);
		use("libcudart.so.12");
		use("libcudart.so.13");
		use("libcudart.so.11.0");
		release(0);
	}
	if (!strcmp(what, "masked")) {
		pthread_create(&thread, NULL, masked, NULL);
		pthread_join(thread, NULL);
	}
	if (!strcmp(what, "reload"))
		for (int i = 0; i < 3; i++) {
			plugin(argv[2], "plugin_linked", 300 + (size_t)i);
			plugin(argv[2], "plugin_default", 400 + (size_t)i);
		}
	if (!strcmp(what, "longjmp")) {
		signal(SIGALRM, jump);
		if (!sigsetjmp(back, 1)) {
			fake_set(-1, 0, 0); /* the real function raises SIGALRM */
			cuMemAlloc_v2((CUdeviceptr *)blocks, 1);
		}
		fake_set(0, 0, 0);
		allocate(0, 100);
		release(0);
	}
	if (!strcmp(what, "weak"))
		printf("weak %s\n", cudaGetDeviceProperties_v2 ? "there" : "NULL");
	return 0;
}
