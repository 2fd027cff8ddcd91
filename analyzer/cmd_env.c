/* memtrace env: the settings as shell commands, for launchers that start the programs themselves. */
#include "analyzer/commands.h"
#include "analyzer/record_options.h"

#include <stdio.h>

static const struct option_row rows[] = { RECORD_ROWS, OPTIONS_END };

const struct option_spec cmd_env_spec = {
	"eval $(memtrace env [options])",
	"Prints what makes every program started from this shell record itself: for\n"
	"torchrun, accelerate, deepspeed, srun, ray or a kernel.json.",
	rows, OPTIONS_NO_DIRS,
	"  eval $(memtrace env -o /data/%n-%p)\n",
	"Read: docs/env.md",
};

static int print_export(const char *name, const char *value, void *unused)
{
	(void)unused;
	printf("export %s='", name);
	for (; *value; value++)
		if (*value == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*value);
	puts("';");
	return 0;
}

int cmd_env(int argc, char **argv)
{
	struct record_options o = { 0 };
	int e = options_parse(&cmd_env_spec, &o, argc, argv);

	if (e)
		return e > 0 ? 0 : e;
	return record_options_apply(&o, print_export, NULL);
}
