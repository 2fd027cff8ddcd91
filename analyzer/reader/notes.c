/* What all parts of the reader use of it: its notes of what is damaged, and what it holds for them. */
#include "analyzer/reader/reader_internal.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <stdarg.h>
#include <stdio.h>

#define MAX_NOTES 1000u

bool reader_is_following(const struct reader *r)
{
	return r->flags & READER_FOLLOW;
}

struct memory_bound *reader_bound(const struct reader *r)
{
	return r->bound;
}

struct codec *reader_codec(struct reader *r)
{
	return r->codec;
}

struct ahead *reader_ahead(const struct reader *r)
{
	return r->ahead;
}

bool reader_is_large(const struct reader *r)
{
	return r->is_large;
}

uint64_t *reader_decoded(struct reader *r)
{
	return &r->decoded;
}

static void add_note(struct reader *r, int code, const char *file, int64_t offset, const char *text)
{
	if (r->note_count == MAX_NOTES || vec_reserve(r->notes, r->note_room, r->note_count + 1)) {
		r->notes_dropped++;
		return;
	}
	struct reader_note *n = &r->notes[r->note_count++];
	*n = (struct reader_note){ .code = code, .offset = offset };
	snprintf(n->file, sizeof(n->file), "%s", file ? file : "");
	snprintf(n->text, sizeof(n->text), "%s", text);
}

void reader_remark(struct reader *r, int code, const char *file, int64_t offset, const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add_note(r, code, file, offset, text);
}

int reader_damage(struct reader *r)
{
	const struct error *e = error_get();
	if (!(r->flags & READER_FORCE) || e->code == MT_EMEMORY)
		return -e->code;
	add_note(r, e->code, e->file, e->offset, e->why);
	return 0;
}
