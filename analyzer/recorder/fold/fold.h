/*
 * Folding keeps the traces within the disk limit. When they come near it, the oldest blocks of the largest trace are
 * thinned (fold_window.h) into a new file, which then takes the old one's name. It is done a little at a time, between
 * rounds of the recorder. See docs/design/folding.md.
 */
#ifndef MT_RECORDER_FOLD_FOLD_H
#define MT_RECORDER_FOLD_FOLD_H

#include "analyzer/recorder/rings/recorder_process.h"

struct folding;

struct folding *folding_new(void);    /* NULL = no memory, which is fine for folding_work() */
void folding_free(struct folding *f); /* removes the unfinished file of a job under way; NULL is fine */

/* When the recorder starts: removes files that a killed recorder left unfinished, and counts the bytes of traces. */
void folding_settle(struct recorder *r);

/* Folds for some milliseconds, if the limit is near. True if a job is under way: call it again soon. */
bool folding_work(struct folding *f, struct recorder *r, struct record_process *processes);

/* Called before `p` is freed, as a job may point to it. Its trace stays. */
void folding_forget(struct folding *f, const struct record_process *p);

#endif
