/* What objects of Python held in each trace, at the snapshot that says most of each process. */
#include "analyzer/report/diff/diff.h"

#include "analyzer/analysis/held.h"
#include "analyzer/util/output.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PROCESSES = 8 }; /* each is a pass over the events */

/* Without the lines in "x of train (train.py:31)". Allocated. */
static char *without_lines(const char *name)
{
	char *out = strdup(name), *to = out;
	for (const char *from = name; out && *from;) {
		size_t digits = *from == ':' ? strspn(from + 1, "0123456789") : 0;
		if (digits && from[1 + digits] == ')')
			from += 1 + digits;
		else
			*to++ = *from++;
	}
	if (out)
		*to = '\0';
	return out;
}

static void take_part(struct diff *d, int side, const struct held_part *part)
{
	const char *memory = part->kind == HOLDERS_SMALL ? "small objects" : kind_name((enum model_kind)part->kind);
	char *figure = part->device ? output_format("%s %s", part->device->name, memory) : strdup(memory);
	for (size_t i = 0; figure && i < part->holders->count; i++) {
		const struct holder *h = &part->holders->list[i];
		char *name = holder_text(h, false), *id = name ? without_lines(name) : NULL;
		if (id)
			diff_add_named(d, side, HOLDERS, id, name, figure, (double)h->bytes);
		free(name);
		free(id);
	}
	free(figure);
}

static int take_process(struct diff *d, int side, unsigned id)
{
	struct held_pass p;
	struct held_parts parts = { 0 };
	int n = held_pass_heads(&p, &d->side[side].selection, id), e = n < 0 ? n : 0;
	if (n > 0)
		e = held_open(&p.held, &p.sel, held_best(&p.held));
	if (n > 0 && !e)
		e = held_parts_find(&parts, &p.held, &p.sel);
	for (size_t i = 0; !e && i < parts.count; i++)
		take_part(d, side, &parts.list[i]);
	held_parts_free(&parts);
	held_pass_close(&p);
	return e;
}

static int take_side(struct diff *d, int side)
{
	unsigned ids[MOST_PROCESSES];
	int n = held_largest(&d->side[side].selection, ids, MOST_PROCESSES), e = n < 0 ? n : 0;
	for (int i = 0; !e && i < n; i++)
		e = take_process(d, side, ids[i]);
	return e;
}

int diff_take_holders(struct diff *d)
{
	const struct options *o = &d->side[0].options;
	int e = 0;
	if (o->filter || o->from.kind != WHEN_UNSET || o->to.kind != WHEN_UNSET)
		return 0;
	for (int side = 0; side < 2; side++)
		if ((e = held_processes(&d->side[side].selection)) <= 0)
			return e;
	for (int side = 0; side < 2; side++)
		if ((e = take_side(d, side)) < 0)
			return e;
	return 0;
}
