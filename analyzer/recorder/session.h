/* The session of `memtrace run`. The directory is made here; the first process writes the session file into it. */
#ifndef MT_RECORDER_SESSION_H
#define MT_RECORDER_SESSION_H

#include <stdint.h>
#include <sys/types.h>

#define SESSION_PATH 4096

/* Makes a new trace directory for `command`, named as MEMTRACE_OUTPUT says; if that exists, it takes another name and
 * says so on stderr. `dir` has SESSION_PATH bytes and gets the absolute path. 0 or an error. */
int session_make(char *dir, const char *command);

/* Waits until the session file is there or `pid` has ended. Returns 1 if the file is there, else 0. */
int session_wait(const char *dir, pid_t pid);

/* Notes how `pid`, the child of `memtrace run`, ended; `status` is from waitpid. From then on processes that have no
 * recorder start one themselves. 0 or an error. */
int session_end(const char *dir, pid_t pid, int status);

/* Nanoseconds since the session's recorder last noted that it is at work; 0 = it never did. */
uint64_t session_recorder_silence(const char *dir);

#endif
