/* The host's ledger of machines made by hand: where each byte of their memory is was decided before. */
#include "analyzer/util/error.h"
#include "analyzer/diagnosis/ledger/host_memory.h"
#include "tests/lib/synth_samples.h"
#include "tests/unit/test.h"

#define MIB    (1ull << 20)
#define SECOND 1000000000ull

static struct {
	struct synth synth;
	struct synth_samples samples;
	struct synth_process *p;
	uint64_t now, next_addr;
	uint32_t node;
	unsigned machine, process; /* subjects */
	struct reader *reader;
	struct model *model;
	struct host_memory *system;
	const struct host_ledger *ledger;
	const struct host_facts *facts;
} w;

static uint64_t alloc(struct synth_process *p, uint64_t bytes)
{
	w.next_addr += 1 << 30;
	synth_alloc(p, 0, w.now += 1000, w.next_addr, bytes, 0);
	return w.next_addr;
}

static void map(struct synth_process *p, uint64_t bytes)
{
	w.next_addr += 1 << 30;
	synth_map(p, 0, w.now += 1000, w.next_addr, bytes, (struct mt_ext_map){ .prot = 3, .flags = MT_MAP_ANON }, 0);
}

/* What happens then happens half a second before what is sampled then. */
static void wait_seconds(uint64_t s)
{
	synth_wait(&w.samples, s * SECOND);
	w.now = SYNTH_START + w.samples.waited_ns - SECOND / 2;
}

static unsigned traced(const struct synth_process *p)
{
	return synth_subject(&w.samples, MT_SUBJECT_PROCESS, p->info.pid, p->info.boot_start, 1, "synth", "/job");
}

/* A machine of 1000 MiB with one process that has allocated 80 MiB, and nothing sampled yet. */
static void begin(void)
{
	memset(&w, 0, sizeof(w));
	w.next_addr = 1ull << 32;
	synth_begin(&w.synth);
	w.p = synth_process(&w.synth, 100, 0);
	w.process = traced(w.p);
	w.machine = synth_subject(&w.samples, MT_SUBJECT_MACHINE, 0, 0, 0, "", "");
	wait_seconds(1);
	alloc(w.p, 80 * MIB);
}

#define FIGURES(subject, ...) SYNTH_FIGURES(&w.samples, subject, __VA_ARGS__)

/* 200 MiB are free, 88 the kernel's, 400 private, 40 shared, 110 pages of files, 14 buffers and pages that are in swap,
 * too; of the remaining 148 it doesn't say. */
static void sample_machine(void)
{
	FIGURES(w.machine, { MT_MACHINE_total, 1000 * MIB }, { MT_MACHINE_free, 200 * MIB },
		{ MT_MACHINE_available, 300 * MIB }, { MT_MACHINE_buffers, 5 * MIB }, { MT_MACHINE_cached, 150 * MIB },
		{ MT_MACHINE_shmem, 40 * MIB }, { MT_MACHINE_anon, 400 * MIB },
		{ MT_MACHINE_slab_reclaimable, 7 * MIB }, { MT_MACHINE_slab_unreclaimable, 11 * MIB },
		{ MT_MACHINE_kernel_stacks, 2 * MIB }, { MT_MACHINE_page_tables, 3 * MIB },
		{ MT_MACHINE_swap_total, 100 * MIB }, { MT_MACHINE_swap_free, 70 * MIB },
		{ MT_MACHINE_swap_cached, 9 * MIB }, { MT_MACHINE_huge_pages, 64 * MIB }, { MT_MACHINE_per_cpu, MIB },
		{ MT_MACHINE_swapped_out, 30 * MIB }, { MT_MACHINE_oom_kills, 5 }, { MT_MACHINE_psi_some, SECOND });
}

/* Whom nobody else shares a page with. */
static void sample_process(unsigned subject, uint64_t anon, uint64_t file, uint64_t shmem)
{
	FIGURES(subject, { MT_PROCESS_rss, (anon + file + shmem) * MIB }, { MT_PROCESS_rss_anon, anon * MIB },
		{ MT_PROCESS_rss_file, file * MIB }, { MT_PROCESS_rss_shmem, shmem * MIB }, { MT_PROCESS_swap, 0 });
}

/* What smaps_rollup says of it: its parts of what it shares with others. */
static void roll_up(unsigned subject, uint64_t anonymous, uint64_t pss_anon, uint64_t pss_file, uint64_t pss_shmem,
		    uint64_t file, uint64_t shmem)
{
	FIGURES(subject, { MT_PROCESS_pss, (pss_anon + pss_file + pss_shmem) * MIB },
		{ MT_PROCESS_pss_anon, pss_anon * MIB }, { MT_PROCESS_pss_file, pss_file * MIB },
		{ MT_PROCESS_pss_shmem, pss_shmem * MIB }, { MT_PROCESS_shared_clean, file * MIB / 2 },
		{ MT_PROCESS_shared_dirty, shmem * MIB }, { MT_PROCESS_private_clean, file * MIB / 4 },
		{ MT_PROCESS_private_dirty, file * MIB / 4 + anonymous * MIB },
		{ MT_PROCESS_anonymous, anonymous * MIB }, { MT_PROCESS_swap_pss, 0 });
}

