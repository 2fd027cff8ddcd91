/* What a shell completes: commands, their options, and the values of those that have a list. Everything else is a file,
 * or a trace directory. */
#include "analyzer/help/manual.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "analyzer/util/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { VALUES = 512 };

/* "all sample none"; empty if any text may be one. */
static const char *values_of(const struct option_row *row, char out[VALUES])
{
	size_t n = 0;
	*out = 0;
	for (unsigned by = 1; row->type == OPTION_BY && by < BY_END && n < VALUES; by++)
		if (row->keys & 1u << by)
			n += (size_t)snprintf(out + n, VALUES - n, "%s%s", n ? " " : "", options_by_name(by));
	if (row->type == OPTION_WHEN)
		snprintf(out, VALUES, "%s", strcmp(row->name, "at") ? "step: phase:" : "peak end oom step: phase:");
	if (row->argument && !strcmp(row->argument, "0|1"))
		snprintf(out, VALUES, "0 1");
	if (!strcmp(row->name, "stacks"))
		snprintf(out, VALUES, "all sample none");
	if (!strcmp(row->name, "to") && row->type == OPTION_STRING)
		snprintf(out, VALUES, "pyroscope parca");
	if (!strcmp(row->name, "record"))
		snprintf(out, VALUES, "all young auto sampled");
	if (!strcmp(row->name, "format") && strstr(row->help, "for CI")) {
#define CI_FORMAT(format) n += (size_t)snprintf(out + n, VALUES - n, "%s%s", n ? " " : "", #format);
#include "analyzer/report/ci/ci.def"
#undef CI_FORMAT
		if (strstr(row->help, "markdown"))
			snprintf(out + n, VALUES - n, " markdown");
	} else if (!strcmp(row->name, "format")) {
#define EXPORT(format) n += (size_t)snprintf(out + n, VALUES - n, "%s%s", n ? " " : "", #format);
#include "analyzer/report/export/exports.def"
#undef EXPORT
	}
	if (!strcmp(row->name, "for")) {
#define LAUNCHER(name, text) n += (size_t)snprintf(out + n, VALUES - n, "%s%s", n ? " " : "", #name);
#include "analyzer/help/launchers.def"
#undef LAUNCHER
	}
	return out;
}

/* What follows a command that takes no trace is another command (run -- COMMAND), or nothing. */
static bool takes_traces(const struct option_spec *spec)
{
	return !(spec->flags & OPTIONS_NO_DIRS);
}

/* In single quotes of a shell, without what has a meaning in zsh's _arguments. */
static void put_quoted(const char *text)
{
	for (; *text; text++)
		if (*text == '\'')
			print("'\\''");
		else if (strchr("[]:\\", *text))
			print(" ");
		else
			print("%c", *text);
}

/* ---- bash -------------------------------------------------------------------------------------------------- */

static void bash_options(const struct option_command *c)
{
	print("\t%s) options='", c->name);
	for (const struct option_row *row = c->spec->rows; row->name; row++)
		print("--%s%s ", row->name, row->argument && row->type == OPTION_SWITCH ? "=" : "");
	print("--help' ;;\n");
}

static void bash_values(const struct option_command *c)
{
	char values[VALUES];
	for (const struct option_row *row = c->spec->rows; row->name; row++) {
		if (!row->argument)
			continue;
		print("\t%s,--%s", c->name, row->name);
		if (row->letter)
			print(" | %s,-%c", c->name, row->letter);
		if (*values_of(row, values))
			print(") values='%s' ;;\n", values);
		else
			print(") values=any ;;\n");
	}
}

