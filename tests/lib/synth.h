/*
 * Trace directories made by hand, for unit tests: say what happened in which ring, and in which form it is to lie on disk.
 *
 *   struct synth s;
 *   synth_begin(&s);                                          a directory of its own under /tmp
 *   struct synth_process *p = synth_process(&s, 100, 0);
 *   uint32_t node = synth_node(p, 0, 0x1000);
 *   synth_alloc(p, ring, ticks, addr, size, node); ...        order of calls = order in time
 *   synth_write(p, SYNTH_RAW) or SYNTH_BLOCKS or SYNTH_MIXED;
 *   ... s.dir ...
 *   synth_end(&s);
 *
 * The clock is CLOCK_MONOTONIC's kind: a tick is a nanosecond. Everything starts at SYNTH_START.
 */
#ifndef MT_SYNTH_H
#define MT_SYNTH_H

#include "format/codec.h"
#include "format/format.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYNTH_START 1000000000ull
#define SYNTH_REAL  1700000000000000000ull
#define SYNTH_HOOK_MALLOC 1u
#define SYNTH_HOOK_FREE   2u
#define SYNTH_HOOK_MMAP   3u

#define SYNTH_UNUSED __attribute__((unused))

enum synth_form {
	SYNTH_RAW,    /* chunks of a ring file: no recorder ever came */
	SYNTH_MIXED,  /* the first half in blocks, the rest raw */
	SYNTH_BLOCKS, /* finished: the trace alone */
};

struct synth_slot { struct mt_event event; uint32_t ring; };

struct synth_process {
	struct synth *synth;
	struct mt_info info;
	struct synth_slot *slots;
	size_t count, room;
	struct mt_node *nodes;
	size_t nodes_room;
	unsigned char *log;
	size_t log_bytes, log_room;
	uint32_t block_slots; /* of an events block; 1000 if not set */
	struct synth_process *next;
};

struct synth {
	char dir[64];
	struct mt_session session;
	struct synth_process *processes;
};

static void *synth_grow(void *p, size_t *room, size_t need, size_t size)
{
	if (need <= *room)
		return p;
	*room = need * 2;
	p = realloc(p, *room * size);
	if (!p)
		abort();
	return p;
}

static void synth_path(const struct synth *s, const char *name, char path[256])
{
	snprintf(path, 256, "%s/%s", s->dir, name);
}

static void synth_save(const struct synth *s, const char *name, const void *data, size_t n)
{
	char path[256];
	synth_path(s, name, path);
	FILE *f = fopen(path, "we");
	if (!f || fwrite(data, 1, n, f) != n || fclose(f))
		abort();
}

static SYNTH_UNUSED void synth_save_session(struct synth *s)
{
	unsigned char page[4096] = { 0 };
	memcpy(page, &s->session, sizeof(s->session));
	synth_save(s, "session", page, sizeof(page));
}

static SYNTH_UNUSED void synth_begin(struct synth *s)
{
	*s = (struct synth){ .dir = "/tmp/memtrace-synth-XXXXXX" };
	if (!mkdtemp(s->dir))
		abort();
	s->session = (struct mt_session){
		.magic = MT_SESSION_MAGIC, .version = MT_VERSION, .bytes = sizeof(s->session), .clock = MT_CLOCK_MONOTONIC,
		.start_ticks = SYNTH_START, .start_mono_ns = SYNTH_START, .start_real_ns = SYNTH_REAL, .page_bytes = 4096,
		.boot_id = "00000000-0000-0000-0000-000000000000", .host = "synth",
	};
	synth_save_session(s);
}

static SYNTH_UNUSED void synth_record(struct synth_process *p, uint16_t type, uint64_t ticks, const void *head, size_t head_bytes,
				      const void *tail, size_t tail_bytes)
{
	size_t bytes = (sizeof(struct mt_record) + head_bytes + tail_bytes + 7) & ~7ul;
	struct mt_record r = { .type = type, .bytes = (uint32_t)bytes, .ticks = ticks };
	p->log = synth_grow(p->log, &p->log_room, p->log_bytes + bytes, 1);
	unsigned char *at = p->log + p->log_bytes;
	memset(at, 0, bytes);
	memcpy(at, &r, sizeof(r));
	if (head_bytes)
		memcpy(at + sizeof(r), head, head_bytes);
	if (tail_bytes)
		memcpy(at + sizeof(r) + head_bytes, tail, tail_bytes);
	p->log_bytes += bytes;
}

