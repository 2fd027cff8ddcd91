#include "analyzer/analysis/held.h"

#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PROCESSES = 8 }; /* each is a pass over the events */
enum { MOST_LEAKS = 20 };    /* each is a search in the graph */

const char *held_why(const struct mt_hold_head *head)
{
	switch (head->why) {
	case MT_HOLD_REQUEST:
		return "on request";
	case MT_HOLD_DEVICE:
		return "a device had no memory";
	case MT_HOLD_POOL:
		return "out of memory on a device";
	case MT_HOLD_HOST:
		return "the host had no memory";
	case MT_HOLD_MARK:
		return "at a mark";
	case MT_HOLD_END:
		return "at the program's end";
	}
	return "";
}

int held_heads(struct held_snapshot *s, const struct process *p)
{
	*s = (struct held_snapshot){ .process = p };
	int n = holders_heads(p, NULL, 0);
	if (n <= 0)
		return n;
	s->heads = vec_calloc((size_t)n, sizeof(*s->heads));
	if (!s->heads)
		return error_memory();
	int now = holders_heads(p, s->heads, n); /* a program that runs may have one more by now */
	s->count = now < 0 ? 0 : now < n ? now : n;
	return now < 0 ? now : s->count;
}

int held_processes(const struct selection *sel)
{
	int count = 0, n = 0;
	for (unsigned id = 0; n >= 0 && id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		n = selection_has(sel, p) ? holders_heads(p, NULL, 0) : 0;
		count += n > 0;
	}
	return n < 0 ? n : count;
}

int held_check(const struct selection *sel)
{
	int n = held_processes(sel);
	return n > 0 ? 0
	       : n   ? n
		     : error_set(MT_EUSAGE, sel->options->dirs[0], ERROR_NO_OFFSET,
				 "has no snapshot of holders: record with MEMTRACE_HOLDERS=1 (memtrace run --holders)");
}

int held_open(struct held_snapshot *s, struct selection *sel, int number)
{
	struct model_query q = MODEL_QUERY_ALL;
	s->number = number;
	int e = holders_read(s->process, number, &s->snapshot);
	if (e)
		return e;
	s->ns = process_ns(s->process, s->snapshot.head.ticks);
	q.until_ns = s->ns;
	e = selection_run(sel, &q);
	return e ? e
		 : hold_graph_make(&s->graph, &s->snapshot, sel->model, s->process->id,
				   process_is_whole(s->process) && reader_complete(sel->reader));
}

void held_close(struct held_snapshot *s)
{
	hold_graph_free(s->graph);
	hold_snapshot_fini(&s->snapshot);
	free(s->heads);
	*s = (struct held_snapshot){ 0 };
}

int held_best(const struct held_snapshot *s)
{
	for (int i = s->count; i-- > 0;)
		if (s->heads[i].why != MT_HOLD_END)
			return i;
	return s->count - 1;
}

int held_pass_heads(struct held_pass *p, const struct selection *sel, unsigned id)
{
	*p = (struct held_pass){ .untimed = *sel->options, .sel = *sel };
	p->untimed.at = p->untimed.from = p->untimed.to = (struct when){ .kind = WHEN_UNSET };
	p->sel.options = &p->untimed;
	p->sel.model = NULL;
	p->sel.reader = NULL;
	int e = reader_open_again(&p->sel.reader, sel->reader);
	return e ? e : held_heads(&p->held, reader_process(p->sel.reader, id));
}

void held_pass_close(struct held_pass *p)
{
	held_close(&p->held);
	model_free(p->sel.model);
	reader_close(p->sel.reader);
}

/* ---- blocks of a site ----------------------------------------------------------------------------------- */

struct wanted {
	const struct selection *sel;
	const struct process *process;
	const char *site;
	uint32_t below;     /* 0 = the site counts */
	signed char *known; /* by number of a site: 1 = it is that one, -1 = it is not */
	uint32_t room;
};

static bool is_below(struct stacks *stacks, uint32_t stack, uint32_t call)
{
	for (stack = stacks_merged(stacks, stack); stack && stack != call;)
		stack = stacks_outer(stacks, stack);
	return stack != 0;
}

