#include "analyzer/replay/heap/heap_replay.h"

#include "analyzer/replay/heap/heap_child.h"
#include "analyzer/util/system/cgroup.h"
#include "analyzer/util/error.h"
#include "analyzer/util/system/kernel_file.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARE_OF_FREE 0.8           /* of the memory that is free a replay may have */
#define NEEDED_BESIDE (32ull << 20) /* what allocators need beside the blocks, at the least */
#define MOST_WORKERS  (1u << 16)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_ALLOCATOR 1
#else
#define HAS_OWN_ALLOCATOR 0
#endif

/* ---- can it be done? ---------------------------------------------------------------------------------------- */

static uint64_t free_memory(const struct heap_query *q)
{
	char text[4096];
	uint64_t kib = UINT64_MAX >> 10;
	const long n = kernel_read("/proc/meminfo", text, sizeof(text));
	const char *at = n > 0 ? strstr(text, "MemAvailable:") : NULL;
	if (at)
		kib = strtoull(at + 13, NULL, 10);
	struct cgroups *groups = cgroups_new();
	const uint64_t limit = groups ? cgroups_limit(groups, (uint32_t)getpid()) : UINT64_MAX;
	cgroups_free(groups);
	return (uint64_t)((q->share_of_free ? q->share_of_free : SHARE_OF_FREE) * (double)lower(kib << 10, limit));
}

static int refuse(const struct process *p, const char *why)
{
	return error_set(MT_EREPLAY, NULL, ERROR_NO_OFFSET, "the heap of %u %s can't be replayed: %s", p->pid, p->name,
			 why);
}

static int check_process(const struct process *p)
{
	if (p->parent)
		return refuse(p, "it was forked, and began with the blocks of its parent");
	return p->has_events ? 0 : refuse(p, "nothing of it was recorded");
}

static int check_plan(const struct heap_plan *plan)
{
	if (!plan->counts.calls)
		return refuse(plan->process, "it has no block that was recorded");
	if (plan->rings >= MOST_WORKERS)
		return refuse(plan->process, "it has too many threads");
	return 0;
}

/* ---- outcomes ----------------------------------------------------------------------------------------------- */

static uint64_t beside(const struct heap_replay *r, const struct heap_point *p)
{
	return r->other + p->mapped - (r->plan.touch == HEAP_TOUCH_ALL ? 0 : p->unseen);
}

