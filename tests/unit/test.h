/* Self-registering unit tests: TEST(name) { CHECK(...); } in any number of files, linked with nothing else.
 * Every test prints one line, `ok - NAME` or `not ok - NAME: why`, which tests/run counts. */
#ifndef MT_TEST_H
#define MT_TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sanitizers look for wild reads and are slow: with them tests take few seeds, of which no rates are asked, and
 * smaller programs. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

extern struct test *test_list;
extern int test_failures; /* of the running test */

#define TEST(id) \
	static void test_##id(void); \
	__attribute__((constructor)) static void test_register_##id(void) \
	{ \
		static struct test t = { #id, test_##id, NULL }; \
		t.next = test_list; \
		test_list = &t; \
	} \
	static void test_##id(void)

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			test_failures++; \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
		} \
	} while (0)

#define CHECK_EQ(a, b) \
	do { \
		int64_t check_a = (int64_t)(a), check_b = (int64_t)(b); \
		if (check_a != check_b) { \
			test_failures++; \
			printf("# %s:%d: %s is %" PRId64 ", not %" PRId64 "\n", __FILE__, __LINE__, #a, check_a, \
			       check_b); \
		} \
	} while (0)

#define TEST_MAIN \
	struct test *test_list; \
	int test_failures; \
	int main(int argc, char **argv) \
	{ \
		int failed = 0; \
		(void)argv; \
		if (argc > 1) /* the analyzer starts itself as a helper of its own, which a test is not */ \
			return 127; \
		for (struct test *t = test_list; t; t = t->next) { \
			test_failures = 0; \
			t->run(); \
			printf(test_failures ? "not ok - %s: %d checks failed\n" : "ok - %s\n", t->name, \
			       test_failures); \
			failed += test_failures != 0; \
		} \
		return failed != 0; \
	}

#endif
