/* The recorder: turns the raw files of a session into compressed ones while its processes run. */
#ifndef MT_RECORDER_RECORDER_H
#define MT_RECORDER_RECORDER_H

/* Serves the session in `dir` until all its processes have ended and are in their traces (and, under `memtrace run`,
 * until that asks for the end by SIGTERM). Returns 0, at once if another recorder is at work, or an error. */
int record_run(const char *dir);

#endif
