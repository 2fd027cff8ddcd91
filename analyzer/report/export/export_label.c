/* Which stacks are told together, and the frame that stands for them. */
#include "analyzer/report/export/export.h"

#include "analyzer/symbols/builtin_suppressions.h"

#include <stdlib.h>

const char export_small_stacks[] = "(smaller stacks)";

const char *export_label(const struct export *x, enum model_kind kind, uint32_t stack, uint64_t bytes, uint64_t sum,
			 size_t rank)
{
	const uint64_t rows = x->selection->options->rows;
	const char *label =
		!x->all && kind < MODEL_HOST_KINDS ? builtin_suppressed_stack(x->selection->stacks, stack) : NULL;
	if (label || x->all)
		return label;
	return (rows ? rank >= rows : (double)bytes < (double)sum * EXPORT_SMALL) ? export_small_stacks : NULL;
}

struct label_frame {
	struct label_frame *next;
	struct frame frame;
};

const struct frame *export_label_frame(struct export *x, const char *label)
{
	struct label_frame *l = x->labels;
	while (l && l->frame.name != label)
		l = l->next;
	if (!l && (l = calloc(1, sizeof(*l)))) {
		*l = (struct label_frame){ .next = x->labels, .frame = { .name = label } };
		x->labels = l;
	}
	return l ? &l->frame : NULL;
}

void export_free_labels(struct export *x)
{
	for (struct label_frame *l = x->labels, *next; l; l = next) {
		next = l->next;
		free(l);
	}
}
