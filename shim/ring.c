#include <string.h>

#include "shim/clock.h"
#include "shim/config.h"
#include "shim/log.h"
#include "shim/process.h"
#include "shim/pyframes.h"
#include "shim/quiet.h"
#include "shim/recorder.h"
#include "shim/ring.h"
#include "shim/stack.h"
#include "shim/tables.h"

#define MAX_RINGS       65536
#define SLOTS_OF_PAGE   128u
#define READY           1024u               /* slots made writable at a time: 8 pages */
#define RETRY_NS        (20 * 1000 * 1000u) /* after a refusal */
#define STATES_RESERVED 4096u               /* chunk states that are reserved at a time */
#define HOT_CHUNKS      64u                 /* 16 MiB of full chunks may stay resident in the target */

/* Private to the process; entries are set once, before anybody can see the chunk as free. */
static struct mt_chunk **chunk_at; /* MT_MAX_CHUNKS */
static uint8_t *pages_of;          /* the same: how many of 4 KiB are reserved, of each chunk */
static struct mt_ring **rings;     /* MAX_RINGS */
static uint32_t hint, idle_from;   /* no ring below is idle, or a moment ago none was */

void mt_ring_tables(struct mt_tables *t)
{
	chunk_at = mt_tables_take(t, MT_MAX_CHUNKS * sizeof(*chunk_at));
	pages_of = mt_tables_take(t, MT_MAX_CHUNKS * sizeof(*pages_of));
	rings = mt_tables_take(t, MAX_RINGS * sizeof(*rings));
}

static uint64_t stack_bytes(void)
{
	return (mt_stack_bytes() + 63) & ~63ull;
}

static uint64_t pending_at(void)
{
	return (sizeof(struct mt_ring) + stack_bytes() + mt_python_bytes() + 4095) & ~4095ull;
}

static uint64_t ring_bytes(void)
{
	return pending_at() + ((MT_PENDING * sizeof(struct mt_event) + 4095) & ~4095ull);
}

void mt_ring_reset(void)
{
	for (uint32_t i = 0; i < MT_MAX_CHUNKS && chunk_at[i]; i++) {
		mt_sys_unmap(chunk_at[i], MT_CHUNK_BYTES);
		chunk_at[i] = NULL;
	}
	for (uint32_t i = 0; i < MAX_RINGS && rings[i]; i++) {
		mt_sys_unmap(rings[i], ring_bytes());
		rings[i] = NULL;
	}
	hint = idle_from = 0;
}

/* ---- chunks ---- */

/* The state byte decides who owns a chunk: this CAS pairs with the recorder's release of FREE, after which it
 * reads nothing of the chunk any more. */
