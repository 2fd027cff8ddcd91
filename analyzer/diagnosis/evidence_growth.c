/* The part of the evidence that is about time: what grows, and what phases need. */
#include "analyzer/diagnosis/evidence_growth.h"

#include "analyzer/diagnosis/growth/owner_growth.h"
#include "analyzer/timeline/fit.h"
#include "analyzer/util/output.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <math.h>

#define LEAST_COHORTS     8
#define GOES_ON           0.5 /* of the loop's time, in which the program does something else */
#define LEAST_STEPS       5   /* behind which a phase comes after the loop */
#define ONE_COPY          1.5 /* so many times its bytes are fewer than two */
#define LEAST_OF_GROWTH   0.04
#define GRAPH_NODE_FRAMES 3    /* innermost, of which one is autograd's where it makes a node */
#define STEP_QUARTERS     4    /* of all steps, in which they need more and more: each adds ... */
#define STEP_EVENLY       0.25 /* ... this part of what the quarter adds that adds most */
#define STEP_LATEST       16   /* by which, and by all, the pace of their needs is certain ... */
#define STEP_SURE_OF      3    /* ... from so many standard errors on */
#define STEP_ROUNDED      512  /* bytes, to which a pool rounds what is asked for */

/* Where growth is looked for. */
struct place {
	struct diagnosis *diagnosis;
	enum model_kind kind;
	uint32_t device;  /* MODEL_NO_DEVICE: the host */
	uint32_t process; /* only this one; UINT32_MAX = all */
};

/* ---- growth ------------------------------------------------------------------------------------------------ */

static const char *site_of(struct diagnosis *diagnosis, const struct owner *o)
{
	return o->label         ? diagnosis_own_text(diagnosis, output_format("%s", o->label))
	       : o->stack_count ? diagnosis_site(diagnosis, o->stacks->stack)
				: "?";
}

/* Steps that nobody marked may be turns of a loop that reads a data set or moves a model: they free nothing, and then
 * the program goes on to other things. */
static bool only_loads(const struct diagnosis *diagnosis, const struct step_list *steps)
{
	if (steps->source != LOOP_SITES || steps->thinned || !steps->count)
		return false;
	const uint64_t begin = steps->steps[0].begin_ns, end = steps->steps[steps->count - 1].end_ns;
	const struct cohort_clock k =
		cohorts_clock(timeline_cohorts(diagnosis->timeline), steps->process->id, MODEL_HEAP, MODEL_NO_DEVICE);
	double made = 0, kept = 0;
	for (unsigned i = 0; i < k.count; i++)
		if (k.begin_ns[i] >= begin && k.begin_ns[i] < end) {
			made += k.made[i].bytes;
			kept += k.kept[i].bytes;
		}
	return made - kept < LOOP_LOADS * made &&
	       (double)less(steps->process->end_ns, end) > GOES_ON * (double)(end - begin);
}

/* Layers of one step recur, too. */
static bool has_sure_steps(const struct step_list *steps)
{
	return timeline_steps_are_sure(steps) || (steps->source == LOOP_SITES && steps->total >= TIMELINE_SURE_STEPS);
}

static bool has_stack(const struct place *p, const struct owner *o, uint32_t whole)
{
	for (size_t i = 0; i < o->stack_count; i++)
		if (stacks_merged(p->diagnosis->selection->stacks, o->stacks[i].stack) == whole)
			return true;
	return false;
}

/* Bytes of those that the same call made. */
static double made_with(const struct copy_set *s, unsigned owner)
{
	double sum = 0;
	for (unsigned i = 0; i < s->count; i++)
		sum += s->owners[i].stack == s->owners[owner].stack ? (double)s->owners[i].bytes : 0;
	return sum;
}

static bool is_copy(const struct place *p, const struct owner *o, const struct owner_growth *t)
{
	for (size_t i = 0; i < p->diagnosis->copies.count; i++) {
		const struct copy_set *s = &p->diagnosis->copies.sets[i];
		for (unsigned k = 0; k < s->count; k++)
			if (diagnosis_copies_on(s, p->device) && t->growth.bytes < ONE_COPY * made_with(s, k) &&
			    has_stack(p, o, s->owners[k].largest))
				return true;
	}
	return false;
}

