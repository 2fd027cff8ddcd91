/* Pages are written in man(7), which every man understands. */
#include "analyzer/help/manual.h"
#include "analyzer/util/print.h"
#include "format/settings.h"
#include "format/version.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- text as roff reads it --------------------------------------------------------------------------------- */

/* One line's worth: no request may begin it, and a hyphen of an option is to be copied as one. */
static void put_text(const char *text, size_t n)
{
	char out[4096];
	size_t used = 0;
	if (n && (*text == '.' || *text == '\''))
		used += (size_t)sprintf(out, "\\&");
	for (size_t i = 0; i < n && used + 8 < sizeof(out); i++) {
		if (text[i] == '\\')
			used += (size_t)sprintf(out + used, "\\e");
		else if (text[i] == '-')
			used += (size_t)sprintf(out + used, "\\-");
		else if (text[i] == '\'')
			used += (size_t)sprintf(out + used, "\\(aq");
		else
			out[used++] = text[i];
	}
	print_as_is(out, used);
}

static void put_line(const char *text)
{
	put_text(text, strlen(text));
	print("\n");
}

/* `lines` as paragraphs, each line filled with the next. */
static void put_lines(const char *lines)
{
	while (*lines) {
		size_t n = strcspn(lines, "\n");
		if (n)
			put_text(lines, n);
		print(n ? "\n" : ".PP\n");
		lines += n + (lines[n] == '\n');
	}
}

/* Commands as they are typed, without the two blanks that the help has before them. */
static void put_examples(const char *lines)
{
	print(".SH EXAMPLES\n.nf\n");
	while (*lines) {
		size_t blanks = strspn(lines, " ");
		size_t n = strcspn(lines + blanks, "\n");
		put_text(lines + blanks, n);
		print("\n");
		lines += blanks + n + (lines[blanks + n] == '\n');
	}
	print(".fi\n");
}

/* `page` is "memtrace" or "memtrace-report". */
static void put_head(const char *page, const char *line)
{
	print(".TH ");
	for (const char *c = page; *c; c++)
		print("%c", toupper((unsigned char)*c));
	print(" 1 \"" MEMTRACE_DATE "\" \"memtrace " MEMTRACE_VERSION "\" \"memtrace manual\"\n.SH NAME\n");
	put_text(page, strlen(page));
	print(" \\- ");
	put_line(line);
}

/* ---- pages ------------------------------------------------------------------------------------------------- */

static void put_option(const struct option_row *row)
{
	char help[1024], name[96];
	print(".TP\n");
	if (row->letter)
		print("\\fB\\-%c\\fR, ", row->letter);
	snprintf(name, sizeof(name), "--%s", row->name);
	print("\\fB");
	put_text(name, strlen(name));
	print("\\fR");
	if (row->argument)
		print("%s\\fI%s\\fR", row->type == OPTION_SWITCH ? "=" : " ", row->argument);
	print("\n");
	put_line(options_row_help(row, help, sizeof(help)));
}

static void put_exit_status(void)
{
	print(".SH EXIT STATUS\n"
	      "0; 1 when a check failed; 2 for wrong usage; 3 when a trace can\\(aqt be read.\n"
	      ".BR memtrace\\-run (1)\nreturns that of its command.\n");
}

void manual_command(const struct option_command *command)
{
	const struct option_spec *spec = command->spec;
	char page[64];
	snprintf(page, sizeof(page), "memtrace-%s", command->name);
	put_head(page, command->help);
	print(".SH SYNOPSIS\n.nf\n");
	put_line(spec->usage);
	print(".fi\n.SH DESCRIPTION\n");
	put_lines(spec->what);
	print(".SH OPTIONS\n");
	for (const struct option_row *row = spec->rows; row->name; row++)
		put_option(row);
	print(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprints the same in short\n");
	if (spec->examples)
		put_examples(spec->examples);
	put_exit_status();
	print(".SH SEE ALSO\n.BR memtrace (1)\n");
}

/* Those that users set; from MEMTRACE_SESSION on programs set them, and tests. */
static void put_variables(void)
{
	print(".SH ENVIRONMENT\nWhat a recording is told; options of\n.BR memtrace\\-run (1)\nare the same. "
	      "docs/VARIABLES.md explains them.\n");
	for (unsigned i = 0; i < MT_SET_SESSION; i++) {
		print(".TP\n.B %s\n", mt_settings[i].name);
		print("default: ");
		put_line(*mt_settings[i].otherwise ? mt_settings[i].otherwise : "none");
	}
}

void manual_overview(const struct option_command *commands)
{
	put_head("memtrace", "why a program ran out of memory");
	print(".SH SYNOPSIS\n.nf\nmemtrace run [options] \\-\\- COMMAND [ARGUMENT...]\n"
	      "LD_PRELOAD=libmemtrace.so COMMAND\nmemtrace COMMAND [options] [DIR...]\n.fi\n.SH DESCRIPTION\n");
	put_lines(
		"memtrace records every allocation of a program and of the processes that it starts, with native and\n"
		"Python stacks: malloc, mappings, pinned memory, CUDA, HIP (ROCm), Ascend, and the blocks of the framework's caching\n"
		"allocator. Afterwards it says what was alive at the peak and at the failure, who owns it, what grows, and\n"
		"why memory ended.\n\n"
		"A trace is a directory. Without DIR a command reads the newest one in the working directory.\n");
	print(".SH COMMANDS\n");
	for (const struct option_command *c = commands; c->name; c++) {
		if (!*c->help)
			continue;
		print(".TP\n.BR memtrace\\-%s (1)\n", c->name);
		put_line(c->help);
	}
	print(".TP\n.B memtrace help words\nexplains the words of reports\n");
	print(".TP\n.B memtrace \\-\\-version\nsays which build this is, and which trace format it reads\n");
	put_variables();
	put_exit_status();
	print(".SH SEE ALSO\n");
	for (const struct option_command *c = commands; c->name; c++)
		if (*c->help)
			print(".BR memtrace\\-%s (1)%s\n", c->name, c[1].name ? " ," : "");
}
