/* Folding one file: its windows of blocks are read twice, thinned and written; what is newer is copied. */
#include "analyzer/recorder/fold/fold_internal.h"

#include "analyzer/util/event_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUT_MOST   786432u /* slots of a block: it is ended before it could have more */
#define COPY_BYTES (4u << 20)
#define SYNC_BYTES (16u << 20)

void fold_free_job(struct job *j)
{
	if (!j)
		return;
	if (j->in >= 0)
		close(j->in);
	if (j->out >= 0)
		close(j->out);
	fold_window_free(j->window);
	fold_out_fini(&j->kept);
	codec_buf_fini(&j->block);
	free(j->parts);
	free(j->owners.rings);
	free(j->at_first.rings);
	free(j->covers);
	free(j->last_cover);
	free(j->slots);
	free(j->rings);
	free(j->threads);
	free(j);
}

/* The next parts with one target, as many as a window holds. A short one does for most pairs; the others' turn comes
 * when the block is folded again. */
static void next_window(struct job *j)
{
	uint64_t slots = 0;
	j->first = j->next = j->end;
	j->window_out = j->out_end;
	if (j->first == j->part_count) {
		j->phase = TAIL;
		return;
	}
	const struct part *first = &j->parts[j->first];
	uint64_t most = first->wide ? FOLD_WINDOW_SLOTS : j->held_slots;
	for (struct part *p = &j->parts[j->first]; j->end < j->part_count && p->target == first->target &&
						   p->wide == first->wide && (p == first || slots + p->slots <= most);
	     p = &j->parts[++j->end]) {
		p->place = (uint32_t)slots;
		slots += p->slots;
	}
	j->held = first->target && slots <= j->held_slots;
	j->phase = LOOK;
}

static int copy_owners(struct chunk_owners *to, const struct chunk_owners *from)
{
	int e = vec_reserve(to->rings, to->room, from->room);
	if (!e && from->room)
		memcpy(to->rings, from->rings, from->room * sizeof(*from->rings));
	return e;
}

int fold_begin_window(struct job *j)
{
	next_window(j);
	if (j->phase == TAIL)
		return 0;
	int e = copy_owners(&j->at_first, &j->owners);
	return e ? e : fold_window_begin(j->window, j->parts[j->first].target);
}

/* ---- its parts ------------------------------------------------------------------------------------------- */

static int bad_part(const struct job *j, const struct part *part, const char *what)
{
	return error_set(MT_EFORMAT, j->path, (int64_t)part->offset, "%s", what);
}

static int take_covers(struct job *j, const struct mt_cover *covers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct mt_cover *c = &covers[i];
		int e = vec_reserve(j->owners.rings, j->owners.room, c->ring + 1ul);
		if (e)
			return e;
		struct owner *o = &j->owners.rings[c->ring];
		bool goes_on = o->covered == c->from || (o->covered + 1 == c->from && c->from % MT_CHUNK_SLOTS == 0);
		if (!o->covered || !goes_on)
			o->thread = c->thread;
		o->covered = c->to;
	}
	return 0;
}

static int find_threads(struct job *j, const struct part *part, size_t from)
{
	const struct slot_limits limits = { UINT64_MAX };
	const struct mt_event *slots = j->slots + from;
	for (uint32_t i = 0; i < part->slots; i++) {
		uint32_t ring = j->rings[from + i];
		const char *wrong =
			slots[i].kind == MT_EXT && i && mt_has_ext(slots[i - 1].kind)
				? NULL
				: slot_problem(&slots[i], i + 1 < part->slots ? &slots[i + 1] : NULL, &limits);
		if (wrong || ring >= j->owners.room)
			return bad_part(j, part, wrong ? wrong : "an event of a ring that the block does not cover");
		if (slots[i].kind == MT_THREAD)
			j->owners.rings[ring].thread = (uint32_t)slots[i].addr;
		j->threads[from + i] = j->owners.rings[ring].thread;
	}
	return 0;
}

/* Its first `bytes` into j->block. */
static int read_part(struct job *j, const struct part *part, uint64_t bytes)
{
	if (codec_buf_reserve(&j->block, bytes))
		return error_set(MT_EMEMORY, j->path, ERROR_NO_OFFSET, NULL);
	return read_at(j->in, part->offset, j->block.data, bytes) ? 0
								  : error_errno(MT_EIO, j->path, (int64_t)part->offset);
}

/* Where its slots are once it was loaded. */
static struct fold_slots slots_of(const struct job *j, const struct part *part)
{
	size_t from = j->held ? part->place : 0;
	return (struct fold_slots){ j->slots + from, j->rings + from, j->threads + from, part->slots };
}

