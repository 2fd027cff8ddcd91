#include "analyzer/report/json/json_held.h"

#include "analyzer/report/json/json.h"

json_t *json_holder(const struct holder *h)
{
	static const char *const names[] = { "object", "shared", "c", "cycle" };
	json_t *o = json_object();
	json_object_set_new(o, "held_by", json_text(names[h->what]));
	json_object_set_new(o, "path", json_text(h->path));
	json_object_set_new(o, "also", json_text(h->also));
	json_object_set_new(o, "type", json_text(*h->type ? h->type : NULL));
	json_object_set_new(o, "items", h->items == UINT64_MAX ? json_null() : json_bytes(h->items));
	json_object_set_new(o, "objects", h->objects ? json_bytes(h->objects) : json_null());
	json_object_set_new(o, "bytes", json_bytes(h->bytes));
	return o;
}

json_t *json_held(const struct held_question *q)
{
	if (!q->known)
		return json_null();
	const struct mt_hold_head head = { .why = q->why };
	json_t *o = json_holder(&q->holder);
	json_object_set_new(o, "of_bytes", json_bytes(q->of_bytes));
	json_object_set_new(o, "pid", json_integer(q->pid));
	json_object_set_new(o, "at_s", json_seconds(q->ns));
	json_object_set_new(o, "why", json_text(held_why(&head)));
	return o;
}
