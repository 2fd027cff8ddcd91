#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/shell.h"
#include "format/text.h"
#include "tests/unit/test.h"

static bool same(const char *a, const char *b)
{
	if (a && b && strcmp(a, b) == 0)
		return true;
	printf("# \"%s\" is not \"%s\"\n", a ? a : "(null)", b ? b : "(null)");
	return false;
}

static bool same_and_free(char *a, const char *b)
{
	bool is = same(a, b);
	free(a);
	return is;
}

TEST(bytes_have_three_or_four_digits)
{
	CHECK(same(BYTES(0), "0 B"));
	CHECK(same(BYTES(1023), "1023 B"));
	CHECK(same(BYTES(1024), "1.0 KiB"));
	CHECK(same(BYTES(1048575), "1.0 MiB"));
	CHECK(same(BYTES(3111649280), "2.90 GiB"));
	CHECK(same(BYTES(UINT64_MAX), "16.00 EiB"));
}

TEST(counts_are_grouped)
{
	CHECK(same(COUNT(999), "999"));
	CHECK(same(COUNT(1000), "1,000"));
	CHECK(same(COUNT(1234567), "1,234,567"));
	CHECK(same(COUNT(12345678), "12.3 M"));
	CHECK(same(COUNT(123456789012), "123.5 G"));
}

TEST(durations_are_seconds_then_clocks)
{
	CHECK(same(DURATION(1234567), "0.001 s"));
	CHECK(same(DURATION(12345678901), "12.3 s"));
	CHECK(same(DURATION(2472000000000), "00:41:12"));
}

TEST(size_classes_are_ranges)
{
	CHECK(same_and_free(output_size_class(0), "0"));
	CHECK(same_and_free(output_size_class(1), "1"));
	CHECK(same_and_free(output_size_class(6), "32-63"));
	CHECK(same_and_free(output_size_class(11), "1K-2K"));
	CHECK(same_and_free(output_size_class(48), "128T-256T"));
}

TEST(characters_are_told_from_bytes_that_are_none)
{
	static const struct {
		const char *text;
		uint32_t code;
		unsigned bytes;
	} list[] = {
		{ "a", 'a', 1 },
		{ "\xc3\xaf", 0xef, 2 },
		{ "\xe2\x96\x88", 0x2588, 3 },
		{ "\xf0\x9f\x98\x80", 0x1f600, 4 },
		{ "\xf4\x8f\xbf\xbf", 0x10ffff, 4 },
		{ "\xff", MT_TEXT_INVALID, 1 },
		{ "\x9b", MT_TEXT_INVALID, 1 },
		{ "\xc3", MT_TEXT_INVALID, 1 },
		{ "\xe2\x96", MT_TEXT_INVALID, 1 },
		{ "\xf0\x9f\x98", MT_TEXT_INVALID, 1 },
		{ "\xc0\x9b", MT_TEXT_INVALID, 1 },
		{ "\xc1\xbf", MT_TEXT_INVALID, 1 },
		{ "\xe0\x82\x9b", MT_TEXT_INVALID, 1 },
		{ "\xf0\x80\x82\x9b", MT_TEXT_INVALID, 1 },
		{ "\xed\xa0\x80", MT_TEXT_INVALID, 1 },
		{ "\xf4\x90\x80\x80", MT_TEXT_INVALID, 1 },
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		struct mt_character c = mt_text_character(list[i].text);
		CHECK_EQ(c.code, list[i].code);
		CHECK_EQ(c.bytes, list[i].bytes);
	}
}

TEST(text_is_cleaned_where_it_has_room)
{
	char text[8];
	char *end = mt_text_clean(text, text + sizeof(text), "a\033[\xff\n\xc2\x9b");
	CHECK(same(text, "a?[???"));
	CHECK_EQ(end - text, 6);
	mt_text_clean(text, text + sizeof(text), "123456\xc3\xaf");
	CHECK(same(text, "123456"));
}

