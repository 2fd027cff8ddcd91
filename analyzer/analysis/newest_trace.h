/* The trace that is meant when none is named. */
#ifndef MT_ANALYSIS_NEWEST_TRACE_H
#define MT_ANALYSIS_NEWEST_TRACE_H

/* The newest directory memtrace* in the working directory that holds a session and is worth a report: not that of a
 * command that lived for a moment and held nothing (process_is_momentary()), nor one that the other end of our own
 * pipeline is just making. If none is, the newest that is not that. Allocated; NULL: there is none. *passed: how many
 * newer ones were passed over. */
char *newest_trace(unsigned *passed);

#endif