static SYNTH_UNUSED void synth_text(struct synth_process *p, uint16_t type, const void *head, size_t head_bytes, const char *text)
{
	synth_record(p, type, SYNTH_START, head, head_bytes, text, strlen(text) + 1);
}

static SYNTH_UNUSED struct synth_process *synth_process(struct synth *s, uint32_t pid, uint32_t image)
{
	static const char *const hooks[] = { NULL, "malloc", "free", "mmap", "cudaMalloc" };
	struct synth_process *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->synth = s;
	p->info = (struct mt_info){
		.magic = MT_INFO_MAGIC, .version = MT_VERSION, .bytes = sizeof(p->info), .pid = pid, .image = image,
		.parent_pid = 1, .parent_image = MT_NO_PARENT, .origin = MT_ORIGIN_EXEC, .clock = MT_CLOCK_MONOTONIC,
		.start_ticks = SYNTH_START, .start_mono_ns = SYNTH_START, .start_real_ns = SYNTH_REAL, .boot_start = pid,
		.depth = 512, .node_end = 1,
	};
	p->next = s->processes;
	s->processes = p;
	synth_record(p, MT_REC_PROGRAM, SYNTH_START, "/bin/synth", 11, "synth\0--fast", 13);
	for (uint32_t i = 1; i < 5; i++)
		synth_text(p, MT_REC_HOOK, &(struct mt_rec_hook){ i, 0 }, 8, hooks[i]);
	synth_text(p, MT_REC_THREAD, &(struct mt_rec_thread){ 0, pid }, 8, "main");
	return p;
}

/* A child that was forked at `ticks` with the parent's nodes so far. */
static SYNTH_UNUSED struct synth_process *synth_fork(struct synth_process *parent, uint32_t pid, uint64_t ticks)
{
	struct synth_process *p = synth_process(parent->synth, pid, 0);
	p->info.origin = MT_ORIGIN_FORK;
	p->info.parent_pid = parent->info.pid;
	p->info.parent_image = parent->info.image;
	p->info.fork_ticks = ticks;
	p->info.fork_exact = 1;
	p->info.start_ticks = p->info.start_mono_ns = ticks + 1000;
	p->info.start_real_ns = SYNTH_REAL + (ticks + 1000 - SYNTH_START);
	p->info.node_base = p->info.node_end = (parent->info.node_end + MT_NODE_STEP - 1) / MT_NODE_STEP * MT_NODE_STEP;
	return p;
}

static SYNTH_UNUSED uint32_t synth_node(struct synth_process *p, uint32_t parent, uint64_t pc)
{
	uint32_t id = p->info.node_end++, own = id - p->info.node_base;
	size_t before = p->nodes_room;
	p->nodes = synth_grow(p->nodes, &p->nodes_room, own + 1ul, sizeof(*p->nodes));
	if (!before)
		p->nodes[0] = (struct mt_node){ 0 };
	p->nodes[own] = (struct mt_node){ .pc = pc, .parent = parent };
	return id;
}

static SYNTH_UNUSED void synth_slot(struct synth_process *p, uint32_t ring, struct mt_event e)
{
	p->slots = synth_grow(p->slots, &p->room, p->count + 1, sizeof(*p->slots));
	p->slots[p->count++] = (struct synth_slot){ e, ring };
	if (ring >= p->info.rings)
		p->info.rings = p->info.threads = ring + 1;
}

static SYNTH_UNUSED void synth_alloc(struct synth_process *p, uint32_t ring, uint64_t ticks, uint64_t addr, uint64_t size,
				     uint32_t node)
{
	synth_slot(p, ring, (struct mt_event){ .ticks = ticks, .addr = addr, .size = size & MT_MAX_SIZE, .hook = SYNTH_HOOK_MALLOC,
					       .kind = MT_ALLOC, .node = node });
}

