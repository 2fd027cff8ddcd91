/* One image's files: which are there, which of them is to be believed, and what they say about the process. */
#include "analyzer/reader/image.h"
#include "analyzer/util/tallies.h"
#include "analyzer/reader/process_rank.h"

#include "analyzer/util/error.h"
#include "analyzer/util/system/pid_alive.h"
#include "analyzer/util/vec.h"
#include "analyzer/util/young_file.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#define MAX_LOG    (1ull << 28)
#define YOUNG_MOST ((uint64_t)MT_YOUNG_BLOCKS_MOST * MT_YOUNG_LIMIT)

/* ---- opening --------------------------------------------------------------------------------------------- */

static int open_one(struct image *im, struct file *f, const char *dir, const char *extension)
{
	char name[64];
	snprintf(name, sizeof(name), "%s.%s", im->name, extension);
	int e = file_open(f, dir, name);
	return e ? reader_damage(im->reader) : 0;
}

/* Raw files may live on another disk, named after the session; in a copied directory they may lie beside the rest. */
static int open_raw(struct image *im, struct file *f, const char *extension)
{
	const struct session *s = im->session;
	int e = open_one(im, f, s->dir, extension);
	if (e || file_is_open(f) || !s->raw_prefix)
		return e;
	char name[600];
	file_close(f);
	snprintf(name, sizeof(name), "%s%s.%s", s->raw_prefix, im->name, extension);
	e = s->shared ? file_open_own(f, s->head.ring_dir, name, s->owner) : file_open(f, s->head.ring_dir, name);
	return e ? reader_damage(im->reader) : 0;
}

static void close_files(struct image *im)
{
	file_close(&im->info_file);
	file_close(&im->node_file);
	file_close(&im->raw.file);
	file_close(&im->young_file);
	file_close(&im->trace.file);
}

/* What is new of it on disk may be held, and more. */
static void widen_bound(struct image *im)
{
	uint64_t disk =
		im->info_file.disk + im->node_file.disk + im->raw.file.disk + im->young_file.disk + im->trace.file.disk;
	if (disk > im->disk)
		memory_bound_widen(reader_bound(im->reader), disk - im->disk, im->disk == 0);
	im->disk = disk > im->disk ? disk : im->disk;
}

/* The trace comes last: raw files vanish once everything is in it. */
static int open_files(struct image *im)
{
	close_files(im);
	int e = open_raw(im, &im->info_file, "info");
	if (!e)
		e = open_raw(im, &im->node_file, "nodes");
	if (!e)
		e = open_raw(im, &im->raw.file, "ring");
	if (!e)
		e = open_raw(im, &im->young_file, "young");
	if (!e)
		e = open_one(im, &im->trace.file, im->session->dir, "trace");
	if (!e)
		widen_bound(im);
	return e;
}

/* ---- head of the info ------------------------------------------------------------------------------------ */

static int bad_field(const char *path, size_t field, const char *what, uint64_t value)
{
	return error_set(MT_EFORMAT, path, (int64_t)field, "%s is %" PRIu64, what, value);
}

#define CHECK_FIELD(ok, field, what) \
	do { \
		if (!(ok)) \
			return bad_field(path, offsetof(struct mt_info, field), what, (uint64_t)info->field); \
	} while (0)

static int check_info(struct image *im, const struct mt_info *info, const char *path)
{
	if (memcmp(info->magic, MT_INFO_MAGIC, sizeof(info->magic)) != 0)
		return error_set(MT_EMAGIC, path, 0, NULL);
	if (info->version != MT_VERSION)
		return error_set(MT_EVERSION, path, 8, "was written by format version %" PRIu32 ", this reads %d",
				 info->version, MT_VERSION);
	CHECK_FIELD(info->bytes >= MT_INFO_LEAST && info->bytes <= MT_INFO_STATES, bytes, "length of the header");
	char name[32];
	snprintf(name, sizeof(name), "%" PRIu32 "-%" PRIu32, info->pid, info->image);
	if (strcmp(name, im->name) != 0)
		return error_set(MT_EFORMAT, path, offsetof(struct mt_info, pid), "belongs to %s", name);
	CHECK_FIELD(info->clock >= MT_CLOCK_TSC && info->clock <= MT_CLOCK_CNTVCT, clock, "clock");
	CHECK_FIELD(info->origin == MT_ORIGIN_EXEC || info->origin == MT_ORIGIN_FORK, origin, "origin");
	CHECK_FIELD(info->node_base % MT_NODE_STEP == 0 && info->node_base <= MT_MAX_NODES, node_base, "first node");
	CHECK_FIELD(info->chunks <= MT_MAX_CHUNKS, chunks, "number of chunks");
	CHECK_FIELD(info->rings <= MT_MAX_CHUNKS, rings, "number of rings");
	CHECK_FIELD(info->log_bytes <= MAX_LOG && info->log_bytes % 8 == 0, log_bytes, "length of the log");
	CHECK_FIELD(info->exit_kind <= MT_EXIT_EXEC, exit_kind, "kind of exit");
	CHECK_FIELD(info->stacks <= MT_STACKS_NONE, stacks, "stack mode");
	CHECK_FIELD(info->record <= MT_RECORD_SAMPLED, record, "mode of recording");
	CHECK_FIELD(info->start_ticks != 0, start_ticks, "start time");
	return 0;
}

