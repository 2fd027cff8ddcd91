/*
 * Growth in few bursts, which no line can be drawn through: levels, and between them bursts that nothing gives back.
 *
 *   equal     the same again and again at the same distances: what each stage, epoch or file leaves
 *   in proportion  a table or an array that is made anew, say twice as large, whenever it is full. When that is tells
 *                  how much was in it, and
 *             what was in it grew along a line
 *
 * Both must still go on: the next burst is not overdue.
 */
#ifndef MT_TIMELINE_BURSTS_H
#define MT_TIMELINE_BURSTS_H

#include "analyzer/timeline/growth.h"

/* growth_of(), and of what that is not certain of, growth in bursts: it is linear, .jumps are the bursts, and of medium
 * certainty at most. Of what one site has: in a sum of sites the levels are not to be seen. */
struct growth bursts_growth(const double *x, const double *bytes, size_t count);

#endif
