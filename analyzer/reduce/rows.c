/* Lines of JSON into a gzip file in memory. */
#include "analyzer/reduce/reduce_internal.h"
#include "analyzer/report/json/json.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

enum { LEVEL = 9 };

static const struct column_name {
	enum reduce_table table;
	const char *name, *type, *what; /* name NULL: the table itself */
} columns[] = {
#define TABLE(table, what)              { TABLE_##table, NULL, #table, what },
#define COLUMN(table, name, type, what) { TABLE_##table, #name, #type, what },
#include "analyzer/reduce/columns.def"
#undef COLUMN
#undef TABLE
};
enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

static const char *table_title(enum reduce_table table)
{
	size_t i = 0;
	while (columns[i].name || columns[i].table != table)
		i++;
	return columns[i].type;
}

int rows_begin(struct rows *r)
{
	*r = (struct rows){ 0 };
	if (deflateInit2(&r->stream, LEVEL, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return error_memory();
	return 0;
}

static void deflate_all(struct rows *r, const void *bytes, size_t count, int flush)
{
	int e = Z_OK;
	r->stream.next_in = (unsigned char *)(uintptr_t)bytes;
	r->stream.avail_in = (unsigned)count;
	while (!r->error && e == Z_OK) {
		if ((r->error = vec_reserve_raw(r->out, r->room, r->count + (1 << 16))) < 0)
			return;
		r->stream.next_out = r->out + r->count;
		r->stream.avail_out = (unsigned)(r->room - r->count);
		e = deflate(&r->stream, flush);
		r->count = r->room - r->stream.avail_out;
		if (r->stream.avail_out && flush == Z_NO_FLUSH)
			return;
	}
}

void rows_put(struct rows *r, enum reduce_table table, json_t *row)
{
	json_t *line = json_object();
	json_object_set_new(line, "t", json_string(table_title(table)));
	for (size_t i = 0; i < COLUMNS; i++)
		if (columns[i].table == table && columns[i].name) {
			json_t *value = json_object_get(row, columns[i].name);
			json_object_set(line, columns[i].name, value ? value : json_null());
		}
	json_decref(row);
	char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(line);
	if (text) {
		deflate_all(r, text, strlen(text), Z_NO_FLUSH);
		deflate_all(r, "\n", 1, Z_NO_FLUSH);
	} else if (!r->error) {
		r->error = error_memory();
	}
	free(text);
}

int rows_end(struct rows *r)
{
	deflate_all(r, NULL, 0, Z_FINISH);
	deflateEnd(&r->stream);
	if (r->error) {
		free(r->out);
		r->out = NULL;
	}
	return r->error;
}

json_t *rows_text(const char *text, size_t most)
{
	if (!text || !*text)
		return json_null();
	size_t n = strlen(text);
	if (n <= most)
		return json_text(text);
	for (n = most; n && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
		;
	char *cut = strndup(text, n);
	json_t *value = cut ? json_text(cut) : NULL;
	free(cut);
	return value;
}

int reduce_print_columns(void)
{
	json_t *all = json_object(), *list = NULL;
	for (size_t i = 0; i < COLUMNS; i++) {
		if (!columns[i].name) {
			list = json_array();
			json_object_set_new(all, columns[i].type, list);
			continue;
		}
		json_t *o = json_object();
		json_object_set_new(o, "name", json_string(columns[i].name));
		json_object_set_new(o, "type", json_string(columns[i].type));
		json_object_set_new(o, "what", json_string(columns[i].what));
		json_array_append_new(list, o);
	}
	json_t *o = json_object();
	json_object_set_new(o, "version", json_integer(REDUCE_VERSION));
	json_object_set_new(o, "tables", all);
	return json_print(o);
}