/* Reads and decodes it. */
static int load(struct job *j, struct recorder *r, const struct part *part, struct fold_slots *slots)
{
	struct mt_block head;
	size_t bytes, from = j->held ? part->place : 0, room = from + part->slots + 1;
	int e = vec_reserve_raw(j->slots, j->slot_room, room);
	if (!e)
		e = vec_reserve_raw(j->rings, j->ring_room, room);
	if (!e)
		e = vec_reserve_raw(j->threads, j->thread_room, room);
	if (!e)
		e = read_part(j, part, part->bytes);
	if (e)
		return e;
	if (codec_check(j->block.data, part->bytes, &head, &bytes) || head.count != part->slots ||
	    codec_decode_events(r->codec, j->block.data, bytes, j->slots + from, j->rings + from))
		return bad_part(j, part, "the block is damaged");
	const struct mt_cover *covers = (const struct mt_cover *)(j->block.data + sizeof(head));
	for (uint32_t i = 0; i < head.covers; i++)
		if (covers[i].ring >= MT_MAX_CHUNKS || covers[i].thread >= EVENT_MAX_THREADS)
			return bad_part(j, part, "the block covers something impossible");
	e = take_covers(j, covers, head.covers);
	if (!e)
		e = find_threads(j, part, from);
	*slots = slots_of(j, part);
	return e;
}

/* Once more: head and covers at least are in j->block then. */
static int load_again(struct job *j, struct recorder *r, const struct part *part, struct fold_slots *slots)
{
	if (!j->held)
		return load(j, r, part, slots);
	*slots = slots_of(j, part);
	return read_part(j, part, sizeof(struct mt_block) + part->covers * sizeof(struct mt_cover));
}

/* ---- writing --------------------------------------------------------------------------------------------- */

static int write_out(struct job *j, struct recorder *r, const void *data, size_t bytes)
{
	if (fold_disk_left(r) < bytes + r->session->limit_bytes / 64) {
		errno = ENOSPC;
		return error_errno(MT_EOUTPUT, j->temp, (int64_t)j->out_end);
	}
	uint64_t to = j->out_end;
	j->out_end += bytes;
	recorder_charge(r, to, j->out_end);
	if (!write_at(j->out, to, data, bytes))
		return error_errno(MT_EOUTPUT, j->temp, (int64_t)to);
	if (j->out_end - j->synced > SYNC_BYTES) { /* so that the last fsync() has little to do */
		sync_file_range(j->out, (off_t)j->synced, (off_t)(j->out_end - j->synced), SYNC_FILE_RANGE_WRITE);
		j->synced = j->out_end;
	}
	return 0;
}

/* A ring's covers are joined where one ends and the next begins; the last slot of a chunk may be unused. */
static int join_covers(struct job *j)
{
	const struct mt_block *head = (const struct mt_block *)j->block.data;
	const struct mt_cover *covers = (const struct mt_cover *)(head + 1);
	for (uint32_t i = 0; i < head->covers; i++) {
		const struct mt_cover *c = &covers[i];
		int e = vec_reserve(j->last_cover, j->last_cover_room, c->ring + 1ul);
		if (!e)
			e = vec_reserve(j->covers, j->cover_room, j->cover_count + 1);
		if (e)
			return e;
		struct mt_cover *last = j->last_cover[c->ring] ? &j->covers[j->last_cover[c->ring] - 1] : NULL;
		if (last && (last->to == c->from || (last->to + 1 == c->from && c->from % MT_CHUNK_SLOTS == 0))) {
			last->to = c->to;
			continue;
		}
		j->covers[j->cover_count] = *c;
		j->last_cover[c->ring] = (uint32_t)++j->cover_count;
	}
	return 0;
}

static int flush(struct job *j, struct recorder *r)
{
	int e = fold_window_finish(j->window, &j->kept);
	if (e || !j->kept.count)
		return e;
	if (codec_encode_folded(r->codec, j->kept.slots, j->kept.rings, (uint32_t)j->kept.count, j->covers,
				(uint32_t)j->cover_count, j->shift, j->parts[j->first].target, &r->block))
		return error_set(MT_EFORMAT, j->path, ERROR_NO_OFFSET, "can't be encoded");
	for (size_t i = 0; i < j->cover_count; i++)
		j->last_cover[j->covers[i].ring] = 0;
	j->cover_count = j->kept.count = 0;
	j->after += j->parts[j->first].level ? 0 : r->block.size;
	return write_out(j, r, r->block.data, r->block.size);
}

static int look_at_part(struct job *j, struct recorder *r)
{
	struct fold_slots slots;
	const struct part *part = &j->parts[j->next];
	int e = load(j, r, part, &slots);
	if (!e)
		e = fold_window_scan(j->window, &slots);
	if (e || ++j->next < j->end)
		return e;
	j->next = j->first;
	j->phase = part->target ? WRITE : COPY;
	e = fold_window_decide(j->window);
	return e || j->phase == COPY || j->held ? e : copy_owners(&j->owners, &j->at_first);
}

