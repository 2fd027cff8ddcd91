/*
 * How live bytes of a track rose within its latest steps, by the number of allocations since the step began. From that
 * follows what the current step may still ask for. Lengths of inputs differ, so the rise of earlier steps is scaled by
 * how far this one has risen so far or, if it has only begun, by the size of its request.
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

/* An allocation of the step: live bytes before and after it. */
void step_shapes_allocation(struct step_shapes *s, uint64_t before, uint64_t live);

/* Bytes by which live bytes will still rise above `live` in this step: the median of the latest steps that were longer
 * than this one is so far; STEP_SHAPE_UNKNOWN: none was. `request`: bytes that are asked for now. `next`: the request
 * may be the first of the next step, and counts as that if no step was longer. */
uint64_t step_shapes_rise(const struct step_shapes *s, uint64_t live, uint64_t request, bool next);

/* The same as it was then: what of a step does not depend on its input (gradients, an optimizer) is no larger now. */
uint64_t step_shapes_rise_unscaled(const struct step_shapes *s, uint64_t live, uint64_t request, bool next);

#endif
