/* Making a trace readable where its programs are not installed. */
#ifndef MT_COMMANDS_CMD_SYMBOLIZE_H
#define MT_COMMANDS_CMD_SYMBOLIZE_H

#include <stdbool.h>

/* `servers`: those of DEBUGINFOD_URLS may be asked. `force`: as --force. `quiet`: says nothing on the terminal. */
struct symbolize_options {
	bool servers, force, quiet;
};

/* Looks up all addresses of the trace and writes DIR/symbols. 0 or -MT_E*. */
int symbolize(const char *dir, const struct symbolize_options *o);

/* Looks up all addresses of the trace, into the symbols of `stacks`. */
struct reader;
struct stacks;
void symbolize_look_up(struct reader *r, struct stacks *stacks, const char *dir, const struct symbolize_options *o);

#endif
