/*
 * The JSON of speedscope.app: its schema is file-format-schema.json in the npm package speedscope. One sampled profile
 * a kind of memory, whose samples are the stacks, outermost first, and whose weights are their bytes.
 *
 * Samples name their frames by number. So that nothing but the frames themselves is kept in memory, samples are printed
 * as they come, and what they refer to behind them: a profile's weights at its end, the frames at the end of the file.
 */
#include "analyzer/report/export/export.h"

#include "analyzer/report/json/json.h"
#include "analyzer/util/error.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/options.h"
#include "analyzer/util/print.h"
#include "analyzer/util/vec.h"
#include "format/fnv.h"
#include "format/version.h"

#include <stdlib.h>
#include <string.h>

/* What speedscope takes for one function: name and place. */
struct place {
	char *name;
	const char *file; /* of the source, else the library; NULL = unknown */
	uint32_t line;    /* 0 = unknown */
};

struct speedscope {
	struct place *places;
	size_t place_count, place_room;
	struct hash_index index;
	const struct moment *at; /* whose profile is open */
	size_t profiles, active; /* active: the index of the one that is shown first */
	uint64_t *weights;       /* of its samples, bytes */
	size_t weight_count, weight_room;
};

/* ---- frames ------------------------------------------------------------------------------------------------ */

static uint64_t hash_text(uint64_t h, const char *text)
{
	return mt_fnv_stir(mt_fnv_text(h, text));
}

static uint64_t hash_place(const struct place *p)
{
	return hash_text(hash_text(p->line + MT_FNV_START, p->name), p->file);
}

static uint64_t hash_of_place(const void *places, uint32_t number)
{
	return hash_place((const struct place *)places + number - 1);
}

static bool is_same(const struct place *a, const struct place *b)
{
	return a->line == b->line && !strcmp(a->name, b->name) &&
	       (a->file && b->file ? !strcmp(a->file, b->file) : a->file == b->file);
}

/* The number of the place, from 0 on, which takes p.name over; or a negative error. */
static int64_t place_number(struct speedscope *s, struct place p)
{
	int e = p.name ? vec_reserve_raw(s->places, s->place_room, s->place_count + 1) : error_memory();
	if (e == 0 && hash_index_is_full(&s->index, s->place_count))
		e = hash_index_grow(&s->index, s->places, s->place_count, hash_of_place);
	if (e < 0) {
		free(p.name);
		return e;
	}
	uint64_t hash = hash_place(&p);
	size_t at = hash_index_home(&s->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&s->index, hash, &at)); at = hash_index_after(&s->index, at))
		if (is_same(&s->places[n - 1], &p)) {
			free(p.name);
			return n - 1;
		}
	s->places[s->place_count++] = p;
	hash_index_set(&s->index, at, s->place_count, hash);
	return (int64_t)s->place_count - 1;
}

static int64_t frame_number(struct speedscope *s, const struct frame *f)
{
	return place_number(s, (struct place){ .name = export_frame_text(f),
					       .file = f->file ? f->file : f->library,
					       .line = f->file ? f->line : 0 });
}

static void print_places(const struct speedscope *s)
{
	for (size_t i = 0; i < s->place_count; i++) {
		const struct place *p = &s->places[i];
		print("%s\n{\"name\":", i ? "," : "");
		json_print_text(p->name);
		if (p->file) {
			print(",\"file\":");
			json_print_text(p->file);
		}
		if (p->line)
			print(",\"line\":%u", p->line);
		print("}");
	}
}

/* ---- profiles ---------------------------------------------------------------------------------------------- */

static int begin(struct export *x)
{
	struct speedscope *s = x->state = calloc(1, sizeof(*s));
	if (!s)
		return error_memory();
	print("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"memtrace@" MEMTRACE_VERSION
	      "\",\"name\":\"memtrace\",\"profiles\":[");
	return 0;
}

static void end_profile(struct speedscope *s)
{
	uint64_t sum = 0;
	if (!s->at)
		return;
	print("],\n\"weights\":[");
	for (size_t i = 0; i < s->weight_count; i++) {
		print(i ? "," : "");
		print_decimal(s->weights[i]);
		sum += s->weights[i];
	}
	print("],\"endValue\":");
	print_decimal(sum);
	print("}");
}

static void begin_profile(struct speedscope *s, const struct export_stack *stack)
{
	end_profile(s);
	print("%s\n{\"type\":\"sampled\",\"name\":", s->at ? "," : "");
	json_print_text(stack->memory);
	print(",\"unit\":\"bytes\",\"startValue\":0,\"samples\":[");
	s->at = stack->at;
	s->weight_count = 0;
}

static int print_sample(struct speedscope *s, const struct export_stack *stack)
{
	int64_t n = stack->count ? 0 : place_number(s, (struct place){ .name = strdup("(no stack)") });
	print("%s\n[", s->weight_count ? "," : "");
	if (!stack->count && n >= 0)
		print_decimal((uint64_t)n);
	for (size_t i = stack->count; n >= 0 && i-- > 0;) {
		n = frame_number(s, stack->frames[i]);
		if (n >= 0)
			print_decimal((uint64_t)n);
		print(i ? "," : "");
	}
	print("]");
	return n < 0 ? (int)n : 0;
}

static int add_stack(struct export *x, const struct export_stack *stack)
{
	struct speedscope *s = x->state;
	if (!stack->bytes)
		return 0;
	if (stack->at != s->at) {
		begin_profile(s, stack);
		s->active = stack->at == x->main ? s->profiles : s->active;
		s->profiles++;
	}
	int e = print_sample(s, stack);
	if (e == 0)
		e = vec_reserve_raw(s->weights, s->weight_room, s->weight_count + 1);
	if (e == 0)
		s->weights[s->weight_count++] = stack->bytes;
	return e;
}

static int end(struct export *x)
{
	struct speedscope *s = x->state;
	if (!s)
		return 0;
	if (!x->failed) {
		end_profile(s);
		print("],\n\"activeProfileIndex\":%zu,\n\"shared\":{\"frames\":[", s->active);
		print_places(s);
		print("]}}\n");
	}
	for (size_t i = 0; i < s->place_count; i++)
		free(s->places[i].name);
	hash_index_fini(&s->index);
	free(s->places);
	free(s->weights);
	free(s);
	return 0;
}

const struct export_ops export_speedscope = { .name = "speedscope", .open = begin, .stack = add_stack, .close = end };
