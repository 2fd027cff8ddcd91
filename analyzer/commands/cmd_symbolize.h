/* Making a trace readable where its programs are not installed. */
#ifndef MT_COMMANDS_CMD_SYMBOLIZE_H
#define MT_COMMANDS_CMD_SYMBOLIZE_H

#include <stdbool.h>

/* Writes DIR/symbols. `servers`: those of DEBUGINFOD_URLS may be asked. `force`: as --force. */
struct symbolize_options {
	bool servers, force, quiet;
};
int symbolize(const char *dir, const struct symbolize_options *o);

/* Everything that can be said of addresses of this trace, into the symbols of `stacks`. */
struct reader;
struct stacks;
void symbolize_look_up(struct reader *r, struct stacks *stacks, const char *dir, const struct symbolize_options *o);

#endif