static const struct host_process *settle(void)
{
	const char *dir = w.synth.dir;
	for (struct synth_process *p = w.synth.processes; p; p = p->next) {
		if (!p->info.exit_kind) {
			p->info.exit_kind = MT_EXIT_CODE;
			p->info.end_ticks = w.now + SECOND;
		}
		synth_write(p, SYNTH_BLOCKS);
	}
	synth_write_samples(&w.samples, &w.synth);
	struct model_query q = MODEL_QUERY_ALL;
	int e = reader_open(&w.reader, &dir, 1, 0);
	if (!e)
		e = host_memory_open(&w.system, w.reader);
	if (!e) {
		host_memory_ask(w.system, &q);
		e = model_run(&w.model, w.reader, &q);
	}
	if (!e)
		e = host_memory_settle(w.system, w.model);
	if (e) {
		printf("# %s %s\n", error_get()->file, error_get()->why);
		abort();
	}
	const struct host_ledger *l = w.ledger = host_ledger(w.system);
	w.facts = host_facts(w.system);
	CHECK_EQ(l->live + l->kept + l->pinned + l->mapped_files + l->shared + l->shm_files + l->other_processes +
			 l->page_cache + l->kernel + l->free + (uint64_t)l->unexplained,
		 l->total);
	return host_process(w.system, 0);
}

static void end(void)
{
	model_free(w.model);
	host_memory_close(w.system);
	reader_close(w.reader);
	synth_end(&w.synth);
}

#define LEDGER(row, mib) CHECK_EQ(w.ledger->row, (mib) * (int64_t)MIB)

TEST(every_byte_of_a_machine_has_a_row)
{
	begin();
	sample_process(w.process, 100, 20, 10);
	sample_machine();
	const struct host_process *p = settle();
	CHECK(w.ledger->known && !w.ledger->cgroup);
	CHECK_EQ(w.ledger->ns, SECOND);
	LEDGER(total, 1000);
	LEDGER(live, 80);
	LEDGER(kept, 20);
	LEDGER(pinned, 0);
	LEDGER(mapped_files, 20);
	LEDGER(shared, 10);
	LEDGER(shm_files, 30);
	LEDGER(other_processes, 300);
	LEDGER(page_cache, 150 - 40 - 20 + 5 + 9);
	LEDGER(kernel, 7 + 11 + 2 + 3 + 64 + 1);
	LEDGER(free, 200);
	LEDGER(unexplained, 148);
	LEDGER(not_resident, 0);
	LEDGER(copied, 0);
	LEDGER(live_error, 0);
	CHECK(w.ledger->estimated); /* nobody looked whom it shares pages with */
	CHECK_EQ(p->rss, 130 * MIB);
	CHECK_EQ(p->anon, 100 * MIB);
	CHECK_EQ(p->file, 20 * MIB);
	CHECK_EQ(p->shmem, 10 * MIB);
	CHECK_EQ(p->live_heap, 80 * MIB);
	CHECK_EQ(p->pss, HOST_KILL_UNKNOWN);
	CHECK_EQ(p->size, HOST_KILL_UNKNOWN);
	end();
}

/* Two processes that have 60 MiB of private pages in common since a fork, 16 of a library and 8 of shared memory: each
 * page is there once, however many have it. */
TEST(what_processes_share_is_there_once)
{
	begin();
	struct synth_process *other = synth_process(&w.synth, 101, 0);
	alloc(other, 10 * MIB);
	unsigned second = traced(other);
	sample_process(w.process, 100, 20, 10);
	roll_up(w.process, 100, 40 + 30, 4 + 8, 2 + 4, 20, 10);
	sample_process(second, 80, 16, 8);
	roll_up(second, 80, 20 + 30, 8, 4, 16, 8);
	sample_machine();
	const struct host_process *p = settle();
	LEDGER(live, 90);
	LEDGER(kept, 100 + 80 - 60 - 90);
	LEDGER(mapped_files, 20);
	LEDGER(shared, 10);
	LEDGER(other_processes, 400 - 120);
	CHECK(!w.ledger->estimated);
	CHECK_EQ(p->pss, (70 + 12 + 6) * MIB);
	CHECK_EQ(p->private_dirty, 105 * MIB);
	end();
}

/* The latest look at who shares what is a while old: what is private is the same part of what there is now, or what it
 * was then and what came since; files likewise. */
