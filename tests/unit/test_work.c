/* What a process makes and frees again, by time (analyzer/model/work.h). */
#include "analyzer/model/work.h"
#include "tests/unit/test.h"

static const struct process whose;

static void change(struct work *w, uint64_t ns, int64_t bytes, bool moves)
{
	work_change(w, &(struct model_change){ .process = &whose,
					       .kind = MODEL_HEAP,
					       .bytes = bytes,
					       .blocks = bytes > 0 ? 1 : -1,
					       .ns = ns,
					       .moves = moves });
}

/* Each second: a megabyte comes and goes, `kept` bytes stay. */
static struct work_done live(unsigned seconds, int64_t kept, bool frees_at_end)
{
	struct work *w = work_new();
	for (unsigned i = 0; i < seconds; i++) {
		change(w, i * 1000000000ull, 1000000, false);
		change(w, i * 1000000000ull + 1000000, -1000000, false);
		if (kept)
			change(w, i * 1000000000ull + 2000000, kept, false);
	}
	for (unsigned i = 0; frees_at_end && i < seconds; i++)
		change(w, seconds * 1000000000ull, -kept, false);
	struct work_done done = work_between(w, 0, 0, seconds * 1000000000ull);
	work_free(w);
	return done;
}

TEST(what_comes_and_goes_is_passing)
{
	struct work_done done = live(1000, 1000, false);
	CHECK(done.made > 1.0e9 && done.passing > 0.99 * 1.0e9 && done.busy > 0.9);
}

TEST(what_is_freed_as_it_ends_was_kept)
{
	struct work_done kept = live(100, 50000000, false), freed = live(100, 50000000, true);
	CHECK(kept.passing == freed.passing && freed.passing < 0.05 * freed.made);
}

TEST(a_block_that_realloc_moves_is_made_by_what_it_grows)
{
	struct work *w = work_new();
	change(w, 0, 1000, false);
	for (int i = 1; i <= 100; i++) {
		change(w, (uint64_t)i * 10000000, -1000 * i, true);
		change(w, (uint64_t)i * 10000000, 1000 * (i + 1), true);
	}
	struct work_done done = work_between(w, 0, 0, 2000000000);
	CHECK(done.made == 101000 && done.busy == 0);
	work_free(w);
}

/* Both make a megabyte a second and free it. */
TEST(what_comes_by_the_same_stacks_is_made_again)
{
	struct work *loop = work_new(), *once = work_new();
	for (unsigned i = 0; i < 100; i++) {
		struct model_change c = { .process = &whose,
					  .kind = MODEL_HEAP,
					  .bytes = 1000000,
					  .blocks = 1,
					  .ns = i * 1000000000ull,
					  .site = i % 5 };
		work_change(loop, &c);
		c.site = i / 3;
		work_change(once, &c);
		change(loop, i * 1000000000ull + 1000000, -1000000, false);
		change(once, i * 1000000000ull + 1000000, -1000000, false);
	}
	struct work_done of_loop = work_between(loop, 0, 0, 100000000000),
			 of_once = work_between(once, 0, 0, 100000000000);
	CHECK(of_loop.made == 1e8 && of_once.made == 1e8 && of_once.passing == of_loop.passing);
	CHECK(of_loop.again == 0.8e8 && of_once.again == 0);
	work_free(loop);
	work_free(once);
}

/* Works for 10 s and keeps a megabyte each second; then, for 10 s, it frees these, as many a second, or all at once, or
 * none; or works on. */
enum behind { SLOWLY, AT_ONCE, RESTS, WORKS_ON };

static struct work *behind(enum behind how)
{
	struct work *w = work_new();
	const uint64_t s = 1000000000;
	for (unsigned i = 0; i < (how == WORKS_ON ? 200 : 100); i++) {
		change(w, i * s / 10, 3000000, false);
		change(w, i * s / 10 + s / 20, -3000000, false);
		if (i % 10 == 9 && i < 100)
			change(w, i * s / 10 + s / 20, 1000000, false);
	}
	for (unsigned i = 0; i < 10 && (how == SLOWLY || how == AT_ONCE); i++)
		change(w, (how == SLOWLY ? 10 + i : 10) * s + s / 10, -1000000, false);
	change(w, 20 * s, 100, false); /* a word as it ends */
	return w;
}

TEST(who_frees_what_it_had_and_makes_nothing_cleans_up)
{
	static const struct {
		enum behind how;
		double freed;
	} ways[] = { { SLOWLY, 5000000 }, { AT_ONCE, 10000000 }, { RESTS, 0 } };
	const uint64_t s = 1000000000, end = 20 * s;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct work *w = behind(ways[i].how);
		uint64_t since = work_rests_since(w, 0, end);
		CHECK(since > 9.8 * (double)s && since < 10.3 * (double)s);
		struct work_behind done = work_behind(w, 0, 10 * s, end);
		CHECK(done.making < WORK_RESTS);
		CHECK(done.freed >= ways[i].freed - 1000000 && done.freed <= ways[i].freed);
		work_free(w);
	}
}

TEST(who_works_on_does_not_rest)
{
	struct work *w = behind(WORKS_ON);
	const uint64_t s = 1000000000, end = 20 * s;
	struct work_behind done = work_behind(w, 0, 10 * s, end);
	CHECK(done.making > 0.5 && done.freed == 0);
	CHECK(work_rests_since(w, 0, end) > 19 * s);
	CHECK(work_rests_since(w, 7, end) == end && work_behind(w, 7, 0, end).freed == 0);
	work_free(w);
}

TEST(nothing_is_known_of_others)
{
	struct work *w = work_new();
	change(w, 0, 1000, false);
	CHECK(work_between(w, 7, 0, 1000).made == 0);
	work_free(w);
}

TEST_MAIN
