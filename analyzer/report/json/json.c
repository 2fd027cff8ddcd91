#include "analyzer/report/json/json.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "format/text.h"
#include "analyzer/model/selection/selection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

json_t *json_bytes(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

json_t *json_seconds(uint64_t ns)
{
	return json_real((double)ns / 1e9);
}

json_t *json_real_or_null(bool known, double n)
{
	return known && isfinite(n) ? json_real(n) : json_null();
}

#define REPLACEMENT "\xef\xbf\xbd"

static char *as_utf8(const char *text)
{
	char *valid = malloc(strlen(text) * strlen(REPLACEMENT) + 1), *end = valid;
	while (valid && *text) {
		struct mt_character c = mt_text_character(text);
		bool is = c.code != MT_TEXT_INVALID;
		end = mempcpy(end, is ? text : REPLACEMENT, is ? c.bytes : strlen(REPLACEMENT));
		text += c.bytes;
	}
	if (valid)
		*end = '\0';
	return valid;
}

json_t *json_text(const char *text)
{
	if (!text)
		return json_null();
	char *valid = as_utf8(text);
	json_t *value = valid ? json_string(valid) : NULL;
	free(valid);
	return value;
}

json_t *json_time(uint64_t real_ns)
{
	struct tm tm;
	char text[64];
	time_t seconds = (time_t)(real_ns / 1000000000u);
	if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return json_null();
	return json_sprintf("%s.%03uZ", text, (unsigned)(real_ns / 1000000 % 1000));
}

json_t *json_estimated(const struct model_totals *t)
{
	if (!t->estimated)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "peak_bytes_low", json_bytes(t->peak_low));
	json_object_set_new(o, "peak_bytes_high", json_bytes(t->peak_high));
	json_object_set_new(o, "live_bytes_low", json_bytes(t->live_low));
	json_object_set_new(o, "live_bytes_high", json_bytes(t->live_high));
	return o;
}

json_t *json_totals(const struct model_totals *t)
{
	json_t *o = json_object();
	json_object_set_new(o, "peak_bytes", json_bytes(t->peak_bytes));
	json_object_set_new(o, "peak_s", json_seconds(t->peak_ns));
	json_object_set_new(o, "live_bytes", json_bytes(t->live_bytes));
	json_object_set_new(o, "live_blocks", json_bytes(t->live_blocks));
	json_object_set_new(o, "live_min_bytes", json_bytes(t->live_bytes - t->doubt_bytes));
	json_object_set_new(o, "live_min_blocks", json_bytes(t->live_blocks - t->doubt_blocks));
	json_object_set_new(o, "allocations", json_bytes(t->allocations));
	json_object_set_new(o, "frees", json_bytes(t->frees));
	json_object_set_new(o, "allocated_bytes", json_bytes(t->allocated_bytes));
	json_object_set_new(o, "temporary", json_bytes(t->temporary));
	json_object_set_new(o, "failed", json_bytes(t->failed));
	json_object_set_new(o, "unknown_frees", json_bytes(t->unknown_frees));
	json_object_set_new(o, "inherited_bytes", json_bytes(t->inherited_bytes));
	json_object_set_new(o, "inherited_blocks", json_bytes(t->inherited_blocks));
	return o;
}

json_t *json_fold(const struct model_fold *f)
{
	json_t *o = f->until_ns ? json_object() : json_null();
	if (!f->until_ns)
		return o;
	json_object_set_new(o, "until_s", json_seconds(f->until_ns));
	json_object_set_new(o, "blocks", json_bytes(f->blocks));
	json_object_set_new(o, "bytes", json_bytes(f->bytes));
	json_object_set_new(o, "uncertain_bytes", json_bytes(f->most_bytes));
	json_object_set_new(o, "uncertain_elsewhere_bytes", json_bytes(f->most_other_bytes));
	return o;
}

json_t *json_young(const struct model_fold *f)
{
	json_t *o = f->young_blocks ? json_object() : json_null();
	if (!f->young_blocks)
		return o;
	json_object_set_new(o, "blocks", json_bytes(f->young_blocks));
	json_object_set_new(o, "bytes", json_bytes(f->young_bytes));
	json_object_set_new(o, "uncertain_bytes", json_bytes(f->young_most_bytes));
	return o;
}

json_t *json_frame(const struct frame *f)
{
	json_t *o = json_object();
	json_object_set_new(o, "function", json_text(f->function));
	json_object_set_new(o, "file", json_text(f->file));
	json_object_set_new(o, "line", f->line ? json_integer(f->line) : json_null());
	json_object_set_new(o, "library", json_text(f->library));
	json_object_set_new(o, "language", json_text(f->language));
	json_object_set_new(o, "inlined", json_boolean(f->inlined));
	json_object_set_new(o, "offset", json_bytes(f->offset));
	return o;
}

json_t *json_stack(struct stacks *s, uint32_t stack, unsigned flags)
{
	struct frame_list list = { 0 };
	json_t *frames = stacks_list_shown(s, stack, flags, &list) == 0 ? json_array() : NULL;
	for (size_t i = 0; i < list.count; i++)
		json_array_append_new(frames, json_frame(list.frames[i]));
	free(list.frames);
	return frames;
}

