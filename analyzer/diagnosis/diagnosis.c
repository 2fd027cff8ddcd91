#include "analyzer/diagnosis/diagnosis.h"

#include "analyzer/diagnosis/unfinished.h"
#include "analyzer/symbols/builtin_suppressions.h"
#include "analyzer/symbols/python_frames.h"
#include "analyzer/util/output.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#define LONGEST_STEP    1.5 /* times the one before */
#define LEAST_COPY_PART 100 /* a copy is at least this part of its space */

/* ---- the second pass --------------------------------------------------------------------------------------- */

static void on_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	(void)ring;
	(void)thread;
	struct diagnosis_parts *parts = arg;
	snapshot_event(parts->snapshots, p, slot);
}

static void on_change(void *arg, const struct model_change *c)
{
	struct diagnosis_parts *parts = arg;
	snapshot_change(parts->snapshots, c);
	unfinished_change(parts->unfinished, c);
}

/* ---- categories -------------------------------------------------------------------------------------------- */

/* Until when the loop may have been in a step that nothing ended. */
static uint64_t still_running(const struct step_list *steps)
{
	const struct step *last = &steps->steps[steps->count - 1];
	return last->end_ns + (uint64_t)(LONGEST_STEP * (double)(last->end_ns - last->begin_ns) / last->count);
}

/* When the step began that was running then; UINT64_MAX = it is not known. */
static uint64_t running_step(const struct step_list *steps, uint64_t moment)
{
	const size_t low = SEARCH_FIRST(i, steps->count, steps->steps[i].begin_ns > moment);
	const struct step *s = low ? &steps->steps[low - 1] : NULL;
	if (s && low == steps->count && s->end_ns < moment)
		return s->end_ns; /* the one that was never finished */
	return s && s->count == 1 ? s->begin_ns : UINT64_MAX;
}

/* Seen from the moment, where the program or its optimizer says what a step is: other loops recur, too. */
static enum lifetime lifetime_of(const struct diagnosis *diagnosis, const struct snapshot_block *b)
{
	const struct step_list *steps =
		b->device == MODEL_NO_DEVICE ? NULL : timeline_step_list(diagnosis->timeline, b->process->id);
	uint64_t moment = snapshot_device_ns(diagnosis->parts->snapshots, b->device);
	if (!steps || steps->source == LOOP_NONE || steps->source == LOOP_SITES || steps->count < 2 ||
	    moment > still_running(steps))
		return LIFETIME_UNKNOWN;
	uint64_t running = running_step(steps, moment);
	if (b->ns < steps->steps[0].begin_ns)
		return LIFETIME_SETUP;
	if (b->ns >= running)
		return LIFETIME_STEP;
	return b->ns < steps->steps[0].end_ns ? LIFETIME_FIRST_STEP : LIFETIME_UNKNOWN;
}

static enum category category_of(struct diagnosis *diagnosis, const struct snapshot_block *b, uint32_t stack)
{
	enum category labelled = b && b->label ? category_of_label(b->label) : CATEGORIES;
	return labelled < CATEGORIES
		       ? labelled
		       : categories_of(diagnosis->selection->categories, stack, lifetime_of(diagnosis, b));
}

/* `share`: of what sampled blocks stand for beyond themselves, the part that there really was (see
 * sampling_estimate.h). */
static void count_site(struct diagnosis *diagnosis, const struct model_process *p, const struct model_site *s,
		       double share)
{
	struct diagnosis_space *host = &diagnosis->spaces[0];
	uint32_t stack = stacks_of_site(diagnosis->selection->stacks, p->process, s->number, s->node, s->node2);
	double weight = 1 + (owners_weight(diagnosis->selection->reader, s) - 1) * share;
	host->category[categories_of(diagnosis->selection->categories, stack, LIFETIME_UNKNOWN)] +=
		(uint64_t)((double)s->host_peak_bytes * weight);
}

static bool is_heap(const struct model_site *s)
{
	return s->kind == MODEL_HEAP && s->host_peak_bytes;
}

