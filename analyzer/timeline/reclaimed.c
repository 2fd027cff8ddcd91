#include "analyzer/timeline/reclaimed.h"

#include <stdlib.h>

#define RECLAIMED_LEAST_BYTES (4u << 20)   /* less is lost in the kernel's counters */
#define NEAR_NS               5000000000u  /* before the peak, and after the end */
#define OFF_BYTES             (128u << 10) /* a thread's counters may be off by, in /proc/PID/status */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Lowest and highest live bytes in the stretch that holds the moment. */
static struct model_bucket live_at(const struct selection *sel, const struct process *p, enum model_kind kind,
				   uint64_t ns)
{
	return model_at(sel->model, &model_process(sel->model, p->id)->timeline[kind], ns);
}

/* How far what was live in the sample may be from what is live at the moment. */
static uint64_t off_by(const struct model_bucket *b, uint64_t bytes)
{
	uint64_t low = distance(b->low, bytes), high = distance(b->high, bytes);
	return low > high ? low : high;
}

/* ---- samples --------------------------------------------------------------------------------------------- */

/* Of those that were taken while most nearly the same was live, the nearest. */
struct moment {
	bool known;
	uint64_t ns, anon, off;
};

struct look {
	const struct selection *selection;
	const struct process *process;
	const struct sample_subject *subject;
	struct reclaimed_span span;
	struct moment peak, end;
};

static void take_better(const struct look *k, struct moment *m, uint64_t wanted_ns, uint64_t wanted_bytes,
			const struct sample *x)
{
	struct model_bucket live = live_at(k->selection, k->process, MODEL_HEAP, x->ns);
	uint64_t off = off_by(&live, wanted_bytes);
	if (m->known && (m->off < off || (m->off == off && distance(m->ns, wanted_ns) <= distance(x->ns, wanted_ns))))
		return;
	*m = (struct moment){ true, x->ns, x->value[MT_PROCESS_rss_anon], off };
}

static int note_sample(void *arg, const struct sample *x)
{
	struct look *k = arg;
	if (x->subject != k->subject || x->gone || !(x->fields & 1ull << MT_PROCESS_rss_anon))
		return 0;
	if (x->ns <= k->span.end_ns)
		take_better(k, &k->peak, k->span.peak_ns, k->span.peak_bytes, x);
	if (x->ns >= k->span.peak_ns)
		take_better(k, &k->end, k->span.end_ns, k->span.end_bytes, x);
	return 0;
}

bool reclaimed_host(const struct selection *sel, const struct process *p, struct reclaimed_span span,
		    struct reclaimed *out)
{
	const struct sample_subject *subject = sel->samples ? samples_of_process(sel->samples, p) : NULL;
	bool last = span.end_ns == UINT64_MAX;
	if (!subject || !(subject->known & 1ull << MT_PROCESS_rss_anon))
		return false;
	span.end_ns = last ? subject->last_ns : span.end_ns;
	span.end_bytes = last ? live_at(sel, p, MODEL_HEAP, span.end_ns).last : span.end_bytes;
	if (span.end_ns <= span.peak_ns || span.peak_bytes < span.end_bytes + RECLAIMED_LEAST_BYTES)
		return false;
	struct look k = { .selection = sel, .process = p, .subject = subject, .span = span };
	uint64_t from = span.peak_ns > NEAR_NS ? span.peak_ns - NEAR_NS : 0;
	if (samples_each(sel->samples, from, span.end_ns + NEAR_NS, note_sample, &k) < 0 || !k.peak.known ||
	    !k.end.known || k.end.ns <= k.peak.ns)
		return false;
	struct model_bucket maps = live_at(sel, p, MODEL_MAP, k.peak.ns),
			    maps_end = live_at(sel, p, MODEL_MAP, k.end.ns);
	*out = (struct reclaimed){ .bytes = span.peak_bytes - span.end_bytes,
				   .to_kernel = (int64_t)(k.peak.anon - k.end.anon),
				   .peak_sample_ns = k.peak.ns,
				   .end_sample_ns = k.end.ns };
	out->error =
		k.peak.off + k.end.off + off_by(&maps, maps_end.last) + 2 * OFF_BYTES * (p->threads ? p->threads : 1ul);
	int64_t stayed = (int64_t)out->bytes - out->to_kernel;
	uint64_t room = k.end.anon + out->error; /* more can't be in it */
	out->kept = stayed <= 0 ? 0 : (uint64_t)stayed < room ? (uint64_t)stayed : room;
	out->untouched = stayed > 0 ? (uint64_t)stayed - out->kept : 0;
	return true;
}

bool reclaimed_process(const struct selection *sel, const struct process *p, struct reclaimed *out)
{
	const struct model_totals *heap = &model_process(sel->model, p->id)->kind[MODEL_HEAP];
	return reclaimed_host(sel, p, (struct reclaimed_span){ heap->peak_ns, heap->peak_bytes, UINT64_MAX, 0 }, out);
}
