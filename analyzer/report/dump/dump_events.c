#include "analyzer/report/dump/dump.h"
#include "analyzer/report/dump/dump_line.h"
#include "analyzer/util/output.h"

#include <string.h>

static void put_nodes(const struct process *p, const struct mt_event *s)
{
	dump_function("hook", process_hook(p, s->hook));
	dump_number("node", s->node);
	dump_number("node2", s->node2);
}

static void put_block(const struct process *p, const struct mt_event *s)
{
	dump_address("addr", s->addr);
	dump_number("size", s->size);
	put_nodes(p, s);
}

static void put_map(const struct process *p, const struct mt_event *s)
{
	struct mt_ext_map ext;
	memcpy(&ext, s + 1, sizeof(ext));
	put_block(p, s);
	dump_address("prot", ext.prot);
	dump_address("flags", ext.flags);
	dump_number("file", ext.file);
	dump_number("offset", ext.offset);
	dump_address("old", ext.old);
}

/* Device events and marks all have the same columns. */
static void put_device(const struct process *p, const struct mt_event *s)
{
	struct mt_ext_device ext;
	memcpy(&ext, s + 1, sizeof(ext));
	put_block(p, s);
	dump_number("class", ext.class);
	dump_number("device", ext.device);
	dump_number("source", ext.source);
	dump_address("stream", ext.stream);
	dump_number("other", ext.other);
	dump_number("status", ext.status);
	if (ext.capture)
		dump_number("capture", ext.capture);
}

static void put_slot(const struct process *p, const struct mt_event *s)
{
	switch (s->kind) {
	case MT_ALLOC:
		put_block(p, s);
		break;
	case MT_FAIL:
		dump_number("bytes", s->addr);
		dump_word("kind", (s->size & ~(uint64_t)MT_TRIAL) != MT_MAP ? "heap"
				  : s->size & MT_TRIAL                      ? "map-trial"
									    : "map");
		put_nodes(p, s);
		break;
	case MT_MAP:
		put_map(p, s);
		break;
	case MT_UNMAP:
		dump_address("addr", s->addr);
		dump_number("size", s->size);
		dump_function("hook", process_hook(p, s->hook));
		break;
	case MT_FREE:
	case MT_UNDO:
		dump_address("addr", s->addr);
		dump_function("hook", process_hook(p, s->hook));
		break;
	case MT_THREAD:
		dump_number("thread", s->addr);
		if (s->size)
			dump_number("tid", s->size);
		break;
	case MT_LOST:
		dump_number("events", s->addr);
		break;
	default:
		put_device(p, s);
	}
}

static void dump_slot(const struct process *p, const struct mt_event *s, uint32_t ring)
{
	static const char *const kinds[] = {
		[MT_ALLOC] = "alloc",
		[MT_FREE] = "free",
		[MT_FAIL] = "fail",
		[MT_UNDO] = "undo",
		[MT_MAP] = "map",
		[MT_UNMAP] = "unmap",
		[MT_THREAD] = "owner",
		[MT_LOST] = "lost",
		[MT_DEVICE_ALLOC] = "device-alloc",
		[MT_DEVICE_FREE] = "device-free",
		[MT_DEVICE_FAIL] = "device-fail",
		[MT_DEVICE_UNDO] = "device-undo",
		[MT_DEVICE_MAP] = "device-map",
		[MT_DEVICE_UNMAP] = "device-unmap",
		[MT_DEVICE_RESET] = "device-reset",
		[MT_DEVICE_INFO] = "device-info",
		[MT_MARK] = "mark",
		[MT_FOLD] = "fold",
	};
	dump_begin(kinds[s->kind], p->id);
	dump_number("ticks", s->ticks);
	dump_number("ring", ring);
	put_slot(p, s);
	dump_end();
}

static void dump_step(const struct reader_step *step, struct dump_range *sel)
{
	const struct process *p = step->process;
	for (size_t i = 0; i < step->count && sel->left; i++) {
		const struct mt_event *s = &step->slots[i];
		if (s->kind == MT_EXT)
			continue;
		uint64_t ns = process_ns(p, s->ticks);
		if (ns < sel->from || ns > sel->to)
			continue;
		dump_slot(p, s, step->rings[i]);
		sel->left--;
	}
}

int dump_events(struct reader *r, struct dump_range *sel)
{
	enum { PROGRESS_EVENTS = 65536 };
	struct reader_step step;
	size_t seen = 0;
	int e = 0;
	while (sel->left && (e = reader_next(r, &step)) > 0) {
		seen += step.count + 1;
		if (seen >= PROGRESS_EVENTS && !output_is_terminal()) {
			struct reader_progress p = reader_progress(r);
			output_progress(p.done, p.events);
			seen = 0;
		}
		if (step.what == READER_EVENTS && sel->wanted[step.process->id])
			dump_step(&step, sel);
	}
	output_progress_end();
	return e < 0 ? e : 0;
}
