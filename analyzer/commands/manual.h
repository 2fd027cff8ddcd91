/* Man pages and shells' completions, made of the tables that main and the option parser use: memtrace help --man and
 * --completion. `make install` puts them where they belong. */
#ifndef MT_COMMANDS_MANUAL_H
#define MT_COMMANDS_MANUAL_H

#include "analyzer/util/options.h"

/* memtrace.1, in mdoc(7). `commands` ends with a name that is NULL. */
void manual_overview(const struct option_command *commands);

/* memtrace-COMMAND.1 */
void manual_command(const struct option_command *command);

/* A shell's completion; `shell` is bash, zsh or fish. Returns 0, or wrong usage for another one. */
int completion_print(const char *shell, const struct option_command *commands);

#endif