/* Killed while it was being set up: the info's magic is written last, so it has none and there is not one event. That
 * is no damage. */
static bool is_unborn(const struct image *im)
{
	struct mt_info info = { 0 };
	struct mt_chunk chunk = { 0 };
	if (file_is_open(&im->trace.file) && im->trace.file.size)
		return false;
	if (file_is_open(&im->raw.file) && im->raw.file.size >= sizeof(chunk) &&
	    (file_read(&im->raw.file, 0, &chunk, sizeof(chunk)) || chunk.magic))
		return false;
	if (im->info_file.size && im->info_file.size < MT_INFO_LOG)
		return false;
	if (im->info_file.size && file_read(&im->info_file, 0, &info, sizeof(info)))
		return false;
	return !memcmp(info.magic, (char[8]){ 0 }, sizeof(info.magic));
}

static int read_info_file(struct image *im, struct mt_info *info)
{
	struct mt_tally tallies[MT_TALLIES];
	int e = file_read(&im->info_file, 0, info, sizeof(*info));
	e = e ? e : check_info(im, info, im->info_file.path);
	if (e || info->record != MT_RECORD_SAMPLED)
		return e;
	e = file_read(&im->info_file, MT_INFO_TALLIES, tallies, sizeof(tallies));
	if (!e)
		tallies_add(info, tallies);
	return e;
}

/* A shorter header is of an older writer, and what it lacks is 0. */
static int take_info(struct image *im, struct mt_info *info, const char *bytes, size_t count)
{
	*info = (struct mt_info){ 0 };
	memcpy(info, bytes, MT_INFO_LEAST);
	if (info->bytes > MT_INFO_LEAST && info->bytes <= count)
		memcpy(info, bytes, info->bytes < sizeof(*info) ? info->bytes : sizeof(*info));
	return check_info(im, info, im->trace.file.path);
}

/* The info block: its head into *info, its log into im->log unless info_only. */
static int read_info_block(struct image *im, struct mt_info *info, bool with_log)
{
	struct codec_buf buf = { 0 };
	struct mt_block head;
	const char *path = im->trace.file.path;
	struct memory_bound *bound = reader_bound(im->reader);
	char *bytes = NULL;
	int e = trace_read(im, &im->trace.info, &buf, &head);
	if (!e && head.count < MT_INFO_LEAST)
		e = error_set(MT_EFORMAT, path, (int64_t)im->trace.info.offset, "info block is too short");
	if (!e)
		e = memory_bound_take(bound, head.count, path, (int64_t)im->trace.info.offset);
	bool taken = !e;
	if (!e && !(bytes = malloc(head.count)))
		e = error_set(MT_EMEMORY, path, (int64_t)im->trace.info.offset, NULL);
	if (!e && (e = codec_decode_info(reader_codec(im->reader), buf.data, buf.size, bytes)) != 0)
		e = error_set(MT_EFORMAT, path, (int64_t)im->trace.info.offset, "%s", codec_strerror(e));
	codec_buf_fini(&buf);
	if (!e)
		e = take_info(im, info, bytes, head.count);
	if (e || !with_log) {
		if (taken)
			memory_bound_give(bound, head.count);
		free(bytes);
		return e;
	}
	size_t seen = info->bytes + im->log_seen < head.count ? info->bytes + im->log_seen : head.count;
	im->log_bytes = head.count - seen;
	memmove(bytes, bytes + seen, im->log_bytes);
	im->log = bytes;
	return 0;
}