static void json_range(json_t *site, const struct owner_sum *s)
{
	json_object_set_new(site, "bytes_low", json_bytes(s->bytes_low));
	json_object_set_new(site, "bytes_high", json_bytes(s->bytes_high));
	json_object_set_new(site, "blocks_low", json_bytes(s->blocks_low));
	json_object_set_new(site, "blocks_high", json_bytes(s->blocks_high));
}

json_t *json_rank(int64_t rank)
{
	return rank == PROCESS_NO_RANK ? json_null() : json_integer(rank);
}

json_t *json_owner(struct stacks *s, const struct owner *o, enum model_kind kind, unsigned flags)
{
	json_t *site = json_object();
	json_object_set_new(site, "bytes", json_bytes(o->bytes));
	json_object_set_new(site, "blocks", json_bytes(o->blocks));
	if (o->estimated)
		json_range(site, &o->sum);
	json_object_set_new(site, "category", json_text(category_name(o->category)));
	json_object_set_new(site, "memory", json_text(kind_name(kind)));
	if (o->label)
		json_object_set_new(site, "label", json_text(o->label));
	json_object_set_new(site, "processes", json_integer(o->processes));
	json_object_set_new(site, "rank_low", json_rank(o->rank_low));
	json_object_set_new(site, "rank_high", json_rank(o->rank_high));
	json_object_set_new(site, "stacks", json_bytes(o->stack_count));
	json_object_set_new(site, "stack", json_stack(s, o->stacks->stack, flags));
	return site;
}

json_t *json_unread(struct stacks *s)
{
	json_t *list = json_array();
	for (struct symbol_module *m = NULL; (m = symbols_next(stacks_symbols(s), m));)
		if (symbols_state(m) == SYMBOLS_GIVEN_UP && symbols_is_used(m))
			json_array_append_new(list, json_pack("{s:o, s:s}", "path", json_text(symbols_path(m)), "why",
							      symbols_why(m)));
	return list;
}

void json_set_left_out(json_t *o, const char *list, size_t total, size_t left_out, uint64_t bytes)
{
	char key[64];
	json_t *rest = json_object();
	json_object_set_new(rest, "count", json_bytes(left_out));
	json_object_set_new(rest, "bytes", json_bytes(bytes));
	snprintf(key, sizeof(key), "%s_total", list);
	json_object_set_new(o, key, json_bytes(total));
	snprintf(key, sizeof(key), "%s_left_out", list);
	json_object_set_new(o, key, rest);
}

static void print_number(uint32_t code)
{
	if (code >= 0x10000)
		print("\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
	else
		print("\\u%04x", code);
}

/* What is not ASCII stands in strings only, and jansson has seen to control characters but for DEL. */
static int print_shown(const char *json, size_t bytes, void *unused)
{
	(void)unused;
	const char *from = json, *end = json + bytes;
	for (const char *at = json; at < end; at++) {
		if ((unsigned char)*at < 0x7f)
			continue;
		struct mt_character c = mt_text_character(at);
		if (!mt_text_shows(c.code)) {
			print_as_is(from, (size_t)(at - from));
			print_number(c.code);
			from = at + c.bytes;
		}
		at += c.bytes - 1;
	}
	print_as_is(from, (size_t)(end - from));
	return 0;
}

static int print_and_release(json_t *root, size_t flags)
{
	int status = root ? json_dump_callback(root, print_shown, NULL, flags) : -1;
	json_decref(root);
	return status == 0 ? 0 : error_memory();
}

static int print_lines(json_t *root, size_t flags)
{
	int e = print_and_release(root, flags);
	if (e == 0)
		print("\n");
	return e;
}

int json_print(json_t *root)
{
	return print_lines(root, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
}

int json_print_line(json_t *object)
{
	return print_lines(object, JSON_COMPACT);
}

int json_print_members(json_t *object)
{
	return print_and_release(object, JSON_COMPACT | JSON_EMBED);
}

char *json_line_text(json_t *object)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	if (!f) {
		json_decref(object);
		return NULL;
	}
	FILE *before = print_into(f);
	int e = print_and_release(object, JSON_COMPACT);
	print_into(before);
	if (fclose(f) != 0 || e < 0) {
		free(text);
		return NULL;
	}
	return text;
}

void json_print_text(const char *text)
{
	print("\"");
	while (*text) {
		size_t plain = 0;
		while (text[plain] >= ' ' && text[plain] < 0x7f && text[plain] != '"' && text[plain] != '\\')
			plain++;
		print_as_is(text, plain);
		text += plain;
		if (!*text)
			break;
		struct mt_character c = mt_text_character(text);
		if (*text == '"' || *text == '\\')
			print("\\");
		if (c.code == MT_TEXT_INVALID)
			print(REPLACEMENT);
		else if (mt_text_shows(c.code))
			print_as_is(text, c.bytes);
		else
			print_number(c.code);
		text += c.bytes;
	}
	print("\"");
}
