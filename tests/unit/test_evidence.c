/* What the rules of verdicts are told of programs that are made up: who asked, who else was there, what for, what is
 * there twice. */
#include "analyzer/diagnosis/diagnosis.h"
#include "analyzer/analysis/open.h"
#include "tests/lib/synth_samples.h"
#include "tests/unit/test.h"

#define MIB       (1ull << 20)
#define SECOND    1000000000ull
#define OPTIMIZER "/usr/lib/python3/site-packages/torch/optim/adam.py"

enum { SEGMENT = 0x10000000 };

static struct {
	struct synth synth;
	struct synth_samples samples;
	struct synth_process *p;
	uint64_t now, next_addr, total;
	uint32_t codes, libraries;
	struct options options;
	struct selection selection;
	struct timeline *timeline;
	struct host_memory *system;
	struct diagnosis *diagnosis;
	const struct evidence_device *device;
	const struct evidence_host *host;
} w;

static void begin(void)
{
	memset(&w, 0, sizeof(w));
	w.now = SYNTH_START + SECOND;
	w.next_addr = 1ull << 40;
	w.total = 1024 * MIB;
	synth_begin(&w.synth);
	w.p = synth_process(&w.synth, 100, 0);
	synth_device(w.p, 1, MT_BACKEND_CUDA, "GPU-a", 1024 * MIB);
}

/* ---- what happens ---------------------------------------------------------------------------------------- */

static void dev(enum mt_kind kind, enum mt_class class, uint64_t addr, uint64_t size, uint32_t node)
{
	synth_dev(w.p, 0, w.now += 1000000, kind, class, 1, addr, size, node);
}

static void driver_gives(uint64_t addr, uint64_t mib, uint32_t node)
{
	dev(MT_DEVICE_ALLOC, MT_CLASS_DEVICE, addr, mib * MIB, node);
}
static void pool_gives(uint64_t addr, uint64_t mib)
{
	dev(MT_DEVICE_ALLOC, MT_CLASS_POOL, addr, mib * MIB, 0);
}
static void pool_takes(uint64_t addr)
{
	dev(MT_DEVICE_FREE, MT_CLASS_POOL, addr, 0, 0);
}

static void driver_refuses(uint64_t mib, uint64_t free_mib, uint32_t node)
{
	synth_dev_info(w.p, 0, w.now += 1000000, 1, free_mib * MIB, w.total);
	dev(MT_DEVICE_FAIL, MT_CLASS_DEVICE, mib * MIB, 0, node);
}

static void pool_gives_up(uint64_t mib)
{
	dev(MT_DEVICE_FAIL, MT_CLASS_POOL, mib * MIB, 0, 0);
}

/* The latest device event is in that line of Python, too. */
static void in_python(const char *file, const char *name, uint32_t line)
{
	synth_code(w.p, ++w.codes, file, name);
	w.p->slots[w.p->count - 2].event.node2 = synth_frame(w.p, 0, w.codes, line);
}

/* Some code in a library. */
static uint32_t in_library(const char *path)
{
	uint64_t start = ++w.libraries * 0x100000ull;
	synth_record(w.p, MT_REC_MODULE, SYNTH_START,
		     &(struct mt_rec_module){ .bias = start, .start = start, .end = start + 0x100000 },
		     sizeof(struct mt_rec_module), path, strlen(path) + 1);
	return synth_node(w.p, 0, start + 0x101);
}

static uint64_t alloc(uint64_t bytes)
{
	uint64_t addr = w.next_addr += 4096;
	w.next_addr += bytes;
	synth_alloc(w.p, 0, w.now += 1000000, addr, bytes, 0);
	return addr;
}

static void release(uint64_t addr)
{
	synth_plain(w.p, 0, w.now += 1000000, MT_FREE, addr);
}

/* Samples are of the moment that was reached. */
static void now(void)
{
	synth_wait(&w.samples, w.now - SYNTH_START - w.samples.waited_ns);
}

#define FIGURES(subject, ...) SYNTH_FIGURES(&w.samples, subject, __VA_ARGS__)

