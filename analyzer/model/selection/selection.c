#include "analyzer/model/selection/selection.h"

#include "analyzer/symbols/python_arenas.h"
#include "analyzer/symbols/shown_by.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/system/signal_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *kind_name(enum model_kind kind)
{
	static const char *const names[MODEL_KINDS] = {
		[MODEL_HEAP] = "heap",     [MODEL_MAP] = "map",   [MODEL_PINNED] = "pinned",
		[MODEL_DEVICE] = "device", [MODEL_POOL] = "pool",
	};
	return names[kind];
}

const char *kind_words(enum model_kind kind)
{
	return kind == MODEL_MAP      ? "mapped memory"
	       : kind == MODEL_PINNED ? "pinned memory"
	       : kind == MODEL_DEVICE ? "device memory"
				      : kind_name(kind);
}

const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

char *frame_text(const struct frame *f)
{
	if (f->name)
		return output_format("%s", f->name);
	if (f->library)
		return output_format("%s+0x%" PRIx64, base_name(f->library), f->offset);
	return output_format("0x%" PRIx64, f->offset);
}

char *frame_where(const struct frame *f)
{
	if (f->file && f->line)
		return output_format("%s:%u", base_name(f->file), f->line);
	if (f->file)
		return output_format("%s", base_name(f->file));
	return output_format("%s", f->name && f->library ? base_name(f->library) : "");
}

char *frame_place(const struct frame *f)
{
	char *text = frame_text(f), *where = frame_where(f);
	char *line = output_format("%s%s%s", where ? where : "", where && *where ? " " : "", text ? text : "");
	free(text);
	free(where);
	return line;
}

unsigned selection_telling_frames(const struct selection *sel, uint32_t stack, const struct frame **frames,
				  unsigned most)
{
	unsigned count = 0;
	for (struct stack_walk w = { .next = stack }; count < most && stack_step(sel->stacks, &w);)
		if (w.class == FRAME_PLAIN && w.frame->language && !strcmp(w.frame->language, "python") &&
		    stack_shows(&w, selection_flags(sel->options)))
			frames[count++] = w.frame;
	if (count)
		return count;
	struct stack_site site = stacks_site(sel->stacks, stack, selection_flags(sel->options));
	if (site.frame)
		frames[count++] = site.frame;
	if (site.caller && count < most)
		frames[count++] = site.caller;
	return count;
}

char *owner_text(const struct owner *o)
{
	if (o->label)
		return strdup(o->label);
	return o->frame ? frame_text(o->frame) : strdup("(no stack)");
}

char *owner_next(const struct owner *o, char **where)
{
	const struct frame *f = o->folded ? NULL : o->caller ? o->caller : o->callee;
	char *text = f ? frame_text(f) : NULL,
	     *line = text ? output_format("%c %s", o->caller ? '<' : '>', text) : NULL;
	*where = f ? frame_where(f) : NULL;
	free(text);
	return line;
}

const char *owner_setting(const struct owner *o, struct stacks *stacks)
{
	return o->label || !o->stack_count ? NULL : worker_setting(stacks, o->stacks->stack);
}

const struct tool *owner_tool(const struct owner *o, struct stacks *stacks)
{
	return o->label || !o->stack_count ? NULL : tool_of(stacks, o->stacks->stack);
}

bool owner_is_arenas(const struct owner *o, enum model_kind kind, struct stacks *stacks)
{
	return kind == MODEL_MAP && o->stack_count &&
	       python_arenas_is(stacks, o->stacks->stack, o->stacks->bytes, o->stacks->blocks);
}

char *owner_range(const struct owner *o)
{
	if (!o->estimated)
		return NULL;
	return output_format("%s to %s", BYTES(o->sum.bytes_low), BYTES(o->sum.bytes_high));
}

const char *selection_end_title(const struct selection *sel)
{
	unsigned left = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct model_process *m = model_process(sel->model, id);
		bool any = false;
		for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
			any |= sel->kinds & 1u << kind && m->kind[kind].live_bytes;
		left += any && selection_has(sel, m->process);
	}
	return left > 1 ? "at each end" : "at end";
}

const char *exit_name(uint32_t kind)
{
	static const char *const names[] = {
		[MT_EXIT_NONE] = "unknown",
		[MT_EXIT_CODE] = "exit",
		[MT_EXIT_SIGNAL] = "signal",
		[MT_EXIT_EXEC] = "exec",
	};
	return names[kind <= MT_EXIT_EXEC ? kind : MT_EXIT_NONE];
}

const char *exit_text(const struct process *p, char *out, size_t size)
{
	const char *signal = p->exit_kind == MT_EXIT_SIGNAL ? signal_name(p->exit_code) : NULL;
	if (p->state == PROCESS_RUNNING)
		snprintf(out, size, "running");
	else if (p->exit_kind == MT_EXIT_CODE)
		snprintf(out, size, "exit %d", p->exit_code);
	else if (signal)
		snprintf(out, size, "SIG%s", signal);
	else if (p->exit_kind == MT_EXIT_SIGNAL)
		snprintf(out, size, "signal %d", p->exit_code);
	else
		snprintf(out, size, "%s", exit_name(p->exit_kind));
	return out;
}

