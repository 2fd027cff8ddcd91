#include "analyzer/recorder/rings/recorder_process.h"
#include "analyzer/util/system/file_owner.h"
#include "analyzer/util/ticks.h"

#include "analyzer/recorder/rings/file_io.h"
#include "analyzer/util/error.h"
#include "analyzer/util/late_slots.h"
#include "analyzer/util/tallies.h"
#include "analyzer/util/vec.h"
#include "analyzer/util/young_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

static void raw_path(const struct record_process *p, const struct recorder *r, const char *extension, char *path,
		     size_t size)
{
	snprintf(path, size, "%s%s.%s", r->raw_stem, p->name, extension);
}

/* Somebody else's is as if it were not there. */
static int open_raw(const struct record_process *p, const struct recorder *r, const char *extension, int flags)
{
	char path[4500];
	struct stat st;
	raw_path(p, r, extension, path, sizeof(path));
	int fd = record_open(path, flags);
	if (fd < 0 || !r->shared || (!fstat(fd, &st) && file_is_of(st.st_uid, r->owner)))
		return fd;
	close(fd);
	errno = ENOENT;
	return -1;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

struct record_process *record_process_new(const char *name, uint32_t pid, uint32_t image)
{
	struct record_process *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->pid = pid;
	p->image = image;
	p->ring_fd = p->trace.fd = p->pidfd = -1;
	return p;
}

void record_process_free(struct record_process *p)
{
	if (!p)
		return;
	if (p->info)
		munmap(p->info, MT_INFO_LOG);
	if (p->ring_fd >= 0)
		close(p->ring_fd);
	if (p->pidfd >= 0)
		close(p->pidfd);
	trace_writer_close(&p->trace);
	free(p->places);
	free(p);
}

void record_process_close_files(struct record_process *p)
{
	if (p->ring_fd >= 0)
		close(p->ring_fd);
	p->ring_fd = -1;
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
	trace_writer_suspend(&p->trace);
}

/* What an earlier recorder's block covers. */
static int see_block(void *context, const struct mt_block *header, const struct mt_cover *covers)
{
	struct record_process *p = context;
	for (uint32_t i = 0; i < header->covers; i++) {
		const struct mt_cover *c = &covers[i];
		if (c->ring >= MT_MAX_CHUNKS)
			return error_set(MT_EFORMAT, p->trace.path, (int64_t)p->trace.end,
					 "a block covers an impossible ring");
		int e = vec_reserve(p->places, p->place_room, c->ring + 1ul);
		if (e)
			return e;
		p->places[c->ring].position = c->to;
	}
	return 0;
}

static int map_info(struct record_process *p, const struct recorder *r)
{
	struct stat st;
	int fd = open_raw(p, r, "info", O_RDWR), e = 0;
	if (fd < 0)
		return errno == ENOENT ? 1 : error_errno(MT_EIO, p->name, ERROR_NO_OFFSET);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)MT_INFO_LOG) {
		close(fd);
		return 1;
	}
	void *at = mmap(NULL, MT_INFO_LOG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		e = error_errno(MT_EIO, p->name, ERROR_NO_OFFSET);
	else
		p->info = at;
	close(fd);
	return e;
}

static bool is_recorded(const struct record_process *p)
{
	return !memcmp(p->info->magic, MT_INFO_MAGIC, sizeof(p->info->magic)) && p->info->version == MT_VERSION &&
	       p->info->pid == p->pid && p->info->image == p->image;
}

int record_process_open(struct record_process *p, struct recorder *r)
{
	int e = p->info ? 0 : map_info(p, r);
	if (!e && !is_recorded(p))
		e = 1;
	if (!e && p->ring_fd < 0)
		p->ring_fd = open_raw(p, r, "ring", O_RDWR);
	return e;
}

static int open_trace(struct record_process *p, const struct recorder *r)
{
	if (p->trace.fd >= 0)
		return 0;
	if (p->trace.end)
		return trace_writer_resume(&p->trace);
	free(p->places);
	p->places = NULL;
	p->place_room = 0;
	return trace_writer_open(&p->trace, r->dir, p->name, p->pid, p->image, see_block, p);
}

/* ---- writing --------------------------------------------------------------------------------------------- */