/* Something to go on with when the info can't be had. */
static void make_up_info(struct image *im)
{
	const struct mt_session *s = &im->session->head;
	im->info = (struct mt_info){ .clock = s->clock,
				     .start_ticks = s->start_ticks,
				     .start_mono_ns = s->start_mono_ns,
				     .start_real_ns = s->start_real_ns,
				     .parent_image = MT_NO_PARENT,
				     .origin = MT_ORIGIN_EXEC,
				     .node_end = MT_MAX_NODES };
	sscanf(im->name, "%" SCNu32 "-%" SCNu32, &im->info.pid, &im->info.image);
}

static int load_head(struct image *im)
{
	int e;
	if (file_is_open(&im->info_file)) {
		e = read_info_file(im, &im->info);
		if (e && is_unborn(im)) {
			im->unborn = true;
			return 0;
		}
		if (e) /* it may have been completed between the two looks */
			e = read_info_file(im, &im->info);
	} else {
		e = trace_index(im);
		if (e)
			return e;
		if (im->trace.info.bytes)
			e = read_info_block(im, &im->info, false);
		else
			e = error_set(MT_ENOTRACE, im->info_file.path, ERROR_NO_OFFSET, "is missing");
	}
	im->info_known = !e;
	if (!e)
		return 0;
	make_up_info(im);
	return reader_damage(im->reader);
}

static void set_facts(struct image *im)
{
	struct process *p = &im->process;
	const struct mt_info *info = &im->info;
	p->pid = info->pid;
	p->image = info->image;
	p->ppid = info->parent_pid;
	p->origin = info->origin;
	p->parent_image = info->parent_image;
	p->clock = info->clock;
	p->start_ticks = info->start_ticks;
	p->fork_exact = info->fork_exact != 0;
	p->stacks = info->stacks;
	p->record = info->record;
	p->young_bytes = info->young_bytes < YOUNG_MOST ? info->young_bytes : YOUNG_MOST;
	p->heap_calls = info->heap_calls;
	p->heap_bytes = info->heap_bytes;
	p->heap_frees = info->heap_frees;
	p->depth = info->depth;
	p->sample_bytes = info->sample_bytes;
	p->threads = info->threads;
	p->rings = info->rings;
	p->fork_ticks = info->origin == MT_ORIGIN_FORK ? info->fork_ticks : 0;
	p->node_base = info->node_base;
	p->node_end = info->node_end < MT_MAX_NODES ? info->node_end : MT_MAX_NODES;
	p->exit_kind = p->own_exit_kind = info->exit_kind;
	p->exit_code = p->own_exit_code = info->exit_code;
	p->lost_events = info->lost_events;
	p->lost_why = info->lost_why;
	p->unplaced_stacks = info->unplaced_stacks;
	p->truncated_stacks = info->truncated_stacks;
	p->unwritten_bytes = info->unwritten_bytes;
	p->faults = info->faults;
	p->off = info->off != 0;
	p->seccomp = info->seccomp != 0;
	p->address_limit = info->address_limit;
	p->data_limit = info->data_limit;
	p->address_used = info->address_used;
	p->data_used = info->data_used;
	p->shm_used = info->shm_used;
	p->recorded_ticks = info->recorded_ticks;
	p->stopped_ticks = info->stopped_ticks;
	p->gap_ticks = info->gap_ticks;
	p->stops = info->stops;
	p->attached = info->attached;
	p->fork_node = p->fork_ticks ? info->fork_node : 0;
	p->fork_node2 = p->fork_ticks ? info->fork_node2 : 0;
}

int image_open(struct image *im, const char *name)
{
	static const char *const none[] = { NULL };
	struct process *p = &im->process;
	snprintf(im->name, sizeof(im->name), "%s", name);
	im->info_file = im->node_file = im->raw.file = im->trace.file = im->young_file = FILE_CLOSED;
	im->raw.horizon = UINT64_MAX;
	p->exe = "";
	p->name = p->program = "?";
	p->rank = p->local_rank = p->world_size = p->group_rank = PROCESS_NO_RANK;
	p->tags = p->job = "";
	p->imported = p->imported_file = p->imported_lacks = "";
	p->imported_has = UINT32_MAX;
	p->argv = p->env = p->late = none;
	int e = open_files(im);
	if (!e)
		e = load_head(im);
	if (!e)
		set_facts(im);
	file_suspend(&im->info_file);
	image_suspend(im);
	return e;
}

/* ---- the rest -------------------------------------------------------------------------------------------- */

