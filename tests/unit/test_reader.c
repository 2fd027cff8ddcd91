/* The reader: what it makes of whole traces, and that no damaged one brings it down. */
#include "analyzer/util/error.h"
#include "analyzer/model/model.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <time.h>

#define T(n) (SYNTH_START + (n))

/* Sanitizers make each attempt ten times as expensive: then a part of them is enough. */
#ifdef __SANITIZE_ADDRESS__
#define QUICK 1
#else
#define QUICK 0
#endif

/* ---- streams --------------------------------------------------------------------------------------------- */

struct seen {
	struct mt_event event;
	uint32_t ring, thread;
};

struct stream_of {
	struct seen *list;
	size_t count, room;
	int starts, exits, error;
};

static struct stream_of read_stream(struct reader *r, uint32_t pid)
{
	struct stream_of s = { 0 };
	struct reader_step step;
	while ((s.error = reader_next(r, &step)) > 0) {
		if (step.process->pid != pid)
			continue;
		s.starts += step.what == READER_START;
		s.exits += step.what == READER_EXIT;
		for (size_t i = 0; i < step.count; i++) {
			s.list = synth_grow(s.list, &s.room, s.count + 1, sizeof(*s.list));
			s.list[s.count++] = (struct seen){ step.slots[i], step.rings[i], step.threads[i] };
		}
	}
	return s;
}

static struct reader *open_synth(const struct synth *s, unsigned flags)
{
	struct reader *r;
	const char *dir = s->dir;
	int e = reader_open(&r, &dir, 1, flags);
	if (e)
		printf("# %s: offset %" PRId64 ": %s\n", error_get()->file, error_get()->offset, error_get()->why);
	CHECK_EQ(e, 0);
	return r;
}

static void check_same(const struct synth_process *p, const struct stream_of *s)
{
	CHECK_EQ(s->error, 0);
	CHECK_EQ(s->starts, 1);
	CHECK_EQ(s->exits, 1);
	CHECK_EQ(s->count, p->count);
	for (size_t i = 0; i < s->count && i < p->count && !test_failures; i++) {
		CHECK(!memcmp(&s->list[i].event, &p->slots[i].event, sizeof(struct mt_event)));
		CHECK_EQ(s->list[i].ring, p->slots[i].ring);
	}
}

/* Enough for several chunks in each of three rings, with mappings at every place in a chunk. */
static void fill(struct synth_process *p, int events)
{
	struct mt_ext_map ext = { .prot = 3, .flags = MT_MAP_ANON, .file = 7 };
	for (int i = 0; i < events; i++) {
		uint32_t ring = (uint32_t)(i / 7 % 3);
		uint64_t addr = 0x1000 + 64ull * (uint64_t)i, ticks = T(1000) + 100ull * (uint64_t)i;
		switch (i % 5) {
		case 0:
			synth_alloc(p, ring, ticks, addr, (uint64_t)i, 1);
			break;
		case 1:
			synth_plain(p, ring, ticks, MT_FREE, addr - 64);
			break;
		case 2:
			synth_map(p, ring, ticks, addr << 12, 4096, ext, 2);
			break;
		case 3:
			synth_unmap(p, ring, ticks, (addr - 64) << 12, 4096);
			break;
		case 4:
			synth_fail(p, ring, ticks, UINT64_MAX, 1);
			break;
		}
	}
}

TEST(every_form_gives_the_same_stream)
{
	for (int form = SYNTH_RAW; form <= SYNTH_BLOCKS; form++) {
		struct synth s;
		synth_begin(&s);
		struct synth_process *p = synth_process(&s, 100, 0);
		synth_node(p, 0, 0x1000);
		synth_node(p, 1, 0x2000);
		fill(p, 60000);
		p->block_slots = 7777;
		synth_write(p, (enum synth_form)form);
		struct reader *r = open_synth(&s, 0);
		struct stream_of got = read_stream(r, 100);
		check_same(p, &got);
		CHECK(reader_complete(r));
		CHECK_EQ(reader_notes(r), 0);
		CHECK_EQ(process_node(reader_process(r, 0), 2)->parent, 1);
		CHECK(process_node(reader_process(r, 0), 0) == NULL);
		CHECK(process_node(reader_process(r, 0), 3) == NULL);
		free(got.list);
		reader_close(r);
		synth_end(&s);
	}
}