static void bash(const struct option_command *commands)
{
	print("# bash completion for memtrace; memtrace help --completion bash wrote it\n"
	      "_memtrace()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev= command= options= values= i\n"
	      "\tCOMPREPLY=()\n"
	      "\t[ \"$COMP_CWORD\" -lt 1 ] || prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	      "\t# --by=KEY is three words\n"
	      "\tif [ \"$cur\" = = ]; then cur=; elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
	      "\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '");
	for (const struct option_command *c = commands; c->name; c++)
		if (*c->help)
			print("%s ", c->name);
	print("help --help --version' -- \"$cur\"))\n\t\treturn\n\tfi\n"
	      "\tcommand=${COMP_WORDS[1]}\n"
	      "\tif [ \"$command\" = help ]; then\n\t\tCOMPREPLY=($(compgen -W '");
	for (const struct option_command *c = commands; c->name; c++)
		if (*c->help)
			print("%s ", c->name);
	print("words' -- \"$cur\"))\n\t\treturn\n\tfi\n"
	      "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	      "\t\t[ \"$command,${COMP_WORDS[i]}\" = run,-- ] || continue\n"
	      "\t\tif declare -F _command_offset >/dev/null; then _command_offset $((i + 1))\n"
	      "\t\telif [ $((i + 1)) = \"$COMP_CWORD\" ]; then COMPREPLY=($(compgen -c -- \"$cur\"))\n"
	      "\t\telse COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
	      "\t\treturn\n\tdone\n"
	      "\tcase $command,$prev in\n");
	for (const struct option_command *c = commands; c->name; c++)
		if (*c->help)
			bash_values(c);
	print("\tesac\n"
	      "\tif [ \"$values\" = any ]; then compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return; fi\n"
	      "\tif [ \"$values\" ]; then COMPREPLY=($(compgen -W \"$values\" -- \"$cur\")); return; fi\n"
	      "\tcase $command in\n");
	for (const struct option_command *c = commands; c->name; c++)
		if (*c->help)
			bash_options(c);
	print("\tesac\n"
	      "\tcase $cur in\n"
	      "\t-*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
	      "\t*) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n"
	      "\tesac\n}\n"
	      "complete -F _memtrace memtrace\n");
}

/* ---- zsh --------------------------------------------------------------------------------------------------- */

/* '(-n --rows)'{-n,--rows=}'[so many rows]:ROWS:' */
static void zsh_option(const struct option_row *row)
{
	char help[1024], values[VALUES];
	const char *equals = !row->argument ? "" : row->type == OPTION_SWITCH ? "=-" : "=";
	if (row->letter)
		print("\t\t'(-%c --%s)'{-%c,--%s%s}'[", row->letter, row->name, row->letter, row->name, equals);
	else
		print("\t\t'--%s%s[", row->name, equals);
	put_quoted(options_row_help(row, help, sizeof(help)));
	print("]");
	if (row->argument && *values_of(row, values))
		print(":%s:(%s)", row->argument, values);
	else if (row->argument)
		print(":%s:_files", row->argument);
	print("' \\\n");
}

static void zsh(const struct option_command *commands)
{
	print("#compdef memtrace\n# zsh completion for memtrace; memtrace help --completion zsh wrote it\n"
	      "_memtrace() {\n\tlocal -a commands\n\tlocal state\n\tcommands=(\n");
	for (const struct option_command *c = commands; c->name; c++) {
		if (!*c->help)
			continue;
		print("\t\t'%s:", c->name);
		put_quoted(c->help);
		print("'\n");
	}
	print("\t\t'help:what a command does, and its options'\n\t)\n"
	      "\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
	      "\tlocal command=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $command in\n");
	for (const struct option_command *c = commands; c->name; c++) {
		if (!*c->help)
			continue;
		print("\t%s) _arguments -S \\\n", c->name);
		for (const struct option_row *row = c->spec->rows; row->name; row++)
			zsh_option(row);
		print("\t\t'(-h --help)'{-h,--help}'[this text]' \\\n\t\t%s ;;\n",
		      takes_traces(c->spec)           ? "'*:trace:_directories'"
		      : c->spec->flags & OPTIONS_STOP ? "'*:::command:_normal'"
						      : "&& return");
	}
	print("\thelp) commands+=(words); _describe command commands ;;\n\tesac\n}\n"
	      "if [ \"$funcstack[1]\" = _memtrace ]; then _memtrace \"$@\"; else compdef _memtrace memtrace; fi\n");
}

/* ---- fish -------------------------------------------------------------------------------------------------- */

static void fish_option(const char *command, const struct option_row *row)
{
	char help[1024], values[VALUES];
	print("complete -c memtrace -n '__fish_seen_subcommand_from %s' -l %s", command, row->name);
	if (row->letter)
		print(" -s %c", row->letter);
	if (row->argument && *values_of(row, values))
		print(" %s -a '%s'", row->type == OPTION_SWITCH ? "-f" : "-x", values);
	else if (row->argument)
		print(" -r");
	print(" -d '");
	put_quoted(options_row_help(row, help, sizeof(help)));
	print("'\n");
}

static void fish(const struct option_command *commands)
{
	print("# fish completion for memtrace; memtrace help --completion fish wrote it\n"
	      "complete -c memtrace -n __fish_use_subcommand -f\n"
	      "complete -c memtrace -n __fish_use_subcommand -a help -d 'what a command does, and its options'\n");
	for (const struct option_command *c = commands; c->name; c++) {
		if (!*c->help)
			continue;
		print("complete -c memtrace -n __fish_use_subcommand -a %s -d '", c->name);
		put_quoted(c->help);
		print("'\n");
		for (const struct option_row *row = c->spec->rows; row->name; row++)
			fish_option(c->name, row);
		if (takes_traces(c->spec))
			print("complete -c memtrace -n '__fish_seen_subcommand_from %s' -f -a "
			      "'(__fish_complete_directories)'\n",
			      c->name);
	}
	print("complete -c memtrace -n '__fish_seen_subcommand_from help' -f -a '");
	for (const struct option_command *c = commands; c->name; c++)
		if (*c->help)
			print("%s ", c->name);
	print("words'\n");
	print("complete -c memtrace -n '__fish_seen_subcommand_from run' -f -a '(__fish_complete_subcommand)'\n");
}

static const struct {
	const char *name;
	void (*print)(const struct option_command *commands);
} shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

int completion_print(const char *shell, const struct option_command *commands)
{
	struct suggestion s = { .text = shell };
	for (size_t i = 0; i < sizeof(shells) / sizeof(*shells); i++) {
		suggest(&s, shells[i].name);
		if (strcmp(shell, shells[i].name))
			continue;
		shells[i].print(commands);
		return 0;
	}
	if (s.best)
		return error_set(MT_EUSAGE, "--completion", ERROR_NO_OFFSET, "unknown shell '%s'; did you mean '%s'?",
				 shell, s.best);
	return error_set(MT_EUSAGE, "--completion", ERROR_NO_OFFSET, "'%s' is none of bash, zsh and fish", shell);
}
