/* Sizes, times and the MEMTRACE_* variables, as the shim and the program read them. */
#include "format/format.h"
#include "format/number.h"
#include "format/settings.h"
#include "tests/unit/test.h"

#include <string.h>

#define REFUSED 77

static uint64_t bytes(const char *text)
{
	uint64_t value = REFUSED;
	return mt_read_bytes(text, &value) ? REFUSED : value;
}

static uint64_t duration(const char *text)
{
	uint64_t value = REFUSED;
	return mt_read_duration(text, &value) ? REFUSED : value;
}

TEST(sizes)
{
	CHECK_EQ(bytes("0"), 0);
	CHECK_EQ(bytes("512"), 512);
	CHECK_EQ(bytes("64K"), 65536);
	CHECK_EQ(bytes("1.5G"), 3ull << 29);
	CHECK_EQ(bytes("2GiB"), 2ull << 30);
	CHECK_EQ(bytes("300MB"), 300ull << 20);
	CHECK_EQ(bytes("300mb"), 300ull << 20);
	CHECK_EQ(bytes("5B"), 5);
	CHECK_EQ(bytes(".5k"), 512);
	CHECK_EQ(bytes("1.t"), 1ull << 40);
	CHECK_EQ(bytes("0.1K"), 102); /* 102.4 */
	CHECK_EQ(bytes("1.000000000000000000000000000000000001T"), 1ull << 40);
	CHECK_EQ(bytes("0.99999999999999999999999999999999T"), (1ull << 40) - 1);
	CHECK_EQ(bytes("9223372036854775807"), INT64_MAX);
}

TEST(what_is_no_size)
{
	static const char *const texts[] = {
		"",
		" ",
		"K",
		".",
		".K",
		"1.5.5",
		"1,5G",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1 G",
		"1Gi",
		"1GG",
		"1GBB",
		"1X",
		"0x10",
		"1e9",
		"inf",
		"nan",
		"9223372036854775808",
		"18446744073709551616",
		"99999999999999999999999",
		"8388608T",
		"1P",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		CHECK_EQ(bytes(texts[i]), REFUSED);
}

TEST(times)
{
	CHECK_EQ(duration("12.5"), 12500000000ull);
	CHECK_EQ(duration("0.1s"), 100000000);
	CHECK_EQ(duration("500ms"), 500000000);
	CHECK_EQ(duration("7us"), 7000);
	CHECK_EQ(duration("2m"), 120000000000ull);
	CHECK_EQ(duration("1.5h"), 5400000000000ull);
	CHECK_EQ(duration("0.0000000001"), 0);
	CHECK_EQ(duration("-1"), REFUSED);
	CHECK_EQ(duration("1K"), REFUSED);
	CHECK_EQ(duration("1e3"), REFUSED);
	CHECK_EQ(duration("9223372037"), REFUSED);
}

TEST(counts)
{
	uint64_t value = REFUSED;
	CHECK(mt_read_count("18446744073709551615", &value) == 0);
	CHECK_EQ(value, UINT64_MAX);
	CHECK(mt_read_count("18446744073709551616", &value) < 0);
	CHECK(mt_read_count("1.0", &value) < 0 && mt_read_count("1K", &value) < 0 && mt_read_count("", &value) < 0);
	CHECK_EQ(value, UINT64_MAX);
}

/* Its value and whether the text was refused. */
static uint64_t setting(enum mt_setting which, const char *text, int *refused)
{
	uint64_t value = REFUSED;
	*refused = mt_setting_read(which, text, &value) != 0;
	return value;
}

TEST(settings_have_their_defaults)
{
	int refused;
	CHECK(setting(MT_SET_LIMIT, NULL, &refused) == 4ull << 30 && !refused);
	CHECK(setting(MT_SET_LIMIT, "", &refused) == 4ull << 30 && !refused);
	CHECK(setting(MT_SET_LIMIT, "1.5 G", &refused) == 4ull << 30 && refused);
	CHECK(setting(MT_SET_DEPTH, "0", &refused) == 1024 && refused);
	CHECK(setting(MT_SET_DEPTH, "4097", &refused) == 1024 && refused);
	CHECK(setting(MT_SET_DEPTH, "4096", &refused) == 4096 && !refused);
	CHECK(setting(MT_SET_STACKS, "some", &refused) == MT_STACKS_ALL && refused);
	CHECK(setting(MT_SET_STACKS, "none", &refused) == MT_STACKS_NONE && !refused);
	CHECK(setting(MT_SET_CHILDREN, "no", &refused) == 0 && !refused);
	CHECK(setting(MT_SET_CHILDREN, "2", &refused) == 1 && refused);
}

TEST(every_default_can_be_read)
{
	for (unsigned i = 0; i < MT_SETTINGS; i++) {
		uint64_t value;
		CHECK(mt_setting_read(i, mt_settings[i].otherwise, &value) == 0);
	}
}

TEST_MAIN
