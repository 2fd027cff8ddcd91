/* Blocks that are decoded in a thread while others are read: the stream, notes and counts are what they are without. */
#include "analyzer/reader/reader.h"
#include "analyzer/util/error.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#define T(n)  (SYNTH_START + (n))
#define LARGE (1u << 20) /* slots: from here on a thread is worth it */
#define BLOCK 65536u

static unsigned threads_made;
static bool no_threads;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	threads_made++;
	return no_threads ? EAGAIN : real(thread, attr, run, arg);
}

/* What a pass over a trace came to. */
struct result {
	uint64_t hash, slots, skipped, threads;
	unsigned notes;
	int error;
	char note[512], why[512];
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29);
}

static uint64_t mix_slot(uint64_t hash, const struct mt_event *e, uint32_t ring, uint32_t thread)
{
	uint64_t words[4];
	memcpy(words, e, sizeof(words));
	for (int i = 0; i < 4; i++)
		hash = mix(hash, words[i]);
	return mix(hash, (uint64_t)ring << 32 | thread);
}

/* `most`: slots behind which the reader is closed. */
static struct result read_some(const struct synth *s, unsigned flags, bool with_threads, uint64_t most)
{
	struct result got = { 0 };
	struct reader *r;
	struct reader_step step;
	const char *dir = s->dir;
	threads_made = 0;
	no_threads = !with_threads;
	got.error = reader_open(&r, &dir, 1, flags);
	while (!got.error && got.slots < most && (got.error = reader_next(r, &step)) > 0) {
		got.error = 0;
		for (size_t i = 0; i < step.count; i++)
			got.hash = mix_slot(got.hash, &step.slots[i], step.rings[i], step.threads[i]);
		got.slots += step.count;
		got.hash = step.what == READER_EVENTS ? got.hash : mix(got.hash, step.what);
		if (!step.count && step.what == READER_EVENTS)
			break;
	}
	if (got.error < 0)
		snprintf(got.why, sizeof(got.why), "%s", error_get()->why);
	got.notes = r ? reader_notes(r) : 0;
	if (got.notes)
		snprintf(got.note, sizeof(got.note), "%s", reader_note(r, 0)->text);
	for (unsigned i = 0; r && i < reader_processes(r); i++)
		got.skipped += reader_process(r, i)->skipped_slots;
	reader_close(r);
	got.threads = threads_made;
	return got;
}

static void check_same(const struct result *a, const struct result *b)
{
	CHECK_EQ(a->error, b->error);
	CHECK_EQ(a->slots, b->slots);
	CHECK_EQ(a->hash, b->hash);
	CHECK_EQ(a->skipped, b->skipped);
	CHECK_EQ(a->notes, b->notes);
	CHECK(!strcmp(a->note, b->note));
	CHECK(!strcmp(a->why, b->why));
}

/* With the thread and without; what comes of the first. */
static struct result read_both(const struct synth *s, unsigned flags, uint64_t most)
{
	struct result with = read_some(s, flags, true, most), without = read_some(s, flags, false, most);
	check_same(&with, &without);
	CHECK_EQ(with.threads, 1);
	CHECK_EQ(without.threads, 1); /* it is asked for once, not for each block */
	return with;
}

static void fill(struct synth_process *p, unsigned slots)
{
	struct mt_ext_map ext = { .prot = 3, .flags = MT_MAP_ANON, .file = 7 };
	for (unsigned i = 0; p->count < slots; i++) {
		uint32_t ring = i / 7 % 3;
		uint64_t addr = 0x1000 + 64ull * i, ticks = T(1000) + 100ull * i;
		if (i % 64 == 63)
			synth_map(p, ring, ticks, addr << 12, 4096, ext, 2);
		else if (i % 2)
			synth_plain(p, ring, ticks, MT_FREE, addr - 64);
		else
			synth_alloc(p, ring, ticks, addr, i % 1000, 1);
	}
}

static struct synth_process *begin(struct synth *s, uint32_t pid, unsigned slots)
{
	struct synth_process *p = synth_process(s, pid, 0);
	synth_node(p, 0, 0x1000);
	synth_node(p, 1, 0x2000);
	fill(p, slots);
	p->block_slots = BLOCK;
	return p;
}

/* Changes a byte of the trace of process 100, at a part of its size. */
static void damage(const struct synth *s, double where)
{
	char path[256];
	synth_path(s, "100-0.trace", path);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	off_t at = (off_t)((double)lseek(fd, 0, SEEK_END) * where);
	char byte;
	CHECK_EQ(pread(fd, &byte, 1, at), 1);
	byte = (char)(byte ^ 0x55);
	CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

TEST(the_stream_is_the_same_with_the_thread)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *p = begin(&s, 100, LARGE + 3 * BLOCK / 2);
	synth_write(p, SYNTH_BLOCKS);
	struct result got = read_both(&s, 0, UINT64_MAX);
	uint64_t hash = mix(0, READER_START);
	for (size_t i = 0; i < p->count; i++)
		hash = mix_slot(hash, &p->slots[i].event, p->slots[i].ring, p->slots[i].ring);
	CHECK_EQ(got.error, 0);
	CHECK_EQ(got.slots, p->count);
	CHECK_EQ(got.hash, mix(hash, READER_EXIT));
	synth_end(&s);
}

TEST(what_is_left_of_a_damaged_trace_is_the_same)
{
	struct synth s;
	synth_begin(&s);
	struct synth_process *p = begin(&s, 100, LARGE + BLOCK);
	p->slots[p->count / 2].event.ticks = INT64_MAX / 2; /* no time that can have been: found in the slots */
	synth_write(p, SYNTH_BLOCKS);
	struct result got = read_both(&s, READER_FORCE, UINT64_MAX);
	CHECK(got.notes > 0 && got.skipped > 0);
	CHECK(strstr(got.note, "a time in the future") != NULL);
	damage(&s, 0.3); /* found by the checksum */
	got = read_both(&s, READER_FORCE, UINT64_MAX);
	CHECK(got.notes > 1 && got.skipped >= BLOCK);
	got = read_both(&s, 0, UINT64_MAX);
	CHECK(got.error < 0 && strstr(got.why, "checksum") != NULL);
	synth_end(&s);
}

TEST(processes_that_take_turns_and_a_reader_that_is_closed_early)
{
	struct synth s;
	synth_begin(&s);
	for (uint32_t pid = 100; pid < 105; pid++)
		synth_write(begin(&s, pid, LARGE / 4), SYNTH_BLOCKS);
	struct result all = read_both(&s, 0, UINT64_MAX);
	CHECK(all.slots >= 5ull * LARGE / 4);
	read_both(&s, 0, LARGE / 2);
	read_both(&s, 0, LARGE / 2 + 1);
	synth_end(&s);
}

TEST(a_small_trace_has_no_thread)
{
	struct synth s;
	synth_begin(&s);
	synth_write(begin(&s, 100, 3 * BLOCK), SYNTH_BLOCKS);
#ifdef __SANITIZE_ADDRESS__
	CHECK_EQ(read_some(&s, 0, true, UINT64_MAX).threads, 1); /* there all have one */
#else
	CHECK_EQ(read_some(&s, 0, true, UINT64_MAX).threads, 0);
#endif
	synth_end(&s);
}

TEST_MAIN