TEST(shares_of_before_are_estimates)
{
	begin();
	sample_process(w.process, 90, 20, 10);
	roll_up(w.process, 90, 70, 12, 6, 20, 10);
	sample_machine();
	wait_seconds(2);
	sample_process(w.process, 100, 10, 10);
	sample_machine();
	wait_seconds(1);
	sample_process(w.process, 10, 10, 10); /* the fullest moment was before */
	sample_machine();
	const struct host_process *p = settle();
	CHECK_EQ(w.ledger->ns, 3 * SECOND);
	CHECK_EQ(w.ledger->live + w.ledger->kept, (70 + 10) * MIB);
	LEDGER(mapped_files, 6); /* 12 of 20 */
	LEDGER(shared, 6);
	CHECK(w.ledger->estimated);
	CHECK_EQ(p->pss, 88 * MIB);
	end();
}

/* So much shared memory came since that the earlier look can't say how much of files there was. */
TEST(shares_of_before_that_do_not_fit_are_upper_bounds)
{
	begin();
	sample_process(w.process, 90, 20, 10);
	roll_up(w.process, 90, 70, 12, 6, 20, 10);
	sample_machine();
	wait_seconds(2);
	sample_process(w.process, 100, 16, 40);
	sample_machine();
	settle();
	LEDGER(mapped_files, 12);
	LEDGER(shared, 6);
	end();
}

TEST(a_process_own_figures_of_long_ago_say_nothing)
{
	for (unsigned wait = 10; wait <= 11; wait++) {
		begin();
		sample_process(w.process, 90, 20, 10);
		roll_up(w.process, 90, 70, 12, 6, 20, 10);
		sample_machine();
		wait_seconds(wait);
		sample_process(w.process, 100, 10, 4);
		sample_machine();
		const struct host_process *p = settle();
		CHECK_EQ(p->pss, wait > 10 ? HOST_KILL_UNKNOWN : 88 * MIB);
		CHECK_EQ(p->private_dirty, wait > 10 ? HOST_KILL_UNKNOWN : 95 * MIB);
		end();
	}
}

/* A share can't be more than there is: in a new look at few figures, or of a kernel that counts them at different
 * moments. */
TEST(shares_are_no_more_than_there_is)
{
	begin();
	sample_process(w.process, 60, 8, 3);
	roll_up(w.process, 60, 70, 9, 5, 20, 10);
	sample_machine();
	settle();
	CHECK_EQ(w.ledger->live + w.ledger->kept, 60 * MIB);
	LEDGER(mapped_files, 8);
	LEDGER(shared, 3);
	end();
	begin();
	sample_process(w.process, 450, 120, 50); /* ... or on the machine */
	sample_machine();
	settle();
	LEDGER(live, 80);
	LEDGER(kept, 320);
	LEDGER(mapped_files, 110);
	LEDGER(shared, 40);
	LEDGER(shm_files, 0);
	LEDGER(other_processes, 0);
	LEDGER(page_cache, 5 + 9);
	end();
}

/* 64 MiB were mapped, of which 12 are in memory and 4 swapped out. */
static unsigned large_mapping(void)
{
	map(w.p, 64 * MIB);
	unsigned mapping = synth_subject(&w.samples, MT_SUBJECT_MAPPING, 100, 100, w.next_addr, "[anon]", "");
	FIGURES(mapping, { MT_MAPPING_size, 64 * MIB }, { MT_MAPPING_rss, 12 * MIB }, { MT_MAPPING_swap, 4 * MIB });
	return mapping;
}

TEST(what_was_never_touched_is_in_no_memory)
{
	begin();
	large_mapping();
	sample_process(w.process, 100, 0, 0);
	sample_machine();
	const struct host_process *p = settle();
	CHECK_EQ(p->live_map, 64 * MIB);
	CHECK_EQ(p->untouched, 48 * MIB);
	CHECK_EQ(p->untouched_error, 0);
	LEDGER(live, 80 + 64 - 48);
	LEDGER(kept, 4);
	LEDGER(not_resident, 48);
	LEDGER(live_error, 0);
	end();
}

/* Drivers map the whole address space of a device; files and what others have is of no heap; and what is gone is gone.
 * */
