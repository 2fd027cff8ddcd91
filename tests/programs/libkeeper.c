/* A C extension for extension.py: each answer needs memory, and keep_answer() loses what it made. */
#include <stdlib.h>
#include <string.h>

void free_answer(int bytes);
void keep_answer(int bytes);

static __attribute__((noinline)) void *make(int bytes)
{
	void *volatile answer = malloc((size_t)bytes);
	return answer ? memset(answer, 1, (size_t)bytes) : NULL;
}

void free_answer(int bytes)
{
	free(make(bytes));
}

void keep_answer(int bytes)
{
	volatile char *answer = make(bytes);
	if (answer)
		answer[0] = 2;
}
