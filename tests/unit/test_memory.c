/* The analyzer's memory: what is allocated, changed and freed in its range against copies, and files of it, which
 * another process loads, or which are damaged. */
#include "analyzer/util/memory/memory.h"
#include "analyzer/util/memory/names.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 2000, KEPT = 300, THREADS = 4 };

struct block {
	uint8_t *at;
	size_t bytes;
	uint8_t first; /* its bytes count up from there */
};

static void fill(const struct block *b, size_t from)
{
	for (size_t i = from; i < b->bytes; i++)
		b->at[i] = (uint8_t)(b->first + i);
}

static bool is_filled(const struct block *b)
{
	for (size_t i = 0; i < b->bytes; i++)
		if (b->at[i] != (uint8_t)(b->first + i))
			return false;
	return true;
}

/* Mostly small, now and then some MiB. */
static size_t some_size(uint64_t *state)
{
	const uint64_t r = random_next(state);
	return (size_t)(r % 50 ? 1 + random_next(state) % 3000 : 1 + random_next(state) % (6u << 20));
}

static void take(struct block *b, uint64_t *state)
{
	const size_t bytes = some_size(state);
	*b = (struct block){ .bytes = bytes, .first = (uint8_t)random_next(state) };
	if (random_next(state) % 2) {
		b->at = malloc(bytes);
	} else {
		b->at = calloc(bytes, 1);
		for (size_t i = 0; i < bytes; i++)
			CHECK_EQ(b->at[i], 0);
	}
	CHECK(mem_has(b->at));
	CHECK_EQ((uintptr_t)b->at % 16, 0);
	fill(b, 0);
}

static void change(struct block *b, uint64_t *state)
{
	const size_t before = b->bytes, bytes = some_size(state);
	b->at = realloc(b->at, bytes);
	b->bytes = before < bytes ? before : bytes;
	CHECK(mem_has(b->at) && is_filled(b));
	b->bytes = bytes;
	fill(b, before < bytes ? before : bytes);
}

static void work(struct block *blocks, unsigned count, unsigned steps, uint64_t state)
{
	for (unsigned i = 0; i < steps; i++) {
		struct block *b = &blocks[random_next(&state) % count];
		if (!b->at) {
			take(b, &state);
		} else if (random_next(&state) % 2) {
			change(b, &state);
		} else {
			CHECK(is_filled(b));
			free(b->at);
			b->at = NULL;
		}
	}
}

static void check_and_free(struct block *blocks, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		CHECK(!blocks[i].at || is_filled(&blocks[i]));
		free(blocks[i].at);
	}
}

TEST(blocks_keep_their_bytes_and_share_none)
{
	static struct block blocks[BLOCKS];
	if (SANITIZED)
		return;
	mem_use(true);
	work(blocks, BLOCKS, 30000, 7);
	check_and_free(blocks, BLOCKS);
	mem_clear();
	mem_use(false);
}

TEST(every_size_has_room)
{
	if (SANITIZED)
		return;
	mem_use(true);
	for (size_t bytes = 0; bytes < 3u << 20; bytes += 1 + bytes / 40) {
		struct block one = { malloc(bytes), bytes, 1 }, other = { malloc(bytes), bytes, 2 };
		fill(&one, 0);
		fill(&other, 0);
		CHECK(one.at != other.at && is_filled(&one) && is_filled(&other));
		free(one.at);
		free(other.at);
	}
	mem_clear();
	mem_use(false);
}

TEST(a_block_of_the_c_library_may_be_freed_and_adopted)
{
	if (SANITIZED)
		return;
	char *theirs = strdup("theirs"), *text;
	CHECK(!mem_has(theirs));
	mem_use(true);
	free(theirs);
	CHECK(asprintf(&text, "%s %d", "ours", 1) == 6 && mem_has(text) && !strcmp(text, "ours 1"));
	char *copy = strndup(text, 4);
	CHECK(mem_has(copy) && !strcmp(copy, "ours"));
	mem_use(false);
	free(text);
	CHECK((copy = realloc(copy, 100000)) && mem_has(copy) && !strcmp(copy, "ours"));
	free(copy);
	mem_clear();
}

