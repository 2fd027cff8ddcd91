/* How memory went over time, and by step. */
#include "analyzer/reduce/reduce_internal.h"
#include "analyzer/report/json/json.h"

#include <stdio.h>

/* The sum of some processes' series. */
struct sum {
	uint64_t low[MODEL_TIMELINE_BUCKETS], high[MODEL_TIMELINE_BUCKETS];
	size_t count; /* up to the last one that has anything */
};

static void sum_add(struct sum *s, const struct model_series *series)
{
	for (uint32_t i = 0; i < series->count && series->first + i < MODEL_TIMELINE_BUCKETS; i++) {
		s->low[series->first + i] += series->buckets[i].low;
		s->high[series->first + i] += series->buckets[i].high;
	}
	size_t end = series->first + series->count;
	end = end < MODEL_TIMELINE_BUCKETS ? end : MODEL_TIMELINE_BUCKETS;
	s->count = series->count && end > s->count ? end : s->count;
}

static void put_sum(struct reduction *r, size_t rank, const char *what, const struct sum *s)
{
	size_t each = (s->count + r->bounds.buckets - 1) / r->bounds.buckets;
	uint64_t most = 0;
	for (size_t i = 0; i < s->count; i++)
		most = s->high[i] > most ? s->high[i] : most;
	if (!most)
		return;
	uint64_t width = model_timeline_width_ns(r->selection->model) * each;
	json_t *o = json_object(), *lows = json_array(), *highs = json_array();
	for (size_t i = 0; i < s->count; i += each) {
		uint64_t low = UINT64_MAX, high = 0;
		for (size_t k = i; k < s->count && k < i + each; k++) {
			low = s->low[k] < low ? s->low[k] : low;
			high = s->high[k] > high ? s->high[k] : high;
		}
		json_array_append_new(lows, json_bytes(low));
		json_array_append_new(highs, json_bytes(high));
	}
	json_object_set_new(o, "rank", json_rank(r->ranks.items[rank].rank));
	json_object_set_new(o, "what", json_text(what));
	json_object_set_new(o, "begin_ns", reduce_wall(r, model_from_ns(r->selection->model)));
	json_object_set_new(o, "width_ns", json_bytes(width));
	json_object_set_new(o, "low", lows);
	json_object_set_new(o, "high", highs);
	rows_put(&r->rows, TABLE_timeline, o);
}

static void put_rank(struct reduction *r, size_t rank)
{
	const struct model *m = r->selection->model;
	const struct reduce_rank *k = &r->ranks.items[rank];
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++) {
		struct sum s = { .count = 0 };
		for (size_t i = 0; i < k->count; i++)
			sum_add(&s, &model_process(m, k->items[i]->id)->timeline[kind]);
		put_sum(r, rank, kind_name(kind), &s);
	}
}

static void put_device(struct reduction *r, size_t rank, const struct model_device *d)
{
	static const struct {
		enum model_layer layer;
		const char *name;
	} layers[] = { { LAYER_MEMORY, "driver" }, { LAYER_RESERVED, "reserved" }, { LAYER_POOL, "pool" } };
	char what[80];
	for (size_t l = 0; l < sizeof(layers) / sizeof(*layers); l++) {
		struct sum s = { .count = 0 };
		for (unsigned i = 0; i < d->share_count; i++)
			if (r->ranks.of[d->shares[i]->process->id] == rank)
				sum_add(&s, &d->shares[i]->timeline[layers[l].layer]);
		snprintf(what, sizeof(what), "%s %s", d->name, layers[l].name);
		put_sum(r, rank, what, &s);
	}
}

static void put_step(struct reduction *r, const struct step_list *steps, size_t from, size_t end)
{
	uint64_t count = 0;
	char name[64];
	json_t *o = json_object(), *tracks = json_array(), *lows = json_array(), *highs = json_array();
	for (size_t i = from; i < end; i++)
		count += steps->steps[i].count;
	for (size_t t = 0; t < steps->track_count; t++) {
		const struct step_track *track = &steps->tracks[t];
		uint64_t low = UINT64_MAX, high = 0;
		for (size_t i = from; i < end; i++) {
			low = step_low(track, i) < low ? step_low(track, i) : low;
			high = step_high(track, i) > high ? step_high(track, i) : high;
		}
		timeline_track_name(r->selection, steps->process, track->kind, track->device, name, sizeof(name));
		json_array_append_new(tracks, json_text(name));
		json_array_append_new(lows, json_bytes(low));
		json_array_append_new(highs, json_bytes(high));
	}
	json_object_set_new(o, "rank", json_rank(steps->process->rank));
	json_object_set_new(o, "number", json_bytes(steps->steps[from].number));
	json_object_set_new(o, "count", json_bytes(count));
	json_object_set_new(o, "begin_ns", reduce_wall(r, steps->steps[from].begin_ns));
	json_object_set_new(o, "end_ns", reduce_wall(r, steps->steps[end - 1].end_ns));
	json_object_set_new(o, "tracks", tracks);
	json_object_set_new(o, "low", lows);
	json_object_set_new(o, "high", highs);
	rows_put(&r->rows, TABLE_step, o);
}

static void put_steps(struct reduction *r)
{
	const struct step_list *steps = timeline_main(r->analysis.timeline, r->selection);
	if (!steps || steps->source == LOOP_NONE || !steps->count)
		return;
	size_t each = (steps->count + r->bounds.steps - 1) / r->bounds.steps;
	for (size_t i = 0; i < steps->count; i += each)
		put_step(r, steps, i, i + each < steps->count ? i + each : steps->count);
}

void time_rows_put(struct reduction *r)
{
	for (size_t rank = 0; rank < r->ranks.count; rank++)
		put_rank(r, rank);
	for (uint32_t d = 0; d < model_devices(r->selection->model); d++)
		for (size_t rank = 0; rank < r->ranks.count; rank++)
			put_device(r, rank, model_device(r->selection->model, d));
	put_steps(r);
}
