#include "format/event_model.h"

#include <stdlib.h>
#include <string.h>

static void model_fini(struct event_model *m)
{
	free(m->freed);
	free(m->allocations);
}

int event_model_reset(struct event_model *m, uint32_t slots)
{
	memset(m, 0, offsetof(struct event_model, freed));
	for (uint32_t i = 0; i < LANES; i++)
		m->lanes[i].first_stack = i * CLASSES;
	if (slots <= m->capacity)
		return 0;
	model_fini(m);
	m->freed = calloc(slots + 1ul, sizeof(*m->freed));
	m->allocations = malloc(slots * sizeof(*m->allocations));
	m->capacity = m->freed && m->allocations ? slots : 0;
	return m->capacity ? 0 : -CODEC_EMEM;
}

void event_scratch_free(struct event_scratch *scratch)
{
	if (!scratch)
		return;
	model_fini(&scratch->model);
	free(scratch->table.ordinals);
	free(scratch);
}

struct event_scratch *event_scratch_of(struct codec *codec)
{
	if (!codec->events)
		codec->events = calloc(1, sizeof(*codec->events));
	return codec->events;
}

size_t event_column_limit(unsigned column, uint32_t slots)
{
	switch (column) {
	case COLUMN_PLACE:
		return slots;
	case COLUMN_ADDRESS:
	case COLUMN_FAR:
		return (VARINT_MAX + 1ul) * slots;
	case COLUMN_EXT:
		return 5ul * VARINT_MAX * slots;
	case COLUMN_OTHER:
	case COLUMN_TIME:
		return VARINT_MAX * (size_t)slots;
	case COLUMN_SIZE:
		return 7ul * slots; /* 48 bits */
	default:
		return 10ul * slots; /* two of 32 bits */
	}
}
