/* Private pools of CUDA graphs in the model, by hand-made traces. */
#include "analyzer/model/pool_layout.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#define MIB        (1ull << 20)
#define SEGMENT(i) ((uint64_t)(i) << 32)

static struct synth s;
static struct synth_process *p;
static struct reader *r;
static struct model *m;
static uint64_t now;

static void begin(void)
{
	now = SYNTH_START;
	synth_begin(&s);
	p = synth_process(&s, 100, 0);
	for (uint64_t i = 1; i < 4; i++)
		synth_node(p, 0, 0x1000 * i);
	synth_device(p, 1, MT_BACKEND_CUDA, "GPU-a", 1024 * MIB);
}

static const struct model_device *run(enum synth_form form)
{
	const char *dir = s.dir;
	struct model_query q = MODEL_QUERY_ALL;
	model_free(m);
	reader_close(r);
	m = NULL;
	r = NULL;
	q.keep_blocks = true; /* layouts are looked at afterwards */
	synth_write(p, form);
	if (reader_open(&r, &dir, 1, 0) || model_run(&m, r, &q))
		abort();
	return model_device(m, 0);
}

static void end(void)
{
	model_free(m);
	reader_close(r);
	m = NULL;
	r = NULL;
	synth_end(&s);
}

static void event(enum mt_kind kind, enum mt_class class, uint64_t addr, uint64_t size)
{
	synth_dev(p, 0, now += 1000, kind, class, 1, addr, size, 1);
}

static void segment(unsigned i, uint64_t size)
{
	event(MT_DEVICE_ALLOC, MT_CLASS_DEVICE, SEGMENT(i), size);
}

/* A block at an offset of a segment, in a capture (0 = none). */
static void block(unsigned i, uint64_t offset, uint64_t size, uint32_t capture)
{
	synth_dev_captured(p, 0, now += 1000, MT_DEVICE_ALLOC, 1, SEGMENT(i) + offset, size, 2, capture);
}

static void drop(unsigned i, uint64_t offset)
{
	event(MT_DEVICE_FREE, MT_CLASS_POOL, SEGMENT(i) + offset, 0);
}

static void fail(uint64_t size, uint64_t free_bytes, uint32_t capture)
{
	synth_dev_info(p, 0, now += 1000, 1, free_bytes, 1024 * MIB);
	event(MT_DEVICE_FAIL, MT_CLASS_DEVICE, size, 0);
	synth_dev_captured(p, 0, now += 1000, MT_DEVICE_FAIL, 1, size, 0, 3, capture);
}

static uint64_t live(enum model_layer layer)
{
	return model_device(m, 0)->layer[layer].live_bytes;
}

static void check_pools(struct model_pools got, uint64_t reserved, uint64_t allocated, uint64_t hole, uint64_t idle)
{
	CHECK_EQ(got.reserved, reserved * MIB);
	CHECK_EQ(got.allocated, allocated * MIB);
	CHECK_EQ(got.largest_hole, hole * MIB);
	CHECK_EQ(got.idle, idle * MIB);
}

/* The common pool with a hole of 5, one graph's with 12 unused, two that share one with a hole of 30. */
static void three_graphs(void)
{
	segment(1, 20 * MIB);
	block(1, 0, 15 * MIB, 0);
	segment(2, 20 * MIB);
	block(2, 0, 8 * MIB, 71);
	block(2, 8 * MIB, 12 * MIB, 71);
	drop(2, 8 * MIB);
	segment(3, 40 * MIB);
	block(3, 0, 30 * MIB, 72);
	drop(3, 0);
	segment(4, 20 * MIB);
	block(4, 0, 20 * MIB, 73);
	block(3, 30 * MIB, 10 * MIB, 73);
	drop(4, 0);
}

TEST(blocks_of_captures_make_segments_private)
{
	for (int form = SYNTH_RAW; form <= SYNTH_BLOCKS; form++) {
		struct pool_layout *l;
		begin();
		three_graphs();
		run((enum synth_form)form);
		CHECK_EQ(live(LAYER_RESERVED), 100 * MIB);
		CHECK_EQ(live(LAYER_PRIVATE), 80 * MIB);
		CHECK_EQ(live(LAYER_POOL), 33 * MIB);
		CHECK_EQ(live(LAYER_PRIVATE_POOL), 18 * MIB);
		CHECK_EQ(pool_layout_take(&l, m, 0, UINT32_MAX), 0);
		CHECK_EQ(l->segment_count, 4);
		CHECK_EQ(l->segments[0].private, 0);
		CHECK(l->segments[1].private && l->segments[2].private == l->segments[3].private);
		CHECK(l->segments[1].private != l->segments[2].private);
		check_pools(pool_layout_pools(l, POOL_LAYOUT_COMMON), 20, 15, 5, 0);
		check_pools(pool_layout_pools(l, POOL_LAYOUT_PRIVATE), 80, 18, 30, 20);
		check_pools(pool_layout_pools(l, l->segments[1].private), 20, 8, 12, 0);
		CHECK_EQ(pool_layout_pools(l, POOL_LAYOUT_PRIVATE).captures, 3);
		CHECK_EQ(pool_layout_pools(l, POOL_LAYOUT_PRIVATE).pools, 2);
		pool_layout_free(l);
		end();
	}
}

