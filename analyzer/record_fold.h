/*
 * Keeps the traces within the disk limit: when it nears, the oldest blocks of the largest are thinned (thin.h) into a new file, which then
 * takes the old one's name. A little at a time, in between the recorder's rounds. See docs/DESIGN.md, Folding.
 */
#ifndef MT_RECORD_FOLD_H
#define MT_RECORD_FOLD_H

#include "analyzer/record_process.h"

struct folder;

struct folder *folder_new(void);
void folder_free(struct folder *f); /* a job under way leaves nothing behind; NULL is fine */

/* After a start: removes what a killed recorder left unfinished and counts what is there. */
void folder_settle(struct recorder *r);

/* Some milliseconds' worth of it, if there is need. True if there is more to do at once. */
bool folder_work(struct folder *f, struct recorder *r, struct record_process *processes);

/* The process is about to be freed; its trace stays. */
void folder_forget(struct folder *f, const struct record_process *p);

#endif
