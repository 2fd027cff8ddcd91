/* What frag says of hand-made heaps and segments. */
#include "analyzer/model/heap_layout.h"
#include "analyzer/model/pool_layout.h"
#include "analyzer/diagnosis/pins.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#define MIB     (1ull << 20)
#define AT(n)   (SYNTH_START + (n))
#define PROGRAM 0x555500000000ull /* where the program lies */
#define BREAK   (PROGRAM + 2 * MIB)
#define ARENA   0x7f1000000000ull /* 64 MiB aligned */

static void module(struct synth_process *p, uint64_t start, uint64_t end, const char *path)
{
	struct mt_rec_module m = { .start = start, .end = end, .node_from = 1 };
	synth_text(p, MT_REC_MODULE, &m, sizeof(m), path);
}

struct fixture {
	struct synth s;
	struct synth_process *p;
	struct reader *r;
	struct model *m;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	synth_begin(&f->s);
	f->p = synth_process(&f->s, 100, 0);
	for (uint64_t i = 1; i < 6; i++)
		synth_node(f->p, 0, 0x1000 * i);
	module(f->p, PROGRAM, PROGRAM + MIB, "/bin/synth");
	module(f->p, 0x7f2000000000, 0x7f2000100000, "/lib/libc.so.6");
	synth_device(f->p, 1, MT_BACKEND_CUDA, "GPU-a", 1024 * MIB);
}

static void run(struct fixture *f)
{
	const char *dir = f->s.dir;
	struct model_query q = MODEL_QUERY_ALL;
	q.keep_blocks = true;
	synth_write(f->p, SYNTH_RAW);
	if (reader_open(&f->r, &dir, 1, 0) || model_run(&f->m, f->r, &q))
		abort();
}

static void end(struct fixture *f)
{
	model_free(f->m);
	reader_close(f->r);
	synth_end(&f->s);
}

TEST(arenas_are_read_off_addresses)
{
	struct fixture f;
	begin(&f);
	synth_alloc(f.p, 0, AT(1), BREAK + 16, 1000, 1);
	synth_alloc(f.p, 0, AT(2), BREAK + 10 * MIB + 16, 500, 2);     /* keeps 10 MiB */
	synth_alloc(f.p, 0, AT(3), BREAK + 5 * MIB + 0x10, 200000, 3); /* large, but in the main heap */
	synth_alloc(f.p, 0, AT(4), ARENA + 0x890, 64, 4);
	synth_alloc(f.p, 0, AT(5), ARENA + MIB, 128, 4);
	synth_alloc(f.p, 0, AT(6), ARENA + 64 * MIB + 0x40, 32, 4);   /* another arena */
	synth_alloc(f.p, 0, AT(7), ARENA + 256 * MIB + 0x10, MIB, 5); /* pages of its own */
	run(&f);
	struct arenas a;
	CHECK_EQ(arenas_find(&a, f.m, reader_process(f.r, 0)), 0);
	CHECK_EQ(a.count, 4);
	CHECK_EQ(a.blocks, 7);
	CHECK_EQ(a.live, 1000 + 500 + 200000 + 64 + 128 + 32 + MIB);
	const struct arena *heap = &a.list[0];
	CHECK(heap->kind == ARENA_MAIN && heap->start == BREAK && heap->end == BREAK + 10 * MIB + 516 &&
	      heap->blocks == 3);
	CHECK_EQ(heap->top[0].addr, BREAK + 10 * MIB + 16);
	CHECK_EQ(heap->top[0].site != UINT32_MAX, 1);
	CHECK_EQ(heap->below[0], 5 * MIB - 200000 - 16);
	CHECK_EQ(heap->largest_hole, 5 * MIB - 1000 - 16);
	CHECK(a.list[1].kind == ARENA_THREAD && a.list[1].blocks == 2 && a.list[1].live == 192);
	CHECK(a.list[2].kind == ARENA_THREAD && a.list[2].blocks == 1);
	CHECK(a.list[3].kind == ARENA_MAPPED && a.list[3].live == MIB);
	arenas_fini(&a);
	end(&f);
}

