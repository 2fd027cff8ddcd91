/* The recorder: turns the raw files of a session into compressed ones while its processes run. */
#ifndef MT_RECORDER_RECORDER_H
#define MT_RECORDER_RECORDER_H

/* Serves the session in `dir` until all its processes have ended and everything they recorded is in their traces; under
 * `memtrace run` also until that sends SIGTERM. Returns 0, at once if another recorder serves the session, or an
 * error. */
int record_run(const char *dir);

#endif
