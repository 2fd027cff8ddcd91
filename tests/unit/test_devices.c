/* The model's devices: each rule of what device memory is, by hand-made traces. */
#include "analyzer/model/pool_layout.h"
#include "analyzer/model/model.h"
#include "tests/lib/synth.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

#define MIB   (1ull << 20)
#define AT(n) (SYNTH_START + (n))

enum { CUDA = MT_BACKEND_CUDA };

struct fixture {
	struct synth s;
	struct synth_process *p;
	struct reader *r;
	struct model *m;
	uint64_t now;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ .now = 1000 };
	synth_begin(&f->s);
	f->p = synth_process(&f->s, 100, 0);
	for (uint64_t i = 1; i < 8; i++)
		synth_node(f->p, 0, 0x1000 * i);
	synth_device(f->p, 1, CUDA, "GPU-a", 1024 * MIB);
}

static const struct model_device *run_form(struct fixture *f, struct model_query q, enum synth_form form)
{
	const char *dir = f->s.dir;
	model_free(f->m);
	reader_close(f->r);
	for (struct synth_process *p = f->s.processes; p; p = p->next)
		synth_write(p, form);
	if (reader_open(&f->r, &dir, 1, 0) || model_run(&f->m, f->r, &q))
		abort();
	return model_devices(f->m) ? model_device(f->m, 0) : NULL;
}

static const struct model_device *run(struct fixture *f)
{
	struct model_query q = MODEL_QUERY_ALL;
	q.keep_blocks = true; /* layouts are looked at afterwards */
	return run_form(f, q, SYNTH_RAW);
}

static void end(struct fixture *f)
{
	model_free(f->m);
	reader_close(f->r);
	synth_end(&f->s);
}

/* One event of process p a microsecond after the last. */
static void dev(struct fixture *f, struct synth_process *p, uint32_t ring, enum mt_kind kind, enum mt_class class,
		uint64_t addr, uint64_t size, uint32_t node)
{
	synth_dev(p, ring, AT(f->now += 1000), kind, class, 1, addr, size, node);
}

static void alloc(struct fixture *f, uint64_t addr, uint64_t size, uint32_t node)
{
	dev(f, f->p, 0, MT_DEVICE_ALLOC, MT_CLASS_DEVICE, addr, size, node);
}

static void release(struct fixture *f, uint64_t addr)
{
	dev(f, f->p, 0, MT_DEVICE_FREE, MT_CLASS_DEVICE, addr, 0, 0);
}

static void pool(struct fixture *f, uint64_t addr, uint64_t size, uint32_t node)
{
	dev(f, f->p, 0, MT_DEVICE_ALLOC, MT_CLASS_POOL, addr, size, node);
}

static void unpool(struct fixture *f, uint64_t addr)
{
	dev(f, f->p, 0, MT_DEVICE_FREE, MT_CLASS_POOL, addr, 0, 0);
}

static void refuse(struct fixture *f, uint64_t bytes, uint64_t free_bytes)
{
	synth_dev_info(f->p, 0, AT(f->now += 1000), 1, free_bytes, 1024 * MIB);
	dev(f, f->p, 0, MT_DEVICE_FAIL, MT_CLASS_DEVICE, bytes, 0, 5);
}

static void give_up(struct fixture *f, uint64_t bytes)
{
	dev(f, f->p, 0, MT_DEVICE_FAIL, MT_CLASS_POOL, bytes, 0, 6);
}

static const struct model_site *site_of(const struct model *m, unsigned process, enum model_kind kind, uint32_t node)
{
	const struct model_process *p = model_process(m, process);
	for (uint32_t i = 0; i < p->site_count; i++)
		if (p->sites[i].kind == kind && p->sites[i].node == node)
			return &p->sites[i];
	return NULL;
}

static uint64_t live(const struct model_device *d, enum model_layer layer)
{
	return d->layer[layer].live_bytes;
}

/* ---- linear memory and the pool -------------------------------------------------------------------------- */

/* Two segments with three blocks, one of them freed; one allocation of a library's. */
static void small_pool(struct fixture *f)
{
	begin(f);
	alloc(f, 0x10000000, 20 * MIB, 1);
	pool(f, 0x10000000, 5 * MIB, 2);
	pool(f, 0x10000000 + 5 * MIB, 3 * MIB, 3);
	alloc(f, 0x20000000, 2 * MIB, 1);
	pool(f, 0x20000000, MIB, 2);
	alloc(f, 0x30000000, 7 * MIB, 4);
	unpool(f, 0x10000000);
}

TEST(segments_are_what_holds_blocks_of_the_pool)
{
	for (int form = SYNTH_RAW; form <= SYNTH_BLOCKS; form++) {
		struct fixture f;
		small_pool(&f);
		const struct model_device *d = run_form(&f, MODEL_QUERY_ALL, (enum synth_form)form);
		CHECK_EQ(live(d, LAYER_MEMORY), 29 * MIB);
		CHECK_EQ(live(d, LAYER_RESERVED), 22 * MIB);
		CHECK_EQ(live(d, LAYER_POOL), 4 * MIB);
		CHECK_EQ(d->layer[LAYER_POOL].allocations, 3);
		CHECK_EQ(d->layer[LAYER_POOL].frees, 1);
		CHECK_EQ(d->layer[LAYER_POOL].peak_bytes, 9 * MIB);
		CHECK_EQ(d->layer[LAYER_POOL].allocated_bytes, 9 * MIB);
		CHECK_EQ(d->layer[LAYER_RESERVED].live_blocks, 2);
		CHECK_EQ(d->total_bytes, 1024 * MIB);
		CHECK(!strcmp(d->name, "cuda:0") && !strcmp(d->uuid, "GPU-a"));
		CHECK_EQ(model_process(f.m, 0)->kind[MODEL_DEVICE].live_bytes, 29 * MIB);
		CHECK_EQ(model_process(f.m, 0)->kind[MODEL_POOL].peak_bytes, 9 * MIB);
		CHECK_EQ(model_totals(f.m, MODEL_DEVICE).live_bytes, 29 * MIB);
		end(&f);
	}
}

