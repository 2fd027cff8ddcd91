/* The recorder on directories made by hand: what it writes is every event once, in order; also when an earlier one was
 * killed at any point of its file. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "analyzer/reader/reader.h"
#include "analyzer/recorder/recorder.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#define PID   4194000u /* ended: nobody has that number and that start time */
#define SHIFT 6        /* of a nanosecond clock */
#define RINGS 3

/* What lies in the ring when the recorder comes. */
static struct synth_process *make_of(struct synth *s, size_t slots, pid_t pid, uint64_t boot_start)
{
	uint64_t ticks = SYNTH_START, random = 1;
	synth_begin(s);
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
	if (f && fread(s->session.boot_id, 1, 36, f) == 36)
		synth_save(s, "session", &s->session, sizeof(s->session));
	if (f)
		fclose(f);
	struct synth_process *p = synth_process(s, (uint32_t)pid, 0);
	p->info.boot_start = boot_start;
	uint32_t node = synth_node(p, 0, 0x1000);
	while (p->count < slots) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint32_t ring = random >> 60 & 1 ? 0 : (uint32_t)(random >> 33) % RINGS;
		ticks += 1 + (random >> 40) % 300;
		if (p->count % 1000 == 7)
			synth_map(p, ring, ticks, random << 20 >> 12, 4096, (struct mt_ext_map){ .prot = 3, .file = 1 },
				  node);
		else if (p->count % 3)
			synth_alloc(p, ring, ticks, 0x1000 + (random >> 40) * 16, random >> 54, node);
		else
			synth_plain(p, ring, ticks, MT_FREE, 0x1000 + (random >> 40) * 16);
	}
	synth_write(p, SYNTH_RAW);
	return p;
}

static struct synth_process *make(struct synth *s, size_t slots)
{
	return make_of(s, slots, PID, PID);
}

static pid_t start(const struct synth *s)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(record_run(s->dir) ? 1 : 0);
	return pid;
}

