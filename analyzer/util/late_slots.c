#include "analyzer/util/late_slots.h"

#include "analyzer/util/error.h"
#include "analyzer/util/ring_slots.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

struct late {
	struct mt_event slot;
	uint32_t ring;
	size_t place; /* before which of those that stay */
	size_t index; /* in the order of writing */
};

struct work {
	uint64_t *reached; /* of those that stay: the highest order up to each */
	struct late *late;
	size_t late_count, late_room;
	size_t *floors; /* by ring: behind its last THREAD */
	size_t floor_room;
};

static bool can_move(const struct mt_event *s)
{
	return s->kind == MT_ALLOC || s->kind == MT_FREE;
}

/* The first of `n` that is later. */
static size_t place_of(const uint64_t *reached, size_t n, size_t from, uint64_t order)
{
	return from + SEARCH_FIRST(i, n - from, reached[from + i] > order);
}

static int compare(const void *a, const void *b)
{
	const struct late *x = a, *y = b;
	uint64_t p = ring_order(&x->slot), q = ring_order(&y->slot);
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (p != q)
		return p < q ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static int add(struct work *w, const struct mt_event *slot, uint32_t ring, size_t kept)
{
	int e = vec_reserve(w->late, w->late_room, w->late_count + 1);
	if (e)
		return e;
	size_t floor = ring < w->floor_room ? w->floors[ring] : 0;
	w->late[w->late_count] = (struct late){ .slot = *slot,
						.ring = ring,
						.place = place_of(w->reached, kept, floor, ring_order(slot)),
						.index = w->late_count };
	w->late_count++;
	return 0;
}

/* Takes out what moves; the rest closes up. */
static int take_out(struct work *w, struct mt_event *slots, uint32_t *rings, size_t count, size_t *kept)
{
	uint64_t highest = 0;
	size_t n = 0;
	int e = 0;
	for (size_t i = 0; !e && i < count; i++) {
		const uint64_t order = slots[i].kind == MT_EXT ? highest : ring_order(&slots[i]);
		if (order < highest && can_move(&slots[i])) {
			e = add(w, &slots[i], rings[i], n);
			continue;
		}
		highest = order > highest ? order : highest;
		w->reached[n] = highest;
		if (slots[i].kind == MT_THREAD) {
			e = vec_reserve(w->floors, w->floor_room, rings[i] + 1ul);
			if (!e)
				w->floors[rings[i]] = n + 1;
		}
		slots[n] = slots[i];
		rings[n++] = rings[i];
	}
	*kept = n;
	return e;
}

/* From the end, so that there is room; an extension stays behind its slot. */
static void put_in(struct work *w, struct mt_event *slots, uint32_t *rings, size_t kept)
{
	size_t to = kept + w->late_count, late = w->late_count;
	while (late) {
		const struct late *l = &w->late[late - 1];
		if (kept > l->place) {
			slots[--to] = slots[--kept];
			rings[to] = rings[kept];
			continue;
		}
		slots[--to] = l->slot;
		rings[to] = l->ring;
		late--;
	}
}

int late_slots_sort(struct mt_event *slots, uint32_t *rings, size_t count)
{
	struct work w = { .reached = malloc((count + 1) * sizeof(*w.reached)) };
	size_t kept = count;
	int e = w.reached ? take_out(&w, slots, rings, count, &kept) : error_memory();
	if (!e && w.late_count) {
		qsort(w.late, w.late_count, sizeof(*w.late), compare);
		put_in(&w, slots, rings, kept);
	}
	free(w.reached);
	free(w.late);
	free(w.floors);
	return e;
}