TEST(rings_merge_by_time_and_frees_come_first)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *p = synth_process(&s, 100, 0);
	/* ring 0 has a time that runs backwards: position is order */
	synth_alloc(p, 0, T(50), 0x10, 1, 0);
	synth_alloc(p, 0, T(40), 0x20, 1, 0);
	synth_alloc(p, 0, T(60), 0x30, 1, 0);
	synth_plain(p, 1, T(60), MT_FREE, 0x10);
	synth_alloc(p, 2, T(45), 0x40, 1, 0);
	synth_write(p, SYNTH_RAW);
	struct reader *r = open_synth(&s, 0);
	struct stream_of got = read_stream(r, 100);
	static const uint64_t order[] = { 0x40, 0x10, 0x20, 0x10, 0x30 };
	CHECK_EQ(got.count, 5);
	for (size_t i = 0; i < got.count; i++)
		CHECK_EQ(got.list[i].event.addr, order[i]);
	for (size_t i = 1; i < got.count; i++)
		CHECK(got.list[i].event.ticks >= got.list[i - 1].event.ticks);
	free(got.list);
	reader_close(r);
	synth_end(&s);
}

TEST(threads_own_rings_in_turn)
{
	for (int form = SYNTH_RAW; form <= SYNTH_BLOCKS; form++) {
		struct synth s;
		synth_begin(&s);
		struct synth_process *p = synth_process(&s, 100, 0);
		p->block_slots = 2;
		synth_alloc(p, 0, T(1), 0x10, 1, 0);
		synth_plain(p, 0, T(2), MT_THREAD, 9);
		synth_alloc(p, 0, T(3), 0x20, 1, 0);
		synth_alloc(p, 1, T(4), 0x30, 1, 0);
		synth_alloc(p, 0, T(5), 0x40, 1, 0);
		synth_write(p, (enum synth_form)form);
		struct reader *r = open_synth(&s, 0);
		struct stream_of got = read_stream(r, 100);
		static const uint32_t threads[] = { 0, 9, 9, 1, 9 };
		for (size_t i = 0; i < got.count; i++)
			CHECK_EQ(got.list[i].thread, form == SYNTH_MIXED && i >= 4 ? 9 : threads[i]);
		CHECK_EQ(got.count, 5);
		free(got.list);
		reader_close(r);
		synth_end(&s);
	}
}

/* ---- facts ----------------------------------------------------------------------------------------------- */

static void add_module(struct synth_process *p, uint64_t start, uint32_t node_from, const char *path)
{
	struct mt_rec_module m = { .bias = start, .start = start, .end = start + 0x1000, .node_from = node_from };
	synth_text(p, MT_REC_MODULE, &m, sizeof(m), path);
}

static void drop_module(struct synth_process *p, uint64_t start, uint32_t node_until)
{
	struct mt_rec_unmodule gone = { .start = start, .node_until = node_until };
	synth_record(p, MT_REC_UNMODULE, SYNTH_START, &gone, sizeof(gone), NULL, 0);
}

static const char *module_path(const struct process *p, uint32_t node)
{
	const struct process_module *m = reader_module_of(p, node);
	return m ? m->path : "";
}

TEST(nodes_tell_which_module_was_there)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *p = synth_process(&s, 100, 0);
	add_module(p, 0x10000, 1, "/first.so");
	synth_node(p, 0, 0x10010);
	drop_module(p, 0x10000, 2);
	synth_node(p, 0, 0x10010);
	add_module(p, 0x10000, 3, "/second.so");
	synth_node(p, 0, 0x10010);
	synth_node(p, 0, 0x10000); /* a return address: what was called ends before it */
	struct synth_process *c = synth_fork(p, 101, T(100));
	uint32_t own = synth_node(c, 3, 0x10020);
	synth_write(p, SYNTH_RAW);
	synth_write(c, SYNTH_BLOCKS);
	struct reader *r = open_synth(&s, 0);
	const struct process *parent = reader_process(r, 0), *child = reader_process(r, 1);
	CHECK(!strcmp(module_path(parent, 1), "/first.so"));
	CHECK(!strcmp(module_path(parent, 2), ""));
	CHECK(!strcmp(module_path(parent, 3), "/second.so"));
	CHECK(!strcmp(module_path(parent, 4), ""));
	CHECK(child->parent == parent);
	CHECK(!strcmp(module_path(child, 3), "/second.so"));
	CHECK(!strcmp(module_path(child, own), "/second.so"));
	CHECK_EQ(process_node(child, own)->parent, 3);
	CHECK_EQ(process_node(child, 3)->pc, 0x10010);
	reader_close(r);
	synth_end(&s);
}

