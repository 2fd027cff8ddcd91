/* The session of `memtrace run`: a directory made here, whose session file the first process writes. */
#ifndef MT_RECORDER_SESSION_H
#define MT_RECORDER_SESSION_H

#include <stdint.h>
#include <sys/types.h>

#define SESSION_PATH 4096

/* Makes a new trace directory for `command` as MEMTRACE_OUTPUT says, and says on stderr if it has another name because
 * that one exists. dir: SESSION_PATH bytes, gets its absolute path. */
int session_make(char *dir, const char *command);

/* Waits until the first process has written the session file or `pid` has ended. Returns 1 if it is there. */
int session_wait(const char *dir, pid_t pid);

/* Notes how the child of `memtrace run` ended; `status` as from waitpid. From then on a process that lacks a recorder
 * starts one itself. */
int session_end(const char *dir, pid_t pid, int status);

/* How long ago its recorder said that it is at work, in ns; 0 = it never did. */
uint64_t session_recorder_silence(const char *dir);

#endif