static void machine(void)
{
	unsigned s = synth_subject(&w.samples, MT_SUBJECT_MACHINE, 0, 0, 0, "", "");
	FIGURES(s, { MT_MACHINE_total, 1000 * MIB }, { MT_MACHINE_free, 200 * MIB },
		{ MT_MACHINE_available, 300 * MIB }, { MT_MACHINE_cached, 150 * MIB }, { MT_MACHINE_shmem, 40 * MIB },
		{ MT_MACHINE_anon, 400 * MIB }, { MT_MACHINE_swap_total, 100 * MIB },
		{ MT_MACHINE_swap_free, 70 * MIB }, { MT_MACHINE_shm_total, 500 * MIB },
		{ MT_MACHINE_shm_used, 60 * MIB }, { MT_MACHINE_oom_kills, 3 });
}

static unsigned process(uint64_t anon)
{
	unsigned s =
		synth_subject(&w.samples, MT_SUBJECT_PROCESS, w.p->info.pid, w.p->info.boot_start, 1, "synth", "/job");
	FIGURES(s, { MT_PROCESS_rss, (anon + 25) * MIB }, { MT_PROCESS_rss_anon, anon * MIB },
		{ MT_PROCESS_rss_file, 25 * MIB });
	return s;
}

static unsigned group(uint64_t limit, uint64_t current, uint64_t file)
{
	unsigned s = synth_subject(&w.samples, MT_SUBJECT_CGROUP, 2, 0, 0, "/job", "/job");
	FIGURES(s, { MT_CGROUP_limit, limit * MIB }, { MT_CGROUP_current, current * MIB },
		{ MT_CGROUP_file, file * MIB }, { MT_CGROUP_anon, (current - file) * MIB });
	return s;
}

/* Who is on the device as its driver says. */
static unsigned on_device(uint32_t pid, uint32_t said, const char *name, uint64_t mib)
{
	unsigned s = synth_subject(&w.samples, MT_SUBJECT_DEVICE_PROCESS, MT_BACKEND_CUDA, pid, said, "GPU-a", name);
	FIGURES(s, { MT_DEVICE_PROCESS_bytes, mib * MIB }, { MT_DEVICE_PROCESS_known, 1 });
	return s;
}

static void device_has(uint64_t free_mib)
{
	unsigned s = synth_subject(&w.samples, MT_SUBJECT_DEVICE, MT_BACKEND_CUDA, 0, 0, "GPU-a", "Stand-in");
	FIGURES(s, { MT_DEVICE_total, 1024 * MIB }, { MT_DEVICE_used, (1024 - free_mib) * MIB },
		{ MT_DEVICE_free, free_mib * MIB });
}

/* ---- looking --------------------------------------------------------------------------------------------- */

static void make(void)
{
	static const char *dir;
	struct model_query q = MODEL_QUERY_ALL;
	dir = w.synth.dir;
	w.options = (struct options){ .dirs = &dir, .ndirs = 1 };
	for (struct synth_process *p = w.synth.processes; p; p = p->next) {
		if (!p->info.exit_kind)
			p->info.exit_kind = MT_EXIT_CODE;
		if (!p->info.end_ticks)
			p->info.end_ticks = w.now + SECOND;
		synth_write(p, SYNTH_BLOCKS);
	}
	if (w.samples.bytes)
		synth_write_samples(&w.samples, &w.synth);
	w.timeline = timeline_new();
	timeline_attach(w.timeline, &q);
	if (selection_open(&w.selection, &w.options) || host_memory_open(&w.system, w.selection.reader))
		abort();
	host_memory_ask(w.system, &q);
	w.selection.samples = host_memory_samples(w.system);
	if (selection_run(&w.selection, &q) || host_memory_settle(w.system, w.selection.model) ||
	    diagnosis_new(&w.diagnosis, &w.selection, w.timeline, w.samples.bytes ? w.system : NULL, true) ||
	    timeline_run(w.timeline, &w.selection) || diagnosis_make(w.diagnosis))
		abort();
	w.device = w.diagnosis->evidence.devices.items;
	w.host = &w.diagnosis->evidence.host;
}

static void end(void)
{
	diagnosis_free(w.diagnosis);
	timeline_free(w.timeline);
	host_memory_close(w.system);
	selection_close(&w.selection);
	synth_end(&w.synth);
}

static uint64_t part(const char *name)
{
	for (size_t i = 0; i < w.device->parts.count; i++)
		if (!strcmp(w.device->parts.items[i].name, name))
			return w.device->parts.items[i].bytes / MIB;
	return 0;
}