TEST(records_give_names)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *p = synth_process(&s, 100, 0);
	synth_record(p, MT_REC_ENV, SYNTH_START, NULL, 0, "A=1\0B=two", 10);
	synth_text(p, MT_REC_FILE, &(struct mt_rec_file){ 9, 0 }, 8, "/nine");
	synth_text(p, MT_REC_FILE, &(struct mt_rec_file){ 5, 0 }, 8, "/five");
	synth_text(p, MT_REC_THREAD, &(struct mt_rec_thread){ 3, 4711 }, 8, "three");
	synth_text(p, MT_REC_THREAD, &(struct mt_rec_thread){ 3, 0 }, 8, "renamed");
	synth_write(p, SYNTH_RAW);
	struct reader *r = open_synth(&s, 0);
	const struct process *q = reader_process(r, 0);
	CHECK(!strcmp(q->exe, "/bin/synth") && !strcmp(q->name, "synth"));
	CHECK_EQ(q->argc, 2);
	CHECK(q->argc == 2 && !strcmp(q->argv[1], "--fast") && !q->argv[2]);
	CHECK_EQ(q->env_count, 2);
	CHECK(q->env_count == 2 && !strcmp(q->env[1], "B=two"));
	CHECK_EQ(q->file_count, 2);
	CHECK(q->files[0].id == 5 && !strcmp(q->files[0].path, "/five") && q->files[1].id == 9 &&
	      !strcmp(q->files[1].path, "/nine"));
	CHECK(!strcmp(process_hook(q, 1), "malloc") && !strcmp(process_hook(q, 77), "?"));
	CHECK(process_thread(q, 3) && process_thread(q, 3)->tid == 4711 &&
	      !strcmp(process_thread(q, 3)->name, "renamed"));
	CHECK(!process_thread(q, 1) && !process_thread(q, 1000000));
	CHECK_EQ(reader_find(r, "synth", 0), 0);
	CHECK_EQ(reader_find(r, "100", 0), 0);
	CHECK_EQ(reader_find(r, "other", 0), 1);
	reader_close(r);
	synth_end(&s);
}

TEST(records_of_later_formats_are_skipped)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *p = synth_process(&s, 100, 0);
	synth_text(p, MT_REC_NEVER + 1, NULL, 0, "later");
	synth_text(p, 60000, NULL, 0, "later still");
	synth_text(p, MT_REC_FILE, &(struct mt_rec_file){ 9, 0 }, 8, "/nine");
	synth_write(p, SYNTH_RAW);
	struct reader *r = open_synth(&s, 0);
	CHECK_EQ(reader_process(r, 0)->file_count, 1);
	CHECK(reader_complete(r));
	CHECK(reader_notes(r) == 1 && strstr(reader_note(r, 0)->text, "a newer memtrace"));
	reader_close(r);
	synth_end(&s);
}

TEST(a_wait_tells_how_a_child_ended)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *p = synth_process(&s, 100, 0), *c = synth_fork(p, 101, T(1000));
	synth_alloc(c, 0, T(3000), 0x10, 10, 0);
	struct mt_rec_child end = { .pid = 101, .kind = MT_EXIT_SIGNAL, .code = 9 };
	synth_record(p, MT_REC_CHILD, T(9000), &end, sizeof(end), NULL, 0);
	synth_write(p, SYNTH_RAW);
	synth_write(c, SYNTH_RAW);
	struct reader *r = open_synth(&s, 0);
	const struct process *child = reader_process(r, 1);
	CHECK_EQ(child->exit_kind, MT_EXIT_SIGNAL);
	CHECK_EQ(child->exit_code, 9);
	CHECK_EQ(child->own_exit_kind, MT_EXIT_NONE);
	CHECK_EQ(child->end_ns, 9000);
	CHECK_EQ(child->state, PROCESS_ENDED);
	CHECK_EQ(reader_process(r, 0)->state, PROCESS_GONE);
	reader_close(r);
	synth_end(&s);
}

