#include "analyzer/report/dump/dump_line.h"
#include "analyzer/report/json/json.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <string.h>

static bool json;

void dump_as_json(bool is)
{
	json = is;
}

/* Ours, and there are millions. */
static void print_word(const char *word)
{
	print_as_is(word, strlen(word));
}

void dump_begin(const char *record, unsigned process)
{
	print_word(json ? "{\"record\":\"" : "");
	print_word(record);
	print_word(json ? "\",\"process\":" : " ");
	print_decimal(process);
}

void dump_begin_alone(const char *record)
{
	print_word(json ? "{\"record\":\"" : "");
	print_word(record);
	print_word(json ? "\"" : "");
}

void dump_end(void)
{
	print_word(json ? "}\n" : "\n");
}

/* The separator and, in JSON, the name. */
static void name(const char *key)
{
	print_word(json ? ",\"" : " ");
	if (json) {
		print_word(key);
		print_word("\":");
	}
}

void dump_number(const char *key, uint64_t n)
{
	name(key);
	print_decimal(n);
}

void dump_address(const char *key, uint64_t n)
{
	name(key);
	(json ? print_decimal : print_hexadecimal)(n);
}

void dump_word(const char *key, const char *s)
{
	name(key);
	print(json ? "\"%s\"" : "%s", s);
}

void dump_text(const char *key, const char *s)
{
	name(key);
	json_print_text(s);
}

void dump_function(const char *key, const char *s)
{
	name(key);
	if (json) {
		json_print_text(s);
		return;
	}
	for (size_t n; (n = strcspn(s, " ")), s[n]; s += n + 1)
		print("%.*s?", (int)n, s);
	print_text(s);
}

void dump_label(const char *s)
{
	if (!json)
		print(" %s", s);
}

void dump_list(const char *key, const char *const *strings)
{
	if (json)
		print(",\"%s\":[", key);
	for (int i = 0; strings[i]; i++) {
		if (!json || i)
			print(json ? "," : " ");
		json_print_text(strings[i]);
	}
	if (json)
		print("]");
}

void dump_hex(const char *key, const unsigned char *bytes, unsigned n)
{
	name(key);
	if (json || !n)
		print(json ? "\"" : "-");
	for (unsigned i = 0; i < n; i++)
		print("%02x", bytes[i]);
	if (json)
		print("\"");
}

void dump_signed(const char *key, int32_t n)
{
	name(key);
	print("%" PRId32, n);
}

void dump_none(const char *key)
{
	name(key);
	print(json ? "null" : "-");
}

void dump_text_or_none(const char *key, const char *s)
{
	if (s)
		dump_text(key, s);
	else
		dump_none(key);
}
