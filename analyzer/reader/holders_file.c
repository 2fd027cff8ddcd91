#include "analyzer/reader/holders_file.h"

#include "analyzer/reader/reader_internal.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"
#include "format/varint.h"

#include <stdio.h>

#define MOST_TEXT 4096u

/* ---- the file ---- */

static int open_file(const struct process *p, struct file *f)
{
	const struct image *im = image_of(p);
	char name[64];
	snprintf(name, sizeof(name), "%s.holders", im->name);
	return file_open(f, im->session->dir, name);
}

/* 1: there is one at `offset`; 0: the end, or one that was never finished. */
static int read_head(const struct file *f, uint64_t offset, struct mt_hold_head *head)
{
	if (!file_is_open(f) || f->size - offset < sizeof(*head))
		return 0;
	int e = file_read(f, offset, head, sizeof(*head));
	if (e)
		return e;
	if (head->magic != MT_HOLDERS_MAGIC || head->bytes != sizeof(*head))
		return error_set(MT_EFORMAT, f->path, (int64_t)offset, "no snapshot begins here");
	if (head->body_bytes > f->size - offset - sizeof(*head))
		return error_set(MT_ECUT, f->path, (int64_t)offset, NULL);
	head->name[sizeof(head->name) - 1] = 0;
	return head->body_bytes != 0;
}

/* Calls for the i-th until `f` says stop; returns the number of heads. */
static int find(const struct file *f, int i, struct mt_hold_head *head, uint64_t *offset)
{
	int n = 0, e;
	uint64_t at = 0;
	while ((e = read_head(f, at, head)) > 0) {
		*offset = at;
		if (n++ == i)
			return n;
		at += sizeof(*head) + head->body_bytes;
	}
	return e < 0 ? e : n;
}

int holders_heads(const struct process *p, struct mt_hold_head *heads, int most)
{
	struct file f;
	struct mt_hold_head head;
	int e = open_file(p, &f), n = 0;
	uint64_t at = 0;
	while (!e && (e = read_head(&f, at, &head)) > 0) {
		if (n < most)
			heads[n] = head;
		n++;
		at += sizeof(head) + head.body_bytes;
		e = 0;
	}
	file_close(&f);
	return e < 0 ? e : n;
}

/* ---- items ---- */

struct reading {
	struct hold_snapshot *s;
	struct varint_in in;
	uint64_t last;
	char *strings; /* where the next one goes: they take no more than the body */
};

static uint64_t number(struct reading *r)
{
	return varint_get(&r->in);
}

static uint64_t address(struct reading *r)
{
	r->last += unzigzag(number(r)) << 3;
	return r->last;
}

static uint64_t count_of(struct reading *r)
{
	uint64_t n = number(r);
	if (n > (uint64_t)(r->in.end - r->in.at))
		r->in.bad = 1;
	return r->in.bad ? 0 : n;
}

static const char *string(struct reading *r)
{
	uint64_t n = count_of(r);
	char *text = r->strings;
	if (n > MOST_TEXT)
		r->in.bad = 1;
	if (r->in.bad)
		return "";
	memcpy(text, r->in.at, n);
	text[n] = 0;
	r->in.at += n;
	r->strings += n + 1;
	return text;
}

static uint32_t text_number(struct reading *r, unsigned plus)
{
	uint64_t n = number(r) + plus;
	if (n >= r->s->text_count)
		r->in.bad = 1;
	return r->in.bad ? 0 : (uint32_t)n;
}

static int add_text(struct hold_snapshot *s, const char *text)
{
	int e = vec_reserve(s->texts, s->text_room, s->text_count + 1);
	if (!e)
		s->texts[s->text_count++] = text;
	return e;
}

static int add_fault(struct reading *r)
{
	struct hold_snapshot *s = r->s;
	int e = vec_reserve(s->faults, s->fault_room, s->fault_count + 1);
	if (!e)
		s->faults[s->fault_count++] = string(r);
	return e;
}

static int add_type(struct reading *r)
{
	struct hold_snapshot *s = r->s;
	int e = vec_reserve(s->types, s->type_room, s->type_count + 1);
	if (e)
		return e;
	struct hold_type *t = &s->types[s->type_count++];
	t->at = address(r);
	t->flags = number(r);
	t->name = string(r);
	return 0;
}

static int add_edges(struct reading *r, uint64_t n, bool named)
{
	struct hold_snapshot *s = r->s;
	int e = vec_reserve_raw(s->edges, s->edge_room, s->edge_count + n);
	for (uint64_t i = 0; !e && i < n; i++) {
		uint32_t name = named ? text_number(r, 0) : 0;
		s->edges[s->edge_count++] = (struct hold_edge){ address(r), name };
	}
	return e;
}