static const char *memory_of(enum model_kind kind, bool arenas)
{
	return arenas                 ? "the interpreter's arenas"
	       : kind == MODEL_MAP    ? "mapped memory"
	       : kind == MODEL_PINNED ? "pinned memory"
				      : "the heap";
}

/* Where it has a stack. */
static enum category category_of(const struct place *p, const struct owner *o)
{
	return o->stack_count ? categories_of(p->diagnosis->selection->categories, o->stacks->stack, LIFETIME_UNKNOWN)
			      : CATEGORY_unknown;
}

/* A result that is kept is of one stack; a graph keeps what each layer saved. */
static unsigned keeping_stacks(const struct place *p, const struct owner *o, const struct owner_growth *t)
{
	unsigned count = 0;
	for (size_t i = 0; i < o->member_count && outlook_goes_on(t->outlook); i++)
		count += o->members[i]->process == t->process &&
			 (double)o->members[i]->live_bytes >= LEAST_OF_GROWTH * t->growth.bytes &&
			 owner_growth_goes_on(p->diagnosis->timeline, p->diagnosis->selection, o->members[i]);
	return count;
}

static const char *extension_of(const struct place *p, const struct owner *o)
{
	return p->device == MODEL_NO_DEVICE && !o->label && o->stack_count
		       ? diagnosis_extension(p->diagnosis, o->stacks->stack)
		       : NULL;
}

static struct evidence_growth growth_from(const struct place *p, const struct owner *o, const struct owner_growth *t)
{
	const struct process *whose = reader_process(p->diagnosis->selection->reader, t->process);
	const bool arenas = owner_is_arenas(o, p->kind, p->diagnosis->selection->stacks);
	return (struct evidence_growth){
		.site = site_of(p->diagnosis, o),
		.extension = extension_of(p, o),
		.setting = owner_setting(o, p->diagnosis->selection->stacks),
		.tool = owner_tool(o, p->diagnosis->selection->stacks),
		.of = memory_of(p->kind, arenas),
		.kind = p->kind,
		.sites = 1,
		.pid = reader_processes(p->diagnosis->selection->reader) > 1 ? whose->pid : 0,
		.fit = { t->growth.kind, t->growth.certainty, t->growth.jumps },
		.rate_may_be_none = growth_may_be_none(&t->growth) && !growth_is_doubtful(&t->growth),
		.bytes = t->all_bytes > 0 ? (uint64_t)t->all_bytes : 0,
		.site_bytes = t->all_bytes > 0 ? (uint64_t)t->all_bytes : 0,
		.per_step = t->growth.stepped ? t->growth.rate : 0,
		.per_second = t->all_per_second,
		.blocks_per_step = t->growth.stepped ? t->blocks_per_x : 0,
		.block_bytes = (uint64_t)t->mean_block_bytes,
		.fails_step = t->growth.stepped && t->forecast.ever ? t->forecast.x : 0,
		.fails_low = t->forecast.ever ? t->forecast.low : 0,
		.fails_high = t->forecast.ever ? t->forecast.high : 0,
		.fails_ns = t->forecast.ever && !t->growth.stepped ? (uint64_t)(t->forecast.x * 1e9) : 0,
		.fails_in = forecast_ahead(&t->forecast, &t->growth),
		.late = t->growth.since_x > t->x[0],
		.since = t->growth.stepped && t->growth.rate <= 0 ? 0 : t->growth.since_x,
		.file_backed = t->outlook == OUTLOOK_GIVES_WAY,
		.arenas = arenas,
		.freed_some = true,
		.works = t->outlook == OUTLOOK_LEAKS,
		.outlook = t->outlook,
		.processes = t->growing,
		.brief = growth_is_brief(&t->growth),
		.lasted_s = t->growth.lasted_s,
		.category = category_of(p, o),
		.tensors = keeping_stacks(p, o, t),
		.is_copy = is_copy(p, o, t),
		.unproven = (uint64_t)t->growth.unproven,
	};
}