TEST(mappings_that_are_no_memory_of_its_own)
{
	begin();
	large_mapping();
	unsigned driver = synth_subject(&w.samples, MT_SUBJECT_MAPPING, 100, 100, 1, "[anon]", "");
	unsigned file = synth_subject(&w.samples, MT_SUBJECT_MAPPING, 100, 100, 2, "/lib/libfoo.so", "");
	unsigned other = synth_subject(&w.samples, MT_SUBJECT_MAPPING, 99, 99, 3, "[anon]", "");
	unsigned gone = synth_subject(&w.samples, MT_SUBJECT_MAPPING, 100, 100, 4, "[anon]", "");
	FIGURES(driver, { MT_MAPPING_size, 145 * MIB }, { MT_MAPPING_rss, 0 }); /* more than all that was allocated */
	FIGURES(file, { MT_MAPPING_size, 20 * MIB }, { MT_MAPPING_rss, 0 });
	FIGURES(other, { MT_MAPPING_size, 20 * MIB }, { MT_MAPPING_rss, 0 });
	FIGURES(gone, { MT_MAPPING_size, 20 * MIB }, { MT_MAPPING_rss, 0 });
	synth_gone(&w.samples, gone);
	sample_process(w.process, 100, 0, 0);
	sample_machine();
	CHECK_EQ(settle()->untouched, 48 * MIB);
	end();
}

/* Of a mapping that the kernel has merged with another, and of one that was looked at only later, nothing is known. */
TEST(mappings_that_were_not_there_to_be_looked_at)
{
	begin();
	map(w.p, 20 * MIB);
	unsigned merged = synth_subject(&w.samples, MT_SUBJECT_MAPPING, 100, 100, w.next_addr, "[anon]", "");
	FIGURES(merged, { MT_MAPPING_size, 20 * MIB }, { MT_MAPPING_rss, 0 });
	synth_gone(&w.samples, merged);
	map(w.p, 30 * MIB);
	unsigned later = synth_subject(&w.samples, MT_SUBJECT_MAPPING, 100, 100, w.next_addr, "[anon]", "");
	sample_process(w.process, 130, 0, 0);
	sample_machine();
	wait_seconds(1);
	FIGURES(later, { MT_MAPPING_size, 30 * MIB }, { MT_MAPPING_rss, 0 });
	sample_process(w.process, 40, 0, 0);
	sample_machine();
	const struct host_process *p = settle();
	CHECK_EQ(w.ledger->ns, SECOND);
	CHECK_EQ(p->untouched, 0);
	LEDGER(live, 130);
	end();
}

/* Each in its own process and at its own addresses, in whatever order they were looked at. */
TEST(what_was_never_touched_is_told_by_process)
{
	begin();
	struct synth_process *other = synth_process(&w.synth, 101, 0);
	static const struct {
		uint64_t addr, mib, there;
		uint32_t pid;
	} rows[] = {
		{ 1ull << 45, 32, 30, 100 },
		{ 1ull << 44, 16, 1, 101 },
		{ 1ull << 44, 64, 16, 100 },
		{ 1ull << 46, 8, 8, 101 },
	};
	unsigned second = traced(other);
	for (size_t i = 0; i < 4; i++) {
		synth_map(rows[i].pid == 100 ? w.p : other, 0, w.now += 1000, rows[i].addr, rows[i].mib * MIB,
			  (struct mt_ext_map){ .prot = 3, .flags = MT_MAP_ANON }, 0);
		unsigned s = synth_subject(&w.samples, MT_SUBJECT_MAPPING, rows[i].pid, rows[i].pid, rows[i].addr,
					   "[anon:some name]", "");
		FIGURES(s, { MT_MAPPING_size, rows[i].mib * MIB }, { MT_MAPPING_rss, rows[i].there * MIB });
	}
	sample_process(w.process, 126, 0, 0);
	sample_process(second, 9, 0, 0);
	sample_machine();
	CHECK_EQ(settle()->untouched, (64 - 16 + 32 - 30) * MIB);
	CHECK_EQ(host_process(w.system, 1)->untouched, 15 * MIB);
	LEDGER(live, 80 + 16 + 30 + 1 + 8);
	LEDGER(kept, 0);
	end();
}

/* Two neighbours that were one mapping when it was looked at first: 10 of both were in memory then, 5 of the second
 * later. */
TEST(mappings_that_were_one_count_once)
{
	begin();
	for (uint64_t i = 0; i < 2; i++)
		synth_map(w.p, 0, w.now += 1000, (1ull << 45) + i * 32 * MIB, 32 * MIB,
			  (struct mt_ext_map){ .prot = 3, .flags = MT_MAP_ANON }, 0);
	unsigned both = synth_subject(&w.samples, MT_SUBJECT_MAPPING, 100, 100, 1ull << 45, "[anon]", "");
	unsigned second =
		synth_subject(&w.samples, MT_SUBJECT_MAPPING, 100, 100, (1ull << 45) + 32 * MIB, "[anon]", "");
	FIGURES(both, { MT_MAPPING_size, 64 * MIB }, { MT_MAPPING_rss, 10 * MIB });
	FIGURES(second, { MT_MAPPING_size, 32 * MIB }, { MT_MAPPING_rss, 5 * MIB });
	sample_process(w.process, 90, 0, 0);
	sample_machine();
	const struct host_process *p = settle();
	CHECK(p->untouched <= 59 * MIB && p->untouched >= 49 * MIB);
	CHECK(p->untouched - p->untouched_error <= 49 * MIB);
	end();
}