static struct hold_item *new_item(struct hold_snapshot *s, enum hold_kind kind)
{
	if (vec_reserve_raw(s->items, s->room, s->count + 1))
		return NULL;
	struct hold_item *item = &s->items[s->count++];
	*item = (struct hold_item){ .kind = (uint8_t)kind, .first = s->edge_count, .items = UINT64_MAX };
	return item;
}

static int add_object(struct reading *r)
{
	struct hold_item *o = new_item(r->s, HOLD_OBJECT);
	if (!o)
		return error_memory();
	o->bits = (uint8_t)number(r);
	o->type = (uint32_t)number(r);
	o->at = address(r);
	o->references = number(r);
	o->bytes = number(r);
	if (o->bits & MT_HOLD_LABEL)
		o->label = text_number(r, 1);
	if (o->bits & MT_HOLD_ITEMS)
		o->items = number(r);
	if (o->bits & MT_HOLD_ATOMS) {
		o->atom_count = number(r);
		o->atom_bytes = number(r);
	}
	o->edges = (uint32_t)count_of(r);
	int e = add_edges(r, o->edges, o->bits & MT_HOLD_NAMED);
	if (!e && o->bits & MT_HOLD_WORDS) {
		o->words = (uint32_t)count_of(r);
		e = add_edges(r, o->words, false);
	}
	if (o->type >= r->s->type_count || o->bytes >> 48 || o->atom_bytes >> 48)
		r->in.bad = 1;
	return e;
}

static int add_frame(struct reading *r)
{
	struct hold_item *f = new_item(r->s, HOLD_FRAME);
	if (!f)
		return error_memory();
	f->at = address(r);
	f->thread = (uint32_t)number(r);
	f->type = (uint32_t)number(r);
	f->label = text_number(r, 0);
	f->function = text_number(r, 0);
	f->edges = (uint32_t)count_of(r);
	int e = add_edges(r, f->edges, true);
	f->words = e ? 0 : (uint32_t)count_of(r);
	return e ? e : add_edges(r, f->words, false);
}

static int add_block(struct reading *r)
{
	struct hold_item *b = new_item(r->s, HOLD_BLOCK);
	if (!b)
		return error_memory();
	b->at = address(r);
	b->bytes = number(r);
	b->words = (uint32_t)count_of(r);
	return add_edges(r, b->words, false);
}

static int read_item(struct reading *r)
{
	switch (number(r)) {
	case MT_HOLD_TYPE:
		return add_type(r);
	case MT_HOLD_TEXT:
		return add_text(r->s, string(r));
	case MT_HOLD_OBJECT:
		return add_object(r);
	case MT_HOLD_FRAME:
		return add_frame(r);
	case MT_HOLD_BLOCK:
		return add_block(r);
	case MT_HOLD_FAULT:
		return add_fault(r);
	}
	r->in.bad = 1;
	return 0;
}

/* One that was cut ends in the middle of an item, which is left out. */
static int read_items(struct reading *r, const char *path, const uint8_t *body)
{
	int e = add_text(r->s, "");
	while (!e && r->in.at < r->in.end) {
		const uint8_t *item = r->in.at;
		size_t items = r->s->count;
		e = read_item(r);
		if (!e && r->in.bad) {
			if (!(r->s->head.flags & MT_HOLD_CUT))
				return error_set(MT_EFORMAT, path, item - body, "an item of a snapshot makes no sense");
			r->s->count = items;
			break;
		}
	}
	return e;
}

static int read_body(const struct file *f, uint64_t offset, struct hold_snapshot *s)
{
	uint64_t n = s->head.body_bytes;
	uint8_t *body = malloc(n + 1);
	s->strings = malloc(n + 1);
	if (!body || !s->strings) {
		free(body);
		return error_memory();
	}
	int e = file_read(f, offset + sizeof(s->head), body, n);
	if (!e) {
		struct reading r = { .s = s, .in = { body, body + n, 0 }, .strings = s->strings };
		e = read_items(&r, f->path, body);
	}
	free(body);
	return e;
}

int holders_read(const struct process *p, int i, struct hold_snapshot *s)
{
	struct file f;
	uint64_t offset = 0;
	*s = (struct hold_snapshot){ .process = p };
	int e = open_file(p, &f);
	if (!e) {
		e = find(&f, i, &s->head, &offset);
		if (e >= 0)
			e = e == i + 1 ? read_body(&f, offset, s)
				       : error_set(MT_EUSAGE, f.path, ERROR_NO_OFFSET, "has no such snapshot");
	}
	file_close(&f);
	return e;
}

void hold_snapshot_fini(struct hold_snapshot *s)
{
	free(s->items);
	free(s->edges);
	free(s->types);
	free(s->texts);
	free(s->faults);
	free(s->strings);
	*s = (struct hold_snapshot){ 0 };
}