/* Of a block at a made-up address it is told later where it lies. One that never had memory is not counted. */
TEST(a_block_is_placed_later_or_never)
{
	struct fixture f;
	begin(&f);
	alloc(&f, 0x10000000, 20 * MIB, 1);
	pool(&f, MT_NOWHERE, 2 * MIB, 2);
	pool(&f, MT_NOWHERE + 4 * MIB, 30 * MIB, 3);
	synth_ext(f.p, 0,
		  (struct mt_event){ .ticks = AT(f.now += 1000),
				     .addr = 0x10000000 + MIB,
				     .size = 2 * MIB,
				     .kind = MT_DEVICE_MAP },
		  (struct mt_ext_device){ .class = MT_CLASS_POOL, .device = 1, .stream = MT_NOWHERE });
	synth_record(f.p, MT_REC_NEVER, SYNTH_START, &(struct mt_rec_never){ .addr = MT_NOWHERE + 4 * MIB },
		     sizeof(struct mt_rec_never), NULL, 0);
	const struct model_device *d = run(&f);
	CHECK_EQ(live(d, LAYER_RESERVED), 20 * MIB);
	CHECK_EQ(live(d, LAYER_POOL), 2 * MIB);
	CHECK_EQ(d->layer[LAYER_POOL].peak_bytes, 2 * MIB);
	CHECK_EQ(d->layer[LAYER_POOL].allocations, 1);
	CHECK(d->shares[0]->partly_seen);
	struct pool_layout *l = NULL;
	CHECK_EQ(pool_layout_take(&l, f.m, 0, UINT32_MAX), 0);
	CHECK_EQ(l->allocated, 2 * MIB);
	CHECK_EQ(l->blocks[0].addr, 0x10000000 + MIB);
	CHECK_EQ(l->stray, 0);
	pool_layout_free(l);
	end(&f);
}

TEST(the_moment_of_the_peak_is_the_one_with_most_in_the_pool)
{
	struct fixture f;
	small_pool(&f);
	const struct model_device *d = run(&f);
	CHECK_EQ(d->peak.layer[LAYER_MEMORY], 29 * MIB);
	CHECK_EQ(d->peak.layer[LAYER_POOL], 9 * MIB);
	CHECK_EQ(d->peak.layer[LAYER_RESERVED], 22 * MIB);
	CHECK_EQ(d->peak.ns, 7000);
	CHECK_EQ(d->peak.part_count, 1);
	CHECK_EQ(d->peak.parts[0].layer[LAYER_POOL], 9 * MIB);
	struct model_query q = MODEL_QUERY_ALL;
	q.until_event = d->peak.event;
	d = run_form(&f, q, SYNTH_RAW);
	CHECK_EQ(live(d, LAYER_POOL), 9 * MIB);
	CHECK_EQ(live(d, LAYER_MEMORY), 29 * MIB);
	end(&f);
}

TEST(sites_know_what_they_had_at_the_peaks)
{
	struct fixture f;
	small_pool(&f);
	unpool(&f, 0x20000000);
	release(&f, 0x30000000);
	run(&f);
	const struct model_site *s = site_of(f.m, 0, MODEL_POOL, 2);
	CHECK(s && s->peak_bytes == 6 * MIB && s->peak_blocks == 2 && s->host_peak_bytes == 6 * MIB &&
	      s->live_bytes == 0);
	s = site_of(f.m, 0, MODEL_DEVICE, 4);
	CHECK(s && s->peak_bytes == 7 * MIB && s->live_bytes == 0 && s->device == 0);
	s = site_of(f.m, 0, MODEL_DEVICE, 1);
	CHECK(s && s->host_peak_bytes == 22 * MIB && s->host_peak_blocks == 2 && s->live_bytes == 22 * MIB);
	end(&f);
}

TEST(layout_has_blocks_holes_and_idle_segments)
{
	struct fixture f;
	small_pool(&f);
	unpool(&f, 0x20000000);
	run(&f);
	struct pool_layout *l;
	CHECK_EQ(pool_layout_take(&l, f.m, 0, UINT32_MAX), 0);
	CHECK_EQ(l->segment_count, 2);
	CHECK_EQ(l->reserved, 22 * MIB);
	CHECK_EQ(l->allocated, 3 * MIB);
	CHECK_EQ(l->largest_hole, 12 * MIB);
	CHECK_EQ(l->idle, 2 * MIB);
	CHECK_EQ(l->stray, 0);
	CHECK_EQ(l->segments[0].block_count, 1);
	CHECK_EQ(l->segments[0].blocks[0].addr, 0x10000000 + 5 * MIB);
	CHECK_EQ(l->segments[0].hole, 12 * MIB);
	CHECK_EQ(l->segments[1].idle, 2 * MIB);
	pool_layout_free(l);
	end(&f);
}

TEST(from_keeps_what_is_live_and_counts_anew)
{
	struct fixture f;
	small_pool(&f);
	struct model_query q = MODEL_QUERY_ALL;
	q.from_ns = 7500;
	const struct model_device *d = run_form(&f, q, SYNTH_RAW);
	CHECK_EQ(live(d, LAYER_MEMORY), 29 * MIB);
	CHECK_EQ(d->layer[LAYER_MEMORY].allocations, 0);
	CHECK_EQ(d->layer[LAYER_POOL].peak_bytes, 9 * MIB);
	CHECK_EQ(d->layer[LAYER_POOL].frees, 1);
	end(&f);
}

TEST(a_block_is_found_on_the_device_it_was_allocated_on)
{
	struct fixture f;
	begin(&f);
	synth_device(f.p, 2, CUDA, "GPU-b", 512 * MIB);
	alloc(&f, 0x10000000, MIB, 1);
	synth_dev(f.p, 0, AT(f.now += 1000), MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 2, 0x10000000, 2 * MIB, 1);
	synth_dev(f.p, 0, AT(f.now += 1000), MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 2, 0x20000000, 4 * MIB, 1);
	release(&f, 0x20000000); /* by a thread whose current device is the first */
	const struct model_device *d = run(&f);
	CHECK_EQ(model_devices(f.m), 2);
	CHECK_EQ(live(d, LAYER_MEMORY), MIB);
	CHECK_EQ(live(model_device(f.m, 1), LAYER_MEMORY), 2 * MIB);
	CHECK_EQ(d->layer[LAYER_MEMORY].missed_frees + d->layer[LAYER_MEMORY].unknown_frees, 0);
	end(&f);
}