/* Its records are in the tables, and its strings must stay. */
static int parse_log(struct image *im, const char *file, uint64_t file_offset)
{
	int e = vec_reserve_raw(im->logs, im->logs_room, im->logs_count + 1);
	if (e)
		return e;
	im->logs[im->logs_count++] = im->log;
	e = log_parse(im, file, file_offset + im->log_seen);
	im->log_seen += im->log_bytes;
	im->log = NULL;
	return e;
}

static int load_log(struct image *im)
{
	int e = 0;
	if (!im->info_known)
		return 0;
	if (!file_is_open(&im->info_file)) {
		e = read_info_block(im, &im->info, true);
		if (e)
			return reader_damage(im->reader);
		set_facts(im); /* the process may have ended since the head was read from the file */
		return parse_log(im, im->trace.file.path, im->trace.info.offset);
	}
	/* the head once more: by now it may announce nodes and records that the events we have refer to */
	struct mt_info info;
	e = read_info_file(im, &info);
	if (!e) {
		im->info = info;
		set_facts(im);
		im->log_bytes = info.log_bytes;
		e = file_refresh(&im->info_file);
	}
	if (!e && MT_INFO_LOG + im->log_bytes > im->info_file.size) {
		e = error_set(MT_ECUT, im->info_file.path, (int64_t)im->info_file.size, "is cut off within the log");
		im->log_bytes = im->info_file.size > MT_INFO_LOG ? (im->info_file.size - MT_INFO_LOG) & ~7ull : 0;
	}
	if (e && (e = reader_damage(im->reader)) != 0)
		return e;
	if (im->log_seen && im->log_bytes <= im->log_seen)
		return 0;
	im->log_bytes -= im->log_seen;
	e = memory_bound_take(reader_bound(im->reader), im->log_bytes, im->info_file.path, ERROR_NO_OFFSET);
	if (e)
		return reader_damage(im->reader);
	im->log = malloc(im->log_bytes + 1);
	if (!im->log)
		return error_set(MT_EMEMORY, im->info_file.path, ERROR_NO_OFFSET, NULL);
	e = file_read(&im->info_file, MT_INFO_LOG + im->log_seen, im->log, im->log_bytes);
	return e ? e : parse_log(im, im->info_file.path, MT_INFO_LOG);
}

/* Room for so many instead of those of before. */
static int take_nodes(struct image *im, uint64_t count, const char *file, uint64_t offset)
{
	struct memory_bound *bound = reader_bound(im->reader);
	uint64_t bytes = count * sizeof(struct mt_node);
	memory_bound_give(bound, im->nodes_taken);
	int e = memory_bound_take(bound, bytes, file, (int64_t)offset);
	im->nodes_taken = e ? 0 : bytes;
	return e;
}

/* Node ids are handed out before the file grows, so that a few at the end may never have come to be. */
static int read_node_file(struct image *im, uint64_t wanted)
{
	struct file *f = &im->node_file;
	int e = file_refresh(f);
	if (e)
		return e;
	uint64_t there = f->size / sizeof(struct mt_node);
	bool whole = f->size % (MT_NODE_STEP * sizeof(struct mt_node)) == 0 &&
		     wanted <= there + (im->info.rings + 1ull) * MT_NODE_RUN;
	if (wanted > there && !whole) {
		error_set(MT_ECUT, f->path, (int64_t)f->size,
			  "is cut off: %" PRIu64 " of %" PRIu64 " nodes are missing", wanted - there, wanted);
		e = reader_damage(im->reader);
	}
	if (e)
		return e;
	wanted = wanted < there ? wanted : there;
	im->process.node_end = im->process.node_base + (uint32_t)wanted;
	e = take_nodes(im, wanted, f->path, 0);
	if (e)
		return e;
	struct mt_node *nodes = realloc(im->nodes, wanted * sizeof(struct mt_node) + 1);
	if (!nodes)
		return error_set(MT_EMEMORY, f->path, ERROR_NO_OFFSET, NULL);
	im->nodes = nodes;
	/* those of before, too: some may have been made since */
	return file_read(f, 0, nodes, wanted * sizeof(*nodes));
}

