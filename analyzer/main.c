/* The command line: picks the command, prints the one error line, chooses the exit status. */
#include "analyzer/commands.h"
#include "analyzer/error.h"
#include "analyzer/options.h"
#include "analyzer/output.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
#define COMMAND(name, function, help) { #name, function, help },
#include "analyzer/commands.def"
#undef COMMAND
};

enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

static int help(void)
{
	printf("usage: memtrace COMMAND [options] [DIR...]\n\n");
	for (int i = 0; i < COMMANDS; i++)
		if (*commands[i].help)
			printf("  %-10s %s\n", commands[i].name, commands[i].help);
	printf("\nRecord:  LD_PRELOAD=libmemtrace.so PROGRAM, or memtrace run -- PROGRAM\n"
	       "Without DIR a command reads the newest memtrace directory in the working directory.\n"
	       "memtrace COMMAND --help says more; memtrace help words explains the words of reports; memtrace --version says which.\n");
	return 0;
}

/* The glossary, as docs/GLOSSARY.md has it. */
static int explain_words(void)
{
	static const struct { const char *words, *meaning; } list[] = {
#define WORD(words, meaning) { words, meaning },
#include "analyzer/words.def"
#undef WORD
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		printf("%s%s%s\n    ", output_begin(STYLE_HEAD), list[i].words, output_end(STYLE_HEAD));
		output_wrapped(list[i].meaning, 4, UINT_MAX, output_width() - 4, NULL);
	}
	return 0;
}

static int run(int argc, char **argv)
{
	for (int i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[0], commands[i].name)) {
			error_command(commands[i].name);
			return commands[i].run(argc, argv);
		}
	return error_set(MT_EUSAGE, argv[0], ERROR_NO_OFFSET, "no such command");
}

/* A reader that closed the pipe (head) has what it wanted; a full disk must not pass for success. */
static int finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	error_errno(MT_EOUTPUT, "standard output", ERROR_NO_OFFSET);
	error_print();
	return status ? status : error_exit_status(MT_EOUTPUT);
}

/* Large tables are moved when they grow, not copied, and are given back when they are done with: glibc would leave that off from the
 * first large one on that was freed. */
#define LARGE_BYTES (4 << 20)

int main(int argc, char **argv)
{
	char *about[] = { argv[0], argc > 2 ? argv[2] : NULL, "--help", NULL };
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	if (argc < 2) {
		error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET, "no command given");
		error_print();
		return error_exit_status(MT_EUSAGE);
	}
	if (argc == 3 && !strcmp(argv[1], "help") && !strcmp(argv[2], "words"))
		return finish(explain_words());
	if (argc == 3 && !strcmp(argv[1], "help"))
		argv = about;
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return finish(help());
	if (!strcmp(argv[1], "--version")) {
		printf("memtrace " MEMTRACE_VERSION "\n");
		return finish(0);
	}
	int status = run(argc - 1, argv + 1);
	if (status < 0) {
		fflush(stdout);
		error_print();
		return error_exit_status(status);
	}
	return finish(status);
}
