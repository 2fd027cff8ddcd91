#include "analyzer/report/export.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct export_ops *const formats[] = {
#define EXPORT(format) &export_##format,
#include "analyzer/report/exports.def"
#undef EXPORT
};

#define FORMATS (sizeof(formats) / sizeof(*formats))

static int no_format(const char *name)
{
	struct suggestion s = { .text = name };
	char all[256] = "";
	for (size_t i = 0, n = 0; i < FORMATS && n < sizeof(all); i++) {
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", formats[i]->name);
		if (name)
			suggest(&s, formats[i]->name);
	}
	if (!name)
		return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET, "which one? There is %s", all);
	if (s.best)
		return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET, "unknown value '%s'; did you mean '%s'?", name,
				 s.best);
	return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET, "unknown value '%s'; there is %s", name, all);
}

const struct export_ops *export_find(const char *name)
{
	for (size_t i = 0; name && i < FORMATS; i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	no_format(name);
	return NULL;
}

static int export_moment(const struct export_ops *ops, struct export *x, const struct moment *at,
			 struct frame_list *list)
{
	int e = 0;
	char *memory = at->device ? output_format("%s %s", at->device->name, kind_name(at->kind))
				  : strdup(kind_name(at->kind));
	if (!memory)
		return error_memory();
	for (size_t i = 0; e == 0 && i < at->sites->count; i++) {
		const struct owner *o = &at->sites->owners[i];
		e = stacks_list_shown(x->selection->stacks, o->stacks->stack, selection_flags(x->selection->options),
				      list);
		if (e == 0)
			e = ops->stack(x, &(struct export_stack){ at, memory, list->frames, list->count, o->bytes,
								  o->blocks });
	}
	free(memory);
	return e;
}

int export_moments(const struct export_ops *ops, const struct selection *v, const struct moments *m)
{
	struct export x = { .selection = v };
	struct frame_list list = { 0 };
	int e = ops->open ? ops->open(&x) : 0;
	for (size_t i = 0; e == 0 && ops->stack && i < m->count; i++)
		e = export_moment(ops, &x, &m->moments[i], &list);
	x.error = e;
	int closed = ops->close ? ops->close(&x) : 0;
	free(list.frames);
	return e < 0 ? e : closed;
}