TEST(missed_and_unknown_frees_are_counted)
{
	struct fixture f;
	begin(&f);
	alloc(&f, 0x10000000, 4 * MIB, 1);
	alloc(&f, 0x10000000, MIB, 1);
	alloc(&f, 0x10000000 - MIB, 2 * MIB, 1); /* over what is there */
	release(&f, 0x50000000);
	pool(&f, 0x10000000, 512, 2);
	pool(&f, 0x10000000, 1024, 2);
	unpool(&f, 0x60000000);
	const struct model_device *d = run(&f);
	CHECK_EQ(live(d, LAYER_MEMORY), 2 * MIB);
	CHECK_EQ(d->layer[LAYER_MEMORY].missed_frees, 2);
	CHECK_EQ(d->layer[LAYER_MEMORY].unknown_frees, 1);
	CHECK_EQ(d->layer[LAYER_POOL].missed_frees, 1);
	CHECK_EQ(d->layer[LAYER_POOL].unknown_frees, 1);
	CHECK_EQ(live(d, LAYER_POOL), 1024);
	end(&f);
}

/* cudaFree() and cudaFreeMipmappedArray() end what cudaExternalMemoryGetMappedBuffer() and its like mapped. */
TEST(mapped_memory_of_others_is_freed_like_own)
{
	struct fixture f;
	begin(&f);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_ALIAS, 0x10000000, 64 * MIB, 1);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_ALIAS, 0x20000000, 32 * MIB, 1);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_ALIAS, 0x30000000, 16 * MIB, 1);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_DEVICE, 0x10000000, 0, 0);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_ARRAY, 0x20000000, 0, 0);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_ASYNC, 0x30000000, 0, 0);
	dev(&f, f.p, 0, MT_DEVICE_UNDO, MT_CLASS_ASYNC, 0x30000000, 0, 0); /* that one failed */
	const struct model_device *d = run(&f);
	CHECK_EQ(d->layer[LAYER_MEMORY].unknown_frees, 0);
	CHECK_EQ(live(d, LAYER_MEMORY), 0);
	CHECK_EQ(model_share(f.m, 0, 0)->alias_bytes, 16 * MIB);
	CHECK_EQ(model_process(f.m, 0)->odd_undos, 0);
	end(&f);
}

/* HIP has one function for both. CUDA refuses, and the free is undone. */
TEST(pinned_memory_is_freed_as_a_devices_on_hip)
{
	for (unsigned hip = 0; hip < 2; hip++) {
		struct fixture f = { .now = 1000 };
		synth_begin(&f.s);
		f.p = synth_process(&f.s, 100, 0);
		synth_node(f.p, 0, 0x1000);
		synth_device(f.p, 1, hip ? MT_BACKEND_HIP : MT_BACKEND_CUDA, "GPU-a", 1024 * MIB);
		dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_PINNED, 0x10000000, 64 * MIB, 1);
		dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 0x20000000, 32 * MIB, 1);
		dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_DEVICE, 0x10000000, 0, 0);
		dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_PINNED, 0x20000000, 0, 0);
		const struct model_device *d = run(&f);
		CHECK_EQ(live(d, LAYER_MEMORY), hip ? 0 : 32 * MIB);
		CHECK_EQ(model_totals(f.m, MODEL_PINNED).live_bytes, hip ? 0 : 64 * MIB);
		end(&f);
	}
}

TEST(undone_frees_did_not_happen)
{
	struct fixture f;
	small_pool(&f);
	dev(&f, f.p, 0, MT_DEVICE_UNDO, MT_CLASS_POOL, 0x10000000, 0, 0);
	release(&f, 0x10000000);
	release(&f, 0x90000000);
	dev(&f, f.p, 0, MT_DEVICE_UNDO, MT_CLASS_DEVICE, 0x90000000, 0, 0);
	dev(&f, f.p, 0, MT_DEVICE_UNDO, MT_CLASS_DEVICE, 0x10000000, 0, 0);
	const struct model_device *d = run(&f);
	CHECK_EQ(live(d, LAYER_POOL), 9 * MIB);
	CHECK_EQ(live(d, LAYER_MEMORY), 29 * MIB);
	CHECK_EQ(live(d, LAYER_RESERVED), 22 * MIB);
	CHECK_EQ(d->layer[LAYER_POOL].frees, 0);
	CHECK_EQ(d->layer[LAYER_MEMORY].frees, 0);
	CHECK_EQ(d->layer[LAYER_MEMORY].unknown_frees, 0);
	CHECK_EQ(model_process(f.m, 0)->odd_undos, 0);
	end(&f);
}

TEST(a_reset_takes_everything_of_that_device)
{
	struct fixture f;
	small_pool(&f);
	synth_device(f.p, 2, CUDA, "GPU-b", 512 * MIB);
	synth_dev(f.p, 0, AT(f.now += 1000), MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 2, 0x70000000, MIB, 1);
	dev(&f, f.p, 0, MT_DEVICE_RESET, 0, 0, 0, 0);
	const struct model_device *d = run(&f);
	for (int k = 0; k < MODEL_LAYERS; k++)
		CHECK_EQ(d->layer[k].live_bytes + d->layer[k].live_blocks, 0);
	CHECK_EQ(live(model_device(f.m, 1), LAYER_MEMORY), MIB);
	CHECK_EQ(d->layer[LAYER_POOL].peak_bytes, 9 * MIB);
	CHECK_EQ(site_of(f.m, 0, MODEL_POOL, 3)->live_bytes, 0);
	end(&f);
}

