/* A library that has nothing to do with Ascend and calls its own functions by names of Ascend's driver. */
#include <stddef.h>
#include <stdio.h>

static char block[64];

void *halMemAlloc(size_t bytes, long align);
void halMemFree(void *p, int how);
int rtMalloc(double bytes);
void use_own_names(void);

__attribute__((noinline)) void *halMemAlloc(size_t bytes, long align)
{
	return bytes == 100 && align == -3 ? block : NULL;
}

__attribute__((noinline)) void halMemFree(void *p, int how)
{
	printf("freed %d %d\n", p == block, how);
}

__attribute__((noinline)) int rtMalloc(double bytes)
{
	return (int)(bytes * 2);
}

void use_own_names(void)
{
	void *p = halMemAlloc(100, -3);

	printf("%d %d\n", p == block, rtMalloc(1.5));
	halMemFree(p, 7);
}
