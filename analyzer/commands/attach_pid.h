/* Recording begins in a running program that was not preloaded, for commands that take a PID. */
#ifndef MT_COMMANDS_ATTACH_PID_H
#define MT_COMMANDS_ATTACH_PID_H

#include <stdbool.h>

/* The number, or 0: `word` is a path, or no number. */
int pid_of(const char *word);

/* Attaches to that process, with the settings of the environment (MEMTRACE_*), and sets *dir to its trace, which the
 * caller frees. Processes that it had started before, and that are not recorded, are named on stderr. 0, or an error;
 * the program is as it was then. */
int attach_pid(int pid, char **dir);

/* As trace_of_pid(), but a process that is not recorded is attached to; *attached says so. */
int trace_or_attach(const char *word, char **dir, bool *attached);

#endif