/* MT_FREE, MT_UNDO, MT_THREAD, MT_LOST: whatever has an address alone. */
static SYNTH_UNUSED void synth_plain(struct synth_process *p, uint32_t ring, uint64_t ticks, enum mt_kind kind, uint64_t addr)
{
	unsigned hook = kind == MT_FREE || kind == MT_UNDO ? SYNTH_HOOK_FREE : 0;
	synth_slot(p, ring, (struct mt_event){ .ticks = ticks, .addr = addr, .hook = hook & 1023, .kind = kind & 63 });
}

static SYNTH_UNUSED void synth_fail(struct synth_process *p, uint32_t ring, uint64_t ticks, uint64_t bytes, uint32_t node)
{
	synth_slot(p, ring, (struct mt_event){ .ticks = ticks, .addr = bytes, .size = MT_ALLOC, .hook = SYNTH_HOOK_MALLOC,
					       .kind = MT_FAIL, .node = node });
}

static SYNTH_UNUSED void synth_map(struct synth_process *p, uint32_t ring, uint64_t ticks, uint64_t addr, uint64_t size,
				   struct mt_ext_map ext, uint32_t node)
{
	struct mt_event second;
	memcpy(&second, &ext, sizeof(second));
	second.kind = MT_EXT;
	synth_slot(p, ring, (struct mt_event){ .ticks = ticks, .addr = addr, .size = size & MT_MAX_SIZE, .hook = SYNTH_HOOK_MMAP,
					       .kind = MT_MAP, .node = node });
	synth_slot(p, ring, second);
}

static SYNTH_UNUSED void synth_unmap(struct synth_process *p, uint32_t ring, uint64_t ticks, uint64_t addr, uint64_t size)
{
	synth_slot(p, ring, (struct mt_event){ .ticks = ticks, .addr = addr, .size = size & MT_MAX_SIZE, .hook = SYNTH_HOOK_MMAP,
					       .kind = MT_UNMAP });
}

/* ---- Python ---------------------------------------------------------------------------------------------- */

/* A function; its instruction at offset 2 N is on line N, as Python 3.8 would say it. */
static SYNTH_UNUSED void synth_code(struct synth_process *p, uint32_t id, const char *file, const char *name)
{
	enum { LINES = 100 };
	unsigned char data[2 * LINES + 256];
	size_t n = strlen(file) + 1, all = 2 * LINES + n + strlen(name) + 1;
	if (all > sizeof(data))
		abort();
	for (int i = 0; i < LINES; i++) {
		data[2 * i] = 2;
		data[2 * i + 1] = 1;
	}
	memcpy(data + 2 * LINES, file, n);
	memcpy(data + 2 * LINES + n, name, strlen(name) + 1);
	synth_record(p, MT_REC_CODE, SYNTH_START, &(struct mt_rec_code){ id, 0x308, 0, 2 * LINES }, sizeof(struct mt_rec_code), data, all);
}

/* The node of that function at a line, called by `parent`. */
static SYNTH_UNUSED uint32_t synth_frame(struct synth_process *p, uint32_t parent, uint32_t code, uint32_t line)
{
	uint32_t id = synth_node(p, parent, MT_PY_FRAME | (uint64_t)code << 32 | 2 * line);
	p->nodes[id - p->info.node_base].flags = MT_NODE_PYTHON;
	return id;
}

/* The latest slot is of that stack, too. */
static SYNTH_UNUSED void synth_python(struct synth_process *p, uint32_t node2) { p->slots[p->count - 1].event.node2 = node2; }

/* ---- devices --------------------------------------------------------------------------------------------- */

/* `uuid` as CUDA or Ascend ordinal `id` - 1, under number `id`. */
static SYNTH_UNUSED void synth_device(struct synth_process *p, uint32_t id, uint32_t backend, const char *uuid, uint64_t total)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "%s%cStand-in", uuid, 0);
	synth_record(p, MT_REC_DEVICE, SYNTH_START, &(struct mt_rec_device){ .id = id, .backend = backend, .ordinal = id - 1,
		     .total_bytes = total }, sizeof(struct mt_rec_device), text, (size_t)n + 1);
}