static const struct evidence_neighbour *neighbour(uint32_t pid)
{
	for (size_t i = 0; i < w.device->neighbours.count; i++)
		if (w.device->neighbours.items[i].pid == pid)
			return &w.device->neighbours.items[i];
	return NULL;
}

/* ---- requests -------------------------------------------------------------------------------------------- */

/* Two segments: one with 300 of its 500 MiB in two blocks, with a hole of 120 and one of 80, the other idle. */
static void fill_pool(void)
{
	driver_gives(SEGMENT, 500, 0);
	pool_gives(SEGMENT, 200);
	in_python(OPTIMIZER, "Adam.step", 12);
	pool_gives(SEGMENT + 200 * MIB, 120);
	pool_gives(SEGMENT + 320 * MIB, 100);
	in_python("/home/u/model.py", "Block.forward", 34);
	pool_takes(SEGMENT + 200 * MIB);
	driver_gives(2ul * SEGMENT * 4, 60, 0);
	pool_gives(2ul * SEGMENT * 4, 30);
	pool_takes(2ul * SEGMENT * 4);
}

TEST(a_request_of_the_pool)
{
	begin();
	driver_gives(0x90000000, 50, in_library("/usr/lib/libnccl.so.2"));
	driver_gives(0x98000000, 20, in_library("/usr/lib/libnccl.so.2"));
	driver_gives(0xa0000000, 10, in_library("/home/u/own.so"));
	fill_pool();
	driver_refuses(400, 100, 0);
	driver_refuses(400, 110, 0);
	pool_gives_up(390);
	uint64_t failed = w.now;
	w.now += 2 * SECOND;
	alloc(10);
	w.p->info.exit_code = 1;
	make();
	const struct evidence_request *r = &w.device->request;
	CHECK(r->failed && !strcmp(w.device->name, "cuda:0") && !strcmp(w.device->uuid, "GPU-a"));
	CHECK_EQ(r->pid, 100);
	CHECK_EQ(r->ns, failed - SYNTH_START);
	CHECK_EQ(r->bytes, 390 * MIB);
	CHECK_EQ(r->block_bytes, 400 * MIB);
	CHECK_EQ(r->limit_bytes, EVIDENCE_UNKNOWN);
	CHECK_EQ(r->failures, 1);
	CHECK_EQ(r->driver_failures, 2);
	CHECK_EQ(r->outcome, FAILURE_FATAL);
	CHECK_EQ(r->caller, CALLER_POOL);
	CHECK(!r->caller_name);
	CHECK_EQ(r->ran_on_ns, 3 * SECOND + 1000000);
	CHECK_EQ(w.device->total, 1024 * MIB);
	CHECK_EQ(w.device->free, 110 * MIB);
	const struct evidence_pool *p = &w.device->pool;
	CHECK(p->known && !p->driver_pool && !p->graphs.capturing);
	CHECK_EQ(p->reserved, 560 * MIB);
	CHECK_EQ(p->allocated, 300 * MIB);
	CHECK_EQ(p->largest_hole, 120 * MIB);
	CHECK_EQ(p->free_segments, 60 * MIB);
	CHECK_EQ(w.device->own_other, 80 * MIB);
	CHECK_EQ(part("NCCL"), 70);
	CHECK_EQ(part("own.so") + part("the program"), 10);
	CHECK(!w.device->neighbours_known && !w.device->self_listed); /* nobody listed them */
	CHECK_EQ(w.device->most_for, CATEGORY_optimizer);
	CHECK_EQ(w.device->most_for_bytes, 200 * MIB);
	CHECK(w.device->holder.site && strstr(w.device->holder.site, "adam.py:12"));
	CHECK_EQ(w.device->holder.bytes, 200 * MIB);
	CHECK_EQ(w.device->holder.blocks, 1);
	CHECK_EQ(w.device->holder.each, 200 * MIB);
	end();
}

