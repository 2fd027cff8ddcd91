/* Chunks go from the process to recorders and back while one recorder after the other is killed in the middle of what
 * it does: what is read at any time, and what is in the trace in the end, is every event once. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "analyzer/reader/reader.h"
#include "analyzer/recorder/recorder.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#define RINGS   2
#define KILLS   12
#define SLOTS   70000       /* that the process makes from one recorder to the next */
#define TICKS   1000        /* from one event to the next: more than a unit of time */
#define ROOM    (64u << 20) /* of the ring file */
#define SHIFT   6           /* of a nanosecond clock in blocks */
#define LIMITED (1ull << 40)

/* ---- a recorder that is killed ----------------------------------------------------------------------------- */

static int writes, rounds; /* how many until it is killed, or goes; 0 = never */
static bool in_the_middle; /* when half is written, not before the chunks are freed */

/* In the place of libc's. */
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
	bool last = writes > 0 && --writes == 0;
	ssize_t n = syscall(SYS_pwrite64, fd, data, last && in_the_middle ? bytes / 2 : bytes, at);
	if (last)
		kill(getpid(), SIGKILL);
	return n;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	if (rounds > 0 && --rounds == 0)
		_exit(0);
	return rounds ? 0 : (int)syscall(SYS_nanosleep, time, left);
}

static int run_recorder(const struct synth *s, int until_writes, int until_rounds, bool half)
{
	int status = -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		writes = until_writes;
		rounds = until_rounds;
		in_the_middle = half;
		_exit(record_run(s->dir) ? 1 : 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

/* ---- the process --------------------------------------------------------------------------------------------- */

struct target {
	struct synth synth;
	struct synth_process *p; /* the truth */
	pid_t pid;
	char *ring;
	struct mt_info *info;
	uint8_t *states;
	uint64_t position[RINGS], ticks;
	uint32_t chunk[RINGS];
};

static int open_file(const struct target *t, const char *extension)
{
	char name[64], path[256];
	synth_name(t->p, extension, name);
	synth_path(&t->synth, name, path);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void *map_file(const struct target *t, const char *extension, size_t bytes)
{
	int fd = open_file(t, extension);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
}

/* Near its limit, so that half of the chunks make a block. */
static void begin(struct target *t)
{
	*t = (struct target){ .pid = synth_sleeper(), .ticks = SYNTH_START };
	synth_begin(&t->synth);
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	CHECK(f && fread(t->synth.session.boot_id, 1, 36, f) == 36);
	fclose(f);
	t->synth.session.limit_bytes = LIMITED;
	t->synth.session.used_bytes = LIMITED / 5 * 4;
	synth_save(&t->synth, "session", &t->synth.session, sizeof(t->synth.session));
	t->p = synth_process(&t->synth, (uint32_t)t->pid, 0);
	t->p->info.boot_start = synth_boot_start(t->pid);
	t->p->info.rings = t->p->info.threads = RINGS;
	synth_node(t->p, 0, 0x1000);
	synth_write(t->p, SYNTH_RAW);
	int fd = open_file(t, "ring");
	CHECK_EQ(ftruncate(fd, ROOM), 0);
	close(fd);
	t->ring = map_file(t, "ring", ROOM);
	t->info = map_file(t, "info", MT_INFO_LOG);
	t->states = (uint8_t *)t->info + MT_INFO_STATES;
}

static struct mt_chunk *chunk_at(const struct target *t, uint32_t i)
{
	return (struct mt_chunk *)(t->ring + (size_t)i * MT_CHUNK_BYTES);
}

/* A free one, else a new one: as shim/trace/ring.c does. */
static void open_chunk(struct target *t, uint32_t ring)
{
	uint32_t i = 0;
	while (i < t->info->chunks && __atomic_load_n(&t->states[i], __ATOMIC_ACQUIRE) != MT_CHUNK_FREE)
		i++;
	t->info->chunks += i == t->info->chunks;
	struct mt_chunk *c = chunk_at(t, i);
	t->states[i] = MT_CHUNK_FILLING;
	c->used = 0;
	*c = (struct mt_chunk){
		.magic = MT_CHUNK_MAGIC, .ring = ring, .seq = t->position[ring] / MT_CHUNK_SLOTS, .thread = ring
	};
	t->chunk[ring] = i;
}

static void go_on(struct target *t)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		uint32_t ring = t->p->count * 2654435761u >> 13 & 1,
			 slot = (uint32_t)(t->position[ring] % MT_CHUNK_SLOTS);
		t->ticks += TICKS;
		synth_alloc(t->p, ring, t->ticks, 0x10000 + t->p->count * 64, 1 + i % 60, 1);
		if (!slot)
			open_chunk(t, ring);
		struct mt_chunk *c = chunk_at(t, t->chunk[ring]);
		((struct mt_event *)(c + 1))[slot] = t->p->slots[t->p->count - 1].event;
		c->used = slot + 1;
		t->position[ring]++;
		if (slot + 1 == MT_CHUNK_SLOTS)
			__atomic_store_n(&t->states[t->chunk[ring]], MT_CHUNK_FULL, __ATOMIC_RELEASE);
	}
}

static void end(struct target *t)
{
	munmap(t->ring, ROOM);
	munmap(t->info, MT_INFO_LOG);
	synth_end(&t->synth);
}

/* ---- what is read ---------------------------------------------------------------------------------------------- */

static bool is_same(const struct mt_event *got, const struct mt_event *want)
{
	struct mt_event a = *got, b = *want;
	a.ticks = a.ticks >> SHIFT;
	b.ticks = b.ticks >> SHIFT;
	return !memcmp(&a, &b, sizeof(a));
}

static void check_read(const struct target *t)
{
	const char *dir = t->synth.dir;
	struct reader *r = NULL;
	struct reader_step step;
	size_t done = 0, wrong = 0;
	int e;
	CHECK_EQ(reader_open(&r, &dir, 1, 0), 0);
	while (r && (e = reader_next(r, &step)) > 0)
		for (size_t i = 0; i < step.count; i++, done++)
			wrong += done >= t->p->count || !is_same(&step.slots[i], &t->p->slots[done].event);
	CHECK_EQ(wrong, 0);
	CHECK_EQ(done, t->p->count);
	CHECK(r && reader_complete(r));
	reader_close(r);
}

TEST(every_event_once_while_recorders_are_killed)
{
	struct target t;
	int killed = 0;
	begin(&t);
	for (int i = 0; i < KILLS && !test_failures; i++) {
		go_on(&t);
		check_read(&t);
		killed += run_recorder(&t.synth, 1 + (i == 1), 20, i % 2) == SIGKILL;
		check_read(&t);
	}
	CHECK(killed >= KILLS / 4);                                  /* some had too little to do */
	CHECK((size_t)t.info->chunks * MT_CHUNK_SLOTS < t.p->count); /* chunks were used again */
	synth_end_sleeper(t.pid);
	CHECK_EQ(run_recorder(&t.synth, 0, 0, false), 0);
	check_read(&t);
	end(&t);
}

TEST_MAIN