/* Where stacks are sampled, blocks without one are shared out as those with one stand for them. */
static void count_process(struct diagnosis *diagnosis, const struct model_process *p)
{
	double meant = 0;
	uint64_t bare = 0, all = 0, before = 0, after = 0;
	struct diagnosis_space *host = &diagnosis->spaces[0];
	for (uint32_t i = 0; i < p->site_count; i++) {
		const struct model_site *s = &p->sites[i];
		if (!is_heap(s))
			continue;
		all += s->host_peak_bytes;
		bare += s->sampled == MODEL_UNSAMPLED ? s->host_peak_bytes : 0;
		meant += (double)s->host_peak_bytes * (owners_weight(diagnosis->selection->reader, s) - 1);
	}
	for (int c = 0; c < CATEGORIES; c++)
		before += host->category[c];
	for (uint32_t i = 0; i < p->site_count; i++)
		if (is_heap(&p->sites[i]) && p->sites[i].sampled != MODEL_UNSAMPLED)
			count_site(diagnosis, p, &p->sites[i], meant > 0 ? (double)bare / meant : 0);
	for (int c = 0; c < CATEGORIES; c++)
		after += host->category[c];
	host->bytes += all;
	if (after - before < all) /* fractions of bytes, or no sample at all */
		host->category[CATEGORY_unknown] += all - (after - before);
}

/* The heap by site: that is exact for small blocks, too. Labels are moved afterwards. */
static void count_heap(struct diagnosis *diagnosis)
{
	for (unsigned id = 0; id < reader_processes(diagnosis->selection->reader); id++) {
		const struct model_process *p = model_process(diagnosis->selection->model, id);
		if (selection_has(diagnosis->selection, p->process))
			count_process(diagnosis, p);
	}
}

static void note_largest(struct diagnosis_space *s, const struct snapshot_block *b)
{
	unsigned at = s->largest_count;
	if (at == DIAGNOSIS_LARGEST && s->largest[at - 1].size >= b->size)
		return;
	at = at == DIAGNOSIS_LARGEST ? at - 1 : s->largest_count++;
	for (; at > 0 && s->largest[at - 1].size < b->size; at--)
		s->largest[at] = s->largest[at - 1];
	s->largest[at] = *b;
}

static void note_latest(struct diagnosis_space *s, uint64_t order)
{
	unsigned at = s->latest_count;
	if (at == DIAGNOSIS_LATEST && s->latest[at - 1] >= order)
		return;
	at = at == DIAGNOSIS_LATEST ? at - 1 : s->latest_count++;
	for (; at > 0 && s->latest[at - 1] < order; at--)
		s->latest[at] = s->latest[at - 1];
	s->latest[at] = order;
}

/* ---- blocks ------------------------------------------------------------------------------------------------ */

/* A driver's allocation that the pool has filled with blocks is counted by these. */
struct span {
	uint32_t process, device;
	uint64_t addr, end;
	bool segment;
};

struct block_collector {
	struct diagnosis *diagnosis;
	struct copy_block *copies;
	size_t copy_count, copy_room;
	struct span *spans;
	size_t span_count, span_room;
	struct snapshot_block *driver; /* of spans[] */
	size_t driver_room;
	struct top_lines *top;         /* by space */
	struct copy_request *requests; /* one for each device that failed */
	const struct frame **lines;    /* their sites */
	size_t request_count;
};

static bool is_copied(enum category c)
{
	return c == CATEGORY_parameters || c == CATEGORY_checkpoint || c == CATEGORY_caches || c == CATEGORY_unknown ||
	       c == CATEGORY_input_pipeline;
}

static uint32_t space_number(const struct snapshot_block *b)
{
	return b->process->id << 8 | (b->device == MODEL_NO_DEVICE ? 0xff : b->device & 0x7f);
}

/* Made by the line that failed, and nothing but the time says that it is an activation: it may be the beginning of a
 * copy. */
static bool is_begun(const struct block_collector *g, const struct snapshot_block *b, uint32_t stack)
{
	const struct diagnosis *diagnosis = g->diagnosis;
	for (size_t i = 0; i < g->request_count; i++)
		if (!b->label && g->requests[i].space == space_number(b) &&
		    categories_of(diagnosis->selection->categories, stack, LIFETIME_UNKNOWN) == CATEGORY_unknown)
			return stacks_site_frame(diagnosis->selection->stacks, stack,
						 selection_flags(diagnosis->selection->options)) == g->lines[i];
	return false;
}