static void finish(pid_t pid)
{
	int status = -1;
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static char *load(const struct synth *s, const char *name, size_t *bytes)
{
	char path[256];
	synth_path(s, name, path);
	FILE *f = fopen(path, "r");
	if (!f)
		return NULL;
	fseek(f, 0, SEEK_END);
	*bytes = (size_t)ftell(f);
	rewind(f);
	char *data = malloc(*bytes + 1);
	CHECK_EQ(fread(data, 1, *bytes, f), *bytes);
	fclose(f);
	return data;
}

/* The slots of one block against what the process did from slot `done` on; positions in *next. */
static void check_block(const struct synth_process *p, size_t done, const struct mt_block *header, const char *block,
			size_t bytes, uint64_t *next)
{
	struct codec *codec = codec_new();
	struct mt_event *events = calloc(header->count, sizeof(*events));
	uint32_t *rings = calloc(header->count, sizeof(*rings));
	CHECK_EQ(codec_decode_events(codec, block, bytes, events, rings), 0);
	size_t wrong = 0;
	for (size_t i = 0; i < header->count && done + i < p->count; i++) {
		struct mt_event want = p->slots[done + i].event;
		if (want.kind != MT_EXT)
			want.ticks = want.ticks >> SHIFT << SHIFT;
		wrong += memcmp(&want, &events[i], sizeof(want)) != 0 || rings[i] != p->slots[done + i].ring;
	}
	CHECK_EQ(wrong, 0);
	for (uint32_t i = 0; i < header->covers; i++) {
		struct mt_cover c;
		memcpy(&c, block + sizeof(*header) + i * sizeof(c), sizeof(c));
		CHECK(c.from == next[c.ring] || (c.from == next[c.ring] + 1 && c.from % MT_CHUNK_SLOTS == 0));
		next[c.ring] = c.to;
	}
	free(events);
	free(rings);
	codec_free(codec);
}

/* The trace holds everything once and ends properly; raw files are gone. */
static void check_trace(const struct synth *s, const struct synth_process *p)
{
	char name[64];
	size_t size = 0, bytes, done = 0;
	uint64_t next[RINGS] = { 0 };
	uint32_t types = 0;
	synth_name(p, "trace", name);
	char *data = load(s, name, &size);
	CHECK(data != NULL);
	for (size_t at = sizeof(struct mt_trace_header); data && at < size; at += bytes) {
		struct mt_block header;
		int e = codec_check(data + at, size - at, &header, &bytes);
		CHECK_EQ(e, 0);
		if (e)
			break;
		types = types << 4 | header.type;
		if (header.type != MT_BLOCK_EVENTS)
			continue;
		check_block(p, done, &header, data + at, bytes, next);
		done += header.count;
	}
	free(data);
	CHECK_EQ(done, p->count);
	CHECK_EQ(types & 0xfff, MT_BLOCK_NODES << 8 | MT_BLOCK_INFO << 4 | MT_BLOCK_END);
	static const char *const gone[] = { "info", "nodes", "ring" };
	for (int i = 0; i < 3; i++) {
		synth_name(p, gone[i], name);
		data = load(s, name, &bytes);
		CHECK(data == NULL);
		free(data);
	}
}

TEST(record_everything)
{
	struct synth s;
	struct synth_process *p = make(&s, 600000);
	finish(start(&s));
	check_trace(&s, p);
	synth_end(&s);
}

TEST(record_nothing)
{
	struct synth s;
	struct synth_process *p = make(&s, 0);
	finish(start(&s));
	check_trace(&s, p);
	synth_end(&s);
}

/* The raw files of `s` beside the first `cut` bytes of its finished trace: as if the recorder had died there. */
TEST(record_after_a_killed_one)
{
	enum { CUTS = 12, SLOTS = 300000 };
	struct synth whole, cut[CUTS];
	struct synth_process *p = make(&whole, SLOTS), *q[CUTS];
	pid_t pids[CUTS];
	char name[64];
	size_t size = 0;
	finish(start(&whole));
	synth_name(p, "trace", name);
	char *trace = load(&whole, name, &size);
	CHECK(trace != NULL);
	for (int i = 0; trace && i < CUTS; i++) {
		size_t ends[CUTS] = {
			0, 20, 32, 33, 80, 100, size / 3, size / 2, size - 57, size - 56, size - 30, size
		};
		q[i] = make(&cut[i], SLOTS);
		synth_save(&cut[i], name, trace, ends[i]);
		pids[i] = start(&cut[i]);
	}
	for (int i = 0; trace && i < CUTS; i++) {
		finish(pids[i]);
		check_trace(&cut[i], q[i]);
		synth_end(&cut[i]);
	}
	free(trace);
	synth_end(&whole);
}

/* A chunk that was overwritten is missing; what is around it is not. */
TEST(record_around_a_damaged_chunk)
{
	struct synth s;
	struct synth_process *p = make(&s, 100000);
	char name[64], path[256];
	size_t size = 0, bytes = 0, slots = 0;
	synth_name(p, "ring", name);
	synth_path(&s, name, path);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK_EQ(pwrite(fd, "garbage", 7, MT_CHUNK_BYTES), 7);
	close(fd);
	finish(start(&s));
	synth_name(p, "trace", name);
	char *data = load(&s, name, &size);
	for (size_t at = sizeof(struct mt_trace_header); data && at < size; at += bytes) {
		struct mt_block header;
		if (codec_check(data + at, size - at, &header, &bytes)) {
			CHECK(!"a block is damaged");
			break;
		}
		slots += header.type == MT_BLOCK_EVENTS ? header.count : 0;
	}
	CHECK(slots < p->count && slots + MT_CHUNK_SLOTS >= p->count);
	free(data);
	synth_end(&s);
}

/* ---- who reads meanwhile ---------------------------------------------------------------------------------- */

/* Opened for reading when no recorder was there yet. */
static struct reader *open_early(const struct synth *s)
{
	const char *dir = s->dir;
	struct reader *r = NULL;
	CHECK_EQ(reader_open(&r, &dir, 1, 0), 0);
	return r;
}

static void check_read(struct reader *r, const struct synth_process *p)
{
	struct reader_step step;
	size_t done = 0, wrong = 0;
	int e = 0;
	while (r && (e = reader_next(r, &step)) > 0)
		for (size_t i = 0; i < step.count; i++, done++)
			wrong += done >= p->count ||
				 memcmp(&step.slots[i], &p->slots[done].event, sizeof(struct mt_event)) != 0;
	CHECK_EQ(e, 0);
	CHECK_EQ(wrong, 0);
	CHECK_EQ(done, p->count);
	reader_close(r);
}

/* The process ends, a recorder comes, and takes the raw files away. */
TEST(read_what_a_recorder_takes_away)
{
	struct synth s;
	pid_t pid = synth_sleeper();
	struct synth_process *p = make_of(&s, 100000, pid, synth_boot_start(pid));
	struct reader *r = open_early(&s);
	synth_end_sleeper(pid);
	finish(start(&s));
	check_trace(&s, p);
	check_read(r, p);
	synth_end(&s);
}

static uint32_t free_chunks(const struct synth *s, const struct synth_process *p, uint8_t states[MT_MAX_CHUNKS])
{
	char name[64], path[256];
	uint32_t n = 0;
	synth_name(p, "info", name);
	synth_path(s, name, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_EQ(pread(fd, states, MT_MAX_CHUNKS, MT_INFO_STATES), MT_MAX_CHUNKS);
	close(fd);
	for (uint32_t i = 0; i < p->info.chunks; i++)
		n += states[i] == MT_CHUNK_FREE;
	return n;
}

/* What its threads do with chunks that they are given back. */
static void use_again(const struct synth *s, const struct synth_process *p, const uint8_t *states)
{
	char name[64], path[256];
	static struct {
		struct mt_chunk head;
		struct mt_event events[MT_CHUNK_SLOTS];
	} chunk;
	chunk.head = (struct mt_chunk){ .magic = MT_CHUNK_MAGIC, .used = MT_CHUNK_SLOTS, .seq = 1000 };
	for (uint32_t i = 0; i < MT_CHUNK_SLOTS; i++)
		chunk.events[i] =
			(struct mt_event){ .ticks = SYNTH_START + 500000000 + i, .addr = 16, .kind = MT_FREE };
	synth_name(p, "ring", name);
	synth_path(s, name, path);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	for (uint32_t i = 0; i < p->info.chunks; i++, chunk.head.seq++)
		if (states[i] == MT_CHUNK_FREE)
			CHECK_EQ(pwrite(fd, &chunk, sizeof(chunk), (off_t)i * MT_CHUNK_BYTES), (ssize_t)sizeof(chunk));
	close(fd);
}

/* The process goes on, a recorder comes, and gives it chunks back which it uses. */
TEST(read_what_a_recorder_gives_back)
{
	static uint8_t states[MT_MAX_CHUNKS];
	struct synth s;
	pid_t pid = synth_sleeper();
	struct synth_process *p = make_of(&s, 300000, pid, synth_boot_start(pid));
	struct reader *r = open_early(&s);
	pid_t recorder = start(&s);
	for (int i = 0; i < 3000 && free_chunks(&s, p, states) < 16; i++)
		usleep(20000);
	CHECK(free_chunks(&s, p, states) >= 16);
	use_again(&s, p, states);
	check_read(r, p);
	synth_end_sleeper(pid);
	kill(recorder, SIGTERM);
	finish(recorder);
	synth_end(&s);
}

TEST(record_what_is_no_trace)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(record_run("/proc") ? 3 : 0);
	int status = 0;
	waitpid(pid, &status, 0);
	CHECK_EQ(WEXITSTATUS(status), 3);
}

TEST_MAIN
