/* What folded blocks say of the events that they lack: totals, and what pools had in between. Totals of young blocks
 * are the same slots outside of folded blocks. */
#include "analyzer/model/device.h"

#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

/* ---- totals ---------------------------------------------------------------------------------------------- */

/* How many bytes and blocks a sum stands for. */
static struct process_memory_weight weigh_sum(const struct process_memory *memory, enum model_kind kind,
					      const struct mt_event *s, const struct mt_ext_device *ext)
{
	const uint64_t mean = memory->seen.process->sample_bytes;
	struct process_memory_weight w = { ext->stream, s->addr };
	if (kind == MODEL_HEAP && process_is_picked(memory->seen.process) && s->size < mean && !memory->pooled)
		w = (struct process_memory_weight){ s->addr * estimate_bytes_of(s->size, mean),
						    (uint64_t)((double)s->addr / estimate_chance(s->size, mean)) };
	return w;
}

static void add_totals(struct model_totals *t, struct process_memory_weight w, const struct mt_ext_device *ext)
{
	t->allocations += w.blocks;
	t->frees += w.blocks;
	t->allocated_bytes += w.bytes;
	t->temporary += ext->other;
}

static void note_left_out(struct process_memory *memory, uint64_t blocks, uint64_t bytes)
{
	struct model_fold *f = &memory->seen.fold;
	*(memory->folded ? &f->blocks : &f->young_blocks) += blocks;
	*(memory->folded ? &f->bytes : &f->young_bytes) += bytes;
	f->young_most_bytes = f->young_blocks ? memory->seen.process->young_bytes : 0;
}

/* A thread tells of its young blocks once a window has ended. What it had not told when its process ended is there when
 * it began: until when it went on is not known. */
static void tell_left_out(const struct process_memory *memory, struct model_left_out l, uint32_t ring)
{
	const struct model_query *q = &memory->model->query;
	const struct process *p = memory->seen.process;
	if (!q->on_left_out)
		return;
	l.process = p;
	l.from_ns = memory->folded    ? memory->folded_ns
		    : ring < p->rings ? higher(memory->young_ns, less(l.ns, MT_YOUNG_WINDOW_NS))
				      : higher(memory->young_ns, l.ns);
	l.until_ns = memory->folded || ring < p->rings ? l.ns : UINT64_MAX;
	q->on_left_out(q->arg, &l);
}

/* `s->addr` blocks came and went. */
static int add_sum(struct process_memory *memory, const struct mt_event *s, const struct mt_ext_device *ext,
		   uint32_t ring, uint64_t ns)
{
	const enum event_space space = space_of_what(ext->capture);
	struct mt_event one = *s;
	const enum model_kind kind = space_kind(space);
	if (space == SPACES)
		return 0;
	bool device = kind == MODEL_DEVICE || kind == MODEL_POOL;
	one.kind = kind == MODEL_HEAP ? MT_ALLOC : kind == MODEL_MAP ? MT_MAP : MT_DEVICE_ALLOC;
	struct share *share = device ? share_of(memory, ext->device) : NULL;
	if (device && !share)
		return -MT_EMEMORY;
	const struct device_event event = { .slot = &one, .ext = *ext, .thread = ext->status };
	int64_t site = device ? share_site(share, kind, &event) : process_memory_site(memory, kind, &one, ext->status);
	if (site < 0)
		return (int)site;
	const struct process_memory_weight w = weigh_sum(memory, kind, s, ext);
	add_totals(&memory->kind[kind].totals, w, ext);
	if (device)
		add_totals(&share->layer[device_layer(kind)].totals, w, ext);
	if (kind == MODEL_HEAP) {
		struct model_bin *bin = &memory->seen.bins[process_memory_bin(s->size)];
		bin->allocations += w.blocks;
		bin->temporary += ext->other;
	}
	memory->seen.events += 2 * s->addr;
	note_left_out(memory, w.blocks, w.bytes);
	tell_left_out(memory,
		      (struct model_left_out){ .kind = kind,
					       .site = (uint32_t)site,
					       .device = share ? share->device->seen.index : MODEL_NO_DEVICE,
					       .bytes = w.bytes,
					       .blocks = w.blocks,
					       .ns = ns },
		      ring);
	if (kind != MODEL_MAP) /* whose sites don't count them */
		site_table_temporary(&memory->sites, (uint32_t)site, (uint32_t)ext->other);
	site_table_unseen(&memory->sites, (uint32_t)site);
	return ext->source ? process_memory_set_last(memory, kind, ext->status, 0) : 0;
}

/* ---- levels ---------------------------------------------------------------------------------------------- */