static int read_node_block(struct image *im)
{
	struct codec_buf buf = { 0 };
	struct mt_block head;
	const struct trace *t = &im->trace;
	int e = trace_read(im, &t->nodes, &buf, &head);
	if (!e && (head.count > MT_MAX_NODES || head.first_ticks != im->process.node_base))
		e = error_set(MT_EFORMAT, t->file.path, (int64_t)t->nodes.offset,
			      "node block does not fit the process");
	free(im->nodes);
	im->nodes = NULL;
	if (!e)
		e = take_nodes(im, head.count, t->file.path, t->nodes.offset);
	if (!e && !(im->nodes = malloc(head.count * sizeof(struct mt_node) + 1)))
		e = error_set(MT_EMEMORY, t->file.path, (int64_t)t->nodes.offset, NULL);
	vec_large(im->nodes, head.count * sizeof(struct mt_node));
	if (!e && (e = codec_decode_nodes(reader_codec(im->reader), buf.data, buf.size, im->nodes)) != 0)
		e = error_set(MT_EFORMAT, t->file.path, (int64_t)t->nodes.offset, "%s", codec_strerror(e));
	codec_buf_fini(&buf);
	im->process.node_end = im->process.node_base + (e ? 0 : (uint32_t)head.count);
	return e;
}

/* A parent below its node: that makes every walk end. */
static int check_nodes(struct image *im, const char *path)
{
	const struct process *p = &im->process;
	for (uint32_t id = p->node_base; id < p->node_end; id++) {
		struct mt_node *n = &im->nodes[id - p->node_base];
		if (n->parent < id || (id == 0 && n->parent == 0))
			continue;
		error_set(MT_EFORMAT, path, (int64_t)((id - p->node_base) * sizeof(*n)),
			  "node %" PRIu32 " has parent %" PRIu32, id, n->parent);
		int e = reader_damage(im->reader);
		if (e)
			return e;
		n->parent = 0;
	}
	return 0;
}

static int load_nodes(struct image *im)
{
	struct process *p = &im->process;
	int e = 0;
	uint64_t wanted = p->node_end > p->node_base ? p->node_end - p->node_base : 0;
	const char *path = im->node_file.path;
	if (file_is_open(&im->node_file)) {
		e = read_node_file(im, im->info_known ? wanted : im->node_file.size / sizeof(struct mt_node));
	} else if (im->trace.nodes.bytes) {
		path = im->trace.file.path;
		e = read_node_block(im);
	} else {
		/* id 0 is no node: a tree that only has that one may have no file yet */
		bool needed = wanted > (p->node_base ? 0 : 1);
		p->node_end = p->node_base;
		if (needed && im->info_known)
			e = error_set(MT_ENOTRACE, im->node_file.path, ERROR_NO_OFFSET, "is missing");
	}
	if (!e && im->nodes)
		e = check_nodes(im, path);
	p->nodes = im->nodes;
	if (!e)
		return 0;
	free(im->nodes);
	im->nodes = NULL;
	p->nodes = NULL;
	p->node_end = p->node_base;
	return reader_damage(im->reader);
}

static int check_ring_is_there(struct image *im)
{
	if (file_is_open(&im->raw.file) || !im->info_known || !im->info.chunks || !file_is_open(&im->info_file) ||
	    im->trace.end)
		return 0;
	error_set(MT_ENOTRACE, im->raw.file.path, ERROR_NO_OFFSET, "is missing");
	return reader_damage(im->reader);
}

static void set_sign_of_life(struct image *im)
{
	const struct trace *t = &im->trace;
	uint64_t last = im->info.start_ticks;
	if (im->info.pair_ticks > last)
		last = im->info.pair_ticks;
	if (t->count && t->blocks[t->count - 1].last_ticks > last)
		last = t->blocks[t->count - 1].last_ticks;
	if (im->raw.last_ticks > last)
		last = im->raw.last_ticks;
	im->sign_of_life = im->info.end_ticks ? im->info.end_ticks : last;
	im->process.has_events = t->count || im->raw.count || im->young_file.size;
}

/* The file that was opened is kept, since what a recorder put in its place would have more than the rings had when we
 * looked. */
bool image_is_growing(const struct image *im)
{
	return im->session->recorder && !im->trace.end;
}

/* ---- young blocks ---------------------------------------------------------------------------------------- */

static int read_young(struct image *im, void **file, size_t *bytes)
{
	size_t n = young_file_bytes(im->young_file.size);
	*bytes = 0;
	*file = n ? malloc(n) : NULL;
	int e = n && !*file ? error_memory() : n ? file_read(&im->young_file, 0, *file, n) : 0;
	if (!e) {
		*bytes = n;
		return 0;
	}
	free(*file);
	*file = NULL;
	return reader_damage(im->reader);
}

int image_young(struct image *im, void **file, size_t *bytes)
{
	*file = im->young;
	*bytes = im->young_bytes;
	if (*file || !im->young_file.size || im->trace.end)
		return 0;
	int e = file_resume(&im->young_file);
	e = e ? reader_damage(im->reader) : read_young(im, file, bytes);
	file_suspend(&im->young_file);
	return e;
}