TEST(aliases_reservations_and_registered_memory_are_no_new_bytes)
{
	struct fixture f;
	begin(&f);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_ALIAS, 0x10000000, 64 * MIB, 1);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_RESERVED, 0x20000000, 512 * MIB, 1);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_REGISTERED, 0x7f0000000000, 3 * MIB, 1);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_PINNED, 0x7f1000000000, 2 * MIB, 2);
	const struct model_device *d = run(&f);
	const struct model_process *p = model_process(f.m, 0);
	CHECK_EQ(live(d, LAYER_MEMORY), 0);
	CHECK_EQ(p->kind[MODEL_DEVICE].live_bytes, 0);
	CHECK_EQ(model_share(f.m, 0, 0)->alias_bytes, 64 * MIB);
	CHECK_EQ(p->registered_bytes, 3 * MIB);
	CHECK_EQ(p->kind[MODEL_PINNED].live_bytes, 2 * MIB);
	CHECK_EQ(site_of(f.m, 0, MODEL_PINNED, 2)->live_bytes, 2 * MIB);
	end(&f);
}

TEST(what_the_driver_pins_can_be_freed_by_any_thread)
{
	struct fixture f;
	begin(&f);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_PINNED, 0x7f1000000000, 2 * MIB, 2);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_PINNED, 0x7f2000000000, MIB, 2);
	synth_dev(f.p, 1, AT(f.now += 1000), MT_DEVICE_FREE, MT_CLASS_PINNED, 0, 0x7f1000000000, 0, 0);
	run(&f);
	CHECK_EQ(model_totals(f.m, MODEL_PINNED).live_bytes, MIB);
	CHECK_EQ(model_totals(f.m, MODEL_PINNED).peak_bytes, 3 * MIB);
	end(&f);
}

/* ---- virtual memory -------------------------------------------------------------------------------------- */

static void map(struct fixture *f, uint64_t addr, uint64_t size, uint64_t handle)
{
	synth_dev_map(f->p, 0, AT(f->now += 1000), 1, addr, size, handle);
}

static void create(struct fixture *f, uint64_t handle, uint64_t size)
{
	dev(f, f->p, 0, MT_DEVICE_ALLOC, MT_CLASS_PHYSICAL, handle, size, 3);
}

TEST(physical_memory_is_charged_until_released_and_unmapped)
{
	for (int order = 0; order < 2; order++) {
		struct fixture f;
		begin(&f);
		dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_RESERVED, 0x100000000, 1024 * MIB, 1);
		create(&f, 7, 20 * MIB);
		create(&f, 8, 20 * MIB);
		map(&f, 0x100000000, 20 * MIB, 7);
		dev(&f, f.p, 0, order ? MT_DEVICE_FREE : MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, order ? 7 : 0x100000000,
		    20 * MIB, 0);
		struct model_query q = MODEL_QUERY_ALL;
		q.until_ns = f.now;
		dev(&f, f.p, 0, order ? MT_DEVICE_UNMAP : MT_DEVICE_FREE, MT_CLASS_PHYSICAL, order ? 0x100000000 : 7,
		    20 * MIB, 0);
		CHECK_EQ(live(run_form(&f, q, SYNTH_RAW), LAYER_MEMORY), 40 * MIB);
		const struct model_device *d = run(&f);
		CHECK_EQ(live(d, LAYER_MEMORY), 20 * MIB);
		CHECK_EQ(d->layer[LAYER_MEMORY].frees, 1);
		CHECK_EQ(live(d, LAYER_RESERVED), 0);
		end(&f);
	}
}

TEST(a_handle_may_come_back_while_its_memory_is_still_mapped)
{
	struct fixture f;
	begin(&f);
	create(&f, 7, 2 * MIB);
	map(&f, 0x100000000, 2 * MIB, 7);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 7, 0, 0);
	create(&f, 7, 4 * MIB);
	CHECK_EQ(live(run(&f), LAYER_MEMORY), 6 * MIB);
	dev(&f, f.p, 0, MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, 0x100000000, 2 * MIB, 0);
	const struct model_device *d = run(&f);
	CHECK_EQ(live(d, LAYER_MEMORY), 4 * MIB);
	CHECK_EQ(d->layer[LAYER_MEMORY].missed_frees, 0);
	end(&f);
}

TEST(a_retained_handle_is_one_more_reference)
{
	struct fixture f;
	begin(&f);
	create(&f, 7, 2 * MIB);
	map(&f, 0x100000000, 2 * MIB, 7);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_ALIAS, 7, 0, 1);
	dev(&f, f.p, 0, MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, 0x100000000, 2 * MIB, 0);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 7, 0, 0);
	CHECK_EQ(live(run(&f), LAYER_MEMORY), 2 * MIB);
	dev(&f, f.p, 0, MT_DEVICE_UNDO, MT_CLASS_PHYSICAL, 7, 0, 0);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 7, 0, 0);
	CHECK_EQ(live(run(&f), LAYER_MEMORY), 2 * MIB);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 7, 0, 0);
	const struct model_device *d = run(&f);
	CHECK_EQ(live(d, LAYER_MEMORY), 0);
	CHECK_EQ(d->layer[LAYER_MEMORY].frees, 1);
	CHECK_EQ(model_process(f.m, 0)->odd_undos, 0);
	end(&f);
}

TEST(a_handle_is_retained_again_through_its_mapping)
{
	struct fixture f;
	begin(&f);
	create(&f, 7, 2 * MIB);
	map(&f, 0x100000000, 2 * MIB, 7);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 7, 0, 0);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_ALIAS, 7, 0, 1);
	dev(&f, f.p, 0, MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, 0x100000000, 2 * MIB, 0);
	CHECK_EQ(live(run(&f), LAYER_MEMORY), 2 * MIB);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 7, 0, 0);
	CHECK_EQ(live(run(&f), LAYER_MEMORY), 0);
	end(&f);
}

TEST(physical_memory_of_the_host_is_pinned)
{
	struct fixture f;
	begin(&f);
	synth_dev(f.p, 0, AT(f.now += 1000), MT_DEVICE_ALLOC, MT_CLASS_PHYSICAL, 0, 9, 2 * MIB, 3);
	const struct model_device *d = run(&f);
	CHECK_EQ(live(d, LAYER_MEMORY), 0);
	CHECK_EQ(model_devices(f.m), 1);
	CHECK_EQ(model_totals(f.m, MODEL_PINNED).live_bytes, 2 * MIB);
	synth_dev(f.p, 0, AT(f.now += 1000), MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 0, 9, 0, 0);
	run(&f);
	CHECK_EQ(model_totals(f.m, MODEL_PINNED).live_bytes, 0);
	CHECK_EQ(model_totals(f.m, MODEL_PINNED).frees, 1);
	end(&f);
}