static void *work_in_thread(void *arg)
{
	work(arg, BLOCKS / THREADS, 5000, 1 + (uintptr_t)arg);
	return NULL;
}

TEST(threads_share_the_range)
{
	static struct block blocks[THREADS][BLOCKS / THREADS];
	pthread_t threads[THREADS];
	if (SANITIZED)
		return;
	mem_use(true);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, work_in_thread, blocks[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++)
		check_and_free(blocks[i], BLOCKS / THREADS);
	mem_clear();
	mem_use(false);
}

/* ---- files ----------------------------------------------------------------------------------------------- */

struct kept {
	struct block *blocks; /* KEPT of them */
	int (*compare)(const char *, const char *);
	const char *constant;
};

static int make_file(void)
{
	char path[] = "/tmp/memtrace-memory-XXXXXX";
	const int fd = mkstemp(path);
	unlink(path);
	return fd;
}

static struct kept *make(void)
{
	struct kept *k = malloc(sizeof(*k));
	*k = (struct kept){ calloc(KEPT, sizeof(*k->blocks)), strcmp, "constant" };
	work(k->blocks, KEPT, 3000, 11);
	return k;
}

static bool is_as_it_was(const struct kept *k)
{
	bool same = k && !strcmp(k->constant, "constant") && !k->compare("x", "x");
	for (unsigned i = 0; same && i < KEPT; i++)
		same = !k->blocks[i].at || is_filled(&k->blocks[i]);
	return same;
}

static void *load(int fd)
{
	lseek(fd, 0, SEEK_SET);
	return mem_load(fd);
}

TEST(a_file_has_all_of_it)
{
	const int fd = make_file();
	if (SANITIZED)
		return;
	mem_use(true);
	struct kept *k = make();
	CHECK_EQ(mem_save(fd, k, UINT64_MAX), 0);
	CHECK_EQ(mem_save(make_file(), k, 1000), -1);
	CHECK_EQ(mem_save(make_file(), &k, UINT64_MAX), -1); /* not in the range */
	mem_clear();
	k = load(fd);
	CHECK(is_as_it_was(k));
	work(k->blocks, KEPT, 3000, 13); /* and it goes on */
	CHECK(is_as_it_was(k));
	mem_clear();
	mem_use(false);
}

static uint64_t bytes_of(int fd)
{
	return (uint64_t)lseek(fd, 0, SEEK_END);
}

static void flip(int fd, uint64_t at)
{
	uint8_t byte;
	CHECK_EQ(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 0x55;
	CHECK_EQ(pwrite(fd, &byte, 1, (off_t)at), 1);
}

TEST(a_damaged_file_is_none)
{
	const int fd = make_file();
	uint64_t state = 17;
	if (SANITIZED)
		return;
	mem_use(true);
	CHECK_EQ(mem_save(fd, make(), UINT64_MAX), 0);
	const uint64_t bytes = bytes_of(fd);
	for (unsigned i = 0; i < 400; i++) {
		const uint64_t at = i < 200 ? i % bytes : random_next(&state) % bytes;
		flip(fd, at);
		if (load(fd)) {
			CHECK(!"a damaged file was loaded");
			printf("# byte %" PRIu64 " of %" PRIu64 "\n", at, bytes);
		}
		flip(fd, at);
	}
	CHECK(is_as_it_was(load(fd)));
	CHECK_EQ(pwrite(fd, "", 1, (off_t)bytes), 1);
	CHECK(!load(fd)); /* there is more */
	for (unsigned i = 1; i < 30; i++) {
		CHECK_EQ(ftruncate(fd, (off_t)(bytes - bytes * i / 30)), 0);
		CHECK(!load(fd));
	}
	struct block b;
	take(&b, &state); /* it is usable behind that */
	mem_clear();
	mem_use(false);
}

TEST_MAIN
