/* Allocates while what seems to be an interpreter hands out every kind of wrong thread state: unmapped, unreadable,
 * misaligned, random, and chains of frames that end nowhere. Prints "alive" if nothing of that mattered. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void **state;
static char *page, *forbidden, *code_type;
static void (*volatile sink)(void *) = free;
static void *(*fake_malloc)(size_t);

static void allocate(void *fake, int n)
{
	*state = fake;
	for (int i = 0; i < n; i++)
		sink(fake_malloc(100 + (size_t)i));
	*state = NULL;
}

static void put(size_t at, const void *pointer)
{
	memcpy(page + at, &pointer, sizeof(pointer));
}

/* A state at 0, its cframe at 512, a frame at 1024 with its code at 2048; the frame calls itself. */
static void build(const void *cframe, const void *frame, const void *code, const void *previous, const void *type)
{
	memset(page, 0, 4096);
	put(56, cframe);
	put(512 + 8, frame);
	put(1024 + 32, code);
	put(1024 + 48, previous);
	put(2048 + 8, type);
}

static void everything_wrong_once(void)
{
	const void *bad[] = { (void *)1, (void *)0x1000, (void *)0x7fffffff0000, (void *)0xdeadbeefdeadbee8, forbidden, page + 3 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		allocate((void *)(uintptr_t)bad[i], 3);
		build(bad[i], page + 1024, page + 2048, NULL, code_type);
		allocate(page, 3);
		build(page + 512, bad[i], page + 2048, NULL, code_type);
		allocate(page, 3);
		build(page + 512, page + 1024, bad[i], NULL, code_type);
		allocate(page, 3);
		build(page + 512, page + 1024, page + 2048, bad[i], code_type);
		allocate(page, 3);
		build(page + 512, page + 1024, page + 2048, NULL, bad[i]);
		allocate(page, 3);
		build(page + 512, page + 1024, page + 2048, NULL, code_type);
		for (size_t field = 104; field < 144; field += 8)
			put(2048 + field, bad[i]);
		allocate(page, 3);
	}
}

static void random_pages(unsigned rounds)
{
	srand(1);
	while (rounds--) {
		for (size_t i = 0; i < 4096; i++)
			page[i] = (char)rand();
		allocate(page, 1);
		for (size_t i = 0; i < 4096; i += 8) /* plausible pointers, into the page */
			put(i, page + (rand() & 4088));
		allocate(page, 1);
	}
}

int main(int argc, char **argv)
{
	void *lib = dlopen(argv[argc - 1], RTLD_NOW);

	if (!lib)
		return 2;
	state = dlsym(lib, "fake_state");
	fake_malloc = (void *(*)(size_t))(uintptr_t)dlsym(lib, "fake_malloc");
	code_type = dlsym(lib, "PyCode_Type");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(code_type + 48, 1, 8); /* a tp_dealloc that is never called */
	everything_wrong_once();
	build(page + 512, page + 1024, page + 2048, page + 1024, code_type); /* a frame that calls itself */
	allocate(page, 20);
	random_pages(400);
	puts("alive");
	return 0;
}