TEST(unknown_stacks_become_no_stack)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *p = synth_process(&s, 100, 0);
	synth_alloc(p, 0, T(1), 0x10, 10, 12345);
	synth_write(p, SYNTH_RAW);
	struct reader *r = open_synth(&s, 0);
	struct stream_of got = read_stream(r, 100);
	CHECK(got.count == 1 && got.list[0].event.node == 0);
	CHECK_EQ(reader_process(r, 0)->bad_nodes, 1);
	CHECK(!reader_complete(r));
	free(got.list);
	reader_close(r);
	synth_end(&s);
}

/* A pid that was at work on its files when it was killed has an info without its magic. */
TEST(a_process_that_never_began_is_left_out)
{
	struct synth s;
	char path[256];
	synth_begin(&s);
	struct synth_process *p = synth_process(&s, 100, 0), *q = synth_process(&s, 200, 0);
	synth_write(p, SYNTH_RAW);
	memset(q->info.magic, 0, 8);
	synth_write(q, SYNTH_RAW);
	synth_path(&s, "200-0.nodes", path);
	unlink(path);
	struct reader *r = open_synth(&s, 0);
	CHECK_EQ(reader_processes(r), 1);
	CHECK_EQ(reader_notes(r), 1);
	CHECK(reader_complete(r));
	reader_close(r);
	synth_end(&s);
}

/* A disk was full when a stack's frames had their ids: the file ends before them. More than each ring may have had that
 * were none, and the file is cut off. */
TEST(node_ids_that_never_came_to_be)
{
	for (uint32_t more = 1; more < 300; more *= 6) { /* of one ring */
		struct synth s;
		struct reader *r = NULL;
		char path[256];
		synth_begin(&s);
		const char *dir = s.dir;
		struct synth_process *p = synth_process(&s, 100, 0);
		synth_node(p, 0, 0x1000);
		p->info.rings = 1;
		synth_write(p, SYNTH_RAW);
		p->info.node_end = MT_NODE_STEP + more;
		synth_path(&s, "100-0.info", path);
		FILE *f = fopen(path, "r+");
		CHECK(f && fwrite(&p->info, sizeof(p->info), 1, f) == 1 && !fclose(f));
		CHECK_EQ(reader_open(&r, &dir, 1, 0), more <= 2 * MT_NODE_RUN ? 0 : -MT_ECUT);
		reader_close(r);
		synth_end(&s);
	}
}

/* Seconds of processor time that opening a trace of so many children of one process takes. */
static double cost_of_opening(uint32_t count)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *parent = synth_process(&s, 1, 0);
	synth_write(parent, SYNTH_BLOCKS);
	for (uint32_t i = 1; i < count; i++)
		synth_write(synth_fork(parent, 1 + i, T(i)), SYNTH_BLOCKS);
	clock_t began = clock();
	struct reader *r = open_synth(&s, 0);
	double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
	CHECK_EQ(reader_processes(r), count);
	CHECK(reader_process(r, count - 1)->parent == reader_process(r, 0));
	reader_close(r);
	synth_end(&s);
	return seconds;
}

TEST(opening_a_process_costs_the_same_among_many)
{
	uint32_t few = QUICK ? 200 : 1000;
	double least = cost_of_opening(few), again = cost_of_opening(few), many = cost_of_opening(12 * few);
	least = again < least ? again : least;
	printf("# %.3f s for %u processes, %.3f s for %u\n", least, few, many, 12 * few);
	CHECK(many < 40 * least); /* in proportion to their number it is 12, to its square 144 */
}

static void set_boot(struct mt_session *s)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!f || fread(s->boot_id, 1, 36, f) != 36 || fclose(f))
		abort();
}

/* It is being started, or has its last look: the session knows no pid then, and raw files vanish while they are read.
 * */
