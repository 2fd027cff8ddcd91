/*
 * How a track's live bytes went within its latest steps, by the number of allocations since the step began: what the
 * step that is open may still ask for. Lengths of inputs differ, so what earlier steps rose by is scaled as this one
 * has risen so far, or where it has only begun, as its request is.
 */
#ifndef MT_TIMELINE_STEP_SHAPE_H
#define MT_TIMELINE_STEP_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#define STEP_SHAPE_UNKNOWN UINT64_MAX

struct step_shapes; /* 20 KB */

struct step_shapes *step_shapes_new(void); /* NULL: no memory */
void step_shapes_free(struct step_shapes *s);

/* A step begins at so many live bytes, and ends the one before. */
void step_shapes_begin(struct step_shapes *s, uint64_t live);

/* An allocation of the step: live bytes before and behind it. */
void step_shapes_allocation(struct step_shapes *s, uint64_t before, uint64_t live);

/* How far live bytes will rise above what they are now until the step ends, by the median of the latest steps that were
 * longer than this one is; STEP_SHAPE_UNKNOWN: there is none. `request`: bytes that are asked for now. `next`: it may
 * begin the next step, and does if none was longer than this one is. */
uint64_t step_shapes_rise(const struct step_shapes *s, uint64_t live, uint64_t request, bool next);

#endif
