/* Commands that the recorder starts beside itself: in a session of their own, with none of our descriptors, and not
 * recorded. */
#ifndef MT_RECORDER_APART_H
#define MT_RECORDER_APART_H

/* Ours, without what would record the command, and these settings, which end with NULL. To be freed, the strings are
 * borrowed. NULL: no memory. */
char **apart_environment(const char *const *more);

/* Between fork and exec, as this process may have threads. Output goes to the end of the file `log`, if it can be
 * opened. */
void apart_set_up(const char *log);

/* Starts `memtrace push`, if MEMTRACE_PUSH=SERVER=URL says so; its words are in the trace's push.log. It is not
 * waited for: where the trace is pushed already, it goes at once. */
void apart_push(const char *dir);

#endif
