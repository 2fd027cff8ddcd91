/* What objects of Python held in each trace, at the snapshot that says most of each process. */
#include "analyzer/report/diff/diff.h"

#include "analyzer/analysis/held.h"
#include "analyzer/util/output.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PROCESSES = 8 };

struct taking {
	struct diff *diff;
	int side;
};

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

static void take_part(void *arg, const struct held_pass *p, const struct held_part *part)
{
	const struct taking *t = arg;
	const char *memory = part->kind == HOLDERS_SMALL ? "small objects" : kind_name((enum model_kind)part->kind);
	char *figure = part->device ? output_format("%s %s", part->device->name, memory) : strdup(memory);
	(void)p;
	for (size_t i = 0; figure && i < part->holders->count; i++) {
		const struct holder *h = &part->holders->list[i];
		char *name = holder_text(h, false), *id = name ? without_lines(name) : NULL;
		if (id)
			diff_add_named(t->diff, t->side, HOLDERS, id, name, figure, (double)h->bytes);
		free(name);
		free(id);
	}
	free(figure);
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
	e = 0;
	for (int side = 0; !e && side < 2; side++)
		e = held_each_part(&d->side[side].selection, MOST_PROCESSES, take_part, &(struct taking){ d, side });
	return e;
}
