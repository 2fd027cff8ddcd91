/* The command line: picks the command, prints the one error line, chooses the exit status. */
#include "analyzer/commands.h"
#include "analyzer/error.h"
#include "analyzer/options.h"
#include "format/own_program.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

MT_OWN_PROGRAM

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
	       "memtrace COMMAND --help says more; memtrace --version says which.\n");
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
