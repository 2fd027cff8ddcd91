/* Making a trace readable where its programs are not installed. */
#ifndef MT_COMMANDS_CMD_SYMBOLIZE_H
#define MT_COMMANDS_CMD_SYMBOLIZE_H

#include <stdbool.h>

/* Writes DIR/symbols. `servers`: those of DEBUGINFOD_URLS may be asked. `force`: as --force. */
struct symbolize_options {
	bool servers, force, quiet;
};
int symbolize(const char *dir, const struct symbolize_options *o);

#endif
