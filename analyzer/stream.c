#include "analyzer/stream.h"

#include "analyzer/error.h"
#include "analyzer/merge.h"
#include "analyzer/slot.h"
#include "analyzer/vec.h"

#include <inttypes.h>
#include <time.h>

#define RAW_BATCH 16384u
#define NO_THREAD 0u

struct stream {
	struct image *image;
	struct slot_limits limits;
	size_t next_block;
	struct merge *merge;       /* once the blocks are through */
	struct codec_buf block;
	struct mt_event *slots;
	uint32_t *rings, *threads;
	size_t room;
	uint64_t last_ticks;
	uint64_t *covered;         /* per ring: the slots below are behind us */
	size_t covered_room;
	uint32_t *owner;           /* per ring: index of the thread that has it */
	size_t owner_room;
};

int stream_new(struct stream **out, struct image *im)
{
	struct stream *s = calloc(1, sizeof(*s));
	*out = s;
	if (!s)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t real_ns = (uint64_t)(now.tv_sec + 86400) * 1000000000, start_ns = im->info.start_real_ns;
	double ticks = real_ns > start_ns ? (double)(real_ns - start_ns) / (double)im->clock->mult : 0;
	ticks = ticks * (double)(1ull << CLOCK_SHIFT) + (double)im->info.start_ticks;
	s->image = im;
	s->limits.ticks = ticks < 0x1p63 ? (uint64_t)ticks : UINT64_MAX;
	s->last_ticks = im->process.fork_ticks;
	return image_resume(im) ? reader_damage(im->reader) : 0;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	image_suspend(s->image);
	merge_free(s->merge);
	codec_buf_fini(&s->block);
	free(s->slots);
	free(s->rings);
	free(s->threads);
	free(s->covered);
	free(s->owner);
	free(s);
}

