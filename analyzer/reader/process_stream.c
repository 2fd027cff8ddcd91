#include "analyzer/reader/process_stream.h"

#include "analyzer/reader/decode_ahead.h"
#include "analyzer/reader/merge_rings.h"
#include "analyzer/util/error.h"
#include "analyzer/util/event_check.h"
#include "analyzer/util/late_slots.h"
#include "analyzer/util/vec.h"

#include <inttypes.h>
#include <time.h>

#define RAW_BATCH    16384u
#define PACKED_BATCH 16384u
/* of the blocks that a reader holds decoded at a time: those of some eight processes */
#define DECODED_MOST (96ull << 20)
#define AHEAD_MOST   (DECODED_MOST / 2) /* beyond that no block is decoded ahead */
#define SLICE        4096u              /* slots that are handed out at a time: they stay in the cache */
#define NO_THREAD    0u
#define SLOT_BYTES   (sizeof(struct mt_event) + sizeof(uint32_t)) /* decoded */

struct stream {
	struct image *image;
	struct slot_limits limits;
	size_t next_block;
	struct merge *merge; /* once the blocks are through */
	struct codec_buf block;
	struct decoded held;
	size_t at, count;         /* what of it is not handed out yet */
	struct ahead_block ahead; /* the block behind that */
	uint32_t *threads;        /* of the slice that is handed out */
	size_t thread_room;
	uint64_t last_ticks;
	uint64_t *positions; /* RAW_BATCH, of those that came from the rings */
	uint64_t *covered;   /* per ring: the slots below are behind us */
	uint64_t *again;     /* per ring: how many slots of the block have come before, from the ring itself */
	size_t again_room;
	size_t covered_room;
	uint32_t *owner; /* per ring: index of the thread that has it */
	size_t owner_room;
	uint64_t seen;      /* slots handed out */
	struct part *parts; /* the rest of a block that is not held decoded */
	size_t part, part_count, part_room;
};

/* Slots of a block, encoded by themselves. */
struct part {
	struct codec_buf bytes;
	uint32_t slots;
};

static void set_limits(struct stream *s)
{
	const struct image *im = s->image;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t real_ns = (uint64_t)(now.tv_sec + 86400) * 1000000000, start_ns = im->info.start_real_ns;
	double ticks = real_ns > start_ns ? (double)(real_ns - start_ns) / (double)im->clock->mult : 0;
	ticks = ticks * (double)(1ull << CLOCK_SHIFT) + (double)im->info.start_ticks;
	s->limits.ticks = ticks < 0x1p63 ? (uint64_t)ticks : INT64_MAX; /* ring_order() has one bit more */
}

int stream_new(struct stream **out, struct image *im)
{
	struct stream *s = calloc(1, sizeof(*s));
	*out = s;
	if (!s)
		return error_memory();
	s->image = im;
	set_limits(s);
	s->last_ticks = im->process.fork_ticks;
	return image_resume(im) ? reader_damage(im->reader) : 0;
}

int stream_refresh(struct stream *s)
{
	struct trace *t = &s->image->trace;
	merge_rings_free(s->merge);
	s->merge = NULL;
	set_limits(s);
	if (t->replaced)
		s->next_block = 0; /* what is behind us is in the other file, too, but in other blocks */
	t->replaced = false;
	return image_resume(s->image) ? reader_damage(s->image->reader) : 0;
}

static void give_room(struct stream *s, struct decoded *d)
{
	free(d->slots);
	free(d->rings);
	memory_bound_give(reader_bound(s->image->reader), d->room * SLOT_BYTES);
	*reader_decoded(s->image->reader) -= d->room * SLOT_BYTES;
	*d = (struct decoded){ 0 };
}