static SYNTH_UNUSED void synth_ext(struct synth_process *p, uint32_t ring, struct mt_event e, struct mt_ext_device ext)
{
	struct mt_event second;
	memcpy(&second, &ext, sizeof(second));
	second.kind = MT_EXT;
	synth_slot(p, ring, e);
	synth_slot(p, ring, second);
}

/* Device events of a common shape; size and node where they have a meaning. */
static SYNTH_UNUSED void synth_dev(struct synth_process *p, uint32_t ring, uint64_t ticks, enum mt_kind kind, enum mt_class class,
				   uint32_t device, uint64_t addr, uint64_t size, uint32_t node)
{
	synth_ext(p, ring, (struct mt_event){ .ticks = ticks, .addr = addr, .size = size & MT_MAX_SIZE, .kind = kind & 63, .node = node,
					      .hook = 4 },
		  (struct mt_ext_device){ .class = class & 255, .device = device & 0xffff });
}

/* A block of the pool, or (MT_DEVICE_FAIL) a request, in a capture. */
static SYNTH_UNUSED void synth_dev_captured(struct synth_process *p, uint32_t ring, uint64_t ticks, enum mt_kind kind, uint32_t device,
					    uint64_t addr, uint64_t size, uint32_t node, uint32_t capture)
{
	synth_ext(p, ring, (struct mt_event){ .ticks = ticks, .addr = addr, .size = size & MT_MAX_SIZE, .kind = kind & 63, .node = node },
		  (struct mt_ext_device){ .class = MT_CLASS_POOL, .device = device & 0xffff, .capture = capture });
}

static SYNTH_UNUSED void synth_dev_map(struct synth_process *p, uint32_t ring, uint64_t ticks, uint32_t device, uint64_t addr,
				       uint64_t size, uint64_t handle)
{
	synth_ext(p, ring, (struct mt_event){ .ticks = ticks, .addr = addr, .size = size & MT_MAX_SIZE, .kind = MT_DEVICE_MAP },
		  (struct mt_ext_device){ .class = MT_CLASS_PHYSICAL, .device = device & 0xffff, .stream = handle });
}

static SYNTH_UNUSED void synth_dev_info(struct synth_process *p, uint32_t ring, uint64_t ticks, uint32_t device, uint64_t free_bytes,
					uint64_t total)
{
	synth_dev(p, ring, ticks, MT_DEVICE_INFO, MT_CLASS_DEVICE, device, free_bytes, total, 0);
}

/* ---- writing --------------------------------------------------------------------------------------------- */

static void synth_name(const struct synth_process *p, const char *extension, char name[64])
{
	snprintf(name, 64, "%" PRIu32 "-%" PRIu32 ".%s", p->info.pid, p->info.image, extension);
}

/* Position of every slot in its ring: a mapping never straddles two chunks. */
static uint64_t *synth_positions(const struct synth_process *p, uint64_t *next)
{
	uint64_t *at = calloc(p->count + 1, sizeof(*at));
	if (!at)
		abort();
	for (size_t i = 0; i < p->count; i++) {
		uint64_t *n = &next[p->slots[i].ring];
		if (mt_has_ext(p->slots[i].event.kind) && *n % MT_CHUNK_SLOTS == MT_CHUNK_SLOTS - 1)
			++*n;
		at[i] = (*n)++;
	}
	return at;
}

