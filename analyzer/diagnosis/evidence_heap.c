#include "analyzer/diagnosis/evidence_heap.h"

#include "analyzer/diagnosis/verdicts.h"
#include "analyzer/replay/heap/heap_replay.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <stdlib.h>

#define SHARE_OF_FREE 0.25 /* of the memory that is free */
#define MOST_SECONDS  10.0 /* of a processor, as estimated, for all replays */
#define CALL_SECONDS  2e-6
#define BYTE_SECONDS  (0.25 / (1ull << 30)) /* what is handed out is written to */
#define HELPS         0.1                   /* less by that part of what is kept */

/* As whatif knows them; the rest would not be named in one line. */
static const char *const tried[] = { "MALLOC_ARENA_MAX=2", "MALLOC_TRIM_THRESHOLD_=131072", "malloc_trim", "jemalloc" };
enum { TRIED = sizeof(tried) / sizeof(*tried), MOST_OWN = 2 /* replays of the run itself */ };
_Static_assert((int)TRIED <= (int)EVIDENCE_HEAP_SETTINGS, "room for all that are tried");

struct asked {
	struct heap_setting settings[TRIED];
	const char *names[TRIED];
	size_t count;
};

static bool is_affordable(const struct diagnosis *diagnosis, const struct process *p)
{
	const struct model_totals *heap = &model_process(diagnosis->selection->model, p->id)->kind[MODEL_HEAP];
	const double once =
		CALL_SECONDS * (double)(heap->allocations + heap->frees) + BYTE_SECONDS * (double)heap->allocated_bytes;
	return !process_is_picked(p) && once * (MOST_OWN + TRIED) <= MOST_SECONDS;
}

/* When the process was looked at last, whatever it freed to end. */
static uint64_t gain(const struct heap_replay *r, const struct heap_outcome *o)
{
	return less(r->own.now[r->plan.looked], o->now[r->plan.looked]);
}

static int by_gain(const void *a, const void *b)
{
	const struct evidence_heap_setting *x = a, *y = b;
	return (x->less < y->less) - (x->less > y->less);
}

static void judge(struct evidence_host *h, const struct heap_replay *r, const struct asked *q)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct heap_outcome *o = &r->outcomes[i];
		if (o->end != HEAP_END_WELL)
			continue;
		const uint64_t less = gain(r, o);
		h->heap.settings[h->heap.count++] = (struct evidence_heap_setting){
			.name = q->settings[i].trim ? "malloc_trim(0)" : q->names[i],
			.helps = (double)less >= HELPS * (double)h->kept,
			.once = q->settings[i].trim,
			.less = less,
			.time = r->own.call_ns ? (double)o->call_ns / (double)r->own.call_ns : 1,
		};
	}
	qsort(h->heap.settings, h->heap.count, sizeof(*h->heap.settings), by_gain);
}

/* What is not installed, and what the run had, is left out. */
static int ask(struct asked *q, const struct process *p)
{
	struct heap_setting own = { 0 };
	int e = heap_setting_own(&own, p);
	for (size_t i = 0; i < TRIED && !e; i++) {
		struct heap_setting *s = &q->settings[q->count];
		e = heap_setting_parse(s, tried[i], p);
		if (e || heap_setting_is_own(s, &own) || (s->trim && *s->library))
			heap_setting_fini(s);
		else
			q->names[q->count++] = tried[i];
		e = e == -MT_EUSAGE ? 0 : e;
	}
	heap_setting_fini(&own);
	return e;
}

static int replay(struct diagnosis *diagnosis, const struct process *p)
{
	struct asked asked = { .count = 0 };
	struct heap_replay r = { .count = 0 };
	int e = ask(&asked, p);
	const struct heap_query q = { .settings = asked.settings,
				      .count = asked.count,
				      .share_of_free = SHARE_OF_FREE,
				      .on_plan = output_progress,
				      .on_progress = output_progress };
	if (!e)
		e = heap_replay_run(&r, diagnosis->selection->reader, host_memory_samples(diagnosis->system), p, &q);
	if (!e && r.trust != HEAP_TRUST_NOTHING)
		judge(&diagnosis->evidence.host, &r, &asked);
	output_progress_end();
	heap_replay_fini(&r);
	for (size_t i = 0; i < asked.count; i++)
		heap_setting_fini(&asked.settings[i]);
	return e == -MT_EREPLAY || e == -MT_ERUN ? 0 : e;
}

int evidence_replay_heap(struct diagnosis *diagnosis, const struct process *keeper)
{
	if (!keeper || !verdicts_keeps_much(&diagnosis->evidence.host) || !is_affordable(diagnosis, keeper))
		return 0;
	return replay(diagnosis, keeper);
}