TEST(a_request_uses_its_own_pool)
{
	begin();
	three_graphs();
	fail(25 * MIB, 0, 0);
	fail(26 * MIB, 0, 71);
	fail(27 * MIB, 0, 73);
	fail(28 * MIB, 0, 74); /* whose pool has nothing yet */
	const struct model_device *d = run(SYNTH_BLOCKS);
	CHECK_EQ(d->oom_count, 4);
	check_pools(d->oom[0].usable, 20, 15, 5, 0);
	check_pools(d->oom[1].usable, 20, 8, 12, 0);
	check_pools(d->oom[2].usable, 60, 10, 30, 20);
	check_pools(d->oom[3].usable, 0, 0, 0, 0);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(d->oom[i].capturing, i > 0);
		CHECK_EQ(d->oom[i].retries, i == 0); /* a pool returns no cache while it captures */
		CHECK_EQ(d->oom[i].largest_hole_bytes, 30 * MIB);
		check_pools(d->oom[i].graphs, 80, 18, 30, 20);
	}
	end();
}

/* What has no capture is counted as well: a warm-up run's blocks, and an output that is freed later. */
TEST(all_of_a_private_segment_is_private)
{
	begin();
	segment(1, 20 * MIB);
	block(1, 0, 3 * MIB, 0);
	block(1, 3 * MIB, 4 * MIB, 0);
	run(SYNTH_RAW);
	CHECK_EQ(live(LAYER_PRIVATE), 0);
	block(1, 7 * MIB, 5 * MIB, 9);
	block(1, 12 * MIB, MIB, 0);
	run(SYNTH_RAW);
	CHECK_EQ(live(LAYER_PRIVATE), 20 * MIB);
	CHECK_EQ(live(LAYER_PRIVATE_POOL), 13 * MIB);
	drop(1, 3 * MIB);
	drop(1, 7 * MIB);
	event(MT_DEVICE_UNDO, MT_CLASS_POOL, SEGMENT(1) + 7 * MIB, 0);
	run(SYNTH_RAW);
	CHECK_EQ(live(LAYER_PRIVATE_POOL), 9 * MIB);
	end();
}

TEST(memory_that_comes_back_is_common_again)
{
	begin();
	segment(1, 20 * MIB);
	block(1, 0, 3 * MIB, 9);
	drop(1, 0);
	event(MT_DEVICE_FREE, MT_CLASS_DEVICE, SEGMENT(1), 0);
	segment(1, 40 * MIB);
	block(1, 0, 3 * MIB, 0);
	fail(100 * MIB, 0, 0);
	const struct model_device *d = run(SYNTH_RAW);
	CHECK_EQ(live(LAYER_PRIVATE) | live(LAYER_PRIVATE_POOL), 0);
	CHECK_EQ(d->layer[LAYER_PRIVATE].peak_bytes, 20 * MIB);
	check_pools(d->oom[0].usable, 40, 3, 37, 0);
	CHECK_EQ(d->oom[0].graphs.captures | d->oom[0].graphs.pools, 0);
	end();
}

/* An expandable segment is one pool's, also the pages that are mapped later. */
TEST(reserved_addresses_are_of_one_pool)
{
	begin();
	for (unsigned i = 1; i <= 2; i++)
		event(MT_DEVICE_ALLOC, MT_CLASS_RESERVED, SEGMENT(i), 200 * MIB);
	for (uint64_t i = 0; i < 3; i++) {
		event(MT_DEVICE_ALLOC, MT_CLASS_PHYSICAL, 0x700 + i, 20 * MIB);
		synth_dev_map(p, 0, now += 1000, 1, SEGMENT(1) + i * 20 * MIB, 20 * MIB, 0x700 + i);
	}
	block(1, 10 * MIB, 25 * MIB, 5);
	event(MT_DEVICE_ALLOC, MT_CLASS_PHYSICAL, 0x710, 20 * MIB);
	synth_dev_map(p, 0, now += 1000, 1, SEGMENT(1) + 60 * MIB, 20 * MIB, 0x710);
	event(MT_DEVICE_ALLOC, MT_CLASS_PHYSICAL, 0x720, 20 * MIB);
	synth_dev_map(p, 0, now += 1000, 1, SEGMENT(2), 20 * MIB, 0x720);
	block(2, 0, 2 * MIB, 0);
	fail(100 * MIB, 0, 0);
	event(MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, SEGMENT(1) + 60 * MIB, 20 * MIB);
	const struct model_device *d = run(SYNTH_RAW);
	check_pools(d->oom[0].usable, 20, 2, 18, 0);
	check_pools(d->oom[0].graphs, 80, 25, 45, 40);
	CHECK_EQ(live(LAYER_PRIVATE), 60 * MIB);
	CHECK_EQ(live(LAYER_PRIVATE_POOL), 25 * MIB);
	end();
}

TEST_MAIN
