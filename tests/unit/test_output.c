#include "analyzer/output.h"
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

TEST(hostile_text_is_made_harmless)
{
	CHECK(same_and_free(output_clean("a\033[31mb\tc\n"), "a?[31mb?c?"));
	CHECK(same_and_free(output_clean("na\xc3\xafve \xe2\x96\x88"), "naïve █"));
	CHECK(same_and_free(output_clean("\xff\xc3"), "??"));
	CHECK(same_and_free(output_clean("\xc2\x9b"), "?"));
}

TEST(text_is_fitted_in_columns_not_bytes)
{
	CHECK_EQ(output_columns("█▁é"), 3);
	CHECK(same_and_free(output_fit("abcdefghij", 10), "abcdefghij"));
	CHECK(same_and_free(output_fit("abcdefghijk", 10), "abcd..hijk"));
	CHECK(same_and_free(output_fit("ééééééééééé", 10), "éééé..éééé"));
	CHECK(same_and_free(output_fit("abcdefghijk", 3), "abc"));
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
static char *printed(const char *columns, void (*print)(void))
{
	FILE *screen = stdout;
	char *text = NULL;
	size_t size;
	setenv("COLUMNS", columns, 1);
	fflush(screen);
	stdout = open_memstream(&text, &size);
	print();
	fclose(stdout);
	stdout = screen;
	unsetenv("COLUMNS");
	return text;
}

static void print_wide_table(void)
{
	static const struct column columns[] = {
		{ "PROCESS", LEFT, true }, { "peak", RIGHT, false }, { "frees", RIGHT, WORTH(1) }, { "blocks", RIGHT, WORTH(2) }, { "exit", LEFT, false },
	};
	struct table *t = table_new(columns, 5, 0);
	table_row(t, (const char *[]){ "a name of thirty-two columns, ok", "123.4 MiB", "1,234,567", "7,654,321", "exit 0" });
	table_print(t);
}

TEST(columns_are_left_out_whole_before_names_are_cut)
{
	if (output_is_terminal())
		return; /* it says how wide it is */
	CHECK(same_and_free(printed("80", print_wide_table), "PROCESS                                peak      frees     blocks  exit\n"
							     "a name of thirty-two columns, ok  123.4 MiB  1,234,567  7,654,321  exit 0\n"));
	CHECK(same_and_free(printed("70", print_wide_table), "PROCESS                                peak     blocks  exit\n"
							     "a name of thirty-two columns, ok  123.4 MiB  7,654,321  exit 0\n"));
	CHECK(same_and_free(printed("60", print_wide_table), "PROCESS                                peak  exit\n"
							     "a name of thirty-two columns, ok  123.4 MiB  exit 0\n"));
}

static void print_least_table(void)
{
	static const struct column columns[] = { { "A", LEFT, false }, { "B", RIGHT, WORTH(1) }, { "C", RIGHT, WORTH(2) } };
	struct table *t = table_new(columns, 3, 0);
	table_keep(t, 2);
	table_row(t, (const char *[]){ "1", "2", "3" });
	table_print(t);
}

TEST(what_is_worth_little_can_be_left_out_anyway)
{
	CHECK(same_and_free(printed("80", print_least_table), "A  C\n1  3\n"));
}

static void print_forms(void)
{
	output_first_line(STYLE_NONE, (char *[]){ output_format("%070d", 0), output_format("%050d", 0), output_format("%010d", 0) }, 3);
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
	CHECK(same_and_free(printed("60", print_words), "12 MiB of what is there are    figures\n    free, 34 MiB asked for\n"));
}