/* What grows at the same pace: one thing may hold the blocks of all, or each line may have its own. */
static void join(struct evidence_growth *to, const struct evidence_growth *g)
{
	const bool largest = g->bytes > to->site_bytes;
	if (largest || !to->second || g->bytes > to->second_bytes) {
		to->second = largest ? to->site : g->site;
		to->second_bytes = largest ? to->site_bytes : g->bytes;
	}
	if (largest) { /* whose shape is that of all */
		to->fit.kind = g->fit.kind;
		to->fit.jumps = g->fit.jumps;
		to->brief = g->brief;
		to->lasted_s = g->lasted_s;
		to->site = g->site;
		to->site_bytes = g->bytes;
		to->extension = g->extension;
		to->setting = g->setting;
		to->tool = g->tool;
		to->block_bytes = g->block_bytes;
		to->category = g->category;
	}
	if (g->fit.certainty > to->fit.certainty)
		to->fit.certainty = g->fit.certainty;
	to->sites++;
	to->processes = g->processes > to->processes ? g->processes : to->processes;
	to->tensors += g->tensors;
	to->bytes += g->bytes;
	to->per_step += g->per_step;
	to->per_second += g->per_second;
	to->blocks_per_step += g->blocks_per_step;
}

static bool never_freed(const struct owner *o, uint32_t process)
{
	for (size_t i = 0; i < o->member_count; i++) {
		const struct model_site *s = o->members[i];
		if (s->process == process && s->live_blocks < s->allocations)
			return false;
	}
	return true;
}

/* Of two that have grown by as much, what goes on comes first. */
static int larger_growth(const void *a, const void *b)
{
	const struct evidence_growth *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1)
				    : outlook_goes_on(y->outlook) - outlook_goes_on(x->outlook);
}

static void set_forecast(const struct place *p, struct evidence_growth *g, uint32_t process)
{
	struct growth all;
	const struct step_list *list = timeline_step_list(p->diagnosis->timeline, process);
	struct forecast f = owner_growth_forecast_all(p->diagnosis->timeline, p->diagnosis->selection, process, p->kind,
						      p->device, &all);
	if (!f.ever)
		return;
	const bool stepped = list->source != LOOP_NONE;
	g->fails_step = stepped ? f.x : 0;
	g->fails_ns = stepped ? 0 : (uint64_t)(f.x * 1e9);
	g->fails_in = forecast_ahead(&f, &all);
	g->fails_low = f.low;
	g->fails_high = f.high;
}

/* Returns the number of items in `room`. `item_of_group`: by number of the group, plus 1. */
static size_t add_finding(const struct place *p, const struct owner_finding *one, struct evidence_growth *room,
			  size_t count, size_t *item_of_group)
{
	const struct owner_growth *t = &one->growth;
	struct evidence_growth growth = growth_from(p, one->owner, t);
	const struct owner_finding *container =
		growth.arenas ? findings_container(&p->diagnosis->findings, t->process) : NULL;
	growth.container = container ? site_of(p->diagnosis, container->owner) : NULL;
	growth.freed_some = !never_freed(one->owner, t->process);
	if (t->group && item_of_group[t->group]) {
		join(&room[item_of_group[t->group] - 1], &growth);
		return count;
	}
	if (outlook_foretells(t->outlook))
		set_forecast(p, &growth, t->process);
	room[count++] = growth;
	item_of_group[t->group] = count;
	return count;
}

/* Appends to *items what grows there. */
static int add_growth(const struct place *p, const struct evidence_growth **items, size_t *count)
{
	const struct findings *f = &p->diagnosis->findings;
	struct evidence_growth *room = diagnosis_alloc(p->diagnosis, (*count + f->count + 1) * sizeof(*room));
	size_t *item_of_group = calloc(f->groups + 1ul, sizeof(*item_of_group));
	if (!room || !item_of_group) {
		free(item_of_group);
		return error_memory();
	}
	if (*count)
		memcpy(room, *items, *count * sizeof(*room));
	for (size_t i = 0; i < f->count; i++) {
		const struct owner_finding *one = &f->list[i];
		/* folded: modules, libraries' own */
		if (one->kind == p->kind && one->device == p->device && !one->owner->folded && one->is_part &&
		    (p->process == UINT32_MAX || one->growth.process == p->process))
			*count = add_finding(p, one, room, *count, item_of_group);
	}
	free(item_of_group);
	if (*count)
		qsort(room, *count, sizeof(*room), larger_growth);
	*items = room;
	return 0;
}