/* What a process that is over still takes, its raw files will give back and more. */
static bool may_grow(const struct record_process *p, const struct recorder *r, uint64_t bytes)
{
	const struct mt_session *s = r->session;
	struct statfs fs;
	if (p->over)
		return true;
	if (s->limit_bytes && __atomic_load_n(&s->used_bytes, __ATOMIC_RELAXED) + bytes > s->limit_bytes)
		return false;
	return fstatfs(p->trace.fd, &fs) || (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize >= s->keep_free_bytes + bytes;
}

uint64_t recorder_disk(uint64_t bytes)
{
	return (bytes + 4095) & ~(uint64_t)4095;
}

void recorder_charge(struct recorder *r, uint64_t from, uint64_t to)
{
	struct mt_session *s = r->session;
	uint64_t more = recorder_disk(to) - recorder_disk(from);
	__atomic_fetch_add(&s->used_bytes, more, __ATOMIC_RELAXED);
	r->trace_bytes += more;
	__atomic_store_n(&s->trace_mib, (uint32_t)(r->trace_bytes >> 20), __ATOMIC_RELAXED);
	if (r->counted)
		__atomic_store_n(&s->trace_bytes, r->trace_bytes, __ATOMIC_RELAXED);
}

static int append(struct record_process *p, struct recorder *r)
{
	if (!may_grow(p, r, r->block.size)) {
		errno = ENOSPC;
		return error_errno(MT_EOUTPUT, p->trace.path, (int64_t)p->trace.end);
	}
	int e = trace_writer_append(&p->trace, &r->block);
	if (e)
		return e;
	recorder_charge(r, p->trace.charged, p->trace.end);
	p->trace.charged = p->trace.end;
	return 0;
}

static int codec_failed(const struct record_process *p, int code)
{
	return error_set(code == -CODEC_EMEM ? MT_EMEMORY : MT_EFORMAT, p->name, ERROR_NO_OFFSET, "%s",
			 codec_strerror(code));
}

/* Times never run backwards from block to block either. */
static void clamp_first(const struct record_process *p, const struct recorder *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (r->slots[i].kind == MT_EXT)
			continue;
		if (r->slots[i].ticks < p->trace.last_ticks)
			r->slots[i].ticks = p->trace.last_ticks;
		return; /* the codec sees to the rest */
	}
}

static int write_events(struct record_process *p, struct recorder *r, size_t count)
{
	uint32_t cover_count;
	const struct mt_cover *covers = ring_cut_covers(r->cut, &cover_count);
	int e = p->info->record != MT_RECORD_ALL ? late_slots_sort(r->slots, r->rings, count) : 0;
	if (e)
		return e;
	clamp_first(p, r, count);
	e = codec_encode_events(r->codec, r->slots, r->rings, (uint32_t)count, covers, cover_count, r->shift,
				&r->block);
	if (e)
		return codec_failed(p, e);
	e = append(p, r);
	if (e)
		return e;
	p->trace.last_ticks = ((const struct mt_block *)r->block.data)->last_ticks;
	ring_cut_commit(r->cut);
	return 0;
}

#define BURST_NS     1000000000ull
#define BURST_CHUNKS 2048u /* 512 MiB of page cache, 17 million events */

/* ---- a round --------------------------------------------------------------------------------------------- */

static uint32_t chunk_count(const struct record_process *p)
{
	/* acquire pairs with the shim's release after the ring file has grown */
	uint32_t n = __atomic_load_n(&p->info->chunks, __ATOMIC_ACQUIRE);
	return n < MT_MAX_CHUNKS ? n : MT_MAX_CHUNKS;
}

static uint8_t *states(const struct record_process *p)
{
	return (uint8_t *)p->info + MT_INFO_STATES;
}

static uint32_t chunks_in(const struct record_process *p, uint8_t wanted)
{
	uint32_t found = 0, n = chunk_count(p);
	const uint8_t *state = states(p);
	for (uint32_t i = 0; i < n; i++)
		found += __atomic_load_n(&state[i], __ATOMIC_RELAXED) == wanted;
	return found;
}

/* Raw chunks are as safe as blocks, so only whole blocks are worth the work. Where the ring can't grow any more half of
 * the chunks that no thread is at must do, and where events are being lost one. */
static uint32_t wanted_slots(struct record_process *p, struct recorder *r)
{
	uint64_t lost = __atomic_load_n(&p->info->lost_events, __ATOMIC_RELAXED);
	uint32_t half = (chunk_count(p) - chunks_in(p, MT_CHUNK_FILLING)) / 2 * MT_CHUNK_SLOTS, least = MT_CHUNK_SLOTS;
	bool losing = lost != p->lost;
	p->lost = lost;
	if (losing)
		r->lost_ns = ticks_mono_ns();
	bool tight = r->tight || p->info->fixed || p->info->seccomp;
	if (losing || (tight && half < least))
		return least;
	return tight && half < RECORD_BLOCK_SLOTS ? half : RECORD_BLOCK_SLOTS;
}