/* Since large mappings were looked at 15 MiB became resident and 9 were allocated: 6 of the mapping were touched, as
 * much as 15 if what is new was not. */
TEST(what_was_touched_since_is_known_within_an_error)
{
	begin();
	large_mapping();
	sample_process(w.process, 100, 0, 0);
	sample_machine();
	wait_seconds(2);
	alloc(w.p, 9 * MIB);
	wait_seconds(1);
	sample_process(w.process, 115, 0, 0);
	sample_machine();
	const struct host_process *p = settle();
	CHECK_EQ(p->untouched, (48 - 6) * MIB);
	CHECK_EQ(p->untouched_error, 9 * MIB);
	LEDGER(live, 80 + 9 + 64 - 42);
	LEDGER(kept, 115 - 111);
	LEDGER(live_error, 9);
	end();
}

/* 120 MiB were allocated, 30 are in memory. Whatever it is that was not touched: live is what there is. */
TEST(no_more_is_live_in_memory_than_is_there)
{
	begin();
	alloc(w.p, 40 * MIB);
	sample_process(w.process, 30, 0, 0);
	sample_machine();
	const struct host_process *p = settle();
	CHECK_EQ(p->untouched, 90 * MIB);
	LEDGER(live, 30);
	LEDGER(kept, 0);
	LEDGER(not_resident, 90);
	end();
}

TEST(swapped_out_memory_is_not_in_the_sum)
{
	begin();
	sample_process(w.process, 60, 0, 0);
	FIGURES(w.process, { MT_PROCESS_swap, 25 * MIB }, { MT_PROCESS_size, 500 * MIB });
	sample_machine();
	const struct host_process *p = settle();
	LEDGER(live, 60);
	LEDGER(swapped, 25);
	LEDGER(not_resident, 20);
	CHECK_EQ(p->swap, 25 * MIB);
	CHECK_EQ(p->size, 500 * MIB);
	end();
}

/* Of 500 MiB of addresses 64 and a file of 7 were mapped by hooks that are seen; the rest by the loader. */
TEST(what_no_hook_mapped_is_told)
{
	for (uint64_t size = 500; size; size -= 250) {
		begin();
		map(w.p, 64 * MIB);
		synth_map(w.p, 0, w.now += 1000, 1ull << 45, 7 * MIB, (struct mt_ext_map){ .prot = 1, .file = 1 }, 0);
		sample_process(w.process, 200, 0, 0);
		FIGURES(w.process, { MT_PROCESS_size, size * MIB });
		sample_machine();
		CHECK_EQ(settle()->unseen_map, (size - 71) * MIB);
		end();
	}
}

/* A child that was forked inherits 81 MiB, allocates 8 and maps 2. In the end, when memory is less full, it frees what
 * it inherited. */
static void forked(uint64_t private_dirty, uint64_t pinned)
{
	begin();
	uint64_t inherited = w.next_addr;
	map(w.p, MIB);
	struct synth_process *child = synth_fork(w.p, 101, w.now += 1000);
	w.now += 1000000;
	alloc(child, 8 * MIB);
	map(child, 2 * MIB);
	synth_device(w.p, 1, MT_BACKEND_CUDA, "GPU-a", 1 << 30);
	synth_dev(w.p, 0, w.now += 1000, MT_DEVICE_ALLOC, MT_CLASS_PINNED, 1, 0x10000, pinned * MIB, 0);
	unsigned subject = traced(child);
	sample_process(w.process, 80, 0, 0);
	sample_process(subject, 95, 0, 0);
	FIGURES(subject, { MT_PROCESS_private_dirty, private_dirty * MIB });
	sample_machine();
	wait_seconds(1);
	synth_plain(child, 0, w.now, MT_FREE, inherited);
	sample_process(subject, 15, 0, 0);
	sample_machine();
	settle();
	CHECK_EQ(w.ledger->ns, SECOND);
}

TEST(what_a_child_writes_to_is_copied)
{
	forked(40, 0); /* 30 of them are of what it inherited */
	LEDGER(copied, 30);
	end();
	forked(9, 0);
	LEDGER(copied, 0);
	end();
	forked(200, 0); /* no more than it inherited */
	LEDGER(copied, 81);
	end();
}

/* A driver's pinned memory: in nobody's account where the machine has that much more in use than it can say, else in
 * the process's own. */
TEST(pinned_memory_is_outside_if_there_is_room)
{
	for (uint64_t pinned = 148; pinned <= 149; pinned++) {
		begin();
		synth_device(w.p, 1, MT_BACKEND_CUDA, "GPU-a", 1 << 30);
		synth_dev(w.p, 0, w.now += 1000, MT_DEVICE_ALLOC, MT_CLASS_PINNED, 1, 0x10000, pinned * MIB, 0);
		sample_process(w.process, 390, 20, 10);
		sample_machine();
		settle();
		LEDGER(pinned, pinned);
		LEDGER(live, 80);
		LEDGER(kept, pinned == 148 ? 310 : 310 - 149);
		LEDGER(unexplained, pinned == 148 ? 0 : 148);
		end();
	}
}

