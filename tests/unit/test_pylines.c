/* With PYLINES=FILE what tests/programs/pylines.py wrote is checked too; tests/cases/python.py does that. */
#include "analyzer/symbols/python_lines.h"
#include "tests/unit/test.h"

#define LONGEST (1 << 24)

static unsigned char table[LONGEST / 2];

static struct process_code code_of(uint32_t version, uint32_t first_line, const char *hex)
{
	struct process_code c = { .version = version, .first_line = first_line, .table = table };
	unsigned byte;
	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		table[c.table_bytes++] = (unsigned char)byte;
	return c;
}

TEST(pairs_go_back_too)
{
	struct process_code c = code_of(0x308, 10,
					"0001"
					"0602"
					"04ff"
					"ff00"
					"0a01");
	CHECK_EQ(python_lines_find(&c, 0), 11);
	CHECK_EQ(python_lines_find(&c, 4), 11);
	CHECK_EQ(python_lines_find(&c, 6), 13);
	CHECK_EQ(python_lines_find(&c, 10), 12);
	CHECK_EQ(python_lines_find(&c, 274), 12);
	CHECK_EQ(python_lines_find(&c, 276), 13);
}

TEST(ranges_may_be_on_no_line)
{
	struct process_code c = code_of(0x30a, 5,
					"0401"
					"0680"
					"02ff");
	CHECK_EQ(python_lines_find(&c, 2), 6);
	CHECK_EQ(python_lines_find(&c, 4), 0);
	CHECK_EQ(python_lines_find(&c, 10), 5);
	CHECK_EQ(python_lines_find(&c, 12), 0);
}

TEST(damaged_tables_have_no_lines)
{
	static const char *const hex[] = { "", "f8", "f0ffffffffffffff", "e87f7f7f7f7f7f7f7f", "ff" };
	for (size_t i = 0; i < sizeof(hex) / sizeof(*hex); i++) {
		struct process_code c = code_of(0x30b, 1, hex[i]);
		for (uint32_t at = 0; at < 64; at += 2)
			CHECK(python_lines_find(&c, at) <= 1u << 31);
		CHECK_EQ(python_lines_find(&c, UINT32_MAX - 1), 0);
	}
}

static unsigned long check_pairs(const struct process_code *c, const char *text)
{
	unsigned long wrong = 0;
	unsigned at, line;
	while (text && sscanf(text, "%u:%u", &at, &line) == 2) {
		wrong += python_lines_find(c, at) != line;
		text = strchr(text, ',');
		text = text ? text + 1 : NULL;
	}
	return wrong;
}

TEST(lines_are_what_the_interpreter_says)
{
	const char *path = getenv("PYLINES");
	FILE *file = path ? fopen(path, "r") : NULL;
	static char line[LONGEST], hex[LONGEST], pairs[LONGEST];
	unsigned long codes = 0, wrong = 0;
	unsigned version, first;
	while (file && fgets(line, sizeof(line), file)) {
		int n = sscanf(line, "%x %u %s %s", &version, &first, hex, pairs);
		struct process_code c = code_of(version, first, hex);
		wrong += check_pairs(&c, n == 4 ? pairs : NULL);
		codes++;
	}
	CHECK(!path || codes > 100);
	CHECK_EQ(wrong, 0);
	if (file)
		fclose(file);
}

TEST_MAIN