/* What comes behind a window of which little was gained is folded more. If it has become no smaller its blocks stay as
 * they are. */
static int end_window(struct job *j, struct recorder *r)
{
	const struct part *first = &j->parts[j->first], *last = &j->parts[j->end - 1];
	uint64_t in = last->offset + last->bytes - first->offset, out = j->out_end - j->window_out;
	for (size_t i = j->end; !first->level && out > in / 4 * 3 && i < j->part_count; i++)
		if (!j->parts[i].level && j->parts[i].target == first->target && first->target < FOLD_LEVELS)
			j->parts[i].target++;
	if (out < in)
		return fold_begin_window(j);
	for (size_t i = j->first; i < j->end; i++)
		j->parts[i].target = 0;
	recorder_charge(r, j->out_end, j->window_out);
	j->out_end = j->window_out;
	j->synced = j->synced < j->out_end ? j->synced : j->out_end;
	j->copied = first->offset;
	j->phase = COPY;
	return ftruncate(j->out, (off_t)j->out_end) ? error_errno(MT_EOUTPUT, j->temp, (int64_t)j->out_end) : 0;
}

static int write_part(struct job *j, struct recorder *r)
{
	struct fold_slots slots;
	const struct part *part = &j->parts[j->next];
	int e = 0;
	if (j->kept.count >= j->out_slots || j->kept.count + 2 * (fold_window_sums(j->window) + part->slots) > OUT_MOST)
		e = flush(j, r);
	if (!e)
		e = load_again(j, r, part, &slots);
	if (!e)
		e = join_covers(j);
	if (e)
		return e;
	j->shift = j->kept.count && j->shift < part->shift ? j->shift : part->shift;
	j->before += part->level ? 0 : part->bytes;
	j->copied = part->offset + part->bytes;
	e = fold_window_write(j->window, &slots, &j->kept);
	if (e || ++j->next < j->end)
		return e;
	e = flush(j, r);
	return e ? e : end_window(j, r);
}

/* Up to `end`, some of it. */
static int copy_some(struct job *j, struct recorder *r, uint64_t end)
{
	uint64_t most = r->session->limit_bytes / 64 < COPY_BYTES ? r->session->limit_bytes / 64 : COPY_BYTES;
	uint64_t bytes = end - j->copied < most ? end - j->copied : most;
	if (codec_buf_reserve(&j->block, bytes))
		return error_set(MT_EMEMORY, j->path, ERROR_NO_OFFSET, NULL);
	if (!read_at(j->in, j->copied, j->block.data, bytes))
		return error_errno(MT_EIO, j->path, (int64_t)j->copied);
	j->copied += bytes;
	return write_out(j, r, j->block.data, bytes);
}

static int copy_window(struct job *j, struct recorder *r)
{
	const struct part *last = &j->parts[j->end - 1];
	int e = copy_some(j, r, last->offset + last->bytes);
	return e || j->copied < last->offset + last->bytes ? e : fold_begin_window(j);
}

/* Whoever reads the old file by now keeps it. */
static int replace(struct job *j, struct recorder *r, uint64_t old_bytes)
{
	int dir;
	if (fsync(j->out) || rename(j->temp, j->path))
		return error_errno(MT_EOUTPUT, j->temp, ERROR_NO_OFFSET);
	*j->temp = 0;
	recorder_charge(r, old_bytes, 0);
	if (j->p) {
		close(j->p->trace.fd);
		j->p->trace.fd = j->out;
		j->p->trace.end = j->p->trace.charged = j->out_end;
		j->out = -1;
	}
	dir = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		fsync(dir);
		close(dir);
	}
	return 1;
}

static int copy_tail(struct job *j, struct recorder *r)
{
	struct stat st;
	if (j->p && j->p->trace.fd < 0)
		return error_set(MT_EIO, j->path, ERROR_NO_OFFSET, "is being read again");
	if (fstat(j->in, &st))
		return error_errno(MT_EIO, j->path, ERROR_NO_OFFSET);
	uint64_t end = j->p ? j->p->trace.end : (uint64_t)st.st_size;
	return j->copied < end ? copy_some(j, r, end) : replace(j, r, end);
}

/* 1 = done, 0 = there is more, or an error. */
int fold_step(struct job *j, struct recorder *r)
{
	switch (j->phase) {
	case LOOK:
		return look_at_part(j, r);
	case WRITE:
		return write_part(j, r);
	case COPY:
		return copy_window(j, r);
	default:
		return copy_tail(j, r);
	}
}