/* NCCL asks the driver itself, a library of numbers, the program. */
TEST(who_asked_the_driver)
{
	static const struct {
		const char *path, *name;
		enum evidence_caller caller;
	} rows[] = {
		{ "/usr/lib/libnccl.so.2", "NCCL", CALLER_COMM },
		{ "/usr/lib/libcublas.so.12", "cuBLAS", CALLER_LIBRARY },
		{ "/home/u/own.so", NULL, CALLER_PROGRAM },
	};
	for (size_t i = 0; i < 3; i++) {
		begin();
		fill_pool();
		driver_refuses(400, 100, in_library(rows[i].path));
		alloc(10);
		make();
		const struct evidence_request *r = &w.device->request;
		CHECK(r->failed);
		CHECK_EQ(r->caller, rows[i].caller);
		CHECK(rows[i].name ? r->caller_name && !strcmp(r->caller_name, rows[i].name) : !r->caller_name);
		CHECK_EQ(r->driver_failures, 1);
		CHECK_EQ(r->bytes, 400 * MIB);
		end();
	}
}

TEST(without_a_failure_it_is_the_peak)
{
	begin();
	fill_pool();
	pool_takes(SEGMENT);
	make();
	CHECK(!w.device->request.failed);
	CHECK_EQ(w.device->pool.reserved, 560 * MIB);
	CHECK_EQ(w.device->pool.allocated, 330 * MIB);
	CHECK_EQ(w.device->pool.largest_hole, EVIDENCE_UNKNOWN);
	CHECK_EQ(w.device->pool.free_segments, EVIDENCE_UNKNOWN);
	CHECK_EQ(w.device->own_other, 0);
	end();
	begin();
	driver_gives(0x90000000, 50, 0);
	make();
	CHECK(!w.device->pool.known);
	CHECK_EQ(part("the program"), 50);
	end();
}

/* Blocks that one line holds: of about one size, the pool having rounded some, or of many. */
TEST(what_one_line_holds)
{
	static const struct {
		uint64_t sizes[3], each;
	} rows[] = { { { 32, 32, 30 }, 94 * MIB / 3 }, { { 32, 32, 29 }, 0 } };
	for (size_t i = 0; i < 2; i++) {
		begin();
		driver_gives(SEGMENT, 500, 0);
		for (uint64_t k = 0; k < 3; k++) {
			pool_gives(SEGMENT + 100 * k * MIB, rows[i].sizes[k]);
			w.codes = 0;
			if (k)
				w.p->slots[w.p->count - 2].event.node2 = 1;
			else
				in_python("/home/u/model.py", "Block.forward", 34);
		}
		make();
		CHECK_EQ(w.device->holder.blocks, 3);
		CHECK_EQ(w.device->holder.bytes, (64 + rows[i].sizes[2]) * MIB);
		CHECK_EQ(w.device->holder.each, rows[i].each);
		end();
	}
}

TEST(pools_of_the_driver_keep_what_is_freed)
{
	for (int async = 0; async < 2; async++) {
		begin();
		dev(MT_DEVICE_ALLOC, async ? MT_CLASS_ASYNC : MT_CLASS_DEVICE, 0x90000000, 50 * MIB, 0);
		w.p = synth_process(&w.synth, 101, 0);
		synth_device(w.p, 1, MT_BACKEND_CUDA, "GPU-a", 1024 * MIB);
		driver_gives(SEGMENT, 100, 0);
		make();
		CHECK_EQ(w.device->pool.driver_pool, async);
		end();
	}
	begin(); /* but only the failing process's matters */
	dev(MT_DEVICE_ALLOC, MT_CLASS_ASYNC, 0x90000000, 50 * MIB, 0);
	w.p = synth_process(&w.synth, 101, 0);
	synth_device(w.p, 1, MT_BACKEND_CUDA, "GPU-a", 1024 * MIB);
	fill_pool();
	driver_refuses(400, 100, 0);
	pool_gives_up(390);
	make();
	CHECK_EQ(w.device->request.pid, 101);
	CHECK(!w.device->pool.driver_pool);
	CHECK_EQ(w.device->own_other, 0);
	CHECK_EQ(part("the program"), 0);
	end();
	begin(); /* its own does, where it fails above all */
	fill_pool();
	dev(MT_DEVICE_ALLOC, MT_CLASS_ASYNC, 0x90000000, 50 * MIB, 0);
	driver_refuses(400, 100, 0);
	pool_gives_up(390);
	make();
	CHECK(w.device->request.failed && w.device->pool.known && w.device->pool.driver_pool);
	end();
}