/* The table as of now, of a process that runs, or whose files a recorder may be about to remove. Who follows a trace
 * has what is in it once the process has ended. */
static int keep_young(struct image *im)
{
	free(im->young);
	im->young = NULL;
	im->young_bytes = 0;
	bool runs = im->raw.horizon != UINT64_MAX;
	if (!(runs ? !reader_is_following(im->reader) : im->session->recorder) || !im->young_file.size)
		return 0;
	int e = file_refresh(&im->young_file);
	return e ? reader_damage(im->reader) : read_young(im, &im->young, &im->young_bytes);
}

static int load_all(struct image *im)
{
	int e = raw_snapshot(im);
	if (!e)
		e = keep_young(im);
	/* the recorder may have begun it since we looked, or put a folded one in its place: what left the rings before
	 * we looked is in the file of that name */
	if (!e && (!file_is_open(&im->trace.file) || image_is_growing(im))) {
		file_close(&im->trace.file);
		e = open_one(im, &im->trace.file, im->session->dir, "trace");
	}
	if (!e)
		e = trace_index(im);
	if (!e)
		e = check_ring_is_there(im);
	if (!e)
		e = load_log(im);
	return e ? e : load_nodes(im);
}

static void drop_chunks(struct image *im)
{
	for (size_t i = 0; i < im->raw.count; i++)
		free(im->raw.chunks[i].copy);
	im->raw.count = 0;
	im->raw.slots = 0;
}

/* What a running process still writes is left out, but not what it wrote before it said that it ended. */
static uint64_t newest_tick(const struct image *im)
{
	bool writes = im->process.state == PROCESS_RUNNING && im->info.exit_kind == MT_EXIT_NONE;
	return writes ? clock_ticks_ago(im->clock, READER_HORIZON_NS) : UINT64_MAX;
}

static int load(struct image *im, bool again)
{
	struct mt_info info;
	int e = open_files(im);
	if (!e && again && file_is_open(&im->info_file) && !read_info_file(im, &info))
		im->info = info; /* how many chunks there are */
	im->raw.horizon = newest_tick(im);
	if (!e)
		e = load_all(im);
	if (!e && im->raw.horizon != UINT64_MAX && im->info.exit_kind != MT_EXIT_NONE) { /* it ended meanwhile */
		drop_chunks(im);
		im->raw.horizon = UINT64_MAX;
		e = load_all(im);
	}
	if (!e)
		e = process_rank_load(im);
	set_sign_of_life(im);
	file_suspend(&im->info_file);
	image_suspend(im);
	return e;
}

int image_load(struct image *im)
{
	return load(im, false);
}

int image_refresh(struct image *im)
{
	drop_chunks(im);
	return load(im, true);
}

int image_resume(struct image *im)
{
	bool reopen = im->trace.count && !file_is_open(&im->trace.file);
	int e = reopen ? file_resume(&im->trace.file) : 0;
	if (!e && reopen)
		e = trace_index(im);
	bool in_file = im->raw.count && !im->session->recorder; /* else all was copied */
	return e || !in_file ? e : file_resume(&im->raw.file);
}

void image_suspend(struct image *im)
{
	file_suspend(&im->node_file);
	file_suspend(&im->raw.file);
	file_suspend(&im->young_file);
	if (!image_is_growing(im))
		file_suspend(&im->trace.file);
}

void image_close(struct image *im)
{
	if (!im)
		return;
	close_files(im);
	drop_chunks(im);
	free(im->young);
	free(im->raw.chunks);
	free(im->trace.blocks);
	for (size_t i = 0; i < im->logs_count; i++)
		free(im->logs[i]);
	free(im->logs);
	free(im->log);
	free(im->argv);
	free(im->env);
	free(im->late);
	free(im->label);
	free(im->files);
	free(im->codes);
	free(im->threads);
	free(im->modules);
	free(im->exits);
	free(im->devices);
	free(im->modes);
	free(im->nevers);
	free(im->names);
	free(im->nodes);
	free(im);
}

bool image_is_alive(const struct image *im)
{
	const struct mt_info *info = &im->info;
	return im->info_known && im->session->here &&
	       pid_alive(info->pid, info->pid_ns, info->boot_start) == ALIVE_YES &&
	       (info->boot_start || !pid_started_after(info->pid, info->pid_ns, info->start_mono_ns));
}
