#include "analyzer/report/screen/report_holders.h"

#include "analyzer/report/screen/holders_report.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <stdlib.h>
#include <string.h>

/* Blocks of a site, which is known by its text. */
struct wanted {
	const struct selection *v;
	const struct process *process;
	const char *site;
	signed char *known; /* by number of a site: 1 = it is that one, -1 = it is not */
	uint32_t room;
};

static bool is_of_site(const struct wanted *w, uint32_t number)
{
	const struct model_site *s = model_site(w->v->model, w->process->id, number);
	const struct frame *f =
		s ? stacks_site_frame(w->v->stacks, stacks_of(w->v->stacks, w->process, s->node, s->node2),
				      selection_flags(w->v->options))
		  : NULL;
	char *place = f ? frame_place(f) : NULL;
	bool same = place && !strcmp(place, w->site);
	free(place);
	return same;
}

static bool wants(void *arg, const struct hold_block *b)
{
	struct wanted *w = arg;
	if (b->site >= w->room)
		return false;
	if (!w->known[b->site])
		w->known[b->site] = is_of_site(w, b->site) ? 1 : -1;
	return w->known[b->site] > 0;
}

static uint32_t sites_end(const struct hold_graph *g)
{
	uint32_t end = 0;
	for (size_t i = 0; i < g->block_count + g->loose_count; i++) {
		const struct hold_block *b = i < g->block_count ? &g->blocks[i] : &g->loose[i - g->block_count];
		if (b->site != UINT32_MAX && b->site >= end)
			end = b->site + 1;
	}
	return end;
}

static char *sentence(const struct holder *h, const struct holders *all)
{
	char *type = holder_type_text(h);
	char *text =
		output_format("%s%s%s %s: %s of %s%s%s", h->what == HOLDER_CYCLE ? "a cycle that waits for gc, " : "",
			      h->path, *type ? "" : "", type, BYTES(h->bytes), BYTES(all->bytes),
			      h->also ? "; also held by " : "", h->also ? h->also : "");
	free(type);
	return text;
}

static char *advice_of(const struct holder *h, const char *site)
{
	if (h->what == HOLDER_CYCLE)
		return output_format("break the cycle that holds the blocks of %s, or call gc.collect()", site);
	char *type = holder_type_text(h);
	char *text = output_format("let go of %s %s, which holds the blocks of %s", h->path, type, site);
	free(type);
	return text;
}

static int ask(struct report_holders *out, size_t i, const struct holders_report *r, const struct verdict *verdict,
	       unsigned kind)
{
	struct wanted w = { r->selection, r->process, verdict->sites[0], NULL, sites_end(r->graph) };
	struct holders_query q = { .kind = kind, .device = MODEL_NO_DEVICE, .wants = wants, .arg = &w };
	struct holders *h = NULL;
	w.known = calloc(w.room + 1ul, 1);
	int e = w.known ? holders_find(&h, r->graph, &q) : error_memory();
	if (!e && h->count && h->list[0].bytes >= h->bytes / 4) {
		out->held_by[i] = sentence(&h->list[0], h);
		out->advice[i] = advice_of(&h->list[0], verdict->sites[0]);
	}
	holders_free(h);
	free(w.known);
	return e;
}

static int ask_all(struct report_holders *out, const struct holders_report *r, const struct verdicts *v)
{
	static const unsigned device[] = { MODEL_POOL, MODEL_DEVICE }, host[] = { MODEL_HEAP, MODEL_PINNED };
	int e = 0;
	for (size_t i = 0; i < v->held_count; i++)
		for (int k = 0; !e && k < 2 && verdict_has(v->held[i].kind, VERDICT_TELLS_GROWTH) &&
				v->held[i].sites[0] && !out->held_by[i];
		     k++)
			e = ask(out, i, r, &v->held[i], v->held[i].device ? device[k] : host[k]);
	return e;
}

static bool has_snapshot(const struct selection *v)
{
	for (unsigned id = 0; id < reader_processes(v->reader); id++)
		if (selection_has(v, reader_process(v->reader, id)) &&
		    holders_heads(reader_process(v->reader, id), NULL, 0) > 0)
			return true;
	return false;
}

/* At a failure rather than at the end. */
static int best_of(const struct holders_report *r)
{
	for (int i = r->snapshots; i-- > 0;)
		if (i < 64 && r->heads[i].why != MT_HOLD_END)
			return i;
	return r->snapshots - 1;
}

int report_holders_find(struct report_holders *h, const struct selection *v, const struct verdicts *verdicts)
{
	bool asked = false;
	*h = (struct report_holders){ .count = verdicts->held_count };
	for (size_t i = 0; i < verdicts->held_count; i++)
		asked = asked ||
			(verdict_has(verdicts->held[i].kind, VERDICT_TELLS_GROWTH) && verdicts->held[i].sites[0]);
	if (!asked || v->options->at.kind != WHEN_UNSET || !has_snapshot(v))
		return 0;
	h->held_by = calloc(h->count + 1, sizeof(*h->held_by));
	h->advice = calloc(h->count + 1, sizeof(*h->advice));
	if (!h->held_by || !h->advice)
		return error_memory();
	struct selection copy = *v;
	struct holders_report r;
	copy.model = NULL;
	copy.reader = NULL;
	int e = reader_open_again(&copy.reader, v->reader);
	if (e)
		return e;
	e = holders_report_open(&r, &copy, best_of);
	if (!e)
		e = ask_all(h, &r, verdicts);
	holders_report_fini(&r);
	model_free(copy.model);
	reader_close(copy.reader);
	return e;
}

void report_holders_fini(struct report_holders *h)
{
	for (size_t i = 0; i < h->count && h->held_by; i++) {
		free(h->held_by[i]);
		free(h->advice ? h->advice[i] : NULL);
	}
	free(h->held_by);
	free(h->advice);
}