/* Of one process, or of the one with the most to tell: of a pool's blocks, which requests are made for, rather than of
 * the segments that hold them. */
static const struct step_list *steps_on(const struct diagnosis *diagnosis, uint32_t device, uint32_t process,
					const struct step_track **track)
{
	const struct step_list *best = NULL;
	for (unsigned id = 0; id < reader_processes(diagnosis->selection->reader); id++) {
		const struct step_list *steps =
			process == UINT32_MAX || process == id ? timeline_step_list(diagnosis->timeline, id) : NULL;
		for (size_t k = 0; steps && k < steps->track_count; k++)
			if (steps->tracks[k].device == device &&
			    (device != MODEL_NO_DEVICE || steps->tracks[k].kind == MODEL_HEAP) &&
			    (!best ||
			     steps->tracks[k].count + (steps->tracks[k].kind == MODEL_POOL) > (*track)->count)) {
				best = steps;
				*track = &steps->tracks[k];
			}
	}
	return best;
}

/* ---- phases ------------------------------------------------------------------------------------------------ */

static const struct phase_track *track_of(const struct phase *p, enum model_kind kind, uint32_t device)
{
	for (size_t k = 0; k < p->track_count; k++)
		if (p->tracks[k].kind == kind && p->tracks[k].device == device)
			return &p->tracks[k];
	return NULL;
}

static bool has_marks(const struct diagnosis *diagnosis, uint32_t process)
{
	const struct phases *all = timeline_phases(diagnosis->timeline);
	for (size_t i = 0; i < phases_count(all); i++)
		if (phases_get(all, i)->process->id == process && phases_get(all, i)->source != PHASE_LINE)
			return true;
	return false;
}

/* The innermost phase that was running then. */
static const struct phase *phase_at(const struct diagnosis *diagnosis, uint32_t process, uint64_t ns, bool marks)
{
	const struct phases *all = timeline_phases(diagnosis->timeline);
	const struct phase *best = NULL;
	for (size_t i = 0; i < phases_count(all); i++) {
		const struct phase *p = phases_get(all, i);
		if (p->process->id == process && (p->source != PHASE_LINE) == marks && p->begin_ns <= ns &&
		    ns <= p->end_ns && (!best || p->end_ns - p->begin_ns < best->end_ns - best->begin_ns))
			best = p;
	}
	return best;
}

static unsigned steps_of_process(const struct diagnosis *diagnosis, uint32_t process)
{
	const struct step_list *list = timeline_step_list(diagnosis->timeline, process);
	return list && list->source != LOOP_NONE ? (unsigned)list->total : 0;
}

/* Turns of a loop that makes layers on the host free nothing on a device: they are none of its steps. */
static bool work_on_devices(const struct step_list *list)
{
	size_t free = 0;
	for (size_t i = 0; i < list->count; i++)
		free += list->steps[i].device_frees > 0;
	return list->thinned || 2 * free > list->count;
}

static bool after_steps(const struct diagnosis *diagnosis, const struct phase *p)
{
	const struct step_list *list = timeline_step_list(diagnosis->timeline, p->process->id);
	size_t least = list && list->source == LOOP_SITES ? TIMELINE_SURE_STEPS : LEAST_STEPS;
	return list && list->source != LOOP_NONE && list->count > least && list->steps[least].begin_ns < p->begin_ns &&
	       work_on_devices(list) && !only_loads(diagnosis, list);
}

/* Steps that began before that. */
static size_t steps_until(const struct step_list *list, uint64_t ns)
{
	return SEARCH_FIRST(i, list->count, list->steps[i].begin_ns >= ns);
}

/* A line that the loop's steps go through. How often it was entered doesn't tell: as long as nothing else of its
 * function shows, it is once. */
static bool steps_run(const struct diagnosis *diagnosis, const struct phase *p)
{
	const struct phases *all = timeline_phases(diagnosis->timeline);
	const struct step_list *list = timeline_step_list(diagnosis->timeline, p->process->id);
	size_t in = 0;
	if (p->source != PHASE_LINE || !list || list->source == LOOP_NONE)
		return false;
	for (size_t i = 0; i < phases_count(all); i++) {
		const struct phase *other = phases_get(all, i);
		if (other->name == p->name && other->begin_ns < p->begin_ns) /* another visit of the line */
			in += steps_until(list, higher(other->begin_ns,
						       other->end_ns < p->begin_ns ? other->end_ns : p->begin_ns)) -
			      steps_until(list, other->begin_ns);
	}
	return 2 * in > steps_until(list, p->begin_ns);
}

