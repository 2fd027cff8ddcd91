/* Reasons become sentences: each row of the table, each unit, and how reasons are joined. */
#include "analyzer/diagnosis/reasons.h"
#include "tests/unit/test.h"

static struct reasons list;

/* What has been said becomes one sentence, and the list is empty again. */
static bool written(const char *expected)
{
	char *text = reasons_text(&list);
	const bool yes = text && !strcmp(text, expected);
	if (!yes)
		printf("# \"%s\"\n", text ? text : "(null)");
	free(text);
	reasons_fini(&list);
	return yes;
}

static bool is_figure(const char *name, size_t length)
{
	static const char *const names[] = {
#define FIGURE(name, unit) #name,
#include "analyzer/diagnosis/reasons.def"
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == length && !memcmp(names[i], name, length))
			return true;
	return false;
}

TEST(every_row_names_figures)
{
	static const char *const rows[] = {
#define REASON(name, words) words,
#include "analyzer/diagnosis/reasons.def"
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (const char *open = strchr(rows[i], '{'), *close; open; open = strchr(close, '{')) {
			close = strchr(open, '}');
			CHECK(close && is_figure(open + 1, strcspn(open + 1, "|}")));
			if (!close || !is_figure(open + 1, strcspn(open + 1, "|}"))) {
				printf("# %s\n", rows[i]);
				break;
			}
		}
}

TEST(reasons_are_joined_in_their_order)
{
	SAY(&list, cgroup_used, .limit = 4ull << 30, .memory = 8ull << 30, .used = 3ull << 30);
	SAY(&list, hit_at_once);
	SAY(&list, kernel_killed, .count = 1234);
	CHECK(written("the cgroup may use 4.00 GiB of the machine's 8.00 GiB; 3.00 GiB of it were in use, then it was "
		      "hit between two samples and the kernel killed 1234"));
	CHECK(!reasons_text(&list));
}

TEST(a_name_that_is_not_known_is_said_otherwise)
{
	SAY(&list, made_by);
	SAY(&list, in_extension);
	CHECK(written(", by one site in "));
	SAY(&list, made_by, .site = "a.py:1 {f}");
	CHECK(written(", by a.py:1 {f}"));
}

TEST(each_unit_is_written_in_its_way)
{
	SAY(&list, keeps_blocks, .site = "a", .blocks = 1234, .each = 1536);
	CHECK(written(". a holds most, 1,234 blocks of 1.5 KiB: find what keeps them (a list, a cache)"));
	SAY(&list, since_second, .moment = 7.46);
	SAY(&list, memory_ends, .ends = { true, 1008, 940, 1090 });
	CHECK(written(" since second 7.5; if it goes on, memory ends at step 1008 (95 %: 940 to 1090)"));
	SAY(&list, of_shape, .shape = GROWTH_ACCELERATING);
	SAY(&list, no_leak, .how = OUTLOOK_SHORT);
	CHECK(written(", accelerating, too seldom to say whether it goes on"));
	SAY(&list, used_again, .at = 3000000000u, .bytes = 1 << 20);
	CHECK(written("; at 3.00 s it was 1.0 MiB, which was used again or given back since"));
	SAY(&list, malloc_setting, .setting = "S", .bytes = 1 << 20, .times = 0.5);
	CHECK(written("S: replayed, 1.0 MiB less at the end, 0.50 times the time in malloc"));
	SAY(&list, host_too_short, .lasted = 0.123);
	CHECK(written("only 0.12 s were recorded: too short to tell growth"));
	SAY(&list, neighbour, .pid = 77777);
	SAY(&list, neighbour_holds, .percent = 12.46, .of = "cuda:0");
	CHECK(written("77777 holds 12.5 % of cuda:0; without it the request fits"));
}

TEST_MAIN