static void tell(const struct share *s, const struct mt_event *slot, const struct mt_ext_device *ext, uint64_t ns)
{
	const struct process_memory *memory = s->memory;
	if (!memory->model->query.on_level)
		return;
	memory->model->query.on_level(memory->model->query.arg,
				      &(struct model_level_change){ .process = memory->seen.process,
								    .kind = MODEL_POOL,
								    .device = s->device->seen.index,
								    .low = slot->addr,
								    .high = slot->size,
								    .now = ext->stream,
								    .allocations = ext->other,
								    .end = !s->leveled,
								    .ns = ns });
}

/* Of sums of several devices and processes the others' parts are as they were last. */
static void note(struct share *s, uint64_t bytes)
{
	struct process_memory *memory = s->memory;
	const struct axis *axis = &memory->model->timeline;
	const struct model_totals *own = &s->layer[LAYER_POOL].totals, *device = &s->device->layer[LAYER_POOL].totals;
	const struct model_totals *process = &memory->kind[MODEL_POOL].totals,
				  *host = &memory->host->kind[MODEL_POOL].totals;
	const uint64_t rest = memory->left_out - s->left_out - own->live_bytes, was = s->level_bytes;
	if (memory->model->from_reached) {
		series_note(&s->seen.timeline[LAYER_POOL], axis, was, bytes, own->live_blocks);
		series_note(&s->device->seen.timeline[LAYER_POOL], axis, device->live_bytes - own->live_bytes + was,
			    device->live_bytes - own->live_bytes + bytes, device->live_blocks);
		series_note(&memory->seen.timeline[MODEL_POOL], axis, process->live_bytes + rest + was,
			    process->live_bytes + rest + bytes, process->live_blocks);
		series_note(&memory->host->timeline[MODEL_POOL], axis, host->live_bytes + rest + was,
			    host->live_bytes + rest + bytes, host->live_blocks);
	}
	s->level_bytes = bytes;
}

static void set_left_out(struct share *s, uint64_t bytes)
{
	s->memory->left_out += bytes - s->left_out;
	s->left_out = bytes;
}

static int level(struct process_memory *memory, const struct mt_event *s, const struct mt_ext_device *ext, uint64_t ns)
{
	struct share *share = ext->capture ? share_of(memory, ext->device) : NULL;
	if (!ext->capture) {
		if (memory->model->query.on_level)
			memory->model->query.on_level(memory->model->query.arg,
						      &(struct model_level_change){ .process = memory->seen.process,
										    .kind = MODEL_KINDS,
										    .device = MODEL_NO_DEVICE,
										    .allocations = ext->other,
										    .ns = ns });
		return 0;
	}
	if (!share || share_show(share))
		return -MT_EMEMORY;
	if (!share->leveled)
		share->level_bytes = s->addr;
	share->leveled = true;
	note(share, s->addr);
	note(share, s->size);
	note(share, ext->stream);
	set_left_out(share, ext->stream - share->layer[LAYER_POOL].totals.live_bytes);
	tell(share, s, ext, ns);
	return 0;
}

/* From here on nothing is left out, or the next block says at once what is. */
static void end_levels(struct process_memory *memory, uint64_t ns)
{
	for (size_t i = 0; memory->devices && i < memory->devices->share_room; i++) {
		struct share *s = memory->devices->shares[i];
		if (!s || !s->leveled)
			continue;
		const uint64_t live = s->level_bytes;
		s->leveled = false;
		note(s, live);
		set_left_out(s, 0);
		tell(s, &(struct mt_event){ .addr = live, .size = live & MT_MAX_SIZE },
		     &(struct mt_ext_device){ .stream = live }, ns);
	}
}

/* ---- all ------------------------------------------------------------------------------------------------- */

static void set_missing(struct model_fold *f, uint64_t heap, uint64_t other)
{
	f->now_bytes = heap;
	f->now_other_bytes = other;
	f->most_bytes = heap > f->most_bytes ? heap : f->most_bytes;
	f->most_other_bytes = other > f->most_other_bytes ? other : f->most_other_bytes;
}

int process_memory_fold(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint64_t ns)
{
	struct mt_ext_device ext;
	memcpy(&ext, s + 1, sizeof(ext));
	memory->seen.events--;
	if (ext.class == MT_FOLD_BEGIN) {
		memory->folded = true;
		memory->folded_ns = ns;
	}
	if (memory->folded)
		memory->seen.fold.until_ns = ns;
	switch (ext.class) {
	case MT_FOLD_BEGIN:
		set_missing(&memory->seen.fold, s->addr, ext.stream);
		return 0;
	case MT_FOLD_SUM:
		return add_sum(memory, s, &ext, ring, ns);
	case MT_FOLD_LEVEL:
		return level(memory, s, &ext, ns);
	case MT_FOLD_LAST:
		return process_memory_set_last(memory, MODEL_MAP, ext.status, 0);
	case MT_FOLD_END:
		memory->folded = false;
		set_missing(&memory->seen.fold, 0, 0);
		end_levels(memory, ns);
		return 0;
	default:
		return 0;
	}
}
