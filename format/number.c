#include "format/number.h"

#include <stddef.h>

#define MOST   (UINT64_MAX >> 1)
#define SECOND 1000000000ull

struct unit {
	char name[4];
	uint64_t factor;
};

static const struct unit sizes[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", 1ull << 10 },
	{ "m", 1ull << 20 },
	{ "g", 1ull << 30 },
	{ "t", 1ull << 40 },
	{ "kb", 1ull << 10 },
	{ "mb", 1ull << 20 },
	{ "gb", 1ull << 30 },
	{ "tb", 1ull << 40 },
	{ "kib", 1ull << 10 },
	{ "mib", 1ull << 20 },
	{ "gib", 1ull << 30 },
	{ "tib", 1ull << 40 },
	{ "", 0 },
};

static const struct unit times[] = {
	{ "", SECOND },       { "s", SECOND },        { "ms", SECOND / 1000 }, { "us", 1000 }, { "ns", 1 },
	{ "m", 60 * SECOND }, { "min", 60 * SECOND }, { "h", 3600 * SECOND },  { "", 0 },
};

static const struct unit counts[] = { { "", 1 }, { "", 0 } };

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Its factor; 0 = there is none of that name. */
static uint64_t factor_of(const struct unit *units, const char *name)
{
	for (; units->factor; units++) {
		size_t i = 0;
		while (units->name[i] && (name[i] | 0x20) == units->name[i])
			i++;
		if (!units->name[i] && !name[i])
			return units->factor;
	}
	return 0;
}

/* `digits` end before `end`. Cutting off after each digit cuts off as once at the end would. */
static uint64_t fraction_of(const char *digits, const char *end, uint64_t factor)
{
	uint64_t part = 0;

	while (end > digits)
		part = ((uint64_t)(*--end - '0') * factor + part) / 10;
	return part;
}

static int read_scaled(const char *text, const struct unit *units, uint64_t *value)
{
	const char *at = text, *point;
	uint64_t whole = 0, factor;

	for (; is_digit(*at); at++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole))
			return -1;
	point = at;
	if (*point == '.')
		while (is_digit(*++at))
			;
	if (at - text == (*point == '.') || (*point == '.' && units == counts))
		return -1;
	factor = factor_of(units, at);
	if (!factor || __builtin_mul_overflow(whole, factor, &whole) ||
	    __builtin_add_overflow(whole, fraction_of(point + 1, at, factor), &whole) ||
	    (units != counts && whole > MOST))
		return -1;
	*value = whole;
	return 0;
}

int mt_read_bytes(const char *text, uint64_t *value)
{
	return read_scaled(text, sizes, value);
}

int mt_read_duration(const char *text, uint64_t *value)
{
	return read_scaled(text, times, value);
}

int mt_read_count(const char *text, uint64_t *value)
{
	return read_scaled(text, counts, value);
}
