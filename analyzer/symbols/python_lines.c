/*
 * CPython has kept lines in three ways:
 *
 *   3.8, 3.9  pairs of bytes: so many bytes of code further, so many lines (signed) further
 *   3.10      pairs of bytes: a range of so many bytes lies so many lines (signed) further; -128 = on no line
 *   3.11 on   entries of variable length, each for 1 to 8 code units: a byte with the highest bit set, a kind of 4
 *             bits and the length, then what the kind says, which are bytes without that bit or varints of 6 bits
 */
#include "analyzer/symbols/python_lines.h"

#define UNIT 2 /* bytes of an instruction */

static uint32_t find_pairs(const struct process_code *c, uint32_t offset)
{
	uint64_t at = 0;
	int64_t line = c->first_line;
	for (uint32_t i = 0; i + 1 < c->table_bytes; i += 2) {
		at += c->table[i];
		if (at > offset)
			break;
		line += (signed char)c->table[i + 1];
	}
	return line > 0 ? (uint32_t)line : 0;
}

static uint32_t find_ranges(const struct process_code *c, uint32_t offset)
{
	uint64_t end = 0;
	int64_t line = c->first_line;
	for (uint32_t i = 0; i + 1 < c->table_bytes; i += 2) {
		signed char delta = (signed char)c->table[i + 1];
		end += c->table[i];
		if (delta != -128)
			line += delta;
		if (offset < end)
			return delta == -128 || line < 0 ? 0 : (uint32_t)line;
	}
	return 0;
}

struct cursor {
	const unsigned char *at, *end;
};

static uint32_t varint(struct cursor *c)
{
	uint32_t n = 0;
	for (unsigned shift = 0; c->at < c->end; shift += 6) {
		unsigned char byte = *c->at++;
		if (shift < 32)
			n |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return n;
}

/* The sign is the lowest bit. */
static int32_t signed_varint(struct cursor *c)
{
	uint32_t n = varint(c);
	return n & 1 ? -(int32_t)(n >> 1) : (int32_t)(n >> 1);
}

enum { KIND_ONE_LINE = 10, KIND_NO_COLUMNS = 13, KIND_LONG = 14, KIND_NONE = 15 };

static int32_t line_delta(struct cursor *c, unsigned kind)
{
	if (kind == KIND_LONG || kind == KIND_NO_COLUMNS)
		return signed_varint(c);
	return kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS ? (int32_t)kind - KIND_ONE_LINE : 0;
}

static uint32_t find_locations(const struct process_code *code, uint32_t offset)
{
	struct cursor c = { code->table, code->table + code->table_bytes };
	int64_t line = code->first_line;
	uint64_t end = 0;
	while (c.at < c.end) {
		unsigned char head = *c.at++;
		unsigned kind = head >> 3 & 15;
		line += line_delta(&c, kind);
		end += ((head & 7) + 1) * UNIT;
		if (offset < end)
			return kind == KIND_NONE || line < 0 ? 0 : (uint32_t)line;
		while (c.at < c.end && !(*c.at & 128)) /* columns */
			c.at++;
	}
	return 0;
}

uint32_t python_lines_find(const struct process_code *code, uint32_t offset)
{
	if (code->version < 0x30a)
		return find_pairs(code, offset);
	return code->version == 0x30a ? find_ranges(code, offset) : find_locations(code, offset);
}