TEST(unmapping_and_releasing_can_be_undone)
{
	struct fixture f;
	begin(&f);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_RESERVED, 0x100000000, 1024 * MIB, 1);
	create(&f, 7, 2 * MIB);
	map(&f, 0x100000000, 2 * MIB, 7);
	pool(&f, 0x100000000, MIB, 1);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 7, 0, 0);
	dev(&f, f.p, 0, MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, 0x100000000, 2 * MIB, 0);
	CHECK_EQ(live(run(&f), LAYER_MEMORY), 0);
	dev(&f, f.p, 0, MT_DEVICE_UNDO, MT_CLASS_PHYSICAL, 0x100000000, 0, 0);
	CHECK_EQ(live(run(&f), LAYER_MEMORY), 2 * MIB);
	CHECK_EQ(live(run(&f), LAYER_RESERVED), 2 * MIB);
	dev(&f, f.p, 0, MT_DEVICE_UNDO, MT_CLASS_PHYSICAL, 7, 0, 0);
	dev(&f, f.p, 0, MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, 0x100000000, 2 * MIB, 0);
	const struct model_device *d = run(&f);
	CHECK_EQ(live(d, LAYER_MEMORY), 2 * MIB);
	CHECK_EQ(d->layer[LAYER_MEMORY].frees, 0);
	CHECK_EQ(model_process(f.m, 0)->odd_undos, 0);
	end(&f);
}

TEST(expandable_segments_are_mapped_pages_of_one_reservation)
{
	struct fixture f;
	begin(&f);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_RESERVED, 0x100000000, 1024 * MIB, 1);
	for (uint64_t i = 0; i < 4; i++) {
		create(&f, 10 + i, 20 * MIB);
		map(&f, 0x100000000 + 20 * MIB * i, 20 * MIB, 10 + i);
	}
	create(&f, 20, 20 * MIB);                      /* never mapped: charged, but no part of a segment */
	pool(&f, 0x100000000 + 10 * MIB, 15 * MIB, 2); /* over two pages */
	const struct model_device *d = run(&f);
	CHECK_EQ(live(d, LAYER_MEMORY), 100 * MIB);
	CHECK_EQ(live(d, LAYER_RESERVED), 80 * MIB);
	struct pool_layout *l;
	CHECK_EQ(pool_layout_take(&l, f.m, 0, 0), 0);
	CHECK_EQ(l->segment_count, 1);
	CHECK(l->segments[0].expandable && l->segments[0].size == 80 * MIB && l->segments[0].block_count == 1);
	CHECK_EQ(l->segments[0].blocks[0].size, 15 * MIB);
	CHECK_EQ(l->largest_hole, 55 * MIB);
	CHECK_EQ(l->idle, 40 * MIB);
	pool_layout_free(l);
	dev(&f, f.p, 0, MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, 0x100000000 + 40 * MIB, 20 * MIB, 0);
	dev(&f, f.p, 0, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 12, 0, 0);
	d = run(&f);
	CHECK_EQ(live(d, LAYER_RESERVED), 60 * MIB);
	CHECK_EQ(pool_layout_take(&l, f.m, 0, 0), 0);
	CHECK_EQ(l->segment_count, 2);
	CHECK_EQ(l->largest_hole, 20 * MIB);
	pool_layout_free(l);
	end(&f);
}

/* Whoever makes the pages, and when: what they hold is told by the blocks in them. */
TEST(pages_that_the_pool_maps_later_are_segments_too)
{
	struct fixture f;
	begin(&f);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_RESERVED, 0x100000000, 1024 * MIB, 1);
	create(&f, 10, 20 * MIB);
	map(&f, 0x100000000, 20 * MIB, 10);
	pool(&f, 0x100000000, 15 * MIB, 2);
	dev(&f, f.p, 0, MT_DEVICE_ALLOC, MT_CLASS_PHYSICAL, 11, 20 * MIB, 4);
	map(&f, 0x100000000 + 20 * MIB, 20 * MIB, 11);
	pool(&f, 0x100000000 + 15 * MIB, 25 * MIB, 4);
	run(&f);
	CHECK(site_of(f.m, 0, MODEL_DEVICE, 3)->segments);
	CHECK(site_of(f.m, 0, MODEL_DEVICE, 4)->segments);
	end(&f);
}

/* ---- several processes ----------------------------------------------------------------------------------- */

static struct synth_process *second(struct fixture *f, uint32_t pid)
{
	struct synth_process *p = synth_process(&f->s, pid, 0);
	for (uint64_t i = 1; i < 4; i++)
		synth_node(p, 0, 0x1000 * i);
	return p;
}

TEST(one_gpu_is_cuda_0_of_one_process_and_cuda_1_of_another)
{
	struct fixture f;
	begin(&f);
	struct synth_process *q = second(&f, 200);
	synth_device(q, 1, CUDA, "GPU-b", 512 * MIB);
	synth_device(q, 2, CUDA, "GPU-a", 1024 * MIB);
	alloc(&f, 0x10000000, 4 * MIB, 1);
	synth_dev(q, 0, AT(f.now += 1000), MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 2, 0x10000000, 2 * MIB, 1);
	synth_dev(q, 0, AT(f.now += 1000), MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1, 0x20000000, MIB, 1);
	synth_dev(q, 0, AT(f.now += 1000), MT_DEVICE_FREE, MT_CLASS_DEVICE, 2, 0x10000000, 0, 0);
	alloc(&f, 0x30000000, MIB, 1);
	run(&f);
	CHECK_EQ(model_devices(f.m), 2);
	const struct model_device *a = model_device(f.m, 0), *b = model_device(f.m, 1);
	CHECK(!strcmp(a->uuid, "GPU-a") && !strcmp(b->uuid, "GPU-b"));
	CHECK_EQ(a->layer[LAYER_MEMORY].peak_bytes, 6 * MIB);
	CHECK_EQ(live(a, LAYER_MEMORY), 5 * MIB);
	CHECK_EQ(live(b, LAYER_MEMORY), MIB);
	CHECK_EQ(a->share_count, 2);
	CHECK_EQ(a->peak.part_count, 2);
	CHECK_EQ(a->peak.parts[0].layer[LAYER_MEMORY] + a->peak.parts[1].layer[LAYER_MEMORY], 6 * MIB);
	CHECK_EQ(model_share(f.m, 0, 1)->ordinal, 1);
	CHECK_EQ(model_share(f.m, 1, 1)->ordinal, 0);
	CHECK_EQ(site_of(f.m, 1, MODEL_DEVICE, 1)->host_peak_bytes, 2 * MIB);
	CHECK_EQ(site_of(f.m, 0, MODEL_DEVICE, 1)->host_peak_bytes, 4 * MIB);
	CHECK_EQ(site_of(f.m, 0, MODEL_DEVICE, 1)->peak_bytes, 5 * MIB);
	end(&f);
}

