/* A library whose functions are chosen at their first call, by code that allocates: stacks through the loader's lazy binding. */
static void (*leaf)(void);

static void nothing(void)
{
}

static void *choose(void)
{
	leaf();
	return (void *)nothing;
}

#define EACH(one) one(0) one(1) one(2) one(3) one(4) one(5) one(6) one(7)
#define DECLARE(n) void lazy_##n(void) __attribute__((ifunc("choose")));
EACH(DECLARE)

/* Frames of different size. */
#define CALL(n) \
	static __attribute__((noinline)) void call_##n(void) \
	{ \
		volatile char room[16 + 48 * n]; \
		room[n] = 1; \
		lazy_##n(); \
		room[n] = 0; \
	}
EACH(CALL)

#define RUN(n) call_##n();
void lazy_all(void (*f)(void))
{
	leaf = f;
	EACH(RUN)
	leaf();
}