/* The cut in blocks of at least `least` slots; small ones where a large one did not fit on the disk. */
static int write_cut(struct record_process *p, struct recorder *r, size_t least)
{
	size_t most = p->failures ? MT_CHUNK_SLOTS : RECORD_BLOCK_SLOTS;
	int written = 0;
	for (;;) {
		size_t count = ring_cut_next(r->cut, r->slots, r->rings, most);
		if (!count || count + 1 < least) /* a mapping's two slots may not have fit */
			return written;
		int e = write_events(p, r, count);
		if (e)
			return e;
		written++;
		__atomic_store_n(&r->session->recorder_beat_ns, ticks_mono_ns(), __ATOMIC_RELAXED);
	}
}

/* A burst gets all cores: its events are left in the ring for a second, unless they are many or space is short. Who has
 * been writing lately goes on, so that a program which never pauses has its chunks back at once. */
static bool is_burst(struct record_process *p, uint32_t chunks, uint32_t wanted)
{
	uint64_t now = ticks_mono_ns();
	if (wanted < RECORD_BLOCK_SLOTS || chunks > BURST_CHUNKS || now - p->wrote_ns < BURST_NS) {
		p->burst_ns = 0;
		return false;
	}
	if (!p->burst_ns)
		p->burst_ns = now;
	return now - p->burst_ns < BURST_NS;
}

static bool has_work(struct record_process *p, uint32_t wanted)
{
	if (p->ring_fd < 0 || p->over)
		return p->ring_fd >= 0;
	uint32_t chunks = chunks_in(p, MT_CHUNK_FULL);
	return (uint64_t)chunks * MT_CHUNK_SLOTS >= wanted && !is_burst(p, chunks, wanted);
}

bool recorder_waits(const struct recorder *r)
{
	return r->reserved &&
	       __atomic_load_n(&r->session->used_bytes, __ATOMIC_RELAXED) + r->reserved > r->session->limit_bytes;
}

/* A disk may wait for each piece that it gets back, and most processes are small: all of theirs goes with the file, a
 * moment later. */
static bool gives_back(const struct record_process *p, const struct recorder *r)
{
	return p->over && (r->tight || chunk_count(p) > RECORD_BLOCK_SLOTS / MT_CHUNK_SLOTS);
}

/* What the table still has of a process that is over. *file is the caller's to free. */
static int read_young(const struct record_process *p, const struct recorder *r, void **file,
		      struct ring_cut_rings *rings)
{
	struct stat st;
	int fd = p->over && p->info->record != MT_RECORD_ALL ? open_raw(p, r, "young", O_RDONLY) : -1;
	size_t bytes = fd >= 0 && !fstat(fd, &st) ? young_file_bytes((uint64_t)st.st_size) : 0;
	*file = bytes ? malloc(bytes) : NULL;
	if (*file && read_at(fd, 0, *file, bytes)) {
		rings->young = *file;
		rings->young_bytes = bytes;
		rings->young_rings = p->info->rings;
	}
	if (fd >= 0)
		close(fd);
	return bytes && !*file ? error_memory() : 0;
}

static int record_events(struct record_process *p, struct recorder *r)
{
	uint32_t wanted = p->over ? 1 : wanted_slots(p, r);
	if (!has_work(p, wanted) || (!p->over && recorder_waits(r)))
		return 0;
	int e = open_trace(p, r);
	if (e || p->trace.complete)
		return e;
	struct ring_cut_rings rings = { .fd = p->ring_fd,
					.states = states(p),
					.chunks = chunk_count(p),
					.ended = p->over,
					.gives_back = gives_back(p, r),
					.horizon = r->horizon,
					.places = p->places,
					.place_room = p->place_room };
	void *young;
	e = read_young(p, r, &young, &rings);
	if (!e)
		e = ring_cut_begin(r->cut, &rings);
	if (!e)
		ring_cut_commit(r->cut); /* what an earlier recorder wrote and did not come to free */
	if (!e)
		e = write_cut(p, r, wanted);
	if (e >= 0 && ring_cut_skipped(r->cut)) {
		__atomic_fetch_add(&p->info->lost_events, ring_cut_skipped(r->cut), __ATOMIC_RELAXED);
		__atomic_fetch_or(&p->info->lost_why, MT_LOSS_DAMAGE, __ATOMIC_RELAXED);
	}
	p->places = rings.places;
	p->place_room = rings.place_room;
	free(young);
	if (e > 0)
		p->wrote_ns = ticks_mono_ns();
	return e;
}

/* ---- the end --------------------------------------------------------------------------------------------- */