/* What a child copied is no driver's: of 85 MiB that are kept 30 are the child's, so that 55 may be pinned. */
TEST(pinned_memory_is_no_copy_of_a_childs)
{
	forked(40, 300);
	LEDGER(copied, 30);
	LEDGER(pinned, 55);
	LEDGER(kept, 30);
	end();
}

/* ---- control groups -------------------------------------------------------------------------------------- */

static unsigned sample_group(const char *name, uint64_t limit, uint64_t current)
{
	unsigned group = synth_subject(&w.samples, MT_SUBJECT_CGROUP, 2, 0, 0, name, name);
	FIGURES(group, { MT_CGROUP_limit, limit * MIB }, { MT_CGROUP_current, current * MIB },
		{ MT_CGROUP_peak, 260 * MIB }, { MT_CGROUP_anon, 130 * MIB }, { MT_CGROUP_file, 50 * MIB },
		{ MT_CGROUP_shmem, 12 * MIB }, { MT_CGROUP_kernel, 3 * MIB }, { MT_CGROUP_oom_kills, 7 });
	return group;
}

TEST(every_byte_of_a_cgroup_has_a_row)
{
	begin();
	sample_process(w.process, 100, 20, 10);
	sample_group("/job", 256, 200);
	sample_machine();
	settle();
	CHECK(w.ledger->cgroup && !strcmp(w.ledger->cgroup, "/job"));
	LEDGER(total, 256);
	LEDGER(live, 80);
	LEDGER(kept, 20);
	LEDGER(other_processes, 30);
	LEDGER(mapped_files, 20);
	LEDGER(page_cache, 30);
	LEDGER(shared, 10);
	LEDGER(shm_files, 2);
	LEDGER(kernel, 3);
	LEDGER(free, 56);
	LEDGER(unexplained, 200 - 130 - 50 - 12 - 3);
	CHECK_EQ(w.facts->limit, 256 * MIB);
	CHECK_EQ(w.facts->cgroup_most, 150 * MIB); /* all but pages of files */
	CHECK_EQ(w.facts->cgroup_file, 50 * MIB);
	CHECK_EQ(w.facts->cgroup_most_ns, SECOND);
	end();
}

/* Pinned memory is not charged to it: it is not the cgroup's at all. */
TEST(a_cgroup_has_no_pinned_memory)
{
	begin();
	synth_device(w.p, 1, MT_BACKEND_CUDA, "GPU-a", 1 << 30);
	synth_dev(w.p, 0, w.now += 1000, MT_DEVICE_ALLOC, MT_CLASS_PINNED, 1, 0x10000, 100 * MIB, 0);
	sample_process(w.process, 100, 20, 10);
	sample_group("/job", 256, 200);
	sample_machine();
	settle();
	LEDGER(pinned, 0);
	LEDGER(kept, 20);
	LEDGER(unexplained, 5);
	end();
}

TEST(the_limit_that_is_met_first_is_the_one)
{
	begin();
	sample_process(w.process, 100, 20, 10);
	sample_group("/none", 0, 900);
	sample_group("/machine", 1000, 999); /* no less than the machine's own */
	sample_group("/wide", 600, 300);
	unsigned tight = sample_group("/tight", 256, 200);
	sample_group("/other", 500, 201);
	sample_machine();
	wait_seconds(1);
	FIGURES(tight, { MT_CGROUP_oom_kills, 9 });
	settle();
	CHECK(w.ledger->cgroup && !strcmp(w.ledger->cgroup, "/tight"));
	CHECK_EQ(w.facts->oom_kills, 2);
	end();
}

TEST(a_cgroup_that_is_over_its_limit_has_nothing_free)
{
	begin();
	sample_process(w.process, 140, 60, 20);
	sample_group("/job", 190, 200);
	sample_machine();
	settle();
	LEDGER(free, 0);
	LEDGER(live, 80);
	LEDGER(kept, 50);
	LEDGER(other_processes, 0);
	LEDGER(mapped_files, 50);
	LEDGER(page_cache, 0);
	LEDGER(shared, 12);
	LEDGER(unexplained, -5);
	end();
}

/* ---- others, counters ------------------------------------------------------------------------------------ */

