/* The command line: picks the command, prints the one error line, chooses the exit status. */
#include "analyzer/commands/commands.h"
#include "analyzer/help/manual.h"
#include "analyzer/help/version.h"
#include "analyzer/replay/heap/heap_child.h"
#include "analyzer/replay/heap/heap_player.h"
#include "analyzer/util/error.h"
#include "analyzer/util/options.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/suggest.h"
#include "format/own_program.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

MT_OWN_PROGRAM

static const struct option_command commands[] = {
#define COMMAND(name, function, help) { #name, function, help, &function##_spec },
#include "analyzer/commands/commands.def"
#undef COMMAND
	{ NULL, NULL, NULL, NULL }
};

static int help(void)
{
	print("usage: memtrace run -- PROGRAM, memtrace COMMAND [DIR], memtrace help COMMAND\n");
	for (const struct option_command *c = commands; c->name; c++) {
		bool pair = c[1].name && !strcmp(c->help, c[1].help);
		char *names = output_format(pair ? "%s|%s" : "%s", c->name, c[1].name);
		if (*c->help)
			print("  %-10s %s\n", names ? names : c->name, c->help);
		free(names);
		c += pair;
	}
	return 0;
}

static const struct option_command *find(const char *name)
{
	const struct option_command *c = commands;
	while (c->name && strcmp(name, c->name))
		c++;
	return c->name ? c : NULL;
}

static int unknown(const char *name)
{
	struct suggestion s = { .text = name };
	for (const struct option_command *c = commands; c->name; c++)
		if (*c->help)
			suggest(&s, c->name);
	if (s.best)
		return error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET, "unknown command '%s'; did you mean '%s'?", name,
				 s.best);
	return error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET, "unknown command '%s'", name);
}

/* The glossary, as docs/GLOSSARY.md has it. */
static int diagnosis_words(void)
{
	static const struct {
		const char *words, *meaning;
	} list[] = {
#define WORD(words, meaning) { words, meaning },
#include "analyzer/help/glossary.def"
#undef WORD
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		print("%s%s%s\n    ", output_begin(STYLE_HEAD), list[i].words, output_end(STYLE_HEAD));
		output_wrapped(list[i].meaning, 4, UINT_MAX, output_width() - 4, NULL);
	}
	return 0;
}

/* memtrace help --man [COMMAND], for `make install`. */
static int man(const char *name)
{
	const struct option_command *c = name ? find(name) : NULL;
	if (name && (!c || !*c->help))
		return unknown(name);
	if (c)
		manual_command(c);
	else
		manual_overview(commands);
	return 0;
}

/* memtrace help COMMAND, or words; more is the word behind it, or NULL. */
static int help_on(const char *name, const char *more)
{
	const struct option_command *c = find(name);
	if (!strcmp(name, "--man"))
		return man(more);
	if (!strcmp(name, "--completion"))
		return completion_print(more ? more : "", commands);
	if (!strcmp(name, "words"))
		return diagnosis_words();
	if (!c)
		return unknown(name);
	options_help(c->spec);
	return 0;
}

static int run(int argc, char **argv)
{
	const struct option_command *c = find(argv[0]);
	if (!c)
		return unknown(argv[0]);
	error_command(c->name);
	return c->run(argc, argv);
}

/* A reader that closed the pipe (head) has what it wanted; a full disk must not pass for success. */
static int finish(int status)
{
	if (print_flush() == 0)
		return status;
	error_errno(MT_EOUTPUT, "standard output", ERROR_NO_OFFSET);
	error_print();
	return status ? status : error_exit_status(MT_EOUTPUT);
}

/* Large tables are moved when they grow, not copied, and are given back when they are done with: glibc would leave that
 * off from the first large one on that was freed. */
#define LARGE_BYTES (4 << 20)

static int run_word(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "--help";
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return help();
	if (!strcmp(word, "help"))
		return argc > 2 ? help_on(argv[2], argv[3]) : help();
	if (strcmp(word, "--version"))
		return run(argc - 1, argv + 1);
	version_print();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], HEAP_CHILD_COMMAND))
		return heap_play(atoi(argv[2])); /* before the heap is used, or set */
#ifdef M_MMAP_THRESHOLD                          /* of glibc */
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
	options_set_commands(commands);
	int status = run_word(argc, argv);
	if (status < 0) {
		print_flush();
		error_print();
		return error_exit_status(status);
	}
	return finish(status);
}
