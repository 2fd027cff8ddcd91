/*
 * Marks: moments, steps, phases and names of blocks that the program tells us, through memtrace.h or through the
 * interfaces of others (NVTX, mstx). Each is one event (MT_MARK); its text is recorded once in the log and known by an
 * id from then on.
 *
 * Everything here keeps errno, never allocates, and may be called at any time in any thread; while nothing is recorded
 * (paused, off) it does nothing. Texts are copied, and cut after MT_MARK_MAX_TEXT bytes. `caller` is the return
 * address of whoever was called by the program; NULL = the mark gets no stack.
 */
#ifndef MT_TRACE_MARK_H
#define MT_TRACE_MARK_H

#include <stdint.h>

#include "format/format.h"

#define MT_MARK_MAX_TEXT 1023u

void mt_mark_point(const char *name, enum mt_mark_source source, const void *caller);
void mt_mark_step(uint64_t number, enum mt_mark_source source, const void *caller);

/* `range`: an id of the source's for ranges that don't nest or end in other threads; 0 = of this thread's stack. An end
 * without a name (NULL) ends the innermost one, or the one with that id. */
void mt_mark_begin(const char *name, uint64_t range, enum mt_mark_source source, const void *caller);
void mt_mark_end(const char *name, uint64_t range, enum mt_mark_source source);

/* Gives the block that contains `p` the name `text`. A later label of the same block replaces it. */
void mt_mark_label(const void *p, const char *text, enum mt_mark_source source);

/* The id of a text, which stays the same as long as the process lives. 0 = the text is NULL or empty, or no more texts
 * can be kept, which is counted. Only while recording. */
uint32_t mt_mark_name(const char *text);

/* In a forked child: forgets which texts were recorded, as its own log has none. */
void mt_mark_reset(void);

struct mt_tables;
void mt_mark_tables(struct mt_tables *t);

#endif