TEST(a_recorder_without_a_pid_may_take_the_ring)
{
	struct synth s;
	struct timespec now;
	char path[256];
	unsigned char page[4096] = { 0 };
	synth_begin(&s);
	clock_gettime(CLOCK_MONOTONIC, &now);
	set_boot(&s.session);
	s.session.recorder_beat_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	memcpy(page, &s.session, sizeof(s.session));
	synth_save(&s, "session", page, sizeof(page));
	struct synth_process *p = synth_process(&s, 3999999, 0);
	synth_node(p, synth_node(p, 0, 0x1000), 0x2000);
	fill(p, 1000);
	synth_write(p, SYNTH_RAW);
	struct reader *r = open_synth(&s, 0);
	synth_path(&s, "3999999-0.ring", path);
	CHECK_EQ(unlink(path), 0);
	struct stream_of got = read_stream(r, 3999999);
	check_same(p, &got);
	free(got.list);
	reader_close(r);
	synth_end(&s);
}

static uint64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

/* Each is in the middle of a block of 10 MiB at the same time. */
TEST(many_processes_at_once_are_not_all_held_decoded)
{
	enum { MANY = 24 };
	struct synth s;
	struct reader_step step;
	size_t at[MANY] = { 0 };
	synth_begin(&s);
	struct synth_process *p = synth_process(&s, 0, 0);
	p->block_slots = 300000;
	synth_node(p, synth_node(p, 0, 0x1000), 0x2000);
	fill(p, 160000);
	for (uint32_t i = 0; i < MANY; i++) {
		p->info.pid = 100 + i;
		synth_write(p, SYNTH_BLOCKS);
	}
	struct reader *r = open_synth(&s, READER_FORCE);
	uint64_t before = heap_bytes(), most = before;
	while (reader_next(r, &step) > 0 && !test_failures) {
		for (size_t i = 0; i < step.count && !test_failures; i++) {
			const struct synth_slot *want = &p->slots[at[step.process->pid - 100]++];
			CHECK(!memcmp(&step.slots[i], &want->event, sizeof(want->event)) &&
			      step.rings[i] == want->ring && step.threads[i] == want->ring);
		}
		uint64_t now = heap_bytes();
		most = now > most ? now : most;
	}
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(at[i], p->count);
	printf("# %" PRIu64 " MiB for %d processes with %zu events each\n", (most - before) >> 20, MANY, p->count);
	CHECK(most - before < 160 << 20);
	reader_close(r);
	synth_end(&s);
}

/* ---- damage ---------------------------------------------------------------------------------------------- */

struct bytes {
	char path[256];
	unsigned char *data;
	size_t size;
};

static struct bytes load(const struct synth *s, const char *name)
{
	struct bytes b;
	synth_path(s, name, b.path);
	FILE *f = fopen(b.path, "re");
	if (!f || fseek(f, 0, SEEK_END))
		abort();
	b.size = (size_t)ftell(f);
	b.data = malloc(b.size + 1);
	rewind(f);
	if (!b.data || fread(b.data, 1, b.size, f) != b.size)
		abort();
	fclose(f);
	return b;
}

static void store(const struct bytes *b, size_t size)
{
	int fd = open(b->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, b->data, size) != (ssize_t)size || close(fd))
		abort();
}

static void poke(const struct bytes *b, size_t at, unsigned char value)
{
	int fd = open(b->path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || pwrite(fd, &value, 1, (off_t)at) != 1 || close(fd))
		abort();
}

/* Everything a command would ask for. */
static void use_all(struct reader *r, struct model *m)
{
	for (unsigned id = 0; id < reader_processes(r); id++) {
		const struct process *p = reader_process(r, id);
		for (uint32_t node = 0; node < 8; node++)
			reader_module_of(p, node);
		for (unsigned i = 0; i < p->argc; i++)
			CHECK(strlen(p->argv[i]) < 1000);
		for (uint32_t i = 0; i < p->thread_end; i++)
			process_thread(p, i);
		for (unsigned i = 0; i < p->file_count; i++)
			CHECK(strlen(p->files[i].path) < 1000);
		const struct model_process *mp = model_process(m, id);
		for (uint32_t i = 0; i < mp->site_count; i++)
			CHECK(mp->sites[i].node == 0 || mp->sites[i].node < MT_MAX_NODES);
	}
}

/* Opens and reads whatever lies there. An error must say which file. With --force only files that are not a trace at
 * all may fail. */
