/* Settings in the program's environment, of which the log has those of allocators, devices and ranks (MT_REC_ENV). The
 * latest record counts. */
#ifndef MT_TRACE_SETTINGS_H
#define MT_TRACE_SETTINGS_H

/* Of a new image. */
void mt_settings_log(void);

/* The program asks for a variable. A framework's pool does so when it begins, and never again: what the program has set
 * until then holds, and is logged if it is another than before. */
void mt_settings_asked(const char *name);

/* A request of the pool failed: what has been set since it began is logged once. */
void mt_settings_failed(void);

#endif
