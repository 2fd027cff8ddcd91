/* What a process asked its heap for, out of its events: numbers of blocks, realloc, what has gone without a word. */
#include "analyzer/replay/heap/heap_calls.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

enum { MALLOC = SYNTH_HOOK_MALLOC, FREE = SYNTH_HOOK_FREE, REALLOC = 5, CALLOC, ALIGNED, MOST = 16 };

struct heard {
	struct synth s;
	struct reader *r;
	struct heap_calls *h;
	struct heap_call calls[MOST];
	size_t count;
};

static int hear(void *arg, const struct heap_call *c)
{
	struct heard *x = arg;
	if (x->count < MOST)
		x->calls[x->count++] = *c;
	return 0;
}

static struct heard begin(void)
{
	static const char *const hooks[] = { "realloc", "calloc", "posix_memalign" };
	struct heard x = { .count = 0 };
	synth_begin(&x.s);
	struct synth_process *p = synth_process(&x.s, 4711, 0);
	for (uint32_t i = 0; i < 3; i++)
		synth_text(p, MT_REC_HOOK, &(struct mt_rec_hook){ REALLOC + i, 0 }, 8, hooks[i]);
	synth_alloc(p, 0, SYNTH_START + 1, 0x1000, 16, 0);
	synth_write(p, SYNTH_RAW);
	const char *dir = x.s.dir;
	CHECK_EQ(reader_open(&x.r, &dir, 1, 0), 0);
	return x;
}

static void event(struct heard *x, enum mt_kind kind, unsigned hook, uint64_t addr, uint64_t size, uint32_t ring)
{
	if (!x->h)
		x->h = heap_calls_new(reader_process(x->r, 0), hear, x);
	const struct mt_event e = {
		.ticks = 1, .addr = addr, .size = size & MT_MAX_SIZE, .hook = hook & 1023, .kind = kind & 63
	};
	CHECK_EQ(heap_calls_event(x->h, &e, ring, ring), 0);
}

static void end(struct heard *x)
{
	heap_calls_free(x->h);
	reader_close(x->r);
	synth_end(&x->s);
}

static void check_call(const struct heard *x, size_t i, enum heap_what what, uint32_t block, uint64_t size)
{
	CHECK(i < x->count);
	CHECK_EQ(x->calls[i].what, what);
	CHECK_EQ(x->calls[i].block, block);
	CHECK_EQ(x->calls[i].size, size);
}

TEST(numbers_are_used_again)
{
	struct heard x = begin();
	event(&x, MT_ALLOC, MALLOC, 0x1000, 10, 0);
	event(&x, MT_ALLOC, CALLOC, 0x2000, 20, 0);
	event(&x, MT_FREE, FREE, 0x1000, 0, 1);
	event(&x, MT_ALLOC, ALIGNED, 0x3000, 30, 1);
	check_call(&x, 0, HEAP_MALLOC, 0, 10);
	check_call(&x, 1, HEAP_CALLOC, 1, 20);
	check_call(&x, 2, HEAP_FREE, 0, 0);
	check_call(&x, 3, HEAP_ALIGNED, 0, 30);
	CHECK_EQ(x.calls[2].ring, 1);
	CHECK_EQ(heap_calls_counts(x.h)->blocks, 2);
	CHECK_EQ(heap_calls_counts(x.h)->live, 50);
	end(&x);
}

/* Another thread may get the address between the two. */
TEST(a_realloc_is_one_call)
{
	struct heard x = begin();
	event(&x, MT_ALLOC, REALLOC, 0x1000, 10, 0);
	event(&x, MT_FREE, REALLOC, 0x1000, 0, 0);
	event(&x, MT_ALLOC, MALLOC, 0x1000, 5, 1);
	event(&x, MT_ALLOC, REALLOC, 0x2000, 40, 0);
	event(&x, MT_FREE, FREE, 0x2000, 0, 0);
	check_call(&x, 0, HEAP_MALLOC, 0, 10);
	check_call(&x, 1, HEAP_MALLOC, 1, 5);
	check_call(&x, 2, HEAP_REALLOC, 0, 40);
	CHECK_EQ(x.calls[2].old_size, 10);
	CHECK_EQ(x.calls[2].old_addr, 0x1000);
	check_call(&x, 3, HEAP_FREE, 0, 0);
	CHECK_EQ(heap_calls_counts(x.h)->live, 5);
	end(&x);
}

TEST(a_realloc_that_failed_is_none)
{
	struct heard x = begin();
	event(&x, MT_ALLOC, MALLOC, 0x1000, 10, 0);
	event(&x, MT_FREE, REALLOC, 0x1000, 0, 0);
	event(&x, MT_UNDO, REALLOC, 0x1000, 0, 0);
	event(&x, MT_ALLOC, REALLOC, 0x2000, 7, 0); /* of NULL */
	event(&x, MT_FREE, FREE, 0x1000, 0, 0);
	CHECK_EQ(x.count, 3);
	check_call(&x, 1, HEAP_MALLOC, 1, 7);
	check_call(&x, 2, HEAP_FREE, 0, 0);
	end(&x);
}

TEST(a_realloc_to_nothing_frees)
{
	struct heard x = begin();
	event(&x, MT_ALLOC, MALLOC, 0x1000, 10, 0);
	event(&x, MT_FREE, REALLOC, 0x1000, 0, 0);
	event(&x, MT_ALLOC, MALLOC, 0x2000, 7, 0);
	CHECK_EQ(x.count, 3);
	check_call(&x, 1, HEAP_FREE, 0, 0);
	check_call(&x, 2, HEAP_MALLOC, 0, 7);
	end(&x);
}

/* What lies where another one lay has taken its place; what nobody saw allocated isn't freed. */
TEST(what_went_without_a_word)
{
	struct heard x = begin();
	event(&x, MT_ALLOC, MALLOC, 0x1000, 10, 0);
	event(&x, MT_ALLOC, MALLOC, 0x1000, 12, 1);
	event(&x, MT_FREE, FREE, 0x9000, 0, 0);
	CHECK_EQ(x.count, 3);
	check_call(&x, 1, HEAP_FREE, 0, 0);
	check_call(&x, 2, HEAP_MALLOC, 0, 12);
	CHECK_EQ(heap_calls_counts(x.h)->missed, 1);
	CHECK_EQ(heap_calls_counts(x.h)->unknown, 1);
	CHECK_EQ(heap_calls_counts(x.h)->live, 12);
	end(&x);
}

TEST_MAIN