TEST(text_is_fitted_in_columns_not_bytes)
{
	CHECK_EQ(output_columns("█▁é"), 3);
	CHECK(same_and_free(output_fit("abcdefghij", 10), "abcdefghij"));
	CHECK(same_and_free(output_fit("abcdefghijk", 10), "abcd..hijk"));
	CHECK(same_and_free(output_fit("ééééééééééé", 10), "éééé..éééé"));
	CHECK(same_and_free(output_fit("abcdefghijk", 3), "abc"));
	CHECK_EQ(output_columns("\xff\xc3\033"), 3);
	CHECK_EQ(output_columns("内存e\xcc\x81"), 5);
	CHECK(same_and_free(output_fit("内存内存内存内存", 11), "内存..内存"));
	CHECK(same_and_free(output_tail("内存内存内存内存", 9), "..存内存"));
	CHECK(same_and_free(output_cut("内存内存内存内存", 9), "内存内.."));
}

TEST(sparklines_scale)
{
	uint64_t values[] = { 0, 1, 50, 100 };
	CHECK(same_and_free(output_sparkline(values, 4, 100), " ▁▅█"));
	CHECK(same_and_free(output_sparkline(values, 1, 0), " "));
}

TEST(each_character_has_one_of_ascii)
{
	static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	char line[9] = "";
	for (size_t i = 0; i < 8; i++)
		line[i] = output_ascii(bars[i], (int)strlen(bars[i]));
	CHECK(same(line, "_.:-=+*#"));
	CHECK_EQ(output_ascii("·", 2), '.');
	CHECK_EQ(output_ascii("é", 2), '?');
	CHECK_EQ(output_ascii("a", 1), 'a');
	CHECK_EQ(output_ascii("\xbf", 1), '?');
}

TEST(wall_clock_is_utc)
{
	CHECK(same(WALL(1700000000123456789), "2023-11-14T22:13:20Z"));
}

TEST_MAIN

/* What is printed where there are so many columns. Allocated. */
static char *printed(const char *columns, void (*body)(void))
{
	char *text = NULL;
	size_t size;
	setenv("COLUMNS", columns, 1);
	FILE *f = open_memstream(&text, &size), *before = print_into(f);
	body();
	print_into(before);
	fclose(f);
	unsetenv("COLUMNS");
	return text;
}

static void print_wide_table(void)
{
	static const struct column columns[] = {
		{ "PROCESS", LEFT, true },     { "peak", RIGHT, false }, { "frees", RIGHT, WORTH(1) },
		{ "blocks", RIGHT, WORTH(2) }, { "exit", LEFT, false },
	};
	struct table *t = table_new(columns, 5, 0);
	table_row(t, (const char *[]){ "a name of thirty-two columns, ok", "123.4 MiB", "1,234,567", "7,654,321",
				       "exit 0" });
	table_print(t);
}

TEST(columns_are_left_out_whole_before_names_are_cut)
{
	if (output_is_terminal())
		return; /* it says how wide it is */
	CHECK(same_and_free(printed("80", print_wide_table),
			    "PROCESS                                peak      frees     blocks  exit\n"
			    "a name of thirty-two columns, ok  123.4 MiB  1,234,567  7,654,321  exit 0\n"));
	CHECK(same_and_free(printed("70", print_wide_table),
			    "PROCESS                                peak     blocks  exit\n"
			    "a name of thirty-two columns, ok  123.4 MiB  7,654,321  exit 0\n"));
	CHECK(same_and_free(printed("60", print_wide_table), "PROCESS                                peak  exit\n"
							     "a name of thirty-two columns, ok  123.4 MiB  exit 0\n"));
}

static void print_least_table(void)
{
	static const struct column columns[] = { { "A", LEFT, false },
						 { "B", RIGHT, WORTH(1) },
						 { "C", RIGHT, WORTH(2) } };
	struct table *t = table_new(columns, 3, 0);
	table_keep(t, 2);
	table_row(t, (const char *[]){ "1", "2", "3" });
	table_print(t);
}

TEST(what_is_worth_little_can_be_left_out_anyway)
{
	CHECK(same_and_free(printed("80", print_least_table), "A  C\n1  3\n"));
}