TEST(others_are_told_largest_first)
{
	begin();
	static const uint64_t rss[] = { 20, 50, 30, 50 };
	for (uint32_t i = 0; i < 4; i++) {
		unsigned subject = synth_subject(&w.samples, MT_SUBJECT_PROCESS, 200 + i, 1, 0, "other", "/");
		FIGURES(subject, { MT_PROCESS_rss, rss[i] * MIB }, { MT_PROCESS_swap, i * MIB });
		if (i == 3)
			synth_gone(&w.samples, subject);
	}
	sample_process(w.process, 100, 20, 10);
	sample_machine();
	settle();
	CHECK_EQ(host_others(w.system), 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct host_other *o = host_other(w.system, i);
		CHECK_EQ(o->rss, (i == 0 ? 50 : i == 1 ? 30 : 20) * MIB);
		CHECK_EQ(o->pid, i == 0 ? 201u : i == 1 ? 202u : 200u);
		CHECK_EQ(o->swap, (o->pid - 200) * MIB);
		CHECK(!strcmp(o->name, "other"));
	}
	end();
}

/* A process that had ended is not in the ledger of a later moment, seen to have gone or not. */
TEST(who_had_ended_has_nothing)
{
	for (int seen = 0; seen < 2; seen++) {
		begin();
		struct synth_process *old = synth_process(&w.synth, 90, 0);
		unsigned subject = traced(old);
		alloc(old, 10 * MIB);
		old->info.exit_kind = MT_EXIT_CODE;
		old->info.end_ticks = w.now + 1000000;
		sample_process(subject, 20, 20, 10);
		if (seen)
			synth_gone(&w.samples, subject);
		wait_seconds(2);
		sample_process(w.process, 100, 0, 0);
		sample_machine();
		settle();
		LEDGER(live, 80);
		LEDGER(kept, 20);
		LEDGER(mapped_files, 0);
		LEDGER(other_processes, 300);
		end();
	}
}

/* What was sampled first when the fullest moment was over is no part of it, whatever its trace says. */
TEST(who_was_not_sampled_yet_has_nothing)
{
	begin();
	struct synth_process *second = synth_process(&w.synth, 101, 0);
	alloc(second, 10 * MIB);
	unsigned subject = traced(second);
	sample_process(w.process, 100, 0, 0);
	sample_machine();
	wait_seconds(2);
	sample_process(w.process, 50, 0, 0);
	sample_process(subject, 20, 0, 0);
	sample_machine();
	settle();
	CHECK_EQ(w.ledger->ns, SECOND);
	LEDGER(live, 80);
	LEDGER(kept, 20);
	end();
}

/* A second process: sampled before the fullest moment and still there, or then, after its last event. */
TEST(who_was_still_there_has_what_it_had)
{
	for (int killed = 0; killed < 2; killed++) {
		begin();
		struct synth_process *second = synth_process(&w.synth, 101, 0);
		alloc(second, 10 * MIB);
		unsigned subject = traced(second);
		if (killed) {
			second->info.exit_kind = MT_EXIT_SIGNAL;
			second->info.exit_code = 11;
			second->info.end_ticks = w.now;
		}
		sample_process(subject, 20, 0, 0);
		sample_machine();
		wait_seconds(2);
		sample_process(w.process, 100, 0, 0);
		if (killed)
			sample_process(subject, 20, 0, 0);
		sample_machine();
		settle();
		CHECK_EQ(w.ledger->ns, 3 * SECOND);
		LEDGER(live, 90);
		LEDGER(kept, 30);
		LEDGER(other_processes, 280);
		end();
	}
}

/* It was sampled when the shim was not in it yet: what it had then was nobody's that is known. */
TEST(who_was_not_traced_yet_keeps_what_it_had)
{
	begin();
	struct synth_process *late = synth_process(&w.synth, 101, 0);
	late->info.start_ticks = late->info.start_mono_ns = SYNTH_START + 2 * SECOND;
	late->info.start_real_ns = SYNTH_REAL + 2 * SECOND;
	unsigned subject = traced(late);
	sample_process(w.process, 100, 0, 0);
	sample_process(subject, 20, 0, 0);
	sample_machine();
	wait_seconds(2);
	alloc(late, 10 * MIB);
	sample_process(w.process, 50, 0, 0);
	sample_machine();
	settle();
	LEDGER(live, 80);
	LEDGER(kept, 40);
	end();
}