/* The heap ends where the next library begins, wherever that is; what lies beyond is a thread's. */
TEST(the_heap_is_between_program_and_libraries)
{
	struct fixture f;
	begin(&f);
	module(f.p, PROGRAM + (2ull << 40), PROGRAM + (2ull << 40) + MIB, "/lib/far.so");
	module(f.p, PROGRAM + (1ull << 40), PROGRAM + (1ull << 40) + MIB, "/lib/near.so");
	module(f.p, PROGRAM - 64 * MIB, PROGRAM - 63 * MIB, "/lib/below.so");
	uint64_t next = PROGRAM + (1ull << 40), below = PROGRAM - 62 * MIB;
	synth_alloc(f.p, 0, AT(1), below + 16, 300, 1);
	synth_alloc(f.p, 0, AT(2), PROGRAM + MIB + 16, 1000, 1); /* where the program ends */
	synth_alloc(f.p, 0, AT(3), next - 116, 100, 2);
	synth_alloc(f.p, 0, AT(4), next + 16 * MIB, 50, 3);
	run(&f);
	struct arenas a;
	CHECK_EQ(arenas_find(&a, f.m, reader_process(f.r, 0)), 0);
	CHECK_EQ(a.count, 3);
	CHECK(a.list[0].kind == ARENA_MAIN && a.list[0].blocks == 2 && a.list[0].start == PROGRAM + MIB &&
	      a.list[0].end == next - 16);
	CHECK(a.list[1].kind == ARENA_THREAD && a.list[1].live == 300);
	CHECK(a.list[2].kind == ARENA_THREAD && a.list[2].live == 50);
	CHECK_EQ(a.span, a.list[0].end - a.list[0].start + 316 + 66);
	arenas_fini(&a);
	end(&f);
}

/* Six blocks with nothing, 16, 48, 1000 and 100 bytes between them. */
TEST(four_blocks_at_the_top_are_told)
{
	static const uint64_t gaps[] = { 0, 16, 48, 1000, 100 };
	struct fixture f;
	begin(&f);
	uint64_t at = BREAK + 16;
	for (uint64_t i = 0; i < 6; i++) {
		synth_alloc(f.p, 0, AT(1 + i), at, 100 + i, 1);
		at += 100 + i + (i < 5 ? gaps[i] : 0);
	}
	run(&f);
	struct arenas a;
	CHECK_EQ(arenas_find(&a, f.m, reader_process(f.r, 0)), 0);
	const struct arena *heap = &a.list[0];
	CHECK_EQ(heap->tops, 4);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t gap = gaps[4 - i];
		CHECK_EQ(heap->top[i].size, 105 - i);
		CHECK_EQ(heap->below[i], gap > 16 ? gap - 16 : 0); /* 16 are malloc's own */
	}
	CHECK_EQ(heap->largest_hole, 984);
	CHECK_EQ(heap->end, at);
	arenas_fini(&a);
	end(&f);
}

/* Large blocks have pages of their own, if they begin as malloc lays them there: 16 bytes into a page. */
TEST(large_blocks_have_pages_of_their_own)
{
	struct fixture f;
	begin(&f);
	synth_alloc(f.p, 0, AT(1), ARENA + 0x1010, 128 << 10, 1);
	synth_alloc(f.p, 0, AT(2), ARENA + 4 * MIB + 0x20, MIB, 1);
	synth_alloc(f.p, 0, AT(3), ARENA + 8 * MIB + 0x10, (128 << 10) - 1, 1);
	run(&f);
	struct arenas a;
	CHECK_EQ(arenas_find(&a, f.m, reader_process(f.r, 0)), 0);
	CHECK_EQ(a.count, 2);
	CHECK(a.list[0].kind == ARENA_THREAD && a.list[0].blocks == 2);
	CHECK(a.list[1].kind == ARENA_MAPPED && a.list[1].live == 128 << 10);
	CHECK_EQ(a.span, a.list[0].end - a.list[0].start);
	arenas_fini(&a);
	end(&f);
}

