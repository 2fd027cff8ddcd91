/* The session: one trace directory for a process tree, found by its children through MEMTRACE_SESSION. */
#ifndef MT_TRACE_SESSION_H
#define MT_TRACE_SESSION_H

#include <stdint.h>

/* Joins the parent's session or makes one. Fills mt_process.session and its paths. 0 if neither is possible. */
int mt_session_open(void);

/* Makes the session's directory of raw files, if that has gone. Nonzero if it did. */
int mt_session_make_ring_dir(void);

/* Sets MEMTRACE_SESSION for children. Changes the environment, so it is only called in the constructor. */
void mt_session_export(void);

/* True if the recorder has already finished an image PID-N. */
int mt_session_has_trace(uint32_t pid, uint32_t image);

#endif
