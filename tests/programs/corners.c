/* The corner cases of the malloc family. What each returns is printed: it must be what it is without the shim.
 *   corners [glibc]     glibc = also what only glibc has */
#include "tally.h"

#include <malloc.h>

static volatile size_t huge = PTRDIFF_MAX, huger = (size_t)PTRDIFF_MAX + 1, half = SIZE_MAX / 2, odd = 3;

static void say_result(const char *what, const void *p)
{
	say("%s: %s errno %d\n", what, p ? "block" : "NULL", errno);
	errno = 77; /* must stay unless a call fails */
}

static void zero_sizes(void)
{
	char *p = tally_alloc(malloc(0), 0);
	say_result("malloc(0)", p);
	free(p);
	tally_free(0);
	say_result("free", NULL);
	p = tally_alloc(realloc(NULL, 0), 0);
	say_result("realloc(NULL, 0)", p);
	p = tally_realloc(realloc(p, 10), 10, p, 0);
	char *q = realloc(p, 0); /* frees in glibc, a block of 0 bytes elsewhere */
	if (q)
		tally_realloc(q, 0, p, 10);
	else
		tally_free(10);
	say_result("realloc(p, 0)", q);
	p = tally_alloc(calloc(0, 8), 0);
	say_result("calloc(0, 8)", p);
	p = tally_alloc(calloc(8, 0), 0);
	say_result("calloc(8, 0)", p);
	free(NULL);
	say_result("free(NULL)", NULL);
}

static void failures(void)
{
	say_result("malloc(PTRDIFF_MAX)", tally_alloc(malloc(huge), 0));
	say_result("malloc(PTRDIFF_MAX + 1)", tally_alloc(malloc(huger), 0));
	say_result("calloc overflow", tally_alloc(calloc(half, 4), 0));
	say_result("calloc huge", tally_alloc(calloc(huge / 8, 8), 0));
	say_result("reallocarray overflow", tally_alloc(reallocarray(NULL, half, 4), 0));
	char *p = tally_alloc(malloc(100), 100);
	memset(p, 'x', 100);
	say_result("realloc huge", tally_realloc(realloc(p, huge), 0, p, 100));
	say_result("reallocarray overflow keeps", tally_realloc(reallocarray(p, half, 4), 0, p, 100));
	for (int i = 0; i < 100; i++)
		CHECK(p[i] == 'x');
	free(p);
	tally_free(100);
	void *q = &tally;
	int e = posix_memalign(&q, odd, 8);
	say("posix_memalign(3): %d %d errno %d\n", e, q == &tally, errno);
	TALLY_ADD(failed, 1);
	e = posix_memalign(&q, 64, huge);
	say("posix_memalign(huge): %d %d errno %d\n", e, q == &tally, errno);
	TALLY_ADD(failed, 1);
}

static void alignments(void)
{
	for (size_t a = 8; a <= 65536; a *= 4) {
		void *p = NULL, *q = tally_alloc(aligned_alloc(a, a * 2), a * 2), *r = tally_alloc(memalign(a, 5), 5);
		CHECK(posix_memalign(&p, a, 100) == 0);
		tally_alloc(p, 100);
		CHECK((uintptr_t)p % a == 0 && (uintptr_t)q % a == 0 && (uintptr_t)r % a == 0);
		free(p);
		tally_free(100);
		q = tally_realloc(realloc(q, 1), 1, q, a * 2);
		free(q);
		tally_free(1);
	}
	say_result("aligned_alloc(3, 10)", tally_alloc(aligned_alloc(odd, 10), 10));
	say_result("memalign(3, 10)", tally_alloc(memalign(odd, 10), 10));
	void *v = tally_alloc(valloc(100), 100);
	say("valloc aligned %d\n", (uintptr_t)v % 4096 == 0);
}

static void contents(void)
{
	for (int i = 0; i < 50; i++) {
		char *p = tally_alloc(malloc(1000), 1000);
		memset(p, 0xee, 1000);
		free(p);
		tally_free(1000);
		p = tally_alloc(calloc(10, 100), 1000);
		for (int k = 0; k < 1000; k++)
			CHECK(p[k] == 0);
		memset(p, i, 1000);
		p = tally_realloc(realloc(p, 100000), 100000, p, 1000);
		CHECK(p[0] == i && p[999] == i);
		CHECK(malloc_usable_size(p) >= 100000);
		p = tally_realloc(reallocarray(p, 10, 5), 50, p, 100000);
		CHECK(p[49] == i);
	}
}

static void through_libc(void)
{
	char *s = tally_alloc(strdup("hello"), 6), *t = NULL;
	say("%s\n", s);
	CHECK(asprintf(&t, "%s", "a line") == 6); /* how often it allocates is its business: the same in both runs */
	say("%s\n", t);
}

int main(int argc, char **argv)
{
	errno = 77;
	zero_sizes();
	failures();
	alignments();
	contents();
	if (argc > 1 && !strcmp(argv[1], "glibc"))
		tally_alloc(pvalloc(100), 100);
	tally_say();
	if (argc > 1 && !strcmp(argv[1], "libc"))
		through_libc();
	return 0;
}