TEST(counters_are_of_the_run)
{
	begin();
	sample_process(w.process, 100, 20, 10);
	unsigned group = sample_group("/job", 256, 200);
	sample_machine();
	wait_seconds(1);
	FIGURES(w.machine, { MT_MACHINE_swapped_out, 42 * MIB }, { MT_MACHINE_oom_kills, 9 },
		{ MT_MACHINE_psi_some, 4 * SECOND });
	FIGURES(group, { MT_CGROUP_oom_kills, 8 });
	settle();
	CHECK_EQ(w.facts->swapped_out, 12 * MIB);
	CHECK_EQ(w.facts->stalled_ns, 3 * SECOND);
	CHECK_EQ(w.facts->oom_kills, 1);
	end();
	begin(); /* without a group it is the machine's */
	sample_process(w.process, 100, 20, 10);
	sample_machine();
	wait_seconds(1);
	FIGURES(w.machine, { MT_MACHINE_oom_kills, 9 });
	settle();
	CHECK_EQ(w.facts->oom_kills, 4);
	end();
	begin(); /* a group without a limit counts all the same */
	sample_process(w.process, 100, 20, 10);
	group = sample_group("/job", 0, 200);
	sample_machine();
	wait_seconds(1);
	FIGURES(w.machine, { MT_MACHINE_oom_kills, 9 });
	FIGURES(group, { MT_CGROUP_oom_kills, 10 });
	settle();
	CHECK_EQ(w.facts->oom_kills, 3);
	CHECK_EQ(w.facts->limit, HOST_KILL_UNKNOWN);
	end();
}

TEST(kills_in_the_group_are_known_better_than_those_of_the_machine)
{
	begin();
	sample_process(w.process, 100, 20, 10);
	unsigned group = sample_group("/job", 256, 200);
	sample_machine();
	wait_seconds(1);
	FIGURES(w.machine, { MT_MACHINE_oom_kills, 9 });
	FIGURES(group, { MT_CGROUP_oom_kills, 8 });
	w.p->info.exit_kind = MT_EXIT_SIGNAL;
	w.p->info.exit_code = 9;
	w.p->info.end_ticks = w.now;
	CHECK_EQ(settle()->oom_killed, HOST_KILLED);
	CHECK_EQ(w.facts->oom_kills, 1);
	end();
}

/* Between the same two looks; version 2 says which hits were failures. */
TEST(a_kill_is_for_the_limit_if_that_was_hit)
{
	static const struct {
		uint64_t hits, ooms, kills;
		bool second, for_limit;
	} cases[] = {
		{ 5, 0, 8, false, true }, { 3, 0, 8, false, false }, { 5, 0, 7, false, false },
		{ 5, 1, 8, true, false }, { 5, 2, 8, true, true },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin();
		sample_process(w.process, 100, 20, 10);
		unsigned group = sample_group("/job", 256, 200);
		FIGURES(group, { MT_CGROUP_limit_hits, 2 });
		if (cases[i].second)
			FIGURES(group, { MT_CGROUP_ooms, 1 });
		sample_machine();
		wait_seconds(1);
		FIGURES(group, { MT_CGROUP_limit_hits, 3 }); /* by pages of files */
		wait_seconds(1);
		if (cases[i].second)
			FIGURES(group, { MT_CGROUP_limit_hits, cases[i].hits }, { MT_CGROUP_ooms, cases[i].ooms },
				{ MT_CGROUP_oom_kills, cases[i].kills });
		else
			FIGURES(group, { MT_CGROUP_limit_hits, cases[i].hits },
				{ MT_CGROUP_oom_kills, cases[i].kills });
		settle();
		CHECK_EQ(w.facts->cgroup_killed, cases[i].for_limit);
		end();
	}
}

/* Nobody in the group was killed, but one of ours on the machine may have been. */
TEST(kills_outside_the_group_count_if_one_of_ours_may_be_meant)
{
	for (int died = 0; died < 2; died++) {
		begin();
		sample_process(w.process, 100, 20, 10);
		sample_group("/job", 256, 200);
		sample_machine();
		wait_seconds(1);
		FIGURES(w.machine, { MT_MACHINE_oom_kills, 7 });
		if (died) {
			w.p->info.exit_kind = MT_EXIT_SIGNAL;
			w.p->info.exit_code = 9;
			w.p->info.end_ticks = w.now;
		}
		CHECK_EQ(settle()->oom_killed, died ? HOST_MAYBE_KILLED : HOST_NOT_KILLED);
		CHECK_EQ(w.facts->oom_kills, died ? 2 : 0);
		end();
	}
}

TEST(without_samples_nothing_is_known)
{
	begin();
	w.samples = (struct synth_samples){ 0 };
	settle();
	CHECK(!w.ledger->known && !w.facts->sampled);
	CHECK_EQ(w.facts->memory, HOST_KILL_UNKNOWN);
	end();
}

TEST(how_much_memory_there_is_the_session_knows_too)
{
	begin();
	w.samples = (struct synth_samples){ 0 };
	w.synth.session.memory_bytes = 1000 * MIB;
	synth_save_session(&w.synth);
	settle();
	CHECK(!w.facts->sampled);
	CHECK_EQ(w.facts->memory, 1000 * MIB);
	end();
	begin(); /* what was sampled is of the run itself */
	w.synth.session.memory_bytes = 2000 * MIB;
	synth_save_session(&w.synth);
	sample_machine();
	settle();
	CHECK_EQ(w.facts->memory, 1000 * MIB);
	end();
}

TEST_MAIN