/* What is known only behind the replay of the run itself: other. */
static int settle(struct heap_replay *r, struct heap_outcome *o, const struct heap_result *result)
{
	const struct heap_plan *plan = &r->plan;
	*o = (struct heap_outcome){ .end = result->answer.end,
				    .refused_bytes = result->answer.bytes,
				    .calls = result->answer.calls,
				    .call_ns = result->answer.call_ns };
	if (o->end != HEAP_END_WELL)
		return 0;
	if (result->answer.points < plan->point_count)
		return refuse(plan->process, "the replay ended early");
	o->now = calloc(plan->point_count, sizeof(*o->now));
	if (!o->now)
		return error_memory();
	for (size_t i = 0; i < plan->point_count; i++) {
		const uint64_t more = beside(r, &plan->points[i]), most = result->seen[i].most + more;
		o->now[i] = result->seen[i].now + more;
		if (most > o->peak) {
			o->peak = most;
			o->peak_ns = plan->points[i].ns;
		}
	}
	o->last = o->now[plan->point_count - 1];
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* What a process has beside heap and mappings: the program's own data, what the loader wrote to, stacks. It is what the
 * samples have more than both, as a rule: the median. */
static int find_other(struct heap_replay *r, const struct heap_result *own)
{
	const struct heap_plan *plan = &r->plan;
	uint64_t *more = calloc(plan->point_count + 1, sizeof(*more));
	r->other = 0;
	r->looks = 0;
	if (!more)
		return error_memory();
	for (size_t i = 0; i < plan->point_count && i < own->answer.points; i++) {
		const struct heap_point *p = &plan->points[i];
		if (p->recorded != HEAP_UNKNOWN)
			more[r->looks++] = less(p->recorded, own->seen[i].now + beside(r, p));
	}
	if (r->looks) {
		qsort(more, r->looks, sizeof(*more), by_bytes);
		r->other = more[(r->looks - 1) / 2];
	}
	free(more);
	return 0;
}

static double off_by(const struct heap_agreement *a, uint64_t peak)
{
	const uint64_t difference = higher(a->recorded, a->replayed) - lower(a->recorded, a->replayed);
	return peak ? (double)difference / (double)peak : 0;
}

static void compare(struct heap_replay *r)
{
	const struct heap_plan *plan = &r->plan;
	r->peak = r->last = (struct heap_agreement){ 0 };
	for (size_t i = 0; i < plan->point_count; i++) {
		const struct heap_point *p = &plan->points[i];
		if (p->recorded == HEAP_UNKNOWN)
			continue;
		r->last = (struct heap_agreement){ p->ns, p->recorded, r->own.now[i] };
		if (p->recorded > r->peak.recorded)
			r->peak = r->last;
	}
	const double peak = off_by(&r->peak, r->peak.recorded), last = off_by(&r->last, r->peak.recorded);
	/* of one look nobody knows what of it is `other` */
	const double once = r->looks == 1 ? (double)r->other / (double)(r->peak.recorded + 1) : 0;
	r->off = peak > last ? peak : last;
	r->off = once > r->off ? once : r->off;
	r->trust = !r->looks              ? HEAP_TRUST_DIFFERENCES
		   : r->off <= HEAP_EXACT ? HEAP_TRUST_FIGURES
		   : r->off <= HEAP_NEAR  ? HEAP_TRUST_DIFFERENCES
					  : HEAP_TRUST_NOTHING;
}

/* ---- the run ------------------------------------------------------------------------------------------------ */

static int run_child(const struct heap_replay *r, struct heap_result *result, struct reader *first,
		     const struct heap_setting *s, uint64_t most_ns, const struct heap_query *q)
{
	const struct heap_plan *plan = &r->plan;
	const uint64_t free = free_memory(q),
		       needed = NEEDED_BESIDE + (plan->touch == HEAP_TOUCH_ALL ? plan->most_live : plan->most_seen);
	if (needed > free)
		return error_set(MT_EREPLAY, NULL, ERROR_NO_OFFSET,
				 "the heap of %u %s can't be replayed: it had %s, and a replay may take %s here",
				 plan->process->pid, plan->process->name, BYTES(needed), BYTES(free));
	return heap_child_run(result, first, plan, s, free, most_ns, q->on_progress);
}

static int own_end(const struct heap_replay *r, const struct heap_answer *a, const struct heap_query *q)
{
	const struct process *p = r->plan.process;
	switch ((enum heap_end)a->end) {
	case HEAP_END_WELL:
		return 0;
	case HEAP_END_REFUSED:
		return error_set(MT_EREPLAY, NULL, ERROR_NO_OFFSET,
				 "the heap of %u %s can't be replayed: %s of call %s were refused here", p->pid,
				 p->name, BYTES(a->bytes), COUNT(a->calls));
	case HEAP_END_FULL:
		return error_set(
			MT_EREPLAY, NULL, ERROR_NO_OFFSET,
			"the heap of %u %s can't be replayed: it needs more memory than the %s that a replay may take here",
			p->pid, p->name, BYTES(free_memory(q)));
	case HEAP_END_NO_THREAD:
		return refuse(p, "no more threads can be made here");
	case HEAP_END_NO_ALLOCATOR:
		return refuse(p, "its allocator could not be loaded");
	default:
		return refuse(p, "there is no memory for its tables");
	}
}

static int run_own(struct heap_replay *r, struct reader *first, enum heap_touch touch, const struct heap_query *q)
{
	struct heap_result result = { 0 };
	r->plan.touch = touch;
	int e = run_child(r, &result, first, &r->own_setting, 0, q);
	r->own_ns = result.took_ns;
	e = e ? e : own_end(r, &result.answer, q);
	e = e ? e : find_other(r, &result);
	if (!e) {
		free(r->own.now);
		e = settle(r, &r->own, &result);
	}
	if (!e)
		compare(r);
	heap_result_fini(&result);
	return e;
}

/* Would it be another replay? */
static bool is_worth_it(const struct heap_plan *plan, enum heap_touch touch)
{
	bool unseen = plan->most_seen < plan->most_live;
	for (size_t i = 0; i < plan->point_count; i++)
		unseen |= plan->points[i].unseen > 0;
	return touch == HEAP_TOUCH_SEEN ? unseen : touch != HEAP_TOUCH_LEAST || plan->zeroed > 0;
}

static uint64_t most_recorded(const struct heap_plan *plan)
{
	uint64_t most = 0;
	for (size_t i = 0; i < plan->point_count; i++)
		if (plan->points[i].recorded != HEAP_UNKNOWN)
			most = higher(most, plan->points[i].recorded);
	return most ? most : UINT64_MAX;
}

/* With as much written to as agrees best with the samples: first all. What is far more than ever was resident is not
 * tried. */
static int find_touch(struct heap_replay *r, struct reader *first, const struct heap_query *q)
{
	const uint64_t far = less(most_recorded(&r->plan), NEEDED_BESIDE) / 2 * 3;
	int best = -1, e = 0;
	double off = 0;
	for (int touch = HEAP_TOUCH_ALL; touch <= HEAP_TOUCH_LEAST && !e; touch++) {
		if (!is_worth_it(&r->plan, (enum heap_touch)touch) ||
		    (touch == HEAP_TOUCH_ALL && is_worth_it(&r->plan, HEAP_TOUCH_SEEN) && r->plan.most_live > far))
			continue;
		e = run_own(r, first, (enum heap_touch)touch, q);
		if (best < 0 || r->off < off) {
			best = touch;
			off = r->off;
		}
		if (!r->looks || r->off <= HEAP_EXACT || r->peak.replayed < r->peak.recorded)
			break;
	}
	return e || best < 0 || best == (int)r->plan.touch ? e : run_own(r, first, (enum heap_touch)best, q);
}

static int run_others(struct heap_replay *r, struct reader *first, const struct heap_query *q)
{
	int e = 0;
	r->outcomes = calloc(q->count + 1, sizeof(*r->outcomes));
	if (!r->outcomes)
		return error_memory();
	for (r->count = 0; r->count < q->count && !e; r->count++) {
		struct heap_result result = { 0 };
		if (q->on_setting)
			q->on_setting(q, r->count);
		e = run_child(r, &result, first, &q->settings[r->count],
			      HEAP_TIMES * r->own_ns + HEAP_LEAST_S * 1000000000ull, q);
		e = e ? e : settle(r, &r->outcomes[r->count], &result);
		heap_result_fini(&result);
	}
	return e;
}

int heap_replay_run(struct heap_replay *out, struct reader *first, const struct samples *samples,
		    const struct process *p, const struct heap_query *q)
{
	*out = (struct heap_replay){ 0 };
	int e = check_process(p);
	e = e ? e : heap_setting_own(&out->own_setting, p);
	if (HAS_OWN_ALLOCATOR)
		out->own_setting.library[0] = '\0';
	e = e ? e : heap_plan_make(&out->plan, first, samples, p, q->on_plan);
	e = e ? e : check_plan(&out->plan);
	e = e ? e : find_touch(out, first, q);
	if (!e && HAS_OWN_ALLOCATOR) /* here, so that those who look for errors have all of the replay */
		e = refuse(p, "this memtrace is built with a sanitizer, which has an allocator of its own");
	return e || out->trust == HEAP_TRUST_NOTHING ? e : run_others(out, first, q);
}

void heap_replay_fini(struct heap_replay *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->outcomes[i].now);
	free(r->outcomes);
	free(r->own.now);
	heap_setting_fini(&r->own_setting);
	heap_plan_fini(&r->plan);
	*r = (struct heap_replay){ 0 };
}
