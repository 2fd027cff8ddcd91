/* Man pages and completions for shells, made from the tables that main and the option parser use, and printed by
 * memtrace help --man and --completion. `make install` puts them where they belong. */
#ifndef MT_HELP_MANUAL_H
#define MT_HELP_MANUAL_H

#include "analyzer/util/options.h"

/* Prints memtrace.1, in mdoc(7). `commands` ends with a row whose name is NULL. */
void manual_overview(const struct option_command *commands);

/* Prints memtrace-COMMAND.1. */
void manual_command(const struct option_command *command);

/* Prints the completion for `shell`: bash, zsh or fish. 0, or -MT_EUSAGE for another shell. */
int completion_print(const char *shell, const struct option_command *commands);

#endif