TEST(devices_without_uuid_are_not_merged)
{
	struct fixture f;
	begin(&f);
	struct synth_process *p = second(&f, 200), *q = second(&f, 300);
	synth_device(p, 1, MT_BACKEND_ASCEND, "", MIB);
	synth_device(q, 1, MT_BACKEND_ASCEND, "", MIB);
	run(&f);
	CHECK_EQ(model_devices(f.m), 3);
	CHECK(!strcmp(model_device(f.m, 1)->name, "npu:0") && !strcmp(model_device(f.m, 2)->name, "npu:0"));
	end(&f);
}

TEST(two_processes_do_not_add_up_after_one_has_ended)
{
	struct fixture f;
	begin(&f);
	struct synth_process *q = second(&f, 200);
	synth_device(q, 1, CUDA, "GPU-a", 1024 * MIB);
	alloc(&f, 0x10000000, 4 * MIB, 1);
	f.p->info.exit_kind = MT_EXIT_CODE;
	f.p->info.end_ticks = AT(f.now += 1000);
	dev(&f, q, 0, MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 0x10000000, 6 * MIB, 1);
	const struct model_device *d = run(&f);
	CHECK_EQ(d->layer[LAYER_MEMORY].peak_bytes, 6 * MIB);
	CHECK_EQ(d->peak.part_count, 1);
	CHECK_EQ(model_share(f.m, 0, 0)->layer[LAYER_MEMORY].live_bytes, 4 * MIB);
	CHECK_EQ(site_of(f.m, 0, MODEL_DEVICE, 1)->host_peak_bytes, 0);
	CHECK_EQ(site_of(f.m, 1, MODEL_DEVICE, 1)->host_peak_bytes, 6 * MIB);
	end(&f);
}

TEST(a_forked_child_frees_what_it_inherited_and_charges_nothing)
{
	struct fixture f;
	small_pool(&f);
	create(&f, 7, MIB);
	struct synth_process *child = synth_fork(f.p, 200, AT(f.now += 1000));
	f.now += 5000;
	dev(&f, child, 0, MT_DEVICE_FREE, MT_CLASS_POOL, 0x20000000, 0, 0);
	dev(&f, child, 0, MT_DEVICE_FREE, MT_CLASS_DEVICE, 0x30000000, 0, 0);
	dev(&f, child, 0, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, 7, 0, 0);
	dev(&f, child, 0, MT_DEVICE_FREE, MT_CLASS_POOL, 0x20000000, 0, 0);
	const struct model_device *d = run(&f);
	const struct model_process *c = model_process(f.m, 1);
	CHECK_EQ(live(d, LAYER_POOL), 4 * MIB);
	CHECK_EQ(live(d, LAYER_MEMORY), 30 * MIB);
	CHECK_EQ(c->inherited_device_frees, 3);
	CHECK_EQ(c->kind[MODEL_POOL].unknown_frees, 1);
	CHECK_EQ(c->kind[MODEL_DEVICE].unknown_frees, 0);
	CHECK_EQ(c->kind[MODEL_DEVICE].inherited_bytes, 0);
	end(&f);
}

/* ---- failures -------------------------------------------------------------------------------------------- */

TEST(one_failed_tensor_is_one_oom_with_its_refusals)
{
	struct fixture f;
	small_pool(&f);
	refuse(&f, 64 * MIB, 10 * MIB);
	release(&f, 0x30000000);
	refuse(&f, 64 * MIB, 17 * MIB);
	give_up(&f, 60 * MIB);
	f.p->info.exit_kind = MT_EXIT_CODE;
	f.p->info.exit_code = 1;
	f.p->info.end_ticks = AT(f.now += 1000);
	const struct model_device *d = run(&f);
	CHECK_EQ(d->ooms, 1);
	CHECK_EQ(model_ooms(f.m), 1);
	const struct model_oom *o = model_oom(f.m, 0);
	CHECK(o->pool && o->refusal_count == 2 && o->retries == 1);
	CHECK_EQ(o->requested_bytes, 60 * MIB);
	CHECK_EQ(o->block_bytes, 64 * MIB);
	CHECK_EQ(o->node, 6);
	CHECK_EQ(o->refusals[0].node, 5);
	CHECK_EQ(o->at.free_bytes, 17 * MIB);
	CHECK_EQ(o->at.total_bytes, 1024 * MIB);
	CHECK_EQ(o->allocated_bytes, 4 * MIB);
	CHECK_EQ(o->reserved_bytes, 22 * MIB);
	CHECK_EQ(o->largest_hole_bytes, 12 * MIB);
	CHECK_EQ(o->whole_free_bytes, 0);
	CHECK_EQ(o->limit_bytes, 0);
	CHECK_EQ(o->outcome, OUTCOME_FATAL);
	CHECK(o->layout && o->layout->segment_count == 2);
	CHECK_EQ(d->retries, 1);
	CHECK_EQ(d->layer[LAYER_MEMORY].failed, 2);
	CHECK_EQ(d->layer[LAYER_POOL].failed, 1);
	end(&f);
}

