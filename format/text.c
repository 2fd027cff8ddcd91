#include "format/text.h"

#include <stddef.h>

/* The first two bytes tell how long a character is and rule out overlong forms, surrogates and what is above U+10FFFF.
 * */
static unsigned length_of(const unsigned char *s)
{
	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4 || (s[1] & 0xc0) != 0x80)
		return 0;
	if (s[0] < 0xe0)
		return 2;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] >= 0x90) || (s[2] & 0xc0) != 0x80)
		return 0;
	if (s[0] < 0xf0)
		return 3;
	return (s[3] & 0xc0) == 0x80 ? 4 : 0;
}

struct mt_character mt_text_character(const char *text)
{
	static const unsigned char first_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	const unsigned char *s = (const unsigned char *)text;
	unsigned n = length_of(s);
	if (n == 0)
		return (struct mt_character){ MT_TEXT_INVALID, 1 };
	uint32_t code = s[0] & first_bits[n];
	for (unsigned i = 1; i < n; i++)
		code = code << 6 | (s[i] & 0x3f);
	return (struct mt_character){ code, n };
}

struct range {
	uint32_t first, last;
};

static int is_in(const struct range *ranges, size_t count, uint32_t code)
{
	for (size_t i = 0; i < count && ranges[i].first <= code; i++)
		if (code <= ranges[i].last)
			return 1;
	return 0;
}

#define IS_IN(ranges, code) is_in(ranges, sizeof(ranges) / sizeof(*(ranges)), code)

int mt_text_shows(uint32_t code)
{
	/* Unicode's categories Cc, Zl and Zp, what is blank of Cf, and letters that are blank */
	static const struct range hidden[] = {
		{ 0x00, 0x1f },           { 0x7f, 0x9f },       { 0xad, 0xad },       { 0x34f, 0x34f },
		{ 0x61c, 0x61c },         { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
		{ 0x200b, 0x200f },       { 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x3164, 0x3164 },
		{ 0xd800, 0xdfff },       { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
		{ 0x13430, 0x1343f },     { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
		{ 0x110000, UINT32_MAX },
	};
	return (code >= ' ' && code < 0x7f) || !IS_IN(hidden, code);
}

int mt_text_columns(uint32_t code)
{
	static const struct range joining[] = {
		{ 0x300, 0x36f },   { 0x483, 0x489 },   { 0x591, 0x5bd },   { 0x610, 0x61a },
		{ 0x64b, 0x65f },   { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x20d0, 0x20ff },
		{ 0x302a, 0x302d }, { 0x3099, 0x309a }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
	};
	static const struct range wide[] = {
		{ 0x1100, 0x115e },   { 0x231a, 0x231b },   { 0x23e9, 0x23ec },   { 0x2614, 0x2615 },
		{ 0x26a1, 0x26a1 },   { 0x2705, 0x2705 },   { 0x2728, 0x2728 },   { 0x274c, 0x274c },
		{ 0x2e80, 0x303e },   { 0x3041, 0x3163 },   { 0x3165, 0x33ff },   { 0x3400, 0x4dbf },
		{ 0x4e00, 0xa4cf },   { 0xa960, 0xa97c },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
		{ 0xfe30, 0xfe6f },   { 0xff01, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x17000, 0x18d08 },
		{ 0x1b000, 0x1b2fb }, { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f7e0, 0x1f7eb },
		{ 0x1f900, 0x1f9ff }, { 0x1fa70, 0x1faff }, { 0x20000, 0x3fffd },
	};
	return code < 0x300 || !mt_text_shows(code) ? 1 : IS_IN(joining, code) ? 0 : IS_IN(wide, code) ? 2 : 1;
}

char *mt_text_clean(char *dst, char *end, const char *text)
{
	while (*text) {
		struct mt_character c = mt_text_character(text);
		int shows = mt_text_shows(c.code);
		if (dst + (shows ? c.bytes : 1) >= end)
			break;
		for (unsigned i = 0; shows && i < c.bytes; i++)
			*dst++ = text[i];
		if (!shows)
			*dst++ = '?';
		text += c.bytes;
	}
	*dst = '\0';
	return dst;
}