/* Two devices, each with memory for something else. */
TEST(each_device_for_itself)
{
	begin();
	synth_device(w.p, 2, MT_BACKEND_CUDA, "GPU-b", 512 * MIB);
	fill_pool();
	synth_dev(w.p, 0, w.now += 1000, MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 2, SEGMENT, 300 * MIB, 0);
	synth_dev(w.p, 0, w.now += 1000, MT_DEVICE_ALLOC, MT_CLASS_POOL, 2, SEGMENT, 250 * MIB, 0);
	in_python("/home/u/model.py", "Net.forward", 56);
	make();
	CHECK_EQ(w.diagnosis->evidence.devices.count, 2);
	CHECK_EQ(w.device[0].most_for, CATEGORY_optimizer);
	CHECK_EQ(w.device[1].most_for, CATEGORY_activations);
	CHECK_EQ(w.device[1].most_for_bytes, 250 * MIB);
	CHECK(w.device[1].holder.site && strstr(w.device[1].holder.site, "model.py:56"));
	CHECK_EQ(w.device[1].pool.reserved, 300 * MIB);
	end();
}

/* Nobody lists processes, but the driver said that 6 GiB of 16 were in use before ours came; one of them may be
 * contexts. */
TEST(what_was_in_use_before_is_a_neighbour)
{
	begin();
	w.total = 16384 * MIB;
	synth_dev_info(w.p, 0, w.now += 1000000, 1, 10240 * MIB, w.total);
	fill_pool();
	driver_refuses(10000, 10240 - 560, 0);
	pool_gives_up(10000);
	make();
	CHECK_EQ(w.device->neighbours.count, 1);
	CHECK(!w.device->neighbours.items->traced && !w.device->self_listed);
	CHECK_EQ(w.device->neighbours.items->bytes_before, w.device->neighbours.items->bytes);
	CHECK(w.device->neighbours.items->bytes >= 5120 * MIB && w.device->neighbours.items->bytes <= 6144 * MIB);
	end();
}

/* ---- neighbours ------------------------------------------------------------------------------------------ */

/* A traced one with a pool that was there before and grew since, one that nobody traced, and the device's rest is free.
 * */
TEST(who_else_is_on_the_device)
{
	begin();
	struct synth_process *first = w.p;
	w.p = synth_process(&w.synth, 90, 0);
	synth_device(w.p, 1, MT_BACKEND_CUDA, "GPU-a", 1024 * MIB);
	driver_gives(0x40000000, 100, 0);
	pool_gives(0x40000000, 70);
	w.now += SECOND;
	struct synth_process *other = w.p;
	w.p = first;
	fill_pool();
	w.now += SECOND;
	w.p = other;
	driver_gives(0x60000000, 20, 0);
	w.p = synth_process(&w.synth, 120, 0); /* a traced one that comes later */
	synth_device(w.p, 1, MT_BACKEND_CUDA, "GPU-a", 1024 * MIB);
	driver_gives(0x70000000, 30, 0);
	w.p = first;
	w.now += SECOND;
	now();
	on_device(100, 100, "synth", 570);
	on_device(90, 90, "synth", 140);
	on_device(120, 120, "synth", 30);
	on_device(200, 200, "stranger", 150);
	on_device(201, 201, "nothing", 0);
	device_has(134);
	w.now += SECOND;
	now();
	on_device(202, 202, "late", 34);
	w.now += SECOND;
	driver_refuses(400, 100, 0);
	driver_refuses(400, 100, 0);
	pool_gives_up(390);
	make();
	CHECK(w.device->neighbours_known && w.device->self_listed);
	CHECK_EQ(w.device->neighbours.count, 4);
	const struct evidence_neighbour *traced = neighbour(90), *stranger = neighbour(200);
	CHECK(traced && traced->traced && stranger && !stranger->traced);
	CHECK_EQ(traced->bytes, 140 * MIB); /* with its context */
	CHECK_EQ(traced->pool_unused, 30 * MIB);
	CHECK_EQ(traced->bytes_before, 100 * MIB);
	CHECK_EQ(neighbour(120) ? neighbour(120)->bytes_before : 1, 0);
	CHECK_EQ(stranger->bytes, 150 * MIB);
	CHECK_EQ(stranger->bytes_before, EVIDENCE_UNKNOWN); /* samples began when we were there */
	CHECK_EQ(neighbour(202) ? neighbour(202)->bytes_before : 1, 0);
	CHECK_EQ(stranger->pool_unused, EVIDENCE_UNKNOWN);
	CHECK(!strcmp(stranger->name, "stranger"));
	CHECK_EQ(part("context"), 10);
	CHECK(w.device->explained);
	CHECK_EQ(w.device->unexplained, 0);
	end();
}