TEST(a_retry_that_succeeds_is_no_oom)
{
	struct fixture f;
	small_pool(&f);
	refuse(&f, 64 * MIB, 10 * MIB);
	release(&f, 0x30000000);
	alloc(&f, 0x40000000, 64 * MIB, 1);
	pool(&f, 0x40000000, 60 * MIB, 2);
	const struct model_device *d = run(&f);
	CHECK_EQ(d->ooms, 0);
	CHECK_EQ(d->retries, 1);
	end(&f);
}

TEST(a_refusal_beside_the_pool_is_an_oom_of_its_own)
{
	struct fixture f;
	small_pool(&f);
	refuse(&f, 64 * MIB, 10 * MIB);
	pool(&f, 0x10000000 + 8 * MIB, MIB, 2); /* the pool serves on from what it had */
	const struct model_device *d = run(&f);
	CHECK_EQ(d->ooms, 1);
	const struct model_oom *o = model_oom(f.m, 0);
	CHECK(!o->pool && o->refusal_count == 1);
	CHECK_EQ(o->requested_bytes, 64 * MIB);
	CHECK_EQ(o->outcome, OUTCOME_CAUGHT); /* it went on, and nobody says that it failed */
	CHECK_EQ(d->retries, 0);
	end(&f);
}

TEST(without_a_pool_each_request_that_stays_refused_is_an_oom)
{
	struct fixture f;
	begin(&f);
	refuse(&f, 64 * MIB, 10 * MIB); /* tried again: works */
	alloc(&f, 0x10000000, 64 * MIB, 1);
	refuse(&f, 128 * MIB, 10 * MIB); /* tried twice, refused twice */
	refuse(&f, 128 * MIB, 10 * MIB);
	refuse(&f, 32 * MIB, 10 * MIB);
	const struct model_device *d = run(&f);
	CHECK_EQ(d->retries, 1);
	CHECK_EQ(d->ooms, 2);
	CHECK_EQ(model_oom(f.m, 0)->refusal_count, 2);
	CHECK_EQ(model_oom(f.m, 1)->requested_bytes, 32 * MIB);
	end(&f);
}

TEST(a_pool_that_gives_up_without_asking_has_a_limit)
{
	struct fixture f;
	small_pool(&f);
	synth_dev_info(f.p, 0, AT(f.now += 1000), 1, 500 * MIB, 1024 * MIB);
	give_up(&f, 60 * MIB);
	f.p->info.exit_kind = MT_EXIT_CODE;
	run(&f);
	const struct model_oom *o = model_oom(f.m, 0);
	CHECK_EQ(o->refusal_count, 0);
	CHECK_EQ(o->limit_bytes, 22 * MIB);
	CHECK_EQ(o->retries, 1);
	CHECK_EQ(o->outcome, OUTCOME_CAUGHT);
	end(&f);
}

TEST(refusals_of_another_thread_are_no_evidence)
{
	struct fixture f;
	small_pool(&f);
	dev(&f, f.p, 1, MT_DEVICE_FAIL, MT_CLASS_DEVICE, 64 * MIB, 0, 5);
	give_up(&f, 60 * MIB);
	const struct model_device *d = run(&f);
	CHECK_EQ(d->ooms, 2);
	CHECK_EQ(model_oom(f.m, 0)->pool, 0);
	CHECK_EQ(model_oom(f.m, 1)->refusal_count, 0);
	end(&f);
}

TEST(of_many_ooms_the_first_and_the_last_are_kept)
{
	struct fixture f;
	small_pool(&f);
	for (uint64_t i = 1; i <= 500; i++) {
		refuse(&f, 64 * MIB, 10 * MIB);
		give_up(&f, i * 512);
	}
	const struct model_device *d = run(&f);
	CHECK_EQ(d->ooms, 500);
	CHECK_EQ(d->oom_count, MODEL_OOMS);
	CHECK_EQ(model_oom(f.m, 0)->requested_bytes, 512);
	CHECK_EQ(model_oom(f.m, MODEL_OOMS - 1)->requested_bytes, 500 * 512);
	unsigned layouts = 0;
	for (unsigned i = 0; i < model_ooms(f.m); i++)
		layouts += model_oom(f.m, i)->layout != NULL;
	CHECK(model_oom(f.m, 0)->layout && model_oom(f.m, MODEL_OOMS - 1)->layout);
	CHECK(layouts <= MODEL_LAYOUTS + 2);
	end(&f);
}

TEST(the_pass_can_stop_at_an_oom)
{
	struct fixture f;
	small_pool(&f);
	refuse(&f, 64 * MIB, 10 * MIB);
	give_up(&f, 60 * MIB);
	unpool(&f, 0x20000000);
	run(&f);
	struct model_query q = MODEL_QUERY_ALL;
	q.until_event = model_oom(f.m, 0)->at.event;
	const struct model_device *d = run_form(&f, q, SYNTH_BLOCKS);
	CHECK_EQ(live(d, LAYER_POOL), 4 * MIB);
	CHECK_EQ(d->ooms, 1);
	end(&f);
}

struct told {
	uint64_t pool, device, count;
};

static void note(void *arg, const struct model_change *c)
{
	struct told *t = arg;
	t->count++;
	if (c->kind == MODEL_POOL && c->device == 0)
		t->pool += (uint64_t)c->bytes;
	if (c->kind == MODEL_DEVICE) {
		t->device += (uint64_t)c->bytes;
		CHECK_EQ(c->device_bytes, t->device);
	}
}

TEST(changes_are_told_with_their_device)
{
	struct fixture f;
	struct told t = { 0 };
	small_pool(&f);
	struct model_query q = MODEL_QUERY_ALL;
	q.on_change = note;
	q.arg = &t;
	const struct model_device *d = run_form(&f, q, SYNTH_RAW);
	CHECK_EQ(t.pool, live(d, LAYER_POOL));
	CHECK_EQ(t.device, live(d, LAYER_MEMORY));
	CHECK_EQ(t.count, 7);
	end(&f);
}

/* ---- anything at all ------------------------------------------------------------------------------------- */

static uint64_t next(uint64_t *random)
{
	return random_next(random) >> 20;
}