/* The step in which it was made, if that gave anything back on a device: else it may be a loop that loads. */
static uint32_t turn_of(const struct diagnosis *diagnosis, const struct snapshot_block *b)
{
	const struct step_list *list = timeline_step_list(diagnosis->timeline, b->process->id);
	if (b->device == MODEL_NO_DEVICE || !list || list->source == LOOP_NONE)
		return 0;
	const size_t after = SEARCH_FIRST(i, list->count, list->steps[i].begin_ns > b->ns);
	const struct step *step = after ? &list->steps[after - 1] : NULL;
	return step && b->ns < step->end_ns && step->device_frees ? (uint32_t)after : 0;
}

static int take_block(struct block_collector *g, const struct snapshot_block *b)
{
	struct diagnosis *diagnosis = g->diagnosis;
	bool host = b->device == MODEL_NO_DEVICE;
	struct diagnosis_space *s = &diagnosis->spaces[host ? 0 : 1 + b->device];
	uint32_t stack = diagnosis_stack(diagnosis, b);
	enum category c = category_of(diagnosis, b, stack);
	if (!host) {
		s->category[c] += b->size;
		s->bytes += b->size;
	} else if (b->label) {
		enum category before = categories_of(diagnosis->selection->categories, stack, LIFETIME_UNKNOWN);
		uint64_t moved = b->size < s->category[before] ? b->size : s->category[before];
		s->category[before] -= moved;
		s->category[c] += moved;
	}
	note_largest(s, b);
	if (!host && c == CATEGORY_activations)
		note_latest(s, b->order);
	int e = host ? 0 : top_lines_add(&g->top[1 + b->device], stack, b->size);
	if (e < 0 || !stack || (!is_copied(c) && !is_begun(g, b, stack)))
		return e;
	e = vec_reserve_raw(g->copies, g->copy_room, g->copy_count + 1);
	if (e == 0)
		g->copies[g->copy_count++] = (struct copy_block){ .size = b->size,
								  .order = b->order,
								  .space = space_number(b),
								  .stack = stack,
								  .turn = turn_of(diagnosis, b),
								  .category = c,
								  .thread = b->thread };
	return e;
}

static int take_driver(struct block_collector *g, const struct snapshot_block *b)
{
	int e = vec_reserve_raw(g->driver, g->driver_room, g->span_count + 1);
	if (e == 0)
		e = vec_reserve_raw(g->spans, g->span_room, g->span_count + 1);
	if (e < 0)
		return e;
	g->driver[g->span_count] = *b;
	g->spans[g->span_count++] = (struct span){ b->process->id, b->device, b->addr, b->addr + b->size, false };
	return 0;
}

static int gather(void *arg, const struct snapshot_block *b)
{
	struct block_collector *g = arg;
	if (!selection_has(g->diagnosis->selection, b->process))
		return 0;
	return b->kind == MODEL_DEVICE ? take_driver(g, b) : take_block(g, b);
}