/* In a container, where numbers of the driver's are taken for ours only from when we are known to use devices: until
 * then it lists somebody with our number, who is a neighbour only if there is room for two. */
TEST(who_has_our_number_may_be_us)
{
	static const struct {
		uint32_t said;
		uint64_t mib;
		size_t neighbours;
	} rows[] = { { 100, 570, 0 }, { 300, 570, 1 }, { 100, 300, 1 } };
	for (size_t i = 0; i < 3; i++) {
		begin();
		fill_pool();
		now();
		unsigned somebody = on_device(0, rows[i].said, "", rows[i].mib);
		device_has(100);
		w.now += SECOND;
		driver_refuses(400, 100, 0);
		pool_gives_up(390);
		w.now += SECOND;
		now();
		synth_gone(&w.samples, somebody);
		on_device(100, 100, "synth", 570);
		make();
		CHECK(w.device->neighbours_known && w.device->self_listed);
		CHECK_EQ(w.device->neighbours.count, rows[i].neighbours);
		CHECK_EQ(part("context"), 10);
		end();
	}
}

/* ---- the host -------------------------------------------------------------------------------------------- */

TEST(what_the_machine_says)
{
	begin();
	uint64_t a = alloc(90 * MIB);
	alloc(40 * MIB);
	release(a);
	synth_map(w.p, 0, w.now += 1000000, 1ull << 45, 20 * MIB,
		  (struct mt_ext_map){ .prot = 3, .flags = MT_MAP_ANON }, 0);
	w.now += SECOND;
	now();
	process(140);
	machine();
	make();
	CHECK(w.host->sampled && !w.host->killed && !w.host->growth.count);
	CHECK_EQ(w.host->memory, 1000 * MIB);
	CHECK_EQ(w.host->limit, EVIDENCE_UNKNOWN);
	CHECK_EQ(w.host->available_min, 300 * MIB);
	CHECK_EQ(w.host->swap_total, 100 * MIB);
	CHECK_EQ(w.host->swap_start, 30 * MIB);
	CHECK_EQ(w.host->swap_peak, 30 * MIB);
	CHECK_EQ(w.host->shm_total, 500 * MIB);
	CHECK_EQ(w.host->shm_used, 60 * MIB);
	CHECK_EQ(w.host->rss_peak, 140 * MIB);
	CHECK_EQ(w.host->anon, 400 * MIB);
	CHECK_EQ(w.host->file, (150 - 40) * MIB);
	CHECK_EQ(w.host->live_peak, 130 * MIB);
	CHECK_EQ(w.host->rss_anon, 140 * MIB);
	CHECK_EQ(w.host->live, 60 * MIB);
	CHECK_EQ(w.host->kept, 80 * MIB); /* 90 were freed, and so much is resident beside what is live */
	CHECK_EQ(w.host->oom_kills, 0);
	CHECK_EQ(w.host->failed_bytes, 0);
	end();
}

/* What allocators keep is no more than what was freed, by whole MiB of addresses: the rest never was an allocator's. */
TEST(allocators_keep_what_was_freed)
{
	static const struct {
		uint64_t anon, live, kept;
	} rows[] = { { 50, 50, 0 }, { 100, 60, 40 }, { 200, 60, 90 } };
	for (size_t i = 0; i < 3; i++) {
		begin();
		uint64_t a = alloc(90 * MIB);
		alloc(60 * MIB);
		release(a);
		w.now += SECOND;
		now();
		process(rows[i].anon);
		machine();
		make();
		CHECK_EQ(w.host->rss_anon, rows[i].anon * MIB);
		CHECK_EQ(w.host->live, rows[i].live * MIB);
		CHECK(w.host->kept >= rows[i].kept * MIB && w.host->kept <= (rows[i].kept + 2) * MIB);
		end();
	}
}