static bool is_of_site(const struct wanted *w, uint32_t number)
{
	const struct model_site *s = model_site(w->sel->model, w->process->id, number);
	if (w->below)
		return s &&
		       is_below(w->sel->stacks, stacks_of(w->sel->stacks, w->process, s->node, s->node2), w->below);
	const struct frame *f =
		s ? stacks_site_frame(w->sel->stacks, stacks_of(w->sel->stacks, w->process, s->node, s->node2),
				      selection_flags(w->sel->options))
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

/* ---- answers -------------------------------------------------------------------------------------------- */

/* Takes the texts of the holder. */
static int keep(struct held_question *q, struct holder *h, uint64_t of, const struct held_snapshot *s)
{
	char *type = holder_type_text(h);
	q->name = type ? output_format("%s%s%s", h->path, *type ? " " : "", type) : NULL;
	free(type);
	if (!q->name)
		return error_memory();
	q->holder = *h;
	q->holder.type = strdup(h->type);
	h->path = h->also = NULL;
	q->of_bytes = of;
	q->pid = s->process->pid;
	q->why = s->snapshot.head.why;
	q->ns = s->ns;
	q->known = true;
	return q->holder.type ? 0 : error_memory();
}

static int ask_kind(struct held_question *q, const struct held_snapshot *s, struct wanted *w, unsigned kind)
{
	struct holders_query query = { .kind = kind, .device = MODEL_NO_DEVICE, .wants = wants, .arg = w };
	struct holders *h = NULL;
	int e = holders_find(&h, s->graph, &query);
	/* what it holds together with others is in rows of their own */
	for (size_t i = 1; !e && i < h->count; i++)
		if (h->list[i].what == HOLDER_SHARED && !strcmp(h->list[i].path, h->list[0].path))
			h->list[0].bytes += h->list[i].bytes;
	if (!e && h->count && h->list[0].bytes >= h->bytes / 4)
		e = keep(q, &h->list[0], h->bytes, s);
	holders_free(h);
	return e;
}

static int ask(struct held_question *q, const struct held_snapshot *s, const struct selection *sel)
{
	static const unsigned device[] = { MODEL_POOL, MODEL_DEVICE }, host[] = { MODEL_HEAP, MODEL_PINNED };
	struct wanted w = { sel, s->process, q->site, q->below, NULL, sites_end(s->graph) };
	w.known = calloc(w.room + 1ul, 1);
	int e = w.known ? 0 : error_memory();
	for (int k = 0; !e && k < 2 && !q->known; k++)
		e = ask_kind(q, s, &w, q->device ? device[k] : host[k]);
	free(w.known);
	return e;
}

static int ask_process(const struct selection *sel, unsigned id, struct held_question *questions, size_t count)
{
	struct held_pass p;
	int e = held_pass_heads(&p, sel, id);
	if (e > 0)
		e = held_open(&p.held, &p.sel, held_best(&p.held));
	for (size_t i = 0; !e && p.held.graph && i < count; i++)
		if (questions[i].site && !questions[i].known)
			e = ask(&questions[i], &p.held, &p.sel);
	held_pass_close(&p);
	return e;
}

struct candidate {
	unsigned id;
	uint64_t bytes;
};

static int larger_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int list_candidates(const struct selection *sel, struct candidate **list, size_t *count)
{
	size_t room = 0;
	int e = 0;
	for (unsigned id = 0; !e && id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		struct held_snapshot s = { 0 };
		int n = selection_has(sel, p) ? held_heads(&s, p) : 0;
		if (n < 0)
			e = n;
		else if (n && !(e = vec_reserve_raw(*list, room, *count + 1)))
			(*list)[(*count)++] = (struct candidate){ id, s.heads[held_best(&s)].body_bytes };
		held_close(&s);
	}
	if (*count)
		qsort(*list, *count, sizeof(**list), larger_first);
	return e;
}

int held_largest(const struct selection *sel, unsigned *ids, int most)
{
	struct candidate *list = NULL;
	size_t n = 0;
	int e = list_candidates(sel, &list, &n), count = 0;
	for (; !e && count < most && (size_t)count < n; count++)
		ids[count] = list[count].id;
	free(list);
	return e ? e : count;
}

static bool is_open(const struct held_question *questions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (questions[i].site && !questions[i].known)
			return true;
	return false;
}

int held_find(const struct selection *sel, struct held_question *questions, size_t count)
{
	unsigned ids[MOST_PROCESSES];
	if (!is_open(questions, count) || sel->options->at.kind != WHEN_UNSET)
		return 0;
	int n = held_largest(sel, ids, MOST_PROCESSES), e = n < 0 ? n : 0;
	for (int i = 0; !e && i < n && is_open(questions, count); i++)
		e = ask_process(sel, ids[i], questions, count);
	return e;
}

void held_fini(struct held_question *questions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct held_question *q = &questions[i];
		free(q->holder.path);
		free(q->holder.also);
		if (q->known)
			free((char *)q->holder.type);
		free(q->name);
		free(q->site);
		*q = (struct held_question){ 0 };
	}
}

/* Worth a search: of the program's own, and of one line. */
static bool is_worth(const struct leaks *l, const struct leak *leak)
{
	return leak_counts(leak) && !leak->owner->label && leak->owner->frame &&
	       (leak_grows(leak) || leak->bytes >= l->bytes / 20);
}

int held_of_leaks(const struct leaks *l, struct held_question **out)
{
	*out = calloc(l->count + 1, sizeof(**out));
	if (!*out)
		return error_memory();
	bool lines = l->selection->by == BY_UNSET || l->selection->by == BY_SITE || l->selection->by == BY_STACK;
	for (size_t i = 0, asked = 0; lines && i < l->count && asked < MOST_LEAKS; i++) {
		const struct leak *leak = &l->list[i];
		if (!is_worth(l, leak))
			continue;
		(*out)[i].site = frame_place(leak->owner->frame);
		(*out)[i].device = leak->kind == MODEL_POOL || leak->kind == MODEL_DEVICE;
		asked++;
	}
	return held_find(l->selection, *out, l->count);
}

void held_say(const struct held_question *q, struct reasons *evidence)
{
	const struct holder *h = &q->holder;
	reasons_add(evidence, h->what == HOLDER_CYCLE ? REASON_holder_cycle : REASON_holder,
		    &(struct figures){ .name = q->name, .bytes = h->bytes, .used = q->of_bytes });
	if (h->also)
		SAY(evidence, also_held_by, .name = h->also);
}
