#include "analyzer/report/screen/holders_report.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

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

int holders_report_make(struct holders_report *r, struct selection *sel, int number)
{
	*r = (struct holders_report){ .selection = sel };
	int e = held_check(sel);
	e = e ? e : pick_process(r);
	e = e ? e : open_snapshot(r, number);
	return e ? e : held_parts_find(&r->parts, &r->held, r->selection);
}

void holders_report_fini(struct holders_report *r)
{
	held_parts_free(&r->parts);
	held_close(&r->held);
}

char *holder_site_text(const struct selection *sel, const struct process *p, uint32_t site)
{
	const struct model_site *s = site == UINT32_MAX ? NULL : model_site(sel->model, p->id, site);
	const struct frame *frames[2];
	unsigned n = s ? selection_telling_frames(sel, stacks_of(sel->stacks, p, s->node, s->node2), frames, 2) : 0;
	char *inner = n ? frame_place(frames[0]) : NULL, *outer = n > 1 ? frame_place(frames[1]) : NULL;
	char *text = inner ? output_format("%s%s%s", inner, outer ? "  < " : "", outer ? outer : "") : NULL;
	free(inner);
	free(outer);
	return text;
}
