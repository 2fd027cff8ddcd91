/* Commands that take DIR or PID. */
#ifndef MT_COMMANDS_TRACE_OF_PID_H
#define MT_COMMANDS_TRACE_OF_PID_H

/* Of a word that is no path but a process's number *dir is the directory of its session, to be freed; else NULL.
 * 0, or -MT_ENOTRACE: there is no such process, or it is not recorded. */
int trace_of_pid(const char *word, char **dir);

#endif
