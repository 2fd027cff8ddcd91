/*
 * Steps are told by stacks that recur (loop_finder.h), and of those few are left where all pairs go. So wherever a
 * thread goes from one part of its loop to the next - from the line that calls the model to the one that calls the
 * optimizer - the next allocation stays. A part is all stacks with the same outermost frames; how many is found by
 * where the latest allocations begin to differ.
 */
#include "analyzer/recorder/fold/fold_window_internal.h"

#include "analyzer/util/vec.h"

#include <string.h>

#define FOLD_LEAST_TURNS 4  /* among the latest allocations: less is no loop */
#define FOLD_MOST_PART   4  /* one allocation in so many may be a turn */
#define GOOD_PART        32 /* times two to half the level: then more frames are looked at */
#define MORE_FRAMES      3

static uint32_t parent_of(const struct fold_window *t, uint32_t node)
{
	const struct fold_facts *f = &t->facts;
	return node >= f->node_base && node - f->node_base < f->node_count ? f->parents[node - f->node_base] : 0;
}

static int set_depths(struct fold_window *t)
{
	const struct fold_facts *f = &t->facts;
	if (t->depths || !f->parents)
		return 0;
	t->depths = malloc(f->node_count + 1ul);
	if (!t->depths)
		return error_memory();
	for (uint32_t i = 0; i < f->node_count; i++) {
		uint32_t parent = f->parents[i];
		uint8_t outer =
			parent >= f->node_base && parent - f->node_base < i ? t->depths[parent - f->node_base] : 0;
		t->depths[i] = outer < UINT8_MAX ? (uint8_t)(outer + 1) : outer;
	}
	return 0;
}

static unsigned depth_of(const struct fold_window *t, uint32_t node)
{
	const struct fold_facts *f = &t->facts;
	return node >= f->node_base && node - f->node_base < f->node_count ? t->depths[node - f->node_base] : 0;
}

/* How many frames two stacks share. A caller's number is the smaller one. */
static unsigned shared(const struct fold_window *t, uint32_t a, uint32_t b)
{
	while (a != b) {
		uint32_t *deeper = a > b ? &a : &b;
		uint32_t parent = parent_of(t, *deeper);
		*deeper = parent < *deeper ? parent : 0;
	}
	return depth_of(t, a);
}

/* differ[n]: how many allocations share n frames with the one before in their thread. */
static int count_turns(struct fold_window *t, uint64_t differ[UINT8_MAX + 1])
{
	size_t count = t->look_count < LOOKS ? (size_t)t->look_count : LOOKS,
	       from = t->look_count < LOOKS ? 0 : (size_t)(t->look_count % LOOKS);
	for (size_t i = 0; i < count; i++) {
		const struct look *l = &t->looks[(from + i) % LOOKS];
		int e = vec_reserve(t->branch_of, t->branch_of_room, l->thread + 1ul);
		if (e)
			return e;
		uint32_t *before = &t->branch_of[l->thread];
		if (*before && *before != l->node)
			differ[shared(t, *before, l->node)]++;
		*before = l->node;
	}
	if (t->branch_of)
		memset(t->branch_of, 0, t->branch_of_room * sizeof(*t->branch_of));
	return 0;
}

/* The outermost frames that tell parts apart, and some more while those are long. 0 = there is no loop. */
static unsigned choose_frames(const struct fold_window *t, const uint64_t differ[UINT8_MAX + 1])
{
	uint64_t count = t->look_count < LOOKS ? t->look_count : LOOKS, turns = 0;
	/* where little is left all are turns */
	count += (uint64_t)((double)count * (double)t->looks_left_out / (double)t->look_count);
	unsigned first = 0, best = 0;
	for (unsigned frames = 1; frames < UINT8_MAX && (!first || frames <= first + MORE_FRAMES); frames++) {
		turns += differ[frames - 1];
		if (turns < FOLD_LEAST_TURNS || turns * FOLD_MOST_PART > count)
			continue;
		first = first ? first : frames;
		best = frames == first || turns * GOOD_PART << t->level / 2 <= count ? frames : best;
	}
	return best;
}

int fold_find_loop(struct fold_window *t)
{
	uint64_t differ[UINT8_MAX + 1] = { 0 };
	int e = t->look_count ? set_depths(t) : 0;
	if (!e && t->look_count)
		e = count_turns(t, differ);
	t->frames = e || !t->look_count ? 0 : choose_frames(t, differ);
	if (e || !t->frames)
		return e;
	free(t->branch);
	t->branch = calloc(t->facts.node_count + 1ul, sizeof(*t->branch));
	return t->branch ? 0 : error_memory();
}

static uint32_t branch_of(struct fold_window *t, uint32_t node)
{
	uint32_t id = node, base = t->facts.node_base;
	if (node < base || node - base >= t->facts.node_count)
		return 0;
	if (!t->branch[node - base]) {
		while (depth_of(t, id) > t->frames)
			id = parent_of(t, id);
		t->branch[node - base] = id;
	}
	return t->branch[node - base];
}

bool fold_begins_part(struct fold_window *t, const struct mt_event *s, uint32_t thread)
{
	uint32_t node = s->node2 ? s->node2 : s->kind == MT_DEVICE_ALLOC ? s->node : 0;
	uint32_t branch = t->frames && node ? branch_of(t, node) : 0;
	if (!branch || vec_reserve(t->branch_of, t->branch_of_room, thread + 1ul) || t->branch_of[thread] == branch)
		return false;
	t->branch_of[thread] = branch;
	return true;
}
