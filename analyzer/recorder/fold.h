/*
 * Keeps the traces within the disk limit: when it nears, the oldest blocks of the largest are thinned (fold_window.h)
 * into a new file, which then takes the old one's name. A little at a time, in between the recorder's rounds. See
 * docs/design/folding.md.
 */
#ifndef MT_RECORDER_FOLD_H
#define MT_RECORDER_FOLD_H

#include "analyzer/recorder/recorder_process.h"

struct folding;

struct folding *folding_new(void);
void folding_free(struct folding *f); /* a job under way leaves nothing behind; NULL is fine */

/* After a start: removes what a killed recorder left unfinished and counts what is there. */
void folding_settle(struct recorder *r);

/* Some milliseconds' worth of it, if there is need. True if there is more to do at once. */
bool folding_work(struct folding *f, struct recorder *r, struct record_process *processes);

/* The process is about to be freed; its trace stays. */
void folding_forget(struct folding *f, const struct record_process *p);

#endif
