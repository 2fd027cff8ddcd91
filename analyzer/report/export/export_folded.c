/*
 * Folded stacks: one line a stack, "heap;main;train;at::empty 4096", outermost first, of flamegraph.pl, speedscope,
 * inferno and others. The first name is the kind of memory, so that the kinds stand side by side in the picture.
 *
 * ';' parts names and the last blank the number, so a ';' in a name becomes ':'. print() sees to line ends.
 */
#include "analyzer/report/export/export.h"

#include "analyzer/util/error.h"
#include "analyzer/util/print.h"

#include <stdlib.h>
#include <string.h>

static void print_name(const char *name)
{
	for (size_t n; *name; name += n) {
		n = strcspn(name, ";");
		print("%.*s%s", (int)n, name, name[n] ? ":" : "");
		n += name[n] != '\0';
	}
}

static int print_stack(struct export *x, const struct export_stack *s)
{
	(void)x;
	if (!s->bytes)
		return 0;
	print_name(s->memory);
	for (size_t i = s->count; i-- > 0;) {
		char *text = export_frame_text(s->frames[i]);
		if (!text)
			return error_memory();
		print(";");
		print_name(text);
		free(text);
	}
	print("%s ", s->count ? "" : ";(no stack)");
	print_decimal(s->bytes);
	print("\n");
	return 0;
}

const struct export_ops export_folded = { .name = "folded", .stack = print_stack };
