#include "analyzer/push/push_profile.h"

#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "analyzer/util/vec.h"
#include "format/fnv.h"

#include <math.h>
#include <stdlib.h>

static const struct frame rest_frame = { .name = "smaller stacks", .function = "smaller stacks" };

#define LOOKED_AT 8000u /* stacks of which what is shown is looked at */

/* A stack that has something, and how much that is about. */
struct told {
	const struct push_site *site;
	uint64_t bytes, blocks;
	uint64_t shown; /* of what is shown of it; the same: it is one with another */
};

struct list {
	struct told *list;
	size_t count, room;
};

static int larger_first(const void *a, const void *b)
{
	const struct told *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->site > y->site) - (x->site < y->site);
}

static int collect(const struct push_profile *p, struct list *l)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct push_site *s = &p->sites[i];
		const double bytes = s->weight * (double)(p->made ? s->made_bytes : s->live_bytes),
			     blocks = s->weight * (double)(p->made ? s->made_blocks : s->live_blocks);
		if (!s->known || s->kind != p->kind || s->device != p->device || !blocks)
			continue;
		if (vec_reserve_raw(l->list, l->room, l->count + 1))
			return error_memory();
		l->list[l->count++] = (struct told){ s, (uint64_t)llround(bytes), (uint64_t)llround(blocks), 0 };
	}
	if (l->count)
		qsort(l->list, l->count, sizeof(*l->list), larger_first);
	return 0;
}

static int by_shown(const void *a, const void *b)
{
	const struct told *x = a, *y = b;
	return x->shown != y->shown ? (x->shown > y->shown ? 1 : -1) : larger_first(a, b);
}

static int shown_frames(const struct push_profile *p, const struct told *t, struct frame_list *frames)
{
	const uint32_t stack = stacks_of(p->stacks, p->process, t->site->node, t->site->node2);
	return stacks_list_shown(p->stacks, stacks_merged(p->stacks, stack), 0, frames);
}

/* Stacks that differ only in what is not shown are one. Of very many only the largest are looked at; the others stay
 * what they are. */
static int join(const struct push_profile *p, struct list *l)
{
	const size_t more = p->most_samples > LOOKED_AT ? p->most_samples : LOOKED_AT;
	const size_t most = l->count < more ? l->count : more;
	struct frame_list frames = { 0 };
	size_t count = 0;
	int e = 0;
	for (size_t i = 0; i < most; i++) {
		stacks_prepare(p->stacks, p->process, l->list[i].site->node);
		stacks_prepare(p->stacks, p->process, l->list[i].site->node2);
	}
	stacks_look_ahead(p->stacks, NULL);
	for (size_t i = 0; i < most && e == 0; i++) {
		e = shown_frames(p, &l->list[i], &frames);
		l->list[i].shown =
			mt_fnv_stir(mt_fnv(MT_FNV_START, frames.frames, frames.count * sizeof(*frames.frames)));
	}
	free(frames.frames);
	if (most)
		qsort(l->list, most, sizeof(*l->list), by_shown);
	for (size_t i = 0; i < l->count && e == 0; i++) {
		struct told *last = count ? &l->list[count - 1] : NULL;
		if (last && i < most && last->shown == l->list[i].shown) {
			last->bytes += l->list[i].bytes;
			last->blocks += l->list[i].blocks;
		} else {
			l->list[count++] = l->list[i];
		}
	}
	l->count = count;
	if (count)
		qsort(l->list, count, sizeof(*l->list), larger_first);
	return e;
}

static int add(struct pprof *pprof, const struct push_profile *p, const struct told *t,
	       const struct frame *const *frames, size_t count)
{
	const bool made = p->made;
	return pprof_add(pprof, &(struct pprof_stack){
					.process = p->process,
					.frames = frames,
					.count = count,
					.values = { [ALLOCATED_BLOCKS] = made ? (int64_t)t->blocks : 0,
						    [ALLOCATED_BYTES] = made ? (int64_t)t->bytes : 0,
						    [LIVE_BLOCKS] = made ? 0 : (int64_t)t->blocks,
						    [LIVE_BYTES] = made ? 0 : (int64_t)t->bytes },
				});
}

/* The first `most` by themselves. */
static int fill(struct pprof *pprof, const struct push_profile *p, const struct list *l, size_t most)
{
	struct frame_list frames = { 0 };
	struct told rest = { 0 };
	int e = 0;
	for (size_t i = 0; i < l->count && i < most && e == 0; i++) {
		e = shown_frames(p, &l->list[i], &frames);
		if (e == 0)
			e = add(pprof, p, &l->list[i], frames.frames, frames.count);
	}
	for (size_t i = most; i < l->count; i++) {
		rest.bytes += l->list[i].bytes;
		rest.blocks += l->list[i].blocks;
	}
	if (rest.blocks && e == 0)
		e = add(pprof, p, &rest, (const struct frame *[]){ &rest_frame }, 1);
	free(frames.frames);
	return e;
}

static int encode(const struct push_profile *p, const struct list *l, size_t most, char **bytes, size_t *count)
{
	struct pprof *pprof = pprof_new(p->stacks);
	FILE *file = open_memstream(bytes, count);
	int e = pprof && file ? fill(pprof, p, l, most) : error_memory();
	if (e == 0) {
		FILE *before = print_into(file);
		e = pprof_write(pprof, &p->head);
		print_into(before);
	}
	if (file && fclose(file) && e == 0)
		e = error_memory();
	pprof_free(pprof);
	return e;
}

int push_profile_make(const struct push_profile *p, char **bytes, size_t *count)
{
	struct list l = { 0 };
	int e = collect(p, &l);
	if (e == 0)
		e = join(p, &l);
	*bytes = NULL;
	*count = 0;
	size_t most = l.count <= p->most_samples ? l.count : p->most_samples - 1;
	while (e == 0 && l.count) {
		e = encode(p, &l, most, bytes, count);
		if (e < 0 || *count <= p->most_bytes || !most)
			break;
		free(*bytes);
		*bytes = NULL;
		most /= 2;
	}
	if (e < 0) {
		free(*bytes);
		*bytes = NULL;
	}
	free(l.list);
	return e;
}