int record_process_nodes(const struct record_process *p, const struct recorder *r, struct mt_node **nodes,
			 size_t *count)
{
	struct stat st;
	uint32_t end = p->info->node_end, base = p->info->node_base;
	int fd = open_raw(p, r, "nodes", O_RDONLY);
	*nodes = NULL;
	*count = end > MT_MAX_NODES ? MT_MAX_NODES : end;
	*count = *count > base ? *count - base : 0;
	if (fd < 0)
		return errno == ENOENT ? 1 : error_errno(MT_EIO, p->name, ERROR_NO_OFFSET);
	if (fstat(fd, &st) || (uint64_t)st.st_size / sizeof(struct mt_node) < *count)
		*count = (uint64_t)st.st_size / sizeof(struct mt_node);
	/* of one segment the end may be a hole, which a mapping would have to fill; more have none */
	size_t bytes = *count * sizeof(struct mt_node);
	bool copied = (uint64_t)st.st_size <= MT_NODE_STEP * sizeof(struct mt_node);
	void *map = !*count  ? NULL
		    : copied ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
			     : mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map && map != MAP_FAILED && copied && !read_at(fd, 0, map, bytes)) {
		munmap(map, bytes);
		map = MAP_FAILED;
	}
	close(fd);
	if (map == MAP_FAILED)
		return error_errno(MT_EIO, p->name, ERROR_NO_OFFSET);
	*nodes = map;
	return 0;
}

static int write_nodes(struct record_process *p, struct recorder *r)
{
	struct mt_node *nodes;
	size_t count;
	int e = record_process_nodes(p, r, &nodes, &count);
	if (e)
		return e < 0 ? e : 0;
	e = codec_encode_nodes(r->codec, nodes, (uint32_t)count, p->info->node_base, &r->block);
	if (nodes)
		munmap(nodes, count * sizeof(*nodes));
	return e ? codec_failed(p, e) : append(p, r);
}

static int write_info(struct record_process *p, struct recorder *r)
{
	uint64_t bytes = p->info->log_bytes;
	struct mt_info info = *p->info;
	if (info.record == MT_RECORD_SAMPLED)
		tallies_add(&info, (const struct mt_tally *)((const char *)p->info + MT_INFO_TALLIES));
	int fd = open_raw(p, r, "info", O_RDONLY);
	if (fd < 0)
		return error_errno(MT_EIO, p->name, ERROR_NO_OFFSET);
	char *log = bytes < CODEC_MAX_INFO ? malloc(bytes + 1) : NULL;
	ssize_t got = log ? pread(fd, log, bytes, MT_INFO_LOG) : -1;
	close(fd);
	if (!log || got < 0) {
		free(log);
		return error_set(MT_EIO, p->name, ERROR_NO_OFFSET, "the log can't be read");
	}
	info.log_bytes = (uint64_t)got & ~7ull;
	int e = codec_encode_info(r->codec, &info, log, info.log_bytes, &r->block);
	free(log);
	return e ? codec_failed(p, e) : append(p, r);
}

static int write_end(struct record_process *p, struct recorder *r)
{
	int e = write_nodes(p, r);
	if (!e)
		e = write_info(p, r);
	if (!e && (e = codec_encode_end(&r->block)) != 0)
		e = codec_failed(p, e);
	if (!e)
		e = append(p, r);
	p->trace.complete = !e;
	return e;
}

static void remove_raw(const struct record_process *p, const struct recorder *r, const char *extension)
{
	char path[4500];
	raw_path(p, r, extension, path, sizeof(path));
	unlink(path);
}

/* The info goes last: as long as it is there a later recorder looks after the rest. */
static int finish(struct record_process *p, struct recorder *r)
{
	int e = open_trace(p, r);
	if (!e && !p->trace.complete)
		e = write_end(p, r);
	if (e)
		return e;
	remove_raw(p, r, "ring");
	remove_raw(p, r, "nodes");
	remove_raw(p, r, "young");
	remove_raw(p, r, "info");
	__atomic_fetch_sub(&r->session->used_bytes, p->info->disk_bytes, __ATOMIC_RELAXED);
	p->finished = true;
	return 0;
}

/* After an error the file is read again, so that it alone says how far things are. */
static int start_over(struct record_process *p, int e)
{
	trace_writer_close(&p->trace);
	return e;
}

int record_process_round(struct record_process *p, struct recorder *r)
{
	int written = record_events(p, r);
	if (written < 0)
		return start_over(p, written);
	int e = p->over ? finish(p, r) : 0;
	return e ? start_over(p, e) : written + p->over;
}