const char *recorded_part(const struct process *p, char out[RECORDED_PART])
{
	uint64_t gap = process_ns(p, p->start_ticks + p->gap_ticks) - process_ns(p, p->start_ticks);
	const char *from = p->recorded_ticks ? DURATION(process_ns(p, p->recorded_ticks)) : "its start";
	const char *to = p->stopped_ticks ? DURATION(process_ns(p, p->stopped_ticks)) : "its end";
	unsigned between = p->stops - (p->stopped_ticks && p->stops);
	if (p->stopped_ticks && !p->stops)
		snprintf(out, RECORDED_PART, "never recorded");
	else if (between)
		snprintf(out, RECORDED_PART, "recorded from %s to %s, stopped %u time%s in between, for %s", from, to,
			 between, between == 1 ? "" : "s", DURATION(gap));
	else
		snprintf(out, RECORDED_PART, "recorded from %s to %s", from, to);
	return out;
}

size_t selection_rows(const struct selection *sel, size_t usual)
{
	return sel->options->rows ? sel->options->rows : usual;
}

const char *selection_by_name(const struct selection *sel)
{
	return options_by_name(sel->by);
}

int selection_check_filter(const struct selection *sel, bool matched)
{
	if (!sel->options->filter || matched)
		return 0;
	return error_set(MT_EUSAGE, "--filter", ERROR_NO_OFFSET,
			 "no stack of what was alive then has a frame that matches '%s'", sel->options->filter);
}

enum model_split selection_split(const struct selection *sel)
{
	return sel->by == BY_THREAD ? MODEL_SPLIT_THREAD : sel->by == BY_SIZE ? MODEL_SPLIT_SIZE : MODEL_SPLIT_NONE;
}

bool selection_has(const struct selection *sel, const struct process *p)
{
	return !sel->processes || sel->processes[p->id];
}

unsigned selection_flags(const struct options *o)
{
	return (o->all_frames ? STACK_ALL_FRAMES : 0) | (o->no_native ? STACK_NO_NATIVE : 0) |
	       (o->no_python ? STACK_NO_PYTHON : 0);
}

static struct owners_query query_of(const struct selection *sel, enum owners_measure measure, enum model_kind kind)
{
	return (struct owners_query){
		.measure = measure,
		.kind = kind,
		.device = sel->device != MODEL_NO_DEVICE && kind >= MODEL_HOST_KINDS
				  ? model_device(sel->model, sel->device)
				  : NULL,
		.by = sel->by,
		.filter = sel->options->filter,
		.categories = sel->categories,
		.flags = selection_flags(sel->options),
		.processes = sel->processes,
	};
}

int selection_owners(const struct selection *sel, enum owners_measure measure, enum model_kind kind, owners_fold *fold,
		     struct owners **out)
{
	struct owners_query q = query_of(sel, measure, kind);
	q.fold = fold;
	return owners_build(out, sel->model, sel->reader, sel->stacks, &q);
}

int selection_owners_brief(const struct selection *sel, enum owners_measure measure, enum model_kind kind,
			   owners_fold *fold, struct owners **out)
{
	struct owners_query q = query_of(sel, measure, kind);
	q.fold = fold;
	q.brief = true;
	q.arenas =
		kind == MODEL_MAP && sel->options->by == BY_UNSET && !sel->options->json && !sel->options->all_frames;
	return owners_build(out, sel->model, sel->reader, sel->stacks, &q);
}

int selection_device_owners(const struct selection *sel, enum owners_measure measure, enum model_kind kind,
			    uint32_t device, struct owners **out)
{
	struct owners_query q = query_of(sel, measure, kind);
	q.device = model_device(sel->model, device);
	return owners_build(out, sel->model, sel->reader, sel->stacks, &q);
}

int selection_leftovers(const struct selection *sel, enum model_kind kind, owners_fold *fold, struct owners **out)
{
	struct owners_query q = query_of(sel, OWNERS_LIVE, kind);
	q.ended_only = true;
	q.brief = true;
	q.fold = fold;
	if (q.by == BY_STACK)
		q.by = BY_SITE;
	return owners_build(out, sel->model, sel->reader, sel->stacks, &q);
}

uint32_t selection_owner_stack(const struct selection *sel, const struct owner *o)
{
	const struct model_site *s = o->member_count ? o->members[0] : NULL;
	return s ? stacks_of(sel->stacks, reader_process(sel->reader, s->process), s->node, s->node2) : 0;
}

uint64_t selection_bucket_ns(const struct selection *sel, uint32_t bucket)
{
	return sel->from_ns + bucket * model_timeline_width_ns(sel->model);
}

void selection_resample(const struct selection *sel, const struct model_series *s, uint64_t *values, size_t count)
{
	uint64_t end = model_end_ns(sel->model), span = end > sel->from_ns ? end - sel->from_ns : 1;
	double scale = (double)model_timeline_width_ns(sel->model) / (double)span * (double)count;
	memset(values, 0, count * sizeof(*values));
	for (uint32_t i = 0; i < s->count; i++) {
		double from = (double)(s->first + i) * scale, to = (double)(s->first + i + 1) * scale;
		for (size_t k = (size_t)from; k < count && (double)k < to; k++)
			if (s->buckets[i].high > values[k])
				values[k] = s->buckets[i].high;
	}
}

bool selection_wants_device(const struct options *o)
{
	static const char *const host[] = { "host", "heap", "map", "pinned" };
	for (size_t i = 0; o->device && i < sizeof(host) / sizeof(*host); i++)
		if (!strcmp(o->device, host[i]))
			return false;
	return o->device != NULL;
}

bool selection_has_device(const struct selection *sel, uint32_t device)
{
	return !selection_wants_device(sel->options) || sel->device == device;
}