static int survive(const struct synth *s, unsigned flags)
{
	struct reader *r;
	struct model *m = NULL;
	struct model_query q = MODEL_QUERY_ALL;
	const char *dir = s->dir;
	alarm(20);
	int e = reader_open(&r, &dir, 1, flags);
	if (!e)
		e = model_run(&m, r, &q);
	if (e) {
		CHECK(strstr(error_get()->file, s->dir) != NULL || strstr(error_get()->why, "clock"));
		CHECK(*error_get()->why);
	} else {
		use_all(r, m);
	}
	model_free(m);
	reader_close(r);
	alarm(0);
	return e;
}

static void make_small(struct synth *s, enum synth_form form)
{
	struct mt_ext_map ext = { .prot = 3, .flags = MT_MAP_ANON, .file = 7 };
	synth_begin(s);
	struct synth_process *p = synth_process(s, 100, 0);
	p->block_slots = 5;
	synth_text(p, MT_REC_FILE, &(struct mt_rec_file){ 7, 0 }, 8, "/seven");
	add_module(p, 0x10000, 1, "/first.so");
	drop_module(p, 0x10000, 2);
	synth_node(p, 0, 0x10010);
	synth_node(p, 1, 0x10020);
	synth_alloc(p, 0, T(10), 0x1000, 100, 1);
	synth_alloc(p, 1, T(20), 0x2000, 200, 2);
	synth_map(p, 0, T(30), 0x10000, 8192, ext, 2);
	synth_plain(p, 1, T(40), MT_FREE, 0x1000);
	synth_unmap(p, 1, T(50), 0x10000, 4096);
	synth_plain(p, 1, T(60), MT_UNDO, 0x10000);
	synth_fail(p, 0, T(70), 1ull << 50, 1);
	synth_plain(p, 0, T(80), MT_THREAD, 5);
	synth_plain(p, 0, T(90), MT_LOST, 3);
	struct synth_process *c = synth_fork(p, 101, T(100));
	uint32_t node = synth_node(c, 1, 0x10020);
	synth_alloc(c, 0, T(2000), 0x3000, 10, node);
	synth_plain(c, 0, T(2010), MT_FREE, 0x2000);
	synth_write(p, form);
	synth_write(c, form);
}

/* Bytes that mean something: the rest of the padded files is never read. */
static bool is_used(const char *name, size_t at)
{
	if (strstr(name, "info"))
		return at < sizeof(struct mt_info) + 8 || (at >= MT_INFO_STATES && at < MT_INFO_STATES + 4) ||
		       (at >= MT_INFO_LOG && at < MT_INFO_LOG + 600);
	if (strstr(name, "nodes"))
		return at < 64;
	if (strstr(name, "ring"))
		return at % MT_CHUNK_BYTES < sizeof(struct mt_chunk) + 12 * sizeof(struct mt_event);
	if (strstr(name, "session"))
		return at < 140 || (at >= 1144 && at < sizeof(struct mt_session));
	return true;
}

static const char *const raw_files[] = { "session",    "100-0.info", "100-0.nodes",
					 "100-0.ring", "101-0.info", "101-0.ring" };
static const char *const mixed_files[] = { "100-0.trace", "100-0.info", "100-0.ring" };
static const char *const block_files[] = { "100-0.trace", "101-0.trace" };

static void flip_all(enum synth_form form, const char *const *files, int count)
{
	static const unsigned char masks[] = { 0x01, 0x80, 0xff };
	struct synth s;
	make_small(&s, form);
	CHECK_EQ(survive(&s, 0), 0);
	for (int f = 0; f < count; f++) {
		struct bytes b = load(&s, files[f]);
		for (size_t at = 0; at < b.size; at++)
			for (unsigned k = 0; k < 3 && is_used(files[f], at); k++) {
				if (QUICK && at % 7 != 2 * k)
					continue;
				poke(&b, at, b.data[at] ^ masks[k]);
				int e = survive(&s, k == 1 ? READER_FORCE : 0);
				/* blocks have a checksum: nothing passes but the header's reserved bytes */
				if (form == SYNTH_BLOCKS && k != 1 && !(at >= 24 && at < 32))
					CHECK(e < 0);
				poke(&b, at, b.data[at]);
				if (test_failures) {
					printf("# %s: byte %zu ^ %x\n", files[f], at, masks[k]);
					f = count;
					at = b.size;
				}
			}
		free(b.data);
	}
	synth_end(&s);
}