static void print_without_b(void)
{
	static const struct column columns[] = { { "A", LEFT, false }, { "B", RIGHT, false }, { "C", LEFT, false } };
	struct table *t = table_new(columns, 3, 0);
	table_hide(t, 1);
	table_row(t, (const char *[]){ "1", "2", "3" });
	table_print(t);
}

TEST(one_column_can_be_left_out)
{
	CHECK(same_and_free(printed("80", print_without_b), "A  C\n1  3\n"));
}

static void print_forms(void)
{
	output_first_line(STYLE_NONE,
			  (char *[]){ output_format("%070d", 0), output_format("%050d", 0), output_format("%010d", 0) },
			  3);
}

static void print_words(void)
{
	output_wrapped("12 MiB of what is there are free, 34 MiB asked for", 4, 2, 31, "figures");
}

TEST(lines_take_the_form_that_fits)
{
	if (output_is_terminal())
		return;
	CHECK(same_and_free(printed("60", print_forms), "00000000000000000000000000000000000000000000000000\n"));
	CHECK(same_and_free(printed("60", print_words),
			    "12 MiB of what is there are    figures\n    free, 34 MiB asked for\n"));
}

static void print_hostile_text(void)
{
	const char *volatile nothing = NULL;
	print("a %s|\n", "\033[31mb\tc\n");
	print("%s|%s|\n", "na\xc3\xafve \xe2\x96\x88", nothing);
	print("%s|%c%c|\n", "\xff\xc3", '\033', 'x');
	print("%s|\n", "\xc2\x9b\xe2\x80\xae\xe2\x80\x8b\xf3\xa0\x80\xa1 \x7f");
	print("%-4s|%4s|%.2s|%-*.*s|\n", "内", "\033", "abc", 3, 1, "xy");
}

TEST(what_is_printed_with_s_shows_and_nothing_else)
{
	CHECK(same_and_free(printed("80", print_hostile_text), "a ?[31mb?c?|\n"
							       "naïve █||\n"
							       "??|?x|\n"
							       "???? ?|\n"
							       "内  |   ?|ab|x  |\n"));
}

static void print_numbers(void)
{
	print("%s%d %5u|%-5u|%05.1f %" PRIu64 " %+" PRId64 " %#" PRIx64 " %zu %*d %.*f %x %%\n", "", -1, 2u, 3u, 4.25,
	      UINT64_MAX, (int64_t)5, (uint64_t)255, (size_t)6, 4, 7, 1, 8.06, 0xabu);
}

TEST(numbers_are_printed_as_stdio_does)
{
	CHECK(same_and_free(printed("80", print_numbers),
			    "-1     2|3    |004.2 18446744073709551615 +5 0xff 6    7 8.1 ab %\n"));
}

static void print_by_the_million(void)
{
	static const uint64_t numbers[] = { 0, 9, 10, 255, INT64_MAX, UINT64_MAX };
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		print_decimal(numbers[i]);
		print_text(" ");
		print_hexadecimal(numbers[i]);
		print_text("\n");
	}
	print_text("malloc \033[31m\xff|\n");
}

TEST(what_is_printed_by_the_million_is_printed_as_stdio_does)
{
	CHECK(same_and_free(printed("80", print_by_the_million),
			    "0 0x0?9 0x9?10 0xa?255 0xff?9223372036854775807 0x7fffffffffffffff?"
			    "18446744073709551615 0xffffffffffffffff?malloc ?[31m?|?"));
}

TEST(words_for_a_shell_are_quoted)
{
	CHECK(same_and_free(shell_word("/tmp/a-b.2"), "/tmp/a-b.2"));
	CHECK(same_and_free(shell_word(""), "''"));
	CHECK(same_and_free(shell_word("a b"), "'a b'"));
	CHECK(same_and_free(shell_word("$(x)`y`"), "'$(x)`y`'"));
	CHECK(same_and_free(shell_quoted("it's"), "'it'\\''s'"));
	CHECK(same_and_free(shell_word("a\n*"), "\"$(printf %b 'a\\0012\\0052')\""));
	CHECK(same_and_free(shell_word("a  '"), "\"$(printf %b 'a\\0040\\0040\\0047')\""));
}