static int make_room(struct stream *s, size_t slots)
{
	if (slots <= s->room)
		return 0;
	free(s->slots);
	free(s->rings);
	free(s->threads);
	s->slots = malloc(slots * sizeof(*s->slots));
	s->rings = malloc(slots * sizeof(*s->rings));
	s->threads = malloc(slots * sizeof(*s->threads));
	s->room = s->slots && s->rings && s->threads ? slots : 0;
	return s->room ? 0 : error_set(MT_EMEMORY, s->image->trace.file.path, ERROR_NO_OFFSET, NULL);
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

static int block_error(struct stream *s, const struct trace_block *b, const char *what)
{
	return error_set(MT_EFORMAT, s->image->trace.file.path, (int64_t)b->offset, "%s", what);
}

static int set_owner(struct stream *s, uint32_t ring, uint32_t thread)
{
	int e = vec_reserve(s->owner, s->owner_room, ring + 1ul);
	if (!e)
		s->owner[ring] = thread;
	return e;
}

/* Positions must go on where the last block ended. */
static int take_cover(struct stream *s, const struct trace_block *b, const struct mt_cover *c)
{
	if (c->ring >= MT_MAX_CHUNKS || c->from > c->to || c->to > 1ull << 56 || c->thread >= IMAGE_MAX_THREADS)
		return block_error(s, b, "the block covers something impossible");
	int e = vec_reserve(s->covered, s->covered_room, c->ring + 1ul);
	if (e)
		return e;
	uint64_t *known = &s->covered[c->ring];
	if (c->from < *known)
		return block_error(s, b, "the block holds events that an earlier one held");
	bool short_end = c->from == *known + 1 && c->from % MT_CHUNK_SLOTS == 0;
	if (c->from > *known && !short_end) {
		s->image->process.skipped_slots += c->from - *known;
		error_set(MT_EFORMAT, s->image->trace.file.path, (int64_t)b->offset,
			  "events %" PRIu64 " to %" PRIu64 " of ring %" PRIu32 " are missing before this block", *known,
			  c->from, c->ring);
		e = reader_damage(s->image->reader);
	}
	bool unknown = *known == 0 || c->from != *known;
	*known = c->to;
	return e || !unknown ? e : set_owner(s, c->ring, c->thread);
}

static int check_covers(struct stream *s, const struct trace_block *b, const struct mt_block *head)
{
	uint64_t slots = 0;
	for (uint32_t i = 0; i < head->covers; i++) {
		struct mt_cover c;
		memcpy(&c, s->block.data + sizeof(*head) + i * sizeof(c), sizeof(c));
		slots += c.to - c.from;
	}
	return slots == head->count || head->type == MT_BLOCK_FOLDED ? 0 : block_error(s, b, "the block holds more or fewer events than it covers");
}

static int take_covers(struct stream *s, const struct trace_block *b, const struct mt_block *head)
{
	int e = 0;
	for (uint32_t i = 0; !e && i < head->covers; i++) {
		struct mt_cover c;
		memcpy(&c, s->block.data + sizeof(*head) + i * sizeof(c), sizeof(c));
		e = take_cover(s, b, &c);
	}
	return e;
}

static int check_slots(struct stream *s, const struct trace_block *b, size_t *count)
{
	size_t kept = 0;
	for (size_t i = 0; i < *count; i++) {
		const char *problem = slot_problem(&s->slots[i], i + 1 < *count ? &s->slots[i + 1] : NULL, &s->limits);
		if (!problem && s->rings[i] >= MT_MAX_CHUNKS)
			problem = "an impossible ring";
		if (problem) {
			error_set(MT_EFORMAT, s->image->trace.file.path, (int64_t)b->offset,
				  "event %zu of the block has %s", i, problem);
			int e = reader_damage(s->image->reader);
			if (e)
				return e;
			s->image->process.skipped_slots++;
			continue;
		}
		int pair = mt_has_ext(s->slots[i].kind);
		for (int k = 0; k <= pair; k++, kept++) {
			s->slots[kept] = s->slots[i + k];
			s->rings[kept] = s->rings[i];
		}
		i += pair;
	}
	*count = kept;
	return 0;
}

static int decode_block(struct stream *s, const struct trace_block *b, size_t *count)
{
	struct mt_block head;
	*count = 0;
	int e = trace_read(s->image, b, &s->block, &head);
	if (!e)
		e = make_room(s, head.count + 1);
	if (!e)
		e = check_covers(s, b, &head);
	if (!e && (e = codec_decode_events(reader_codec(s->image->reader), s->block.data, s->block.size, s->slots,
					   s->rings)) != 0)
		e = block_error(s, b, codec_strerror(e));
	if (e)
		return reader_damage(s->image->reader);
	*count = head.count;
	e = take_covers(s, b, &head);
	return e ? reader_damage(s->image->reader) : check_slots(s, b, count);
}

/* ---- both ------------------------------------------------------------------------------------------------ */

/* Who owns a ring of which no block has told anything yet. */
static int meet_rings(struct stream *s)
{
	int e = 0;
	for (uint32_t ring = 0; !e && ring < merge_rings(s->merge); ring++) {
		bool known = ring < s->covered_room && s->covered[ring];
		uint32_t thread = merge_first_thread(s->merge, ring);
		if (!known && thread != UINT32_MAX)
			e = set_owner(s, ring, thread);
	}
	return e;
}

/* No more than there are: a directory may hold thousands of small processes. */
static size_t raw_batch(const struct raw *raw)
{
	size_t slots = 2;
	for (size_t i = 0; i < raw->count && slots < RAW_BATCH; i++)
		slots += raw->chunks[i].used;
	return slots < RAW_BATCH ? slots : RAW_BATCH;
}

static int load_raw(struct stream *s, size_t *count)
{
	int e = make_room(s, raw_batch(&s->image->raw));
	if (!e && !s->merge) {
		e = merge_new(&s->merge, s->image, s->covered, s->covered_room, s->limits);
		if (!e)
			e = meet_rings(s);
	}
	return e ? e : merge_next(s->merge, s->slots, s->rings, s->room, count);
}

/* Who did it, times that never run backwards, and nodes that exist. */
static int finish(struct stream *s, size_t count)
{
	struct process *p = &s->image->process;
	for (size_t i = 0; i < count; i++) {
		struct mt_event *e = &s->slots[i];
		uint32_t ring = s->rings[i];
		if (e->kind == MT_THREAD || ring >= s->owner_room) {
			int error = set_owner(s, ring, e->kind == MT_THREAD ? (uint32_t)e->addr : NO_THREAD);
			if (error)
				return error;
		}
		s->threads[i] = s->owner[ring];
		if (e->kind == MT_EXT)
			continue;
		if (e->ticks < s->last_ticks)
			e->ticks = s->last_ticks;
		s->last_ticks = e->ticks;
		if (e->node >= p->node_end || e->node2 >= p->node_end) {
			p->bad_nodes += e->node >= p->node_end && e->node >= p->node_base && e->node;
			e->node = e->node < p->node_end || e->node < p->node_base ? e->node : 0;
			e->node2 = e->node2 < p->node_end || e->node2 < p->node_base ? e->node2 : 0;
		}
	}
	return 0;
}

int stream_next(struct stream *s, struct batch *b)
{
	size_t count = 0;
	int e = 0;
	while (!e && !count && s->next_block < s->image->trace.count)
		e = decode_block(s, &s->image->trace.blocks[s->next_block++], &count);
	if (!e && !count)
		e = load_raw(s, &count);
	if (!e)
		e = finish(s, count);
	*b = (struct batch){ s->slots, s->rings, s->threads, e ? 0 : count };
	return e;
}

double stream_progress(const struct stream *s)
{
	double blocks = (double)s->image->trace.count, raw = (double)s->image->raw.count / 16;
	return s->merge ? 1 : (double)s->next_block / (blocks + raw + 1);
}