static int by_span(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

static int mark_segment(void *arg, const struct snapshot_block *b)
{
	struct block_collector *g = arg;
	struct span key = { b->process->id, b->device, b->addr, 0, false };
	if (b->kind != MODEL_POOL)
		return 0;
	const size_t low = SEARCH_FIRST(i, g->span_count, by_span(&g->spans[i], &key) > 0);
	struct span *s = low ? &g->spans[low - 1] : NULL;
	if (s && s->process == key.process && s->device == key.device && b->addr < s->end)
		s->segment = true;
	return 0;
}

/* What nobody uses then: a segment, though it has no block at the moment. */
static bool is_free_segment(const struct diagnosis *diagnosis, const struct snapshot_block *b)
{
	const struct model_site *s = model_site(diagnosis->selection->model, b->process->id, b->site);
	return s && s->segments;
}

/* Memory of the driver's without a block in it is a pool's free segment, or not the pool's at all. */
static int take_rest(struct block_collector *g)
{
	int e = 0;
	struct snapshot_block *driver = g->driver;
	struct span *at = malloc((g->span_count + 1) * sizeof(*at));
	if (!at)
		return error_memory();
	if (g->span_count)
		memcpy(at, g->spans, g->span_count * sizeof(*at));
	if (g->span_count)
		qsort(g->spans, g->span_count, sizeof(*g->spans), by_span);
	snapshot_each(g->diagnosis->parts->snapshots, mark_segment, g);
	for (size_t i = 0; e == 0 && i < g->span_count; i++) {
		struct span *s = bsearch(&at[i], g->spans, g->span_count, sizeof(*g->spans), by_span);
		if (s && !s->segment && !is_free_segment(g->diagnosis, &driver[i]))
			e = take_block(g, &driver[i]);
	}
	free(at);
	return e;
}

static int set_requests(struct block_collector *g)
{
	struct diagnosis *diagnosis = g->diagnosis;
	unsigned devices = model_devices(diagnosis->selection->model);
	g->requests = calloc(devices + 1, sizeof(*g->requests));
	g->lines = calloc(devices + 1, sizeof(*g->lines));
	if (!g->requests || !g->lines)
		return error_memory();
	for (unsigned i = 0; i < devices; i++) {
		const struct model_oom *oom = diagnosis_failure(model_device(diagnosis->selection->model, i));
		uint32_t stack = oom ? stacks_of(diagnosis->selection->stacks,
						 reader_process(diagnosis->selection->reader, oom->process), oom->node,
						 oom->node2)
				     : 0;
		if (!stack)
			continue;
		g->lines[g->request_count] = stacks_site_frame(diagnosis->selection->stacks, stack,
							       selection_flags(diagnosis->selection->options));
		g->requests[g->request_count++] =
			(struct copy_request){ .space = oom->process << 8 | (i & 0x7f),
					       .bytes = oom->requested_bytes,
					       .stack = stacks_merged(diagnosis->selection->stacks, stack) };
	}
	return 0;
}

static int find_copies(struct diagnosis *diagnosis, struct block_collector *g)
{
	uint64_t most = 0;
	for (unsigned i = 0; i < diagnosis->space_count; i++)
		most = diagnosis->spaces[i].bytes > most ? diagnosis->spaces[i].bytes : most;
	for (size_t i = 0; i < g->copy_count; i++)
		g->copies[i].stack = stacks_merged(diagnosis->selection->stacks, g->copies[i].stack);
	return copies_find(&diagnosis->copies, diagnosis->selection->stacks, g->copies, g->copy_count,
			   DIAGNOSIS_LEAST_COPIED, most / LEAST_COPY_PART + 1, g->requests, g->request_count);
}

/* What has the sizes of a model's parameters in their order is parameters, whoever made it. */
static void name_copies(struct diagnosis *diagnosis)
{
	for (size_t i = 0; i < diagnosis->copies.count; i++) {
		const struct copy_set *set = &diagnosis->copies.sets[i];
		struct diagnosis_space *s =
			&diagnosis->spaces[(set->space & 0xff) == 0xff ? 0 : 1 + (set->space & 0xff)];
		unsigned known = 0;
		while (known < set->count && set->owners[known].category != CATEGORY_parameters)
			known++;
		for (unsigned k = 0; k < set->count && known < set->count; k++) {
			uint64_t moved = set->owners[k].unknown_bytes;
			moved = moved < s->category[CATEGORY_unknown] ? moved : s->category[CATEGORY_unknown];
			s->category[CATEGORY_unknown] -= moved;
			s->category[CATEGORY_parameters] += moved;
		}
	}
}

static int look_at_blocks(struct diagnosis *diagnosis)
{
	struct block_collector g = { .diagnosis = diagnosis, .top = calloc(diagnosis->space_count, sizeof(*g.top)) };
	int e = g.top ? set_requests(&g) : error_memory();
	if (e == 0)
		e = snapshot_each(diagnosis->parts->snapshots, gather, &g);
	if (e == 0)
		e = take_rest(&g);
	if (e == 0)
		e = find_copies(diagnosis, &g);
	if (e == 0)
		name_copies(diagnosis);
	for (unsigned i = 0; g.top && i < diagnosis->space_count; i++) {
		struct diagnosis_space *s = &diagnosis->spaces[i];
		s->holder_count = top_lines_most(&g.top[i], diagnosis->selection->stacks,
						 selection_flags(diagnosis->selection->options), s->top);
		s->holding_lines = g.top[i].count;
		top_lines_fini(&g.top[i]);
	}
	free(g.top);
	free(g.requests);
	free(g.lines);
	free(g.copies);
	free(g.spans);
	free(g.driver);
	return e;
}

/* ---- all --------------------------------------------------------------------------------------------------- */

static int set_up(struct diagnosis *diagnosis)
{
	const struct selection *sel = diagnosis->selection;
	diagnosis->space_count = 1 + model_devices(sel->model);
	diagnosis->spaces = diagnosis_alloc(diagnosis, diagnosis->space_count * sizeof(*diagnosis->spaces));
	diagnosis->parts->snapshots = snapshot_new(sel->reader, sel->model);
	diagnosis->parts->unfinished = unfinished_new(sel->model);
	if (!diagnosis->spaces || !diagnosis->parts->snapshots || !diagnosis->parts->unfinished)
		return error_memory();
	diagnosis->spaces[0] = (struct diagnosis_space){ .name = "host",
							 .device = MODEL_NO_DEVICE,
							 .ns = model_totals(sel->model, MODEL_HEAP).peak_ns };
	for (unsigned i = 0; i < model_devices(sel->model); i++)
		diagnosis->spaces[1 + i] =
			(struct diagnosis_space){ .name = model_device(sel->model, i)->name,
						  .device = i,
						  .ns = snapshot_device_ns(diagnosis->parts->snapshots, i) };
	return 0;
}

int diagnosis_new(struct diagnosis **out, const struct selection *sel, struct timeline *timeline, struct host_memory *s,
		  bool complete)
{
	struct diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));
	*out = diagnosis;
	if (!diagnosis || !(diagnosis->parts = calloc(1, sizeof(*diagnosis->parts)))) {
		free(diagnosis);
		*out = NULL;
		return error_memory();
	}
	diagnosis->selection = sel;
	diagnosis->timeline = timeline;
	diagnosis->system = s;
	diagnosis->complete = complete;
	int e = set_up(diagnosis);
	if (e == 0)
		timeline_watch(timeline, false, on_event, on_change, diagnosis->parts);
	return e;
}