TEST(without_samples_little_is_known)
{
	begin();
	alloc(60 * MIB);
	synth_fail(w.p, 0, w.now += 1000, 1000 * MIB, 0);
	synth_fail(w.p, 0, w.now += 1000, 700 * MIB, synth_node(w.p, 0, 0x77));
	make();
	CHECK(!w.host->sampled);
	CHECK_EQ(w.host->rss_anon, EVIDENCE_UNKNOWN);
	CHECK_EQ(w.host->memory, EVIDENCE_UNKNOWN);
	CHECK_EQ(w.host->live_peak, 60 * MIB);
	CHECK_EQ(w.host->failed_bytes, 1000 * MIB);
	end();
	begin(); /* of the machine alone: of no process */
	alloc(60 * MIB);
	now();
	machine();
	make();
	CHECK(w.host->sampled);
	CHECK_EQ(w.host->kept, EVIDENCE_UNKNOWN);
	end();
}

/* A cgroup can drop its pages of files: its worst moment is when it had most of the rest, though it was fuller later.
 * */
TEST(the_worst_moment_of_a_cgroup)
{
	begin();
	alloc(60 * MIB);
	now();
	process(80);
	unsigned s = group(500, 300, 100);
	machine();
	w.now += SECOND;
	now();
	FIGURES(s, { MT_CGROUP_current, 280 * MIB }, { MT_CGROUP_file, 30 * MIB });
	w.now += SECOND;
	now();
	FIGURES(s, { MT_CGROUP_current, 490 * MIB }, { MT_CGROUP_file, 260 * MIB });
	w.now += SECOND;
	now();
	FIGURES(s, { MT_CGROUP_current, 480 * MIB }); /* looked at by halves */
	make();
	CHECK_EQ(w.host->limit, 500 * MIB);
	CHECK_EQ(w.host->anon, 250 * MIB);
	CHECK_EQ(w.host->file, 30 * MIB);
	end();
}

TEST(a_process_that_the_oom_killer_killed)
{
	begin();
	alloc(60 * MIB);
	now();
	process(80);
	unsigned s = group(500, 300, 100);
	FIGURES(s, { MT_CGROUP_oom_kills, 1 });
	machine();
	w.now += SECOND;
	now();
	FIGURES(s, { MT_CGROUP_oom_kills, 2 });
	w.p->info.exit_kind = MT_EXIT_SIGNAL;
	w.p->info.exit_code = 9;
	w.p->info.end_ticks = w.now;
	make();
	CHECK(w.host->killed);
	CHECK_EQ(w.host->oom_kills, 1);
	end();
}

/* ---- copies ---------------------------------------------------------------------------------------------- */

/* A model of twelve blocks that two functions load, on the host or on the device. */
static void load(const char *who, bool on_device)
{
	synth_code(w.p, ++w.codes, "/home/u/train.py", who);
	uint32_t stack = synth_frame(w.p, 0, w.codes, 7 * w.codes);
	for (uint64_t i = 0; i < 12; i++) {
		uint64_t bytes = (i % 3 + 1) * MIB + i * 4096;
		if (on_device) {
			w.next_addr += bytes;
			dev(MT_DEVICE_ALLOC, MT_CLASS_POOL, w.next_addr, bytes, 0);
			w.p->slots[w.p->count - 2].event.node2 = stack;
		} else {
			alloc(bytes);
			synth_python(w.p, stack);
		}
	}
}

TEST(what_is_there_twice)
{
	for (int on_device = 0; on_device < 2; on_device++) {
		begin();
		driver_gives(w.next_addr, 100, 0);
		load("first", on_device);
		load("second", on_device);
		make();
		const struct evidence_copies *c = on_device ? w.device->copies.items : w.host->copies.items;
		CHECK_EQ(w.device->copies.count, on_device);
		CHECK_EQ(w.host->copies.count, !on_device);
		CHECK(w.device->copies_known && w.host->copies_known);
		CHECK_EQ(c->bytes, 24 * MIB + 66 * 4096);
		CHECK_EQ(c->extra_bytes, 24 * MIB + 66 * 4096);
		CHECK_EQ(c->count, 2);
		CHECK_EQ(c->blocks, 12);
		CHECK(!c->cast);
		bool in_order = c->owners[0] && strstr(c->owners[0], "first");
		CHECK(in_order || (c->owners[0] && strstr(c->owners[0], "second")));
		CHECK(c->owners[1] && strstr(c->owners[1], in_order ? "train.py:14" : "train.py:7"));
		CHECK(!c->owners[2]);
		end();
	}
}

TEST_MAIN
