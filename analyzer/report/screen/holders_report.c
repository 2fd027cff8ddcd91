#include "analyzer/report/screen/holders_report.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

/* The selected process with the most in its last snapshot. */
static int pick_process(struct holders_report *r)
{
	const struct selection *sel = r->selection;
	uint64_t most = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		struct held_snapshot s = { 0 };
		int n = selection_has(sel, p) ? held_heads(&s, p) : 0;
		uint64_t bytes = n > 0 ? s.heads[n - 1].body_bytes : 0;
		if (n <= 0) {
			held_close(&s);
			if (n < 0)
				return n;
			continue;
		}
		const struct process *other = bytes > most ? r->held.process : p;
		if (other && r->other_count < 8)
			r->others[r->other_count++] = other;
		if (bytes > most) {
			most = bytes;
			held_close(&r->held);
			r->held = s;
		} else {
			held_close(&s);
		}
	}
	return 0;
}

static int open_snapshot(struct holders_report *r, int number)
{
	number = number < 0 ? r->held.count + number : number;
	if (number < 0 || number >= r->held.count)
		return error_set(MT_EUSAGE, "--snapshot", ERROR_NO_OFFSET, "there are %d, from 1 on", r->held.count);
	return held_open(&r->held, r->selection, number);
}

static int add_part(struct holders_report *r, unsigned kind, const struct model_device *device)
{
	struct holders_query q = { .kind = kind, .device = device ? device->index : MODEL_NO_DEVICE };
	int e = vec_reserve(r->parts, r->part_room, r->part_count + 1);
	if (e)
		return e;
	struct holders_part *part = &r->parts[r->part_count++];
	*part = (struct holders_part){ .kind = kind, .device = device };
	e = holders_find(&part->holders, r->held.graph, &q);
	if (!e && !part->holders->bytes) {
		holders_free(part->holders);
		r->part_count--;
	}
	return e;
}

static bool wants_kind(const struct holders_report *r, unsigned kind, const struct model_device *device)
{
	const struct selection *sel = r->selection;
	if (device)
		return selection_has_device(sel, device->index);
	if (!sel->options->device)
		return kind != MODEL_MAP;
	return kind == HOLDERS_SMALL ? (sel->kinds & 1u << MODEL_HEAP) != 0 : (sel->kinds & 1u << kind) != 0;
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

int holders_report_make(struct holders_report *r, struct selection *sel, int number)
{
	*r = (struct holders_report){ .selection = sel };
	int e = held_check(sel);
	e = e ? e : pick_process(r);
	e = e ? e : open_snapshot(r, number);
	return e ? e : add_parts(r);
}

void holders_report_fini(struct holders_report *r)
{
	for (size_t i = 0; i < r->part_count; i++)
		holders_free(r->parts[i].holders);
	free(r->parts);
	held_close(&r->held);
}

char *holder_site_text(const struct holders_report *r, const struct holder *h)
{
	const struct selection *sel = r->selection;
	const struct model_site *s =
		h->site == UINT32_MAX ? NULL : model_site(sel->model, r->held.process->id, h->site);
	const struct frame *frames[2];
	unsigned n =
		s ? selection_telling_frames(sel, stacks_of(sel->stacks, r->held.process, s->node, s->node2), frames, 2)
		  : 0;
	char *inner = n ? frame_place(frames[0]) : NULL, *outer = n > 1 ? frame_place(frames[1]) : NULL;
	char *text = inner ? output_format("%s%s%s", inner, outer ? "  < " : "", outer ? outer : "") : NULL;
	free(inner);
	free(outer);
	return text;
}