static void pool(struct fixture *f, uint64_t addr, uint64_t size, uint32_t node)
{
	static uint64_t now = 1000;
	synth_dev(f->p, 0, AT(now += 1000), MT_DEVICE_ALLOC, MT_CLASS_POOL, 1, addr, size, node);
}

TEST(pins_keep_back_what_is_unused_in_their_segments)
{
	struct fixture f;
	begin(&f);
	for (uint64_t i = 1; i <= 3; i++)
		synth_dev(f.p, 0, AT(i), MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1, i << 32, 20 * MIB, 1);
	pool(&f, 1ull << 32, 4 * MIB, 2); /* two sites share the first segment */
	pool(&f, (1ull << 32) + 8 * MIB, 2 * MIB, 3);
	pool(&f, 2ull << 32, MIB, 2);      /* alone in the second */
	pool(&f, 3ull << 32, 20 * MIB, 4); /* the third is full */
	run(&f);
	struct pool_layout *l;
	struct pin *pins;
	size_t count;
	CHECK_EQ(pool_layout_take(&l, f.m, 0, UINT32_MAX), 0);
	CHECK_EQ(pins_find(l, NULL, &pins, &count), 0);
	CHECK_EQ(count, 2);
	CHECK_EQ(model_site(f.m, 0, pins[0].site)->node, 2);
	CHECK_EQ(pins[0].held, 5 * MIB);
	CHECK_EQ(pins[0].pinned, 14 * MIB + 19 * MIB);
	CHECK_EQ(pins[0].alone, 19 * MIB);
	CHECK_EQ(pins[0].segments, 2);
	CHECK_EQ(pins[1].pinned, 14 * MIB);
	CHECK_EQ(pins[1].alone, 0);
	free(pins);
	pool_layout_free(l);
	end(&f);
}

/* Who keeps back most comes first, of those that keep back as much who does so alone; blocks of one site are one row.
 * */
TEST(pins_are_sorted_by_what_they_keep_back)
{
	struct fixture f;
	begin(&f);
	for (uint64_t i = 1; i <= 3; i++)
		synth_dev(f.p, 0, AT(i), MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1, i << 32, 20 * MIB, 1);
	pool(&f, 1ull << 32, 2 * MIB, 2);
	pool(&f, (1ull << 32) + 4 * MIB, 4 * MIB, 3);
	pool(&f, (1ull << 32) + 10 * MIB, 3 * MIB, 2);
	pool(&f, (1ull << 32) + 15 * MIB, MIB, 2);
	pool(&f, 2ull << 32, 10 * MIB, 4);
	pool(&f, 3ull << 32, 5 * MIB, 5);
	run(&f);
	struct pool_layout *l;
	struct pin *pins;
	size_t count;
	CHECK_EQ(pool_layout_take(&l, f.m, 0, UINT32_MAX), 0);
	CHECK_EQ(pins_find(l, NULL, &pins, &count), 0);
	static const struct {
		uint32_t node;
		uint64_t pinned, alone, held, blocks;
	} rows[] = {
		{ 5, 15, 15, 5, 1 },
		{ 4, 10, 10, 10, 1 },
		{ 2, 10, 0, 6, 3 },
		{ 3, 10, 0, 4, 1 },
	};
	CHECK_EQ(count, 4);
	for (size_t i = 0; i < 4; i++) {
		CHECK_EQ(model_site(f.m, 0, pins[i].site)->node, rows[i].node);
		CHECK_EQ(pins[i].pinned, rows[i].pinned * MIB);
		CHECK_EQ(pins[i].alone, rows[i].alone * MIB);
		CHECK_EQ(pins[i].held, rows[i].held * MIB);
		CHECK_EQ(pins[i].blocks, rows[i].blocks);
		CHECK_EQ(pins[i].segments, 1);
	}
	free(pins);
	pool_layout_free(l);
	end(&f);
}

TEST_MAIN
