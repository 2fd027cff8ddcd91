/* Whether what is alive is older than what earlier blocks had reached when they were freed. */
#include "analyzer/model/lifetimes.h"
#include "tests/unit/test.h"

enum { SIZE = 100 };

/* Each block lives for so many stretches; so many are made in each, and of those from `keeps` on one in each is never
 * freed. */
static struct lifetimes_found run(uint32_t stretches, uint32_t lives, uint32_t busy_from, uint32_t keeps,
				  uint32_t since)
{
	struct lifetimes *l = lifetimes_new();
	uint32_t made[LIFETIMES_STRETCHES] = { 0 };
	for (uint32_t now = 0; l && now < stretches; now++) {
		lifetimes_begin_stretch(l, now);
		made[now] = now >= busy_from ? 2 + (now - busy_from) / 2 : 2;
		for (uint32_t i = 0; i < made[now]; i++)
			lifetimes_add(l, now, SIZE);
		uint32_t stay = now >= lives && now - lives >= keeps;
		for (uint32_t i = stay; now >= lives && i < made[now - lives]; i++)
			lifetimes_remove(l, now, now - lives, SIZE);
	}
	if (l)
		lifetimes_begin_stretch(l, stretches - 1);
	struct lifetimes_found f = lifetimes_since(l, since);
	lifetimes_free(l);
	return f;
}

TEST(a_busy_moment_passes)
{
	struct lifetimes_found f = run(100, 20, 75, 200, 75);
	CHECK_EQ(f.overdue, 0);
	CHECK(f.freed >= 2 * SIZE * 70 && f.since >= 2 * SIZE * 20);
	CHECK(lifetimes_passes(&f, 25 * SIZE));
}

TEST(what_outlives_the_others_is_overdue)
{
	struct lifetimes_found f = run(100, 20, 200, 30, 30);
	CHECK(f.overdue >= 40 * SIZE);
	CHECK(!lifetimes_passes(&f, 50 * SIZE));
}

TEST(what_is_never_freed_does_not_pass)
{
	struct lifetimes_found f = run(60, 100, 200, 200, 0);
	CHECK_EQ(f.freed, 0);
	CHECK(!lifetimes_passes(&f, 120 * SIZE));
	f = lifetimes_since(NULL, 0);
	CHECK(!lifetimes_passes(&f, 0));
}

/* Until an epoch ends nothing of it goes, however old the last one's got. */
TEST(what_is_kept_until_an_epoch_ends_does_not_pass)
{
	struct lifetimes *l = lifetimes_new();
	for (uint32_t now = 0; now < 100; now++) {
		lifetimes_begin_stretch(l, now);
		for (uint32_t made = 0; now == 60 && made < now; made++)
			lifetimes_remove(l, now, made, SIZE);
		lifetimes_add(l, now, now < 60 ? SIZE : 2 * SIZE);
	}
	lifetimes_begin_stretch(l, 99);
	struct lifetimes_found f = lifetimes_since(l, 61);
	CHECK_EQ(f.overdue, 0);
	CHECK(!lifetimes_passes(&f, 60 * SIZE));
	lifetimes_free(l);
}

TEST(longer_stretches_say_the_same)
{
	struct lifetimes *l = lifetimes_new();
	for (uint32_t now = 0; now < 100; now++) {
		lifetimes_add(l, now, SIZE);
		if (now >= 10)
			lifetimes_remove(l, now, now - 10, SIZE);
	}
	lifetimes_halve(l);
	lifetimes_begin_stretch(l, 49);
	struct lifetimes_found f = lifetimes_since(l, 25);
	CHECK_EQ(f.freed, 90 * SIZE);
	CHECK_EQ(f.since, 50 * SIZE);
	CHECK_EQ(f.overdue, 0);
	lifetimes_free(l);
}

/* What a program frees at its end is no age that earlier ones had. */
TEST(the_end_comes_behind_the_look)
{
	struct lifetimes *l = lifetimes_new();
	for (uint32_t now = 0; now < 50; now++) {
		lifetimes_begin_stretch(l, now);
		lifetimes_add(l, now, 2 * SIZE);
		lifetimes_remove(l, now, now, SIZE);
	}
	for (uint32_t made = 0; made < 50; made++)
		lifetimes_remove(l, 50, made, SIZE);
	lifetimes_begin_stretch(l, 51);
	struct lifetimes_found f = lifetimes_since(l, 0);
	CHECK_EQ(f.overdue, 48 * SIZE);
	CHECK(!lifetimes_passes(&f, 50 * SIZE));
	lifetimes_free(l);
}

TEST_MAIN