static int make_room(struct stream *s, struct decoded *d, size_t slots)
{
	if (slots <= d->room)
		return 0;
	give_room(s, d);
	int e = memory_bound_take(reader_bound(s->image->reader), slots * SLOT_BYTES, s->image->trace.file.path,
				  ERROR_NO_OFFSET);
	if (e)
		return e;
	d->slots = malloc(slots * sizeof(*d->slots));
	d->rings = malloc(slots * sizeof(*d->rings));
	vec_large(d->slots, slots * sizeof(*d->slots));
	d->room = slots; /* as far as the bound is concerned */
	*reader_decoded(s->image->reader) += d->room * SLOT_BYTES;
	if (d->slots && d->rings)
		return 0;
	give_room(s, d);
	return error_set(MT_EMEMORY, s->image->trace.file.path, ERROR_NO_OFFSET, NULL);
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	ahead_take(reader_ahead(s->image->reader), &s->ahead);
	image_suspend(s->image);
	give_room(s, &s->held);
	give_room(s, &s->ahead.to);
	codec_buf_fini(&s->ahead.block);
	merge_rings_free(s->merge);
	codec_buf_fini(&s->block);
	for (; s->part < s->part_count; s->part++)
		codec_buf_fini(&s->parts[s->part].bytes);
	free(s->parts);
	free(s->threads);
	free(s->positions);
	free(s->covered);
	free(s->again);
	free(s->owner);
	free(s);
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

/* Of a program that runs: the ring had the first of these slots before the recorder made a block of them. */
static int take_again(struct stream *s, const struct mt_cover *c)
{
	uint64_t *known = &s->covered[c->ring];
	int e = vec_reserve(s->again, s->again_room, c->ring + 1ul);
	if (e)
		return e;
	s->again[c->ring] += (*known < c->to ? *known : c->to) - c->from;
	*known = c->to > *known ? c->to : *known;
	return 0;
}

static void drop_again(struct stream *s, size_t *count)
{
	size_t kept = 0;
	if (!s->again_room)
		return;
	for (size_t i = 0; i < *count; i++) {
		uint32_t ring = s->held.rings[i];
		if (ring < s->again_room && s->again[ring]) {
			s->again[ring]--;
			continue;
		}
		s->held.slots[kept] = s->held.slots[i];
		s->held.rings[kept++] = ring;
	}
	if (kept < *count)
		memset(s->again, 0, s->again_room * sizeof(*s->again));
	*count = kept;
}

/* All of its slots are behind us: its header is enough. */
static bool is_behind(struct stream *s, const struct trace_block *b)
{
	struct mt_block head;
	const struct file *f = &s->image->trace.file;
	if (!reader_is_following(s->image->reader) || file_read(f, b->offset, &head, sizeof(head)))
		return false;
	for (uint32_t i = 0; i < head.covers; i++) {
		struct mt_cover c;
		if (file_read(f, b->offset + sizeof(head) + i * sizeof(c), &c, sizeof(c)) ||
		    c.ring >= s->covered_room || c.to > s->covered[c.ring])
			return false;
	}
	return head.covers > 0;
}

/* Positions must go on where the last block ended. */
static int take_cover(struct stream *s, const struct trace_block *b, const struct mt_cover *c)
{
	if (c->ring >= MT_MAX_CHUNKS || c->from > c->to || c->to > 1ull << 56 || c->thread >= EVENT_MAX_THREADS)
		return block_error(s, b, "the block covers something impossible");
	int e = vec_reserve(s->covered, s->covered_room, c->ring + 1ul);
	if (e)
		return e;
	uint64_t *known = &s->covered[c->ring];
	if (c->from < *known)
		return reader_is_following(s->image->reader)
			       ? take_again(s, c)
			       : block_error(s, b, "the block holds events that an earlier one held");
	bool short_end = c->from == *known + 1 && c->from % MT_CHUNK_SLOTS == 0;
	if (c->from > *known && !short_end) {
		s->image->process.skipped_slots += c->from - *known;
		error_set(MT_EFORMAT, s->image->trace.file.path, (int64_t)b->offset,
			  "events %" PRIu64 " to %" PRIu64 " of ring %" PRIu32 " are missing before this block", *known,
			  c->from, c->ring);
		e = reader_damage(s->image->reader);
	}
	bool unknown = *known == 0 || (c->from != *known && !short_end);
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
	return slots == head->count || head->type == MT_BLOCK_FOLDED
		       ? 0
		       : block_error(s, b, "the block holds more or fewer events than it covers");
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
	struct mt_event *slots = s->held.slots;
	uint32_t *rings = s->held.rings;
	size_t kept = 0;
	for (size_t i = 0; i < *count; i++) {
		const char *problem = slot_problem(&slots[i], i + 1 < *count ? &slots[i + 1] : NULL, &s->limits);
		if (!problem && rings[i] >= MT_MAX_CHUNKS)
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
		int pair = mt_has_ext(slots[i].kind);
		for (int k = 0; k <= pair; k++, kept++) {
			if (kept != i + (size_t)k)
				slots[kept] = slots[i + (size_t)k];
			rings[kept] = rings[i];
		}
		i += (size_t)pair;
	}
	*count = kept;
	return 0;
}

/* Of a program that runs: folded before all of it was read, so that nobody can tell which of its events are behind us.
 * What it has beyond them is missing. */
static bool skip_folded(struct stream *s, const struct mt_block *head)
{
	bool read = false;
	for (int pass = 0; head->type == MT_BLOCK_FOLDED && reader_is_following(s->image->reader) && pass <= read;
	     pass++)
		for (uint32_t i = 0; i < head->covers; i++) {
			struct mt_cover c;
			memcpy(&c, s->block.data + sizeof(*head) + i * sizeof(c), sizeof(c));
			if (c.ring >= s->covered_room)
				continue;
			uint64_t *known = &s->covered[c.ring];
			read |= c.from < *known;
			if (pass && c.to > *known) {
				s->image->process.skipped_slots += c.to - *known;
				*known = c.to;
			}
		}
	return read;
}

static int decode_here(struct stream *s, const struct trace_block *b, struct mt_block *head)
{
	int e = trace_read(s->image, b, &s->block, head);
	if (!e)
		e = make_room(s, &s->held, head->count + 1);
	if (!e)
		e = check_covers(s, b, head);
	if (e)
		return e;
	ahead_enter(reader_ahead(s->image->reader));
	e = codec_decode_events(reader_codec(s->image->reader), s->block.data, s->block.size, s->held.slots,
				s->held.rings);
	ahead_leave(reader_ahead(s->image->reader));
	return e ? block_error(s, b, codec_strerror(e)) : 0;
}

/* Whether the block was decoded ahead: then it is held. */
static bool take_ahead(struct stream *s, const struct trace_block *b, struct mt_block *head)
{
	struct ahead_block *a = &s->ahead;
	if (!ahead_take(reader_ahead(s->image->reader), a) || a->place.offset != b->offset)
		return false;
	const struct decoded held = s->held;
	const struct codec_buf block = s->block;
	s->held = a->to;
	s->block = a->block;
	a->to = held;
	a->block = block;
	*head = a->head;
	return true;
}

/* What is behind the block that is held now. That it can't be is no error: then it is decoded when it is needed. */
static void give_ahead(struct stream *s)
{
	struct ahead_block *a = &s->ahead;
	struct reader *r = s->image->reader;
	if (!reader_is_large(r) || s->next_block == s->image->trace.count)
		return;
	const struct trace_block *b = &s->image->trace.blocks[s->next_block];
	size_t slots = b->slots + 1ul, more = slots > a->to.room ? (slots - a->to.room) * SLOT_BYTES : 0;
	if (*reader_decoded(r) + more > AHEAD_MOST || slots > CODEC_MAX_SLOTS + 1 || make_room(s, &a->to, slots) ||
	    codec_buf_reserve(&a->block, b->bytes))
		return;
	a->image = s->image;
	a->place = *b;
	a->limits = s->limits;
	ahead_give(reader_ahead(r), a);
}

static int decode_block(struct stream *s, const struct trace_block *b, size_t *count, unsigned *shift)
{
	struct mt_block head;
	*count = 0;
	if (is_behind(s, b))
		return 0;
	bool ahead = take_ahead(s, b, &head);
	int e = ahead ? check_covers(s, b, &head) : decode_here(s, b, &head);
	if (e)
		return reader_damage(s->image->reader);
	if (skip_folded(s, &head))
		return 0;
	*count = head.count;
	*shift = codec_shift(&head);
	e = take_covers(s, b, &head);
	if (!e)
		drop_again(s, count);
	if (e)
		return reader_damage(s->image->reader);
	return ahead && s->ahead.sound ? 0 : check_slots(s, b, count);
}

/* ---- blocks that are not held decoded --------------------------------------------------------------------- */

/* Each process that is alive at one point of the stream is in the middle of a block, which takes up to 9 MiB decoded.
 * Where these are many the rest of a block is encoded again, in parts that are decoded when their turn comes: some 20
 * ns an event, and a tenth of the memory. */
static bool are_many(const struct stream *s)
{
	return s->held.room > PACKED_BATCH && *reader_decoded(s->image->reader) > DECODED_MOST;
}

/* A slot and what belongs to it stay together. */
static size_t part_length(const struct stream *s, size_t from, size_t count)
{
	size_t n = count - from < PACKED_BATCH - 1 ? count - from : PACKED_BATCH - 1;
	return n + (from + n < count && mt_has_ext(s->held.slots[from + n - 1].kind));
}

static int pack_part(struct stream *s, unsigned shift, size_t from, size_t n)
{
	int e = vec_reserve(s->parts, s->part_room, s->part_count + 1);
	if (e)
		return e;
	struct part *p = &s->parts[s->part_count++];
	*p = (struct part){ .slots = (uint32_t)n };
	ahead_enter(reader_ahead(s->image->reader));
	e = codec_encode_events(reader_codec(s->image->reader), s->held.slots + from, s->held.rings + from, p->slots,
				NULL, 0, shift, &p->bytes);
	ahead_leave(reader_ahead(s->image->reader));
	return e ? error_set(MT_EMEMORY, s->image->trace.file.path, ERROR_NO_OFFSET, "%s", codec_strerror(e)) : 0;
}

static int pack(struct stream *s, unsigned shift, size_t count)
{
	int e = 0;
	s->part = s->part_count = 0;
	for (size_t from = 0, n; !e && from < count; from += n) {
		n = part_length(s, from, count);
		e = pack_part(s, shift, from, n);
	}
	give_room(s, &s->held);
	codec_buf_fini(&s->block);
	return e;
}

static int unpack(struct stream *s, size_t *count)
{
	struct part *p = &s->parts[s->part];
	int e = make_room(s, &s->held, PACKED_BATCH);
	if (e)
		return e;
	ahead_enter(reader_ahead(s->image->reader));
	e = codec_decode_events(reader_codec(s->image->reader), p->bytes.data, p->bytes.size, s->held.slots,
				s->held.rings);
	ahead_leave(reader_ahead(s->image->reader));
	if (e)
		e = error_set(MT_EMEMORY, s->image->trace.file.path, ERROR_NO_OFFSET, "%s", codec_strerror(e));
	codec_buf_fini(&p->bytes);
	*count = e ? 0 : p->slots;
	s->part++;
	return e;
}

static int next_block(struct stream *s, size_t *count)
{
	unsigned shift = 0;
	if (s->part < s->part_count)
		return unpack(s, count);
	int e = decode_block(s, &s->image->trace.blocks[s->next_block++], count, &shift);
	if (e || !*count)
		return e;
	if (!are_many(s)) {
		give_ahead(s);
		return 0;
	}
	e = pack(s, shift, *count);
	return e ? e : unpack(s, count);
}

/* ---- both ------------------------------------------------------------------------------------------------ */

/* Who owns a ring of which no block has told anything yet. */
static int meet_rings(struct stream *s)
{
	int e = 0;
	for (uint32_t ring = 0; !e && ring < merge_rings(s->merge); ring++) {
		bool known = ring < s->covered_room && s->covered[ring];
		uint32_t thread = merge_rings_first_thread(s->merge, ring);
		if (!known && thread != UINT32_MAX)
			e = set_owner(s, ring, thread);
	}
	return e;
}

/* No more than there are: a directory may hold thousands of small processes. */
static size_t raw_batch(const struct image *im)
{
	const struct raw *raw = &im->raw;
	size_t slots = im->young_file.size ? RAW_BATCH : 2;
	for (size_t i = 0; i < raw->count && slots < RAW_BATCH; i++)
		slots += raw->chunks[i].used;
	return slots < RAW_BATCH ? slots : RAW_BATCH;
}

static int load_raw(struct stream *s, size_t *count)
{
	int e = make_room(s, &s->held, raw_batch(s->image));
	if (!e && !s->positions && !(s->positions = malloc(RAW_BATCH * sizeof(*s->positions))))
		e = error_set(MT_EMEMORY, s->image->trace.file.path, ERROR_NO_OFFSET, NULL);
	if (!e && !s->merge) {
		e = merge_rings_new(&s->merge, s->image, s->covered, s->covered_room, s->limits);
		if (!e)
			e = meet_rings(s);
	}
	if (!e)
		e = merge_rings_next(s->merge, s->held.slots, s->held.rings, s->positions,
				     s->held.room < RAW_BATCH ? s->held.room : RAW_BATCH, count);
	for (size_t i = 0; !e && reader_is_following(s->image->reader) && i < *count; i++) {
		e = vec_reserve(s->covered, s->covered_room, s->held.rings[i] + 1ul);
		if (!e)
			s->covered[s->held.rings[i]] = s->positions[i] + 1;
	}
	if (!e && *count && s->image->process.record != MT_RECORD_ALL)
		e = late_slots_sort(s->held.slots, s->held.rings, *count);
	return e;
}

/* How many slots from `at` on make a slice; a slot and what belongs to it stay together. */
static size_t slice_length(const struct stream *s)
{
	size_t n = s->count - s->at < SLICE ? s->count - s->at : SLICE;
	return n + (n && s->at + n < s->count && mt_has_ext(s->held.slots[s->at + n - 1].kind));
}

/* Who did it, times that never run backwards, and nodes that exist. */
static int finish(struct stream *s, struct mt_event *slots, const uint32_t *rings, size_t count)
{
	struct process *p = &s->image->process;
	const uint32_t node_end = p->node_end, node_base = p->node_base;
	uint64_t last_ticks = s->last_ticks;
	int error = vec_reserve_raw(s->threads, s->thread_room, count);
	for (size_t i = 0; !error && i < count; i++) {
		struct mt_event *e = &slots[i];
		uint32_t ring = rings[i];
		if (e->kind == MT_THREAD || ring >= s->owner_room) {
			error = set_owner(s, ring, e->kind == MT_THREAD ? (uint32_t)e->addr : NO_THREAD);
			if (error)
				break;
		}
		s->threads[i] = s->owner[ring];
		if (e->kind == MT_EXT)
			continue;
		if (e->ticks < last_ticks)
			e->ticks = last_ticks;
		last_ticks = e->ticks;
		if (e->node >= node_end || e->node2 >= node_end) {
			p->bad_nodes += e->node >= node_end && e->node >= node_base && e->node;
			e->node = e->node < node_end || e->node < node_base ? e->node : 0;
			e->node2 = e->node2 < node_end || e->node2 < node_base ? e->node2 : 0;
		}
	}
	s->last_ticks = last_ticks;
	return error;
}

int stream_next(struct stream *s, struct batch *b)
{
	int e = 0;
	if (s->at == s->count) {
		s->at = s->count = 0;
		while (!e && !s->count && (s->part < s->part_count || s->next_block < s->image->trace.count))
			e = next_block(s, &s->count);
		if (!e && !s->count)
			e = load_raw(s, &s->count);
	}
	size_t n = e ? 0 : slice_length(s);
	struct mt_event *slots = s->held.slots ? s->held.slots + s->at : NULL;
	const uint32_t *rings = s->held.rings ? s->held.rings + s->at : NULL;
	if (!e)
		e = finish(s, slots, rings, n);
	s->at += n;
	s->seen += n;
	*b = (struct batch){ slots, rings, s->threads, e ? 0 : n };
	return e;
}

uint64_t stream_slots_read(const struct stream *s)
{
	return s->seen;
}
