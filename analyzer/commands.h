/* The functions of commands.def: memtrace NAME calls cmd_NAME with its own argv. */
#ifndef MT_COMMANDS_H
#define MT_COMMANDS_H

#define COMMAND(name, function, help) int function(int argc, char **argv);
#include "analyzer/commands.def"
#undef COMMAND

#endif