/* Any event about a few addresses, classes, devices and rings: most make no sense after what came before. */
static void any_event(struct fixture *f, struct synth_process *p, uint64_t *random)
{
	static const enum mt_kind kinds[] = {
		MT_DEVICE_ALLOC, MT_DEVICE_ALLOC, MT_DEVICE_ALLOC, MT_DEVICE_FREE, MT_DEVICE_FREE,
		MT_DEVICE_FAIL,  MT_DEVICE_UNDO,  MT_DEVICE_MAP,   MT_DEVICE_MAP,  MT_DEVICE_UNMAP,
		MT_DEVICE_INFO,  MT_DEVICE_ALLOC, MT_DEVICE_FREE,  MT_DEVICE_UNDO,
	};
	enum mt_kind kind = kinds[next(random) % (sizeof(kinds) / sizeof(*kinds))];
	uint64_t addr = 4096 * (1 + next(random) % 40), size = 4096 * (next(random) % 8),
		 handle = 4096 * (1 + next(random) % 40);
	uint32_t device = (uint32_t)(next(random) % 4), ring = (uint32_t)(next(random) % 3),
		 node = (uint32_t)(1 + next(random) % 6);
	enum mt_class class = (enum mt_class)(next(random) % (MT_CLASSES + 1));
	if (next(random) % 500 == 0)
		kind = MT_DEVICE_RESET, addr = next(random) % 2 ? class : 0;
	if (kind == MT_DEVICE_MAP)
		synth_dev_map(p, ring, AT(f->now += 1000), device, addr, size, handle);
	else if (class == MT_CLASS_POOL && next(random) % 8 == 0)
		synth_dev_captured(p, ring, AT(f->now += 1000), kind, device, addr, size, node,
				   1 + (uint32_t)(next(random) % 5));
	else
		synth_dev(p, ring, AT(f->now += 1000), kind, class, device, addr, size, node);
}

/* The sites' bytes add up to the share's, and what is in segments and beside them to the pool's. */
static void check_books(const struct fixture *f, const struct model_device *d)
{
	uint64_t sum[MODEL_LAYERS] = { 0 };
	for (unsigned i = 0; i < d->share_count; i++) {
		const struct model_share *s = d->shares[i];
		const struct model_process *p = model_process(f->m, s->process->id);
		uint64_t live_bytes[2] = { 0 }, peak[2] = { 0 };
		struct pool_layout *l;
		for (uint32_t n = 0; n < p->site_count; n++)
			if (p->sites[n].device == d->index) {
				live_bytes[p->sites[n].kind == MODEL_POOL] += p->sites[n].live_bytes;
				peak[p->sites[n].kind == MODEL_POOL] += p->sites[n].peak_bytes;
			}
		for (int k = LAYER_MEMORY; k <= LAYER_POOL; k++) {
			CHECK_EQ(live_bytes[k], s->layer[k].live_bytes);
			CHECK_EQ(peak[k], s->layer[k].peak_bytes);
		}
		CHECK(s->layer[LAYER_UNMAPPED].live_bytes <= s->layer[LAYER_MEMORY].live_bytes);
		CHECK_EQ(pool_layout_take(&l, f->m, d->index, s->process->id), 0);
		CHECK_EQ(l->reserved, s->layer[LAYER_RESERVED].live_bytes);
		CHECK(l->allocated + l->stray >= s->layer[LAYER_POOL].live_bytes);
		CHECK(pool_layout_pools(l, POOL_LAYOUT_PRIVATE).reserved >= s->layer[LAYER_PRIVATE].live_bytes);
		CHECK_EQ(pool_layout_pools(l, POOL_LAYOUT_PRIVATE).allocated +
				 pool_layout_pools(l, POOL_LAYOUT_COMMON).allocated,
			 l->allocated);
		CHECK(s->layer[LAYER_PRIVATE].live_bytes <= s->layer[LAYER_RESERVED].live_bytes);
		CHECK(s->layer[LAYER_PRIVATE_POOL].live_bytes <= s->layer[LAYER_POOL].live_bytes);
		pool_layout_free(l);
		for (int k = 0; k < MODEL_LAYERS; k++)
			sum[k] += s->layer[k].live_bytes;
	}
	for (int k = 0; k < MODEL_LAYERS; k++) {
		CHECK_EQ(sum[k], d->layer[k].live_bytes);
		CHECK(d->layer[k].peak_bytes >= d->layer[k].live_bytes || d->share_count > 1);
		CHECK(d->layer[k].live_bytes < 1ull << 40);
	}
	uint64_t parts = 0;
	for (unsigned i = 0; i < d->peak.part_count; i++)
		parts += d->peak.parts[i].layer[LAYER_MEMORY];
	CHECK_EQ(parts, d->peak.layer[LAYER_MEMORY]);
	CHECK_EQ(d->peak.layer[LAYER_MEMORY], d->layer[LAYER_MEMORY].peak_bytes);
}

TEST(any_events_keep_the_books)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct fixture f;
		uint64_t random = seed * 0x9E3779B97F4A7C15ull;
		begin(&f);
		synth_device(f.p, 2, CUDA, "GPU-b", MIB);
		struct synth_process *other = second(&f, 200);
		synth_node(other, 0, 0x9000);
		synth_node(other, 0, 0xa000);
		synth_node(other, 0, 0xb000);
		synth_device(other, 2, CUDA, "GPU-a", MIB);
		struct synth_process *child = NULL;
		for (int i = 0; i < 3000; i++) {
			if (i == 1500 && seed % 3 == 0) {
				child = synth_fork(f.p, 300, AT(f.now += 1000));
				f.now += 5000;
			}
			struct synth_process *p = child && next(&random) % 4 == 0 ? child
						  : next(&random) % 3             ? f.p
										  : other;
			any_event(&f, p, &random);
		}
		struct model_query q = MODEL_QUERY_ALL;
		q.keep_blocks = true;
		if (seed % 4 == 1)
			q.from_ns = f.now / 3;
		run_form(&f, q, seed % 3 == 0 ? SYNTH_RAW : seed % 3 == 1 ? SYNTH_BLOCKS : SYNTH_MIXED);
		for (unsigned i = 0; i < model_devices(f.m); i++)
			check_books(&f, model_device(f.m, i));
		end(&f);
	}
}

TEST_MAIN
