/* memtrace start PID, for a program that was not preloaded: makes it load libmemtrace.so and begin to record. */
#ifndef MT_ATTACH_ATTACH_H
#define MT_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define ATTACH_PATH 4096

/* Of the library in the process, whether or not it records. */
bool attach_is_loaded(pid_t pid);

/* `library` is its path here; `settings` are NAME=VALUE\0 ... \0 (format/attach.h), with what goes beyond the target's
 * own environment. `output`: where the trace is to be, absolute, or NULL. `trace` gets ATTACH_PATH bytes: where it is,
 * as seen from here. 0, or an error that says why the program is left as it was. */
int attach(pid_t pid, const char *library, const char *output, const char *settings, char *trace);

#endif