/* Phases around the failing one, and of the other source, say the same once more. */
static bool is_beside(const struct phase *p, const struct phase *failing, bool marks)
{
	if ((p->source != PHASE_LINE) != marks)
		return false;
	return !failing || p == failing || p->visits > 1 || p->end_ns <= failing->begin_ns ||
	       p->begin_ns >= failing->end_ns;
}

/* What ran while the uncaught failure unwound needs nothing: it only finds what was there. */
static bool is_aftermath(const struct phase *p, const struct model_oom *oom)
{
	return oom && oom->outcome == OUTCOME_FATAL && oom->process == p->process->id && p->begin_ns >= oom->at.ns;
}

static int set_phases(struct diagnosis *diagnosis, struct evidence_device *e, uint32_t device,
		      const struct model_oom *oom)
{
	const struct phases *all = timeline_phases(diagnosis->timeline);
	struct evidence_phase *list = diagnosis_alloc(diagnosis, phases_count(all) * sizeof(*list));
	if (!list)
		return error_memory();
	for (size_t i = 0; i < phases_count(all); i++) {
		const struct phase *p = phases_get(all, i);
		bool marks = has_marks(diagnosis, p->process->id);
		const struct phase *failing = oom && oom->process == p->process->id
						      ? phase_at(diagnosis, oom->process, oom->at.ns, marks)
						      : NULL;
		const struct phase_track *t = track_of(p, MODEL_POOL, device);
		t = t ? t : track_of(p, MODEL_DEVICE, device);
		struct phase_freed f = { 0 };
		if (!t || !is_beside(p, failing, marks) || is_aftermath(p, oom))
			continue;
		if (!phase_freed(p, t, &f) || f.in_pool < 0)
			f = (struct phase_freed){ 0 };
		list[e->phases.count++] = (struct evidence_phase){
			.name = p->name,
			.pid = p->process->pid,
			.begin_bytes = t->begin_bytes,
			.peak_bytes = t->peak_bytes,
			.freed = f.freed,
			.in_pool = (uint64_t)f.in_pool,
			.failing = p == failing,
			.times = (unsigned)p->visits,
			.line = p->source == PHASE_LINE,
			.steps = steps_of_process(diagnosis, p->process->id),
			.after_steps = after_steps(diagnosis, p),
			.steps_run = steps_run(diagnosis, p),
		};
	}
	e->phases.items = list;
	return 0;
}

/* ---- all --------------------------------------------------------------------------------------------------- */

/* In steps that were over; of a few nothing can be said. */
static uint64_t highest_before(const struct step_list *steps, const struct step_track *t, uint64_t ns)
{
	uint64_t most = 0;
	size_t i = 0;
	for (; i < steps->count && steps->steps[i].end_ns < ns; i++)
		most = step_high(t, i) > most ? step_high(t, i) : most;
	return i > LEAST_STEPS ? most : EVIDENCE_UNKNOWN;
}

/* What autograd's own code asks the heap for itself are nodes of the graph; a tensor that it makes is asked for further
 * in. Of those alive at the heap's end, which is that of the device's only where it failed there. */
static bool is_graph_node(const struct diagnosis *diagnosis, const struct process *p, const struct model_site *s)
{
	struct stack_walk w = { .next = stacks_of(diagnosis->selection->stacks, p, s->node, s->node2) };
	for (int i = 0; i < GRAPH_NODE_FRAMES && stack_step(diagnosis->selection->stacks, &w); i++)
		if (w.frame->name && strstr(w.frame->name, "autograd::VariableType::"))
			return true;
	return false;
}

