#include "analyzer/report/screen/holders_report.h"

#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

const char *holders_why(const struct mt_hold_head *head)
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

/* The selected process with the most in its last snapshot. */
static int pick_process(struct holders_report *r)
{
	const struct selection *v = r->selection;
	uint64_t most = 0;
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct process *p = reader_process(v->reader, id);
		struct mt_hold_head heads[64];
		int n = selection_has(v, p) ? holders_heads(p, heads, 64) : 0;
		if (n < 0)
			return n;
		if (!n)
			continue;
		uint64_t bytes = heads[n < 64 ? n - 1 : 63].body_bytes;
		const struct process *other = bytes > most ? r->process : p;
		if (other && r->other_count < 8)
			r->others[r->other_count++] = other;
		if (bytes <= most)
			continue;
		most = bytes;
		r->process = p;
		r->snapshots = n;
		memcpy(r->heads, heads, sizeof(heads));
	}
	if (!r->process)
		return error_set(MT_EUSAGE, v->options->dirs[0], ERROR_NO_OFFSET,
				 "has no snapshot of holders: record with MEMTRACE_HOLDERS=1 (memtrace run --holders)");
	return 0;
}

static int pick_snapshot(struct holders_report *r, int number)
{
	r->number = number < 0 ? r->snapshots + number : number;
	if (r->number < 0 || r->number >= r->snapshots)
		return error_set(MT_EUSAGE, "--snapshot", ERROR_NO_OFFSET, "there are %d, from 1 on", r->snapshots);
	return 0;
}

static int add_part(struct holders_report *r, unsigned kind, const struct model_device *device)
{
	struct holders_query q = { .kind = kind, .device = device ? device->index : MODEL_NO_DEVICE };
	int e = vec_reserve(r->parts, r->part_room, r->part_count + 1);
	if (e)
		return e;
	struct holders_part *part = &r->parts[r->part_count++];
	*part = (struct holders_part){ .kind = kind, .device = device };
	e = holders_find(&part->holders, r->graph, &q);
	if (!e && !part->holders->bytes) {
		holders_free(part->holders);
		r->part_count--;
	}
	return e;
}

static bool wants_kind(const struct holders_report *r, unsigned kind, const struct model_device *device)
{
	const struct selection *v = r->selection;
	if (device)
		return selection_has_device(v, device->index);
	if (!v->options->device)
		return kind != MODEL_MAP;
	return kind == HOLDERS_SMALL ? (v->kinds & 1u << MODEL_HEAP) != 0 : (v->kinds & 1u << kind) != 0;
}

static int add_parts(struct holders_report *r)
{
	static const unsigned host[] = { MODEL_HEAP, HOLDERS_SMALL, MODEL_PINNED, MODEL_MAP };
	int e = 0;
	for (unsigned i = 0; !e && i < model_devices(r->selection->model); i++) {
		const struct model_device *d = model_device(r->selection->model, i);
		bool pool = d->layer[LAYER_POOL].live_bytes != 0;
		if (wants_kind(r, MODEL_POOL, d))
			e = add_part(r, pool ? MODEL_POOL : MODEL_DEVICE, d);
	}
	for (unsigned i = 0; !e && i < 4; i++)
		if (wants_kind(r, host[i], NULL))
			e = add_part(r, host[i], NULL);
	return e;
}

static int open_snapshot(struct holders_report *r, struct selection *v)
{
	int e = holders_read(r->process, r->number, &r->snapshot);
	if (e)
		return e;
	struct model_query q = MODEL_QUERY_ALL;
	r->ns = process_ns(r->process, r->snapshot.head.ticks);
	q.until_ns = r->ns;
	e = selection_run(v, &q);
	return e ? e : hold_graph_make(&r->graph, &r->snapshot, v->model, r->process->id);
}

int holders_report_open(struct holders_report *r, struct selection *v, int (*pick)(const struct holders_report *r))
{
	*r = (struct holders_report){ .selection = v };
	int e = pick_process(r);
	e = e ? e : pick_snapshot(r, pick(r));
	return e ? e : open_snapshot(r, v);
}

int holders_report_make(struct holders_report *r, struct selection *v, int number)
{
	*r = (struct holders_report){ .selection = v };
	int e = pick_process(r);
	e = e ? e : pick_snapshot(r, number);
	e = e ? e : open_snapshot(r, v);
	return e ? e : add_parts(r);
}

void holders_report_fini(struct holders_report *r)
{
	for (size_t i = 0; i < r->part_count; i++)
		holders_free(r->parts[i].holders);
	free(r->parts);
	hold_graph_free(r->graph);
	hold_snapshot_fini(&r->snapshot);
}

char *holder_type_text(const struct holder *h)
{
	if (h->what == HOLDER_C || (h->what == HOLDER_CYCLE && h->objects))
		return output_format("(%s %ss)", COUNT(h->objects), h->type);
	if (h->items != UINT64_MAX)
		return output_format("(%s, %s item%s)", h->type, COUNT(h->items), h->items == 1 ? "" : "s");
	return *h->type ? output_format("(%s)", h->type) : strdup("");
}

char *holder_site_text(const struct holders_report *r, const struct holder *h)
{
	const struct selection *v = r->selection;
	const struct model_site *s = h->site == UINT32_MAX ? NULL : model_site(v->model, r->process->id, h->site);
	const struct frame *frames[2];
	unsigned n =
		s ? selection_telling_frames(v, stacks_of(v->stacks, r->process, s->node, s->node2), frames, 2) : 0;
	char *inner = n ? frame_place(frames[0]) : NULL, *outer = n > 1 ? frame_place(frames[1]) : NULL;
	char *text = inner ? output_format("%s%s%s", inner, outer ? "  < " : "", outer ? outer : "") : NULL;
	free(inner);
	free(outer);
	return text;
}
