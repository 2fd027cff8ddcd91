/* The trace of a running process, for commands that take DIR or PID. */
#ifndef MT_COMMANDS_TRACE_OF_PID_H
#define MT_COMMANDS_TRACE_OF_PID_H

/* If `word` is a number and no path, it is a PID, and *dir is set to the directory of that process's session, to be
 * freed by the caller; else to NULL. 0, or -MT_ENOTRACE: there is no such process, or it is not recorded. */
int trace_of_pid(const char *word, char **dir);

#endif