static uint64_t graph_nodes(const struct diagnosis *diagnosis, uint32_t process)
{
	const struct model_process *m = model_process(diagnosis->selection->model, process);
	uint64_t nodes = 0;
	bool known = false;
	for (uint32_t i = 0; i < m->site_count; i++) {
		const struct model_site *s = &m->sites[i];
		uint32_t blocks = 0;
		if (s->kind != MODEL_HEAP ||
		    !cohorts_live(timeline_cohorts(diagnosis->timeline), process, s->number, &blocks))
			continue;
		known = true;
		nodes += is_graph_node(diagnosis, m->process, s) ? blocks : 0;
	}
	return known && !process_is_picked(m->process) ? nodes : EVIDENCE_UNKNOWN;
}

/* The middle one of what the steps [from, to) added to what was there: what only loads adds the same each time. */
static double usual_need(const struct step_track *t, size_t from, size_t to)
{
	double *needs = calloc(to - from + 1, sizeof(*needs));
	for (size_t i = from; needs && i < to; i++)
		needs[i - from] = (double)less(step_high(t, i), step_low(t, i));
	const double usual = needs ? median_of(needs, to - from) : 0;
	free(needs);
	return usual;
}

/* Steps that need more and more: each quarter of those that were over more than the one before it, and none of these
 * rises is a mere jump. */
static void set_step_needs(struct evidence_device *e, const struct step_list *steps, const struct step_track *t,
			   uint64_t ns)
{
	double of[STEP_QUARTERS], least = INFINITY, most = 0;
	const size_t over = steps_until(steps, ns) ? steps_until(steps, ns) - 1 : 0;
	if (over < STEP_QUARTERS * LEAST_STEPS)
		return;
	for (size_t i = 0; i < STEP_QUARTERS; i++) {
		of[i] = usual_need(t, i * over / STEP_QUARTERS, (i + 1) * over / STEP_QUARTERS);
		least = i ? fmin(least, of[i] - of[i - 1]) : least;
		most = i ? fmax(most, of[i] - of[i - 1]) : most;
	}
	if (least < STEP_EVENLY * most || least <= 0)
		return;
	e->step_first = (uint64_t)of[0];
	e->step_latest = (uint64_t)of[STEP_QUARTERS - 1];
}

/* At which the needs of the steps [from, to) rise at least; below 0: not for certain. */
static double least_pace(const struct step_list *steps, const struct step_track *t, size_t from, size_t to)
{
	const size_t n = to - from;
	const double first = step_x(steps, from), span = step_x(steps, to - 1) - first;
	double *x = calloc(2 * n, sizeof(*x)), *needs = x + n, pace = -1;
	struct fit fit;
	for (size_t i = 0; x && i < n; i++) {
		x[i] = (step_x(steps, from + i) - first) / span;
		needs[i] = (double)less(step_high(t, from + i), step_low(t, from + i));
	}
	if (x) {
		fit_make(&fit, FIT_LINE, 0, x, needs, n, STEP_ROUNDED);
		pace = (fit.beta[1] - fmax(STEP_SURE_OF, fit_quantile(n, 2)) * fit_slope_error(&fit, 1)) / span;
	}
	free(x);
	return pace;
}

/* The first step makes what stays. */
static void set_step_pace(struct evidence_device *e, const struct step_list *steps, const struct step_track *t,
			  uint64_t ns)
{
	const size_t over = steps_until(steps, ns) ? steps_until(steps, ns) - 1 : 0;
	if (over <= LEAST_STEPS)
		return;
	const double all = least_pace(steps, t, 1, over),
		     latest = over > STEP_LATEST + 1 ? least_pace(steps, t, over - STEP_LATEST, over) : all;
	e->step_pace = (uint64_t)fmax(0, fmin(all, latest));
}

uint64_t evidence_step_began(const struct diagnosis *diagnosis, uint32_t process, uint64_t ns)
{
	const struct step_list *list = timeline_step_list(diagnosis->timeline, process);
	const size_t begun = list && has_sure_steps(list) ? steps_until(list, ns) : 0;
	return begun ? list->steps[begun - 1].begin_ns : 0;
}

/* For cohorts to tell how it went. */
static bool was_long_enough(const struct diagnosis *diagnosis, uint32_t process, enum model_kind kind, uint32_t device)
{
	return cohorts_clock(timeline_cohorts(diagnosis->timeline), process, kind, device).count >= LEAST_COHORTS;
}

