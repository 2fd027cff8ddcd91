/*
 * Growth in few bursts: bytes stay at a level, rise at once to the next level, and never fall. No line fits that. Two
 * kinds are found:
 *
 *   equal          bursts of the same bytes at the same distances: what each stage, epoch or file leaves
 *   in proportion  a table or an array that is made anew, say twice as large, whenever it is full. The moments at which
 *                  it was full show how its contents grew: along a line
 *
 * Growth must still go on: the next burst is not overdue.
 */
#ifndef MT_TIMELINE_BURSTS_H
#define MT_TIMELINE_BURSTS_H

#include "analyzer/timeline/growth.h"

/* As growth_of(); where that is not certain, growth in bursts is tried. Its kind is GROWTH_LINEAR, .jumps is the number
 * of bursts, and its certainty is medium at most. `bytes` must be those of one site: a sum of sites has no levels. */
struct growth bursts_growth(const double *x, const double *bytes, size_t count);

#endif