TEST(no_flipped_byte_of_raw_files_brings_it_down)
{
	flip_all(SYNTH_RAW, raw_files, 6);
}
TEST(no_flipped_byte_of_mixed_files_brings_it_down)
{
	flip_all(SYNTH_MIXED, mixed_files, 3);
}
TEST(every_flipped_byte_of_a_trace_is_found)
{
	flip_all(SYNTH_BLOCKS, block_files, 2);
}

static void cut_all(enum synth_form form, const char *const *files, int count)
{
	struct synth s;
	make_small(&s, form);
	for (int f = 0; f < count && !test_failures; f++) {
		struct bytes b = load(&s, files[f]);
		for (size_t size = 0; size < b.size && !test_failures; size++) {
			if (!is_used(files[f], size) || (QUICK && size % 5))
				continue;
			store(&b, size);
			int e = survive(&s, 0);
			if (form == SYNTH_BLOCKS)
				CHECK(e < 0);
			survive(&s, READER_FORCE);
			if (test_failures)
				printf("# %s: %zu bytes\n", files[f], size);
		}
		store(&b, b.size);
		free(b.data);
	}
	synth_end(&s);
}

TEST(no_cut_of_raw_files_brings_it_down)
{
	cut_all(SYNTH_RAW, raw_files, 6);
}
TEST(no_cut_of_mixed_files_brings_it_down)
{
	cut_all(SYNTH_MIXED, mixed_files, 3);
}
TEST(every_cut_of_a_trace_is_found)
{
	cut_all(SYNTH_BLOCKS, block_files, 2);
}

/* With raw files beside it, a half-written last block is what a killed recorder leaves. */
TEST(a_block_cut_off_costs_nothing_while_the_ring_is_there)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *p = synth_process(&s, 100, 0);
	synth_node(p, 0, 0x1000);
	synth_node(p, 1, 0x2000);
	fill(p, 1000);
	synth_write(p, SYNTH_RAW);
	struct bytes ring = load(&s, "100-0.ring"), info = load(&s, "100-0.info");
	synth_write(p, SYNTH_MIXED);
	struct bytes trace = load(&s, "100-0.trace");
	store(&ring, ring.size);
	store(&info, info.size);
	for (size_t size = 0; size <= trace.size && !test_failures; size += size < 100 ? 1 : 97) {
		store(&trace, size);
		struct reader *r = open_synth(&s, 0);
		if (!r)
			break;
		struct stream_of got = read_stream(r, 100);
		CHECK_EQ(got.count, p->count);
		CHECK(reader_complete(r));
		free(got.list);
		reader_close(r);
	}
	free(ring.data);
	free(info.data);
	free(trace.data);
	synth_end(&s);
}

TEST(missing_files_are_named)
{
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = { "session", "100-0.info", "100-0.nodes", "100-0.ring" };
		struct synth s;
		char path[256];
		make_small(&s, SYNTH_RAW);
		synth_path(&s, names[i], path);
		unlink(path);
		CHECK(survive(&s, 0) < 0);
		CHECK(!strcmp(error_get()->file, path));
		CHECK_EQ(survive(&s, READER_FORCE), 0);
		synth_end(&s);
	}
}

TEST(what_is_no_trace_is_refused)
{
	struct reader *r;
	const char *dirs[] = { "/", "/nonexistent", "/dev/null" };
	for (int i = 0; i < 3; i++) {
		CHECK(reader_open(&r, &dirs[i], 1, READER_FORCE) < 0);
		CHECK(r == NULL && strstr(error_get()->file, dirs[i]));
	}
}

TEST(newer_versions_are_named_as_such)
{
	struct synth s;
	make_small(&s, SYNTH_BLOCKS);
	struct bytes b = load(&s, "100-0.trace");
	poke(&b, 8, 2);
	CHECK_EQ(survive(&s, 0), -MT_EVERSION);
	CHECK_EQ(error_get()->offset, 8);
	free(b.data);
	synth_end(&s);
}

TEST_MAIN
