/* A line of JSON for each stack of each process and kind of memory, with the keys of peak --json. Stacks have frames in
 * common, most of them: the text of each is made once. */
#include "analyzer/report/export/export.h"
#include "analyzer/report/json/json.h"

#include "analyzer/util/error.h"
#include "analyzer/util/print.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct frame_line {
	const struct frame *frame;
	char *text;
	size_t bytes;
	UT_hash_handle hh;
};

/* NULL: no memory. */
static const struct frame_line *text_of(struct export *x, const struct frame *frame)
{
	struct frame_line *texts = x->state, *t;
	HASH_FIND_PTR(texts, &frame, t);
	if (t || !(t = calloc(1, sizeof(*t))))
		return t;
	t->text = json_line_text(json_frame(frame));
	if (!t->text) {
		free(t);
		return NULL;
	}
	t->frame = frame;
	t->bytes = strlen(t->text);
	HASH_ADD_PTR(texts, frame, t);
	x->state = texts;
	return t;
}

static json_t *json_head(const struct export_stack *s)
{
	json_t *o = json_object();
	json_object_set_new(o, "memory", json_text(kind_name(s->at->kind)));
	json_object_set_new(o, "device", json_text(s->at->device ? s->at->device->name : NULL));
	json_object_set_new(o, "pid", json_integer(s->process->pid));
	json_object_set_new(o, "process", json_text(s->process->name));
	json_object_set_new(o, "at_s", json_seconds(s->at->ns));
	json_object_set_new(o, "category", json_text(category_name(s->owner->category)));
	json_object_set_new(o, "bytes", json_bytes(s->bytes));
	json_object_set_new(o, "blocks", json_bytes(s->blocks));
	return o;
}

static int print_stack(struct export *x, const struct export_stack *s)
{
	print("{");
	int e = json_print_members(json_head(s));
	print(",\"stack\":[");
	for (size_t i = 0; i < s->count && e == 0; i++) {
		const struct frame_line *t = text_of(x, s->frames[i]);
		if (!t)
			return error_memory();
		print_as_is(",", i > 0);
		print_as_is(t->text, t->bytes);
	}
	print("]}\n");
	return e;
}

static int close_ndjson(struct export *x)
{
	struct frame_line *texts = x->state, *t, *next;
	HASH_ITER(hh, texts, t, next)
	{
		HASH_DEL(texts, t);
		free(t->text);
		free(t);
	}
	x->state = NULL;
	return 0;
}

const struct export_ops export_ndjson = {
	.name = "ndjson", .by_process = true, .stack = print_stack, .close = close_ndjson
};