int diagnosis_categories(struct diagnosis *diagnosis)
{
	int e = snapshot_error(diagnosis->parts->snapshots);
	if (e < 0)
		return e;
	count_heap(diagnosis);
	return look_at_blocks(diagnosis);
}

int diagnosis_make(struct diagnosis *diagnosis)
{
	int e = diagnosis_categories(diagnosis);
	if (e == 0)
		e = findings_make(&diagnosis->findings, diagnosis->timeline, diagnosis->selection, BY_SITE,
				  builtin_suppressed_stack);
	if (e == 0)
		e = evidence_make(diagnosis);
	return e < 0 ? e : verdicts_find(&diagnosis->verdicts, &diagnosis->evidence);
}

void diagnosis_free(struct diagnosis *diagnosis)
{
	if (!diagnosis)
		return;
	verdicts_fini(&diagnosis->verdicts);
	findings_fini(&diagnosis->findings);
	copies_fini(&diagnosis->copies);
	for (size_t i = 0; i < diagnosis->parts->ledger_count; i++) {
		device_ledger_fini(diagnosis->parts->ledgers[i]);
		free(diagnosis->parts->ledgers[i]);
	}
	free(diagnosis->parts->ledgers);
	snapshot_free(diagnosis->parts->snapshots);
	unfinished_free(diagnosis->parts->unfinished);
	for (size_t i = 0; i < diagnosis->parts->kept_count; i++)
		free(diagnosis->parts->kept[i]);
	free(diagnosis->parts->kept);
	free(diagnosis->parts);
	free(diagnosis);
}

const char *diagnosis_space_name(const struct diagnosis *diagnosis, uint32_t space)
{
	return (space & 0xff) == 0xff ? "host" : diagnosis->spaces[1 + (space & 0xff)].name;
}