int evidence_time_device(struct diagnosis *diagnosis, struct evidence_device *e, uint32_t device,
			 const struct model_oom *oom)
{
	const struct step_track *track = NULL;
	uint32_t whose = oom ? oom->process : UINT32_MAX;
	const struct step_list *list = steps_on(diagnosis, device, whose, &track);
	struct place pool = { diagnosis, MODEL_POOL, device, whose },
		     memory = { diagnosis, MODEL_DEVICE, device, whose };
	e->growth_known = list && (was_long_enough(diagnosis, list->process->id, MODEL_POOL, device) ||
				   was_long_enough(diagnosis, list->process->id, MODEL_DEVICE, device));
	const bool works = list && list->source != LOOP_NONE && work_on_devices(list) &&
			   findings_steps_tell(&diagnosis->findings, list, device);
	if (works) {
		e->steps = (unsigned)list->total;
		e->behind_steps =
			oom && oom->at.ns > list->cut.end_ns && oom->at.ns > list->steps[list->count - 1].end_ns;
	}
	e->most_before =
		oom && works && has_sure_steps(list) ? highest_before(list, track, oom->at.ns) : EVIDENCE_UNKNOWN;
	if (oom && works && has_sure_steps(list)) {
		set_step_needs(e, list, track, oom->at.ns);
		set_step_pace(e, list, track, oom->at.ns);
	}
	int error = e->growth_known ? add_growth(&pool, &e->growth.items, &e->growth.count) : 0;
	if (error == 0 && e->growth_known)
		error = add_growth(&memory, &e->growth.items, &e->growth.count);
	for (size_t i = 0; i < e->growth.count && list && oom; i++)
		if (evidence_is_leak(&e->growth.items[i])) {
			e->graph_nodes = graph_nodes(diagnosis, list->process->id);
			break;
		}
	return error < 0 ? error : set_phases(diagnosis, e, device, oom);
}

static int add_shm(struct diagnosis *diagnosis)
{
	struct evidence_host *h = &diagnosis->evidence.host;
	const struct shm_maker *shm = &h->shm;
	struct evidence_growth *room =
		shm->growing ? diagnosis_alloc(diagnosis, (h->growth.count + 1) * sizeof(*room)) : NULL;
	if (!room)
		return shm->growing ? error_memory() : 0;
	const struct growth files = { .kind = GROWTH_LINEAR,
				      .certainty = CERTAINTY_MEDIUM,
				      .lasted_s = (double)(shm->last_ns - shm->first_ns) / 1e9 };
	if (h->growth.count)
		memcpy(room, h->growth.items, h->growth.count * sizeof(*room));
	room[h->growth.count++] = (struct evidence_growth){
		.site = shm->site,
		.of = "/dev/shm",
		.kind = MODEL_MAP,
		.in_files = true,
		.sites = 1,
		.site_bytes = shm->bytes,
		.fit = { files.kind, files.certainty, 0 },
		.bytes = shm->growing,
		.per_second = shm->per_second,
		.block_bytes = shm->bytes / shm->files,
		.outlook = OUTLOOK_GROWS,
		.brief = growth_is_brief(&files),
		.lasted_s = files.lasted_s,
	};
	qsort(room, h->growth.count, sizeof(*room), larger_growth);
	h->growth.items = room;
	return 0;
}

int evidence_time_host(struct diagnosis *diagnosis)
{
	struct evidence_host *h = &diagnosis->evidence.host;
	const struct step_list *list;
	for (unsigned id = 0; id < reader_processes(diagnosis->selection->reader); id++)
		if ((list = timeline_step_list(diagnosis->timeline, id))) {
			h->lasted_s =
				fmax(h->lasted_s, (double)less(list->process->end_ns, list->process->start_ns) / 1e9);
			h->growth_known |= was_long_enough(diagnosis, id, MODEL_HEAP, MODEL_NO_DEVICE) ||
					   was_long_enough(diagnosis, id, MODEL_MAP, MODEL_NO_DEVICE);
		}
	int e = 0;
	for (int kind = 0; e == 0 && h->growth_known && kind < MODEL_HOST_KINDS; kind++)
		e = add_growth(&(struct place){ diagnosis, kind, MODEL_NO_DEVICE, UINT32_MAX }, &h->growth.items,
			       &h->growth.count);
	return e < 0 ? e : add_shm(diagnosis);
}