/* Chunks of all slots from `first` on, whole chunks FULL and the last of each ring FILLING. */
static void synth_write_ring(struct synth_process *p, const uint64_t *at, size_t first, uint8_t *states)
{
	char *data = NULL;
	size_t room = 0;
	uint32_t chunks = 0;
	for (uint32_t ring = 0; ring < p->info.rings; ring++) {
		uint64_t seq = UINT64_MAX;
		for (size_t i = first; i < p->count; i++) {
			if (p->slots[i].ring != ring)
				continue;
			if (at[i] / MT_CHUNK_SLOTS != seq) {
				if (seq != UINT64_MAX)
					states[chunks - 1] = MT_CHUNK_FULL;
				seq = at[i] / MT_CHUNK_SLOTS;
				data = synth_grow(data, &room, (chunks + 1ul) * MT_CHUNK_BYTES, 1);
				memset(data + (size_t)chunks * MT_CHUNK_BYTES, 0, MT_CHUNK_BYTES);
				struct mt_chunk head = { .magic = MT_CHUNK_MAGIC, .ring = ring, .seq = seq, .thread = ring };
				memcpy(data + (size_t)chunks * MT_CHUNK_BYTES, &head, sizeof(head));
				states[chunks++] = MT_CHUNK_FILLING;
			}
			struct mt_chunk *c = (struct mt_chunk *)(data + (chunks - 1ul) * MT_CHUNK_BYTES);
			c->used = (uint32_t)(at[i] % MT_CHUNK_SLOTS) + 1;
			memcpy((struct mt_event *)(c + 1) + at[i] % MT_CHUNK_SLOTS, &p->slots[i].event, sizeof(struct mt_event));
		}
	}
	char name[64];
	synth_name(p, "ring", name);
	synth_save(p->synth, name, data ? data : "", chunks * (size_t)MT_CHUNK_BYTES);
	p->info.chunks = chunks;
	free(data);
}

static void synth_write_info(struct synth_process *p, const uint8_t *states)
{
	size_t n = MT_INFO_LOG + (p->log_bytes + MT_LOG_STEP - 1) / MT_LOG_STEP * MT_LOG_STEP;
	char *data = calloc(1, n), name[64];
	if (!data)
		abort();
	memcpy(data, &p->info, sizeof(p->info));
	memcpy(data + MT_INFO_STATES, states, MT_MAX_CHUNKS);
	memcpy(data + MT_INFO_LOG, p->log, p->log_bytes);
	synth_name(p, "info", name);
	synth_save(p->synth, name, data, n);
	free(data);
}

static uint32_t synth_own_nodes(const struct synth_process *p)
{
	return p->nodes ? p->info.node_end - p->info.node_base : 0;
}

static void synth_write_nodes(struct synth_process *p)
{
	uint32_t own = synth_own_nodes(p), whole = (own / MT_NODE_STEP + 1) * MT_NODE_STEP;
	struct mt_node *data = calloc(whole, sizeof(*data));
	char name[64];
	if (!data)
		abort();
	if (own)
		memcpy(data, p->nodes, own * sizeof(*data));
	synth_name(p, "nodes", name);
	synth_save(p->synth, name, data, whole * sizeof(*data));
	free(data);
}

struct synth_trace { struct codec *codec; struct codec_buf block; FILE *file; };

static void synth_put(struct synth_trace *t, int error)
{
	if (error || fwrite(t->block.data, 1, t->block.size, t->file) != t->block.size)
		abort();
}

/* Who has the ring before that slot. */
static uint32_t synth_owner(const struct synth_process *p, uint32_t ring, size_t slot)
{
	while (slot-- > 0)
		if (p->slots[slot].ring == ring && p->slots[slot].event.kind == MT_THREAD)
			return (uint32_t)p->slots[slot].event.addr;
	return ring;
}

/* One block of slots [from, to). */
static void synth_put_events(struct synth_trace *t, const struct synth_process *p, const uint64_t *at, size_t from, size_t to)
{
	size_t n = to - from;
	struct mt_event *events = calloc(n, sizeof(*events));
	uint32_t *rings = calloc(n, sizeof(*rings)), covers = 0;
	struct mt_cover *cover = calloc(n, sizeof(*cover));
	if (!events || !rings || !cover)
		abort();
	for (size_t i = 0; i < n; i++) {
		events[i] = p->slots[from + i].event;
		rings[i] = p->slots[from + i].ring;
		struct mt_cover *c = NULL;
		for (uint32_t k = 0; k < covers; k++)
			if (cover[k].ring == rings[i] && cover[k].to == at[from + i])
				c = &cover[k];
		if (!c) {
			c = &cover[covers++];
			*c = (struct mt_cover){ .ring = rings[i], .thread = synth_owner(p, rings[i], from + i), .from = at[from + i] };
		}
		c->to = at[from + i] + 1;
	}
	synth_put(t, codec_encode_events(t->codec, events, rings, (uint32_t)n, cover, covers, 0, &t->block));
	free(events);
	free(rings);
	free(cover);
}

