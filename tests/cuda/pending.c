/* The first call of a linked CUDA function while dlopen is under way (by a library's constructor that waits for another thread), and while
 * an error waits to be asked for. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

int cuMemAlloc_v2(void **p, size_t n);
int cuMemFree_v2(void *p);

#ifdef LIBRARY
static void *allocate(void *p)
{
	return (void *)(long)cuMemAlloc_v2(p, 300);
}

__attribute__((constructor)) static void init(void)
{
	pthread_t thread;
	void *p = NULL, *status;

	pthread_create(&thread, NULL, allocate, &p);
	pthread_join(thread, &status);
	printf("constructor %ld %d\n", (long)status, p != NULL);
}
#else
int main(int argc, char **argv)
{
	void *p;
	int status;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1)
		return !dlopen(argv[1], RTLD_NOW);
	dlopen("libnot-there.so", RTLD_NOW);
	status = cuMemAlloc_v2(&p, 100);
	printf("%d %d\n", status, cuMemFree_v2(p));
	puts(dlerror());
	printf("%d\n", dlerror() == NULL);
	return 0;
}
#endif
