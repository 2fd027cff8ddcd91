#include "analyzer/util/suggest.h"
#include "tests/unit/test.h"

static const char *nearest(const char *text)
{
	static const char *const words[] = { "report", "peak", "leaks", "frag", "timeline", "run", "record" };
	struct suggestion s = { .text = text };
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		suggest(&s, words[i]);
	return s.best ? s.best : "";
}

TEST(letters_swapped_missing_added_replaced)
{
	CHECK(!strcmp(nearest("reprot"), "report"));
	CHECK(!strcmp(nearest("repot"), "report"));
	CHECK(!strcmp(nearest("repport"), "report"));
	CHECK(!strcmp(nearest("rebort"), "report"));
	CHECK(!strcmp(nearest("leks"), "leaks"));
}

TEST(a_beginning_is_nearest)
{
	CHECK(!strcmp(nearest("leak"), "leaks"));
	CHECK(!strcmp(nearest("time"), "timeline"));
	CHECK(!strcmp(nearest("rec"), "record"));
}

TEST(the_word_itself_is_nearest)
{
	CHECK(!strcmp(nearest("run"), "run"));
}

TEST(nothing_comes_near)
{
	CHECK(!strcmp(nearest(""), ""));
	CHECK(!strcmp(nearest("x"), ""));
	CHECK(!strcmp(nearest("r"), ""));
	CHECK(!strcmp(nearest("zzzzzz"), ""));
	CHECK(!strcmp(nearest("leaksleaksleaks"), ""));
	CHECK(!strcmp(nearest("a very long word that nobody types who means any command at all"), ""));
}

TEST_MAIN