/* Slots [0, end) in blocks; returns where it stopped, so that no mapping is torn. */
static size_t synth_put_blocks(struct synth_trace *t, const struct synth_process *p, const uint64_t *at, size_t end)
{
	size_t size = p->block_slots ? p->block_slots : 1000, from = 0;
	while (from < end) {
		size_t to = from + size < end ? from + size : end;
		while (to < p->count && p->slots[to].event.kind == MT_EXT)
			to++;
		synth_put_events(t, p, at, from, to);
		from = to;
	}
	return from;
}

static void synth_open_trace(struct synth_trace *t, const struct synth_process *p)
{
	char name[64], path[256];
	struct mt_trace_header head = { .magic = MT_TRACE_MAGIC, .version = MT_VERSION, .bytes = sizeof(head),
					.pid = p->info.pid, .image = p->info.image };
	synth_name(p, "trace", name);
	synth_path(p->synth, name, path);
	*t = (struct synth_trace){ .codec = codec_new(), .file = fopen(path, "we") };
	if (!t->codec || !t->file || fwrite(&head, sizeof(head), 1, t->file) != 1)
		abort();
}

static void synth_close_trace(struct synth_trace *t)
{
	if (fclose(t->file))
		abort();
	codec_buf_fini(&t->block);
	codec_free(t->codec);
}

/* Writes the process's files; may be called again with another form after more events. */
static SYNTH_UNUSED void synth_write(struct synth_process *p, enum synth_form form)
{
	static uint8_t states[MT_MAX_CHUNKS];
	uint64_t *next = calloc(p->info.rings + 1ul, sizeof(*next)), *at = synth_positions(p, next);
	size_t done = 0;
	if (!next)
		abort();
	memset(states, 0, sizeof(states));
	p->info.log_bytes = p->log_bytes;
	p->info.pair_ticks = p->info.pair_mono_ns = p->count ? p->slots[p->count - 1].event.ticks : SYNTH_START;
	if (p->count && p->slots[p->count - 1].event.kind == MT_EXT)
		p->info.pair_ticks = p->info.pair_mono_ns = p->slots[p->count - 2].event.ticks;
	if (form != SYNTH_RAW) {
		struct synth_trace t;
		synth_open_trace(&t, p);
		done = synth_put_blocks(&t, p, at, form == SYNTH_BLOCKS ? p->count : p->count / 2);
		if (form == SYNTH_BLOCKS) {
			if (synth_own_nodes(p))
				synth_put(&t, codec_encode_nodes(t.codec, p->nodes, synth_own_nodes(p), p->info.node_base, &t.block));
			synth_put(&t, codec_encode_info(t.codec, &p->info, p->log, p->log_bytes, &t.block));
			synth_put(&t, codec_encode_end(&t.block));
		}
		synth_close_trace(&t);
	}
	if (form != SYNTH_BLOCKS) {
		synth_write_ring(p, at, done, states);
		synth_write_info(p, states);
		synth_write_nodes(p);
	}
	free(next);
	free(at);
}

/* A process that does nothing until it is killed: who a trace's process is that goes on. */
static SYNTH_UNUSED pid_t synth_sleeper(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static SYNTH_UNUSED void synth_end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* What its info calls boot_start. */
static SYNTH_UNUSED uint64_t synth_boot_start(pid_t pid)
{
	char path[64], text[1024] = "";
	unsigned long long start = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	const char *end = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	if (!end || sscanf(end + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &start) != 1)
		abort();
	fclose(f);
	return start;
}

static SYNTH_UNUSED void synth_end(struct synth *s)
{
	static const char *const extensions[] = { "info", "nodes", "ring", "trace" };
	char name[64], path[256];
	for (struct synth_process *p = s->processes, *next; p; p = next) {
		for (int i = 0; i < 4; i++) {
			synth_name(p, extensions[i], name);
			synth_path(s, name, path);
			unlink(path);
		}
		next = p->next;
		free(p->slots);
		free(p->nodes);
		free(p->log);
		free(p);
	}
	synth_path(s, "session", path);
	unlink(path);
	synth_path(s, "samples", path); /* of a recorder that was there */
	unlink(path);
	rmdir(s->dir);
}

#endif
