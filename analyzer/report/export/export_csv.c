/* CSV with a header: a row for each stack of each process and kind of memory. Text is in quotes, numbers are not, and
 * their units are in the names of the columns. Frames of the stack stand outermost first with ';' between them, as in
 * folded stacks, so a ';' in a name becomes ':'. */
#include "analyzer/report/export/export.h"
#include "analyzer/report/timeline/timeline_rows.h"

#include "analyzer/util/error.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int open_csv(struct export *x)
{
	(void)x;
	print("memory,device,pid,process,at_s,category,bytes,blocks,function,file,line,library,stack\n");
	return 0;
}

/* As in a field that has been begun. */
static void print_name(const char *name)
{
	for (size_t n; *name; name += n) {
		n = strcspn(name, ";\"");
		print("%.*s%s", (int)n, name, name[n] == ';' ? ":" : name[n] ? "\"\"" : "");
		n += name[n] != '\0';
	}
}

static void print_site(const struct frame *f)
{
	char *text = f ? frame_text(f) : NULL;
	timeline_print_field(text ? text : "");
	print(",");
	timeline_print_field(f && f->file ? f->file : "");
	if (f && f->line)
		print(",%u,", f->line);
	else
		print(",,");
	timeline_print_field(f && f->library ? f->library : "");
	free(text);
}

static int print_stack(struct export *x, const struct export_stack *s)
{
	(void)x;
	print("%s,", kind_name(s->at->kind));
	timeline_print_field(s->at->device ? s->at->device->name : "");
	print(",%u,", s->process->pid);
	timeline_print_field(s->process->name);
	print(",%.9f,%s,%" PRIu64 ",%" PRIu64 ",", (double)s->at->ns / 1e9, category_name(s->owner->category), s->bytes,
	      s->blocks);
	print_site(s->owner->frame);
	print(",\"");
	for (size_t i = s->count; i-- > 0;) {
		char *text = frame_text(s->frames[i]);
		if (!text)
			return error_memory();
		print_name(text);
		print("%s", i ? ";" : "");
		free(text);
	}
	print("\"\n");
	return 0;
}

const struct export_ops export_csv = { .name = "csv", .by_process = true, .open = open_csv, .stack = print_stack };
