/* The functions of commands.def: memtrace NAME calls cmd_NAME with its own argv; cmd_NAME_spec are its options and
 * help. */
#ifndef MT_COMMANDS_COMMANDS_H
#define MT_COMMANDS_COMMANDS_H

#include "analyzer/util/options.h"

#define COMMAND(name, function, help) \
	int function(int argc, char **argv); \
	extern const struct option_spec function##_spec;
#include "analyzer/commands/commands.def"
#undef COMMAND

#endif