static int claim(uint32_t i)
{
	uint8_t state = MT_CHUNK_FREE;

	return __atomic_load_n(&chunk_at[i], __ATOMIC_ACQUIRE) &&
	       __atomic_compare_exchange_n(&mt_process.states[i], &state, MT_CHUNK_FILLING, 0, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static int claim_free(uint32_t *index)
{
	uint32_t n = __atomic_load_n(&mt_process.info->chunks, __ATOMIC_ACQUIRE);
	uint32_t first = __atomic_load_n(&hint, __ATOMIC_RELAXED); /* any value is right */

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = (first + k) % n;
		if (__atomic_load_n(&mt_process.states[i], __ATOMIC_RELAXED) == MT_CHUNK_FREE && claim(i)) {
			__atomic_store_n(&hint, i + 1, __ATOMIC_RELAXED);
			*index = i;
			return 1;
		}
	}
	return 0;
}

/* Adds a chunk to the file, of which the whole or a page is reserved; the caller holds the lock. */
static int grow(int whole)
{
	uint32_t i = mt_process.info->chunks,
		 bytes = (uint32_t)mt_sys_first(whole ? MT_CHUNK_BYTES : 4096, MT_CHUNK_BYTES);
	struct mt_chunk *chunk;

	if (i == MT_MAX_CHUNKS || mt_process_sandboxed() ||
	    (i && i % STATES_RESERVED == 0 &&
	     !mt_process_reserve("info", MT_INFO_STATES + i, STATES_RESERVED, mt_process.states + i)) ||
	    !mt_process_charge(bytes, i ? MT_CHARGE_NEW : MT_CHARGE_FIRST))
		return 0;
	chunk = mt_process_map("ring", (uint64_t)i * MT_CHUNK_BYTES, MT_CHUNK_BYTES, bytes, i ? MT_EXTEND : MT_CREATE);
	if (!chunk) {
		mt_process_refund(bytes);
		return 0;
	}
	pages_of[i] = (uint8_t)(bytes / 4096);
	__atomic_store_n(&chunk_at[i], chunk, __ATOMIC_RELEASE);
	__atomic_store_n(&mt_process.info->chunks, i + 1, __ATOMIC_RELEASE);
	return 1;
}

/* While one thread makes a chunk, others may have been given one back. */
static int find_chunk(uint32_t *index, int whole)
{
	int found = claim_free(index);

	if (!found && mt_lock_take(&mt_process.lock)) {
		found = claim_free(index);
		while (!found && grow(whole))
			found = claim_free(index);
		mt_lock_drop(&mt_process.lock);
	}
	return found;
}

/* Reserves four times as much of a chunk as before; the caller holds the lock. */
static int extend(uint32_t i)
{
	uint32_t from = pages_of[i] * 4096u, to = from * 4;

	if (!mt_process_reserve("ring", (uint64_t)i * MT_CHUNK_BYTES + from, to - from, (char *)chunk_at[i] + from))
		return 0;
	__atomic_store_n(&pages_of[i], (uint8_t)(to / 4096), __ATOMIC_RELAXED);
	return 1;
}

/* Of the first chunk of a thread little is reserved at first: most threads write little. Before a sandbox is entered
 * another thread may do it (mt_ring_reserve), so it takes the lock. */
static int extend_own(struct mt_ring *ring)
{
	uint64_t now = mt_clock_ns(CLOCK_MONOTONIC_COARSE), signals;
	uint8_t before = pages_of[ring->chunk_index];
	int ok = 0;

	if (now < ring->retry_ns || mt_process_sandboxed())
		return 0;
	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		ok = pages_of[ring->chunk_index] > before || extend(ring->chunk_index);
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
	ring->retry_ns = ok ? 0 : now + RETRY_NS;
	return ok;
}

/* More slots of what is reserved, or 0 if no more can be. */
static int make_ready(struct mt_ring *ring)
{
	/* the chunk's header takes the place of two slots */
	uint32_t done = ring->ready ? ring->ready + 2 : 0, slots;

	slots = __atomic_load_n(&pages_of[ring->chunk_index], __ATOMIC_RELAXED) * SLOTS_OF_PAGE - done;
	if (!slots) {
		if (!extend_own(ring))
			return 0;
		slots = pages_of[ring->chunk_index] * SLOTS_OF_PAGE - done;
	}
	slots = slots < READY ? slots : READY;
	if (!mt_process_sandboxed())
		mt_sys_populate((struct mt_event *)ring->chunk + done, slots * sizeof(struct mt_event));
	ring->ready = done + slots - 2;
	return 1;
}

static void open_chunk(struct mt_ring *ring, uint32_t index)
{
	struct mt_chunk *chunk = chunk_at[index];

	/* `used` first: until the new header is whole, a reader finds nothing here to take */
	__atomic_store_n(&chunk->used, 0, __ATOMIC_RELEASE);
	chunk->ring = ring->index;
	chunk->seq = ring->seq++;
	chunk->thread = ring->thread;
	chunk->magic = MT_CHUNK_MAGIC;
	ring->chunk = chunk;
	ring->chunk_index = index;
	ring->slots = (struct mt_event *)(chunk + 1);
	ring->used = 0;
	ring->ready = 0;
	make_ready(ring);
}

/* Pages of a full chunk leave the target's resident set beyond a stock: they live on in the page cache. */
static void close_chunk(struct mt_ring *ring)
{
	if (ring->chunk->magic != MT_CHUNK_MAGIC || ring->chunk->ring != ring->index ||
	    ring->chunk->seq + 1 != ring->seq)
		mt_process_fault(); /* the target wrote over it, or two threads share a ring */
	__atomic_store_n(&mt_process.states[ring->chunk_index], MT_CHUNK_FULL, __ATOMIC_RELEASE);
	if (ring->chunk_index >= HOT_CHUNKS)
		MT_SYS3(SYS_madvise, ring->chunk, MT_CHUNK_BYTES, 4 /* MADV_DONTNEED */);
	ring->slots = NULL;
	ring->ready = 0;
	mt_process_pair_clocks();
	mt_recorder_want();
}

static int next_chunk(struct mt_ring *ring)
{
	uint64_t now = mt_clock_ns(CLOCK_MONOTONIC_COARSE), signals;
	uint32_t index;
	int found;

	if (ring->slots)
		close_chunk(ring);
	if (now < ring->retry_ns)
		return 0;
	mt_sys_block_signals(&signals);
	found = find_chunk(&index, ring->seq != 0);
	if (found)
		open_chunk(ring, index);
	mt_sys_restore_signals(&signals);
	ring->retry_ns = found ? 0 : now + RETRY_NS;
	return found;
}

/* ---- events ---- */

/* Slots are about to cross `ready`, or there is no chunk. */
static int make_room(struct mt_ring *ring, uint32_t n, uint64_t ticks)
{
	while (ring->slots && ring->used + n > ring->ready && ring->ready < MT_CHUNK_SLOTS)
		if (!make_ready(ring))
			return 0;
	if (!(ring->slots && ring->used + n <= ring->ready) && !next_chunk(ring))
		return 0;
	if (ring->lost) {
		struct mt_event e = { .ticks = ticks, .addr = ring->lost, .kind = MT_LOST };
		ring->lost = 0;
		mt_ring_put(ring, &e, 1);
	}
	return 1;
}

void mt_ring_write_on(struct mt_ring *ring, const struct mt_event *slots, uint32_t n)
{
	if (!make_room(ring, n, slots->ticks)) {
		/* who has the ring is in the next chunk's header anyway */
		if (slots->kind != MT_THREAD) {
			ring->lost++;
			mt_process_lost(1);
		}
		return;
	}
	mt_ring_put(ring, slots, n);
}

/* ---- who has which ring ---- */

/* Records the thread's name if it has changed; most threads are named only after they have started. */
static void note_name(struct mt_ring *ring, int always)
{
	struct mt_rec_thread rec = { ring->thread, 0 };
	char name[16];

	rec.tid = mt_quiet_thread(name);
	if (!always && (!*name || !strncmp(name, ring->name, sizeof(name))))
		return;
	memcpy(ring->name, name, sizeof(name));
	mt_log_add(MT_REC_THREAD, (struct mt_part[]){ { &rec, sizeof(rec) }, { name, strnlen(name, 15) + 1 } }, 2);
}

static struct mt_ring *make_ring(uint32_t i)
{
	struct mt_ring *ring = mt_sys_pages(ring_bytes()), *none = NULL;

	if (!ring)
		return NULL;
	ring->index = i;
	ring->stack_bytes = (uint32_t)stack_bytes();
	ring->pending = (struct mt_event *)((char *)ring + pending_at());
	ring->owner = 1;
	mt_sample_start(&ring->sample, (mt_config.sample_seed ? mt_config.sample_seed : mt_ticks()) ^ (uint64_t)i << 48,
			mt_config.sample_bytes);
	if (!__atomic_compare_exchange_n(&rings[i], &none, ring, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		mt_sys_unmap(ring, ring_bytes());
		return NULL;
	}
	__atomic_fetch_add(&mt_process.info->rings, 1, __ATOMIC_RELAXED);
	return ring;
}

static struct mt_ring *find_ring(void)
{
	for (uint32_t i = __atomic_load_n(&idle_from, __ATOMIC_RELAXED); i < MAX_RINGS; i++) {
		struct mt_ring *ring = __atomic_load_n(&rings[i], __ATOMIC_ACQUIRE);
		uint32_t idle = 0;

		__atomic_store_n(&idle_from, i, __ATOMIC_RELAXED);

		if (!ring) {
			if (mt_process_sandboxed())
				return NULL;
			if ((ring = make_ring(i)) != NULL)
				return ring;
			ring = __atomic_load_n(&rings[i], __ATOMIC_ACQUIRE);
			if (!ring)
				return NULL;
		}
		/* acquire pairs with the release in mt_ring_leave: the last owner's events are ours to continue */
		if (__atomic_compare_exchange_n(&ring->owner, &idle, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return ring;
	}
	return NULL;
}

void mt_ring_renamed(struct mt_ring *ring)
{
	note_name(ring, 0);
}

struct mt_ring *mt_ring_take(uint32_t thread)
{
	struct mt_ring *ring = find_ring();
	struct mt_event e = { .ticks = mt_ticks(), .kind = MT_THREAD };

	if (!ring)
		return NULL;
	ring->thread = thread;
	ring->captures = 0;
	if (thread == MT_NEW_THREAD) {
		ring->thread = __atomic_fetch_add(&mt_process.info->threads, 1, __ATOMIC_RELAXED);
		/* before any event of this thread: see clock.h */
		if (ring->thread)
			__atomic_store_n(&mt_clock_shared, 1, __ATOMIC_SEQ_CST);
		note_name(ring, 1);
	}
	e.addr = ring->thread;
	mt_ring_write(ring, &e, 1);
	return ring;
}

void mt_ring_leave(struct mt_ring *ring, int ends)
{
	if (ends)
		note_name(ring, 0);
	__atomic_store_n(&ring->owner, 0, __ATOMIC_RELEASE);
	if (ring->index < __atomic_load_n(&idle_from, __ATOMIC_RELAXED))
		/* who is looking may miss it, and makes one more */
		__atomic_store_n(&idle_from, ring->index, __ATOMIC_RELAXED);
}

void mt_ring_reserve(uint32_t chunks, int whole)
{
	uint64_t signals;

	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		while (chunks-- && grow(whole))
			;
		for (uint32_t i = 0; whole && i < mt_process.info->chunks; i++)
			while (pages_of[i] < MT_CHUNK_BYTES / 4096 && extend(i))
				;
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
}

void mt_ring_stock(uint32_t n)
{
	for (uint32_t i = 0; i < MAX_RINGS && n; i++) {
		struct mt_ring *ring = __atomic_load_n(&rings[i], __ATOMIC_ACQUIRE) ? NULL : make_ring(i);
		if (ring) {
			__atomic_store_n(&ring->owner, 0, __ATOMIC_RELEASE);
			n--;
		}
	}
}
