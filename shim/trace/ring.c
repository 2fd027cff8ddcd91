#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/disk.h"
#include "shim/base/file.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/base/tables.h"
#include "shim/python/pyframes.h"
#include "shim/stack/stack.h"
#include "shim/trace/recorder.h"
#include "shim/trace/ring.h"

#define MAX_RINGS       65536
#define SLOTS_OF_PAGE   128u
#define READY_SLOTS     1024u /* slots made writable at a time: 8 pages */
#define STATES_RESERVED 4096u /* chunk states that are reserved at a time */
#define HOT_CHUNKS      64u   /* 16 MiB of full chunks may stay resident in the target */
#define LOOKS_AT_RINGS  8u    /* at rings, whether their threads have ended, for each new thread */
#define NO_CHUNK        UINT32_MAX
#define MANY_THREADS    (1u << 18)        /* numbers, with 10 MiB of names */
#define LATER_THREADS   "(later threads)" /* name of a number that is used again though its thread left something */

/* Private to the process; entries are set once, before anybody can see the chunk as free. */
static struct mt_chunk **chunk_at; /* MT_MAX_CHUNKS */
static uint8_t *pages_of;          /* the same: how many of 4 KiB are reserved, of each chunk */
static struct mt_ring **rings;     /* MAX_RINGS */
static uint32_t hint, idle_from;   /* no ring below is idle, or a moment ago none was */
static uint32_t look_from;         /* which ring's thread is looked for next */
static uint32_t numbers;           /* of threads, used so far */

void mt_ring_tables(struct mt_tables *t)
{
	chunk_at = mt_tables_take(t, MT_MAX_CHUNKS * sizeof(*chunk_at));
	pages_of = mt_tables_take(t, MT_MAX_CHUNKS * sizeof(*pages_of));
	rings = mt_tables_take(t, MAX_RINGS * sizeof(*rings));
}

/* A word of struct mt_stack lies between. */
_Static_assert(sizeof(struct mt_ring) + sizeof(uint64_t) <= MT_STACK_BEFORE,
	       "a thread with little to do touches one page");

static uint64_t stack_bytes(void)
{
	return (mt_stack_bytes() + 63) & ~63ull;
}

static uint64_t ring_bytes(void)
{
	return (sizeof(struct mt_ring) + stack_bytes() + mt_python_bytes() + 4095) & ~4095ull;
}

uint64_t mt_ring_newest(void)
{
	uint64_t newest = 0;

	for (uint32_t i = 0; i < MAX_RINGS && rings[i]; i++)
		newest = rings[i]->ticks > newest ? rings[i]->ticks : newest;
	return newest;
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
	hint = idle_from = look_from = numbers = 0;
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

uint64_t mt_ring_free_bytes(void)
{
	uint64_t pages = 0;

	for (uint32_t i = 0; i < __atomic_load_n(&mt_process.info->chunks, __ATOMIC_ACQUIRE); i++)
		if (__atomic_load_n(&mt_process.states[i], __ATOMIC_RELAXED) == MT_CHUNK_FREE)
			pages += __atomic_load_n(&pages_of[i], __ATOMIC_RELAXED);
	return pages * 4096;
}

/* Adds a chunk to the file, of which the whole or a page is reserved; the caller holds the lock. */
static int grow(int whole)
{
	uint32_t i = mt_process.info->chunks,
		 bytes = (uint32_t)mt_file_first(whole ? MT_CHUNK_BYTES : 4096, MT_CHUNK_BYTES);
	struct mt_chunk *chunk;

	if (i == MT_MAX_CHUNKS || mt_process_sandboxed() ||
	    (i && i % STATES_RESERVED == 0 &&
	     !mt_disk_reserve("info", MT_INFO_STATES + i, STATES_RESERVED, mt_process.states + i)) ||
	    !mt_disk_charge(bytes, i ? MT_CHARGE_NEW : MT_CHARGE_FIRST))
		return 0;
	chunk = mt_disk_map("ring", (uint64_t)i * MT_CHUNK_BYTES, MT_CHUNK_BYTES, bytes, i ? MT_EXTEND : MT_CREATE);
	if (!chunk) {
		mt_disk_refund(bytes);
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

	if (!mt_disk_reserve("ring", (uint64_t)i * MT_CHUNK_BYTES + from, to - from, (char *)chunk_at[i] + from))
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
	ring->retry_ns = ok ? 0 : now + MT_DISK_RETRY_NS;
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
	slots = slots < READY_SLOTS ? slots : READY_SLOTS;
	if (!mt_process_sandboxed())
		mt_file_populate((struct mt_event *)ring->chunk + done, slots * sizeof(struct mt_event));
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
}

/* A handler that leaves by longjmp must not do so in the middle. */
static int next_chunk(struct mt_ring *ring)
{
	uint64_t now = mt_clock_ns(CLOCK_MONOTONIC_COARSE), signals;
	int had = ring->slots != NULL, found = 0;
	uint32_t index;

	if (!had && now < ring->retry_ns)
		return 0;
	mt_sys_block_signals(&signals);
	if (had)
		close_chunk(ring);
	if (now >= ring->retry_ns) {
		found = find_chunk(&index, ring->seq != 0);
		if (found)
			open_chunk(ring, index);
		ring->retry_ns = found ? 0 : now + MT_DISK_RETRY_NS;
	}
	mt_sys_restore_signals(&signals);
	if (had) {
		mt_process_pair_clocks();
		mt_recorder_want();
		MT_SET_EACH (mt_ring_filled, filled)
			(*filled)->look();
	}
	return found;
}

/* ---- events ---- */

/* Slots are about to cross `ready`, or there is no chunk. */
int mt_ring_make_room(struct mt_ring *ring, uint32_t n, uint64_t ticks)
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
	if (!mt_ring_make_room(ring, n, slots->ticks)) {
		/* who has the ring is in the next chunk's header anyway */
		if (slots->kind != MT_THREAD) {
			ring->lost++;
			mt_process_lost(1);
		}
		return;
	}
	mt_ring_put(ring, slots, n);
}

/* ---- threads ---- */

/* A number has one record, which is kept up to date in its place: the log does not grow with new names. */
static void write_name(struct mt_ring *ring, uint32_t tid)
{
	struct mt_rec_thread rec = { ring->number, tid };
	struct mt_part parts[] = { { &rec, sizeof(rec) }, { ring->name, sizeof(ring->name) } };

	if (ring->name_at == MT_LOG_NONE)
		ring->name_at = mt_log_add(MT_REC_THREAD, parts, 2);
	else
		mt_log_replace(ring->name_at, parts, 2);
}

static void set_name(struct mt_ring *ring, const char *name, uint32_t tid)
{
	memset(ring->name, 0, sizeof(ring->name));
	memcpy(ring->name, name, strnlen(name, sizeof(ring->name) - 1));
	write_name(ring, tid);
}

static int is_name_of_many(const struct mt_ring *ring)
{
	return !strncmp(ring->name, LATER_THREADS, sizeof(ring->name));
}

/* Most threads are named only after they have started. */
void mt_ring_renamed(struct mt_ring *ring)
{
	char name[16];
	uint32_t tid = mt_quiet_thread(name);

	if (*name && strncmp(name, ring->name, sizeof(name)) && !is_name_of_many(ring))
		set_name(ring, name, tid);
}

/* Whether a thread of this process is still there. */
static int is_alive(uint32_t tid)
{
	char path[64] = "/proc/self/task";
	long ret = MT_SYS3(SYS_tgkill, mt_process.pid, tid, 0);

	if (ret == 0 || ret == -ESRCH)
		return ret == 0;
	if (!mt_quiet_exists(path))
		return 1; /* nothing is known */
	mt_put_number(mt_put(path + strlen(path), path + sizeof(path), "/"), path + sizeof(path), tid);
	return mt_quiet_exists(path);
}

/* Makes the calling thread the owner, if the one it had has ended. While it is looked for, nobody else may take the
 * ring: the number of a thread is used again. */
static int inherit(struct mt_ring *ring, uint32_t tid)
{
	/* relaxed: the CAS looks again */
	uint32_t owner = __atomic_load_n(&ring->owner, __ATOMIC_RELAXED);

	if (owner == MT_OWNER_NONE || owner >= MT_OWNER_ANY ||
	    !__atomic_compare_exchange_n(&ring->owner, &owner, MT_OWNER_ANY, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	/* one with our own number is gone, since we have none */
	if (owner != tid && is_alive(owner)) {
		__atomic_store_n(&ring->owner, owner, __ATOMIC_RELEASE);
		return 0;
	}
	mt_ring_mend(ring);
	return 1;
}

static struct mt_ring *find_orphan(uint32_t tid)
{
	uint32_t n = __atomic_load_n(&mt_process.info->rings, __ATOMIC_RELAXED);

	for (uint32_t k = 0; k < LOOKS_AT_RINGS && k < n; k++) {
		uint32_t i = __atomic_fetch_add(&look_from, 1, __ATOMIC_RELAXED) % n;
		struct mt_ring *ring = __atomic_load_n(&rings[i], __ATOMIC_ACQUIRE);
		if (ring && inherit(ring, tid))
			return ring;
	}
	return NULL;
}

static uint64_t mix(uint64_t x)
{
	x *= 0x9E3779B97F4A7C15ull;
	return (x ^ x >> 29) * 0xD6E8FEB86659FD93ull;
}

static uint32_t slots_now(const struct mt_ring *ring)
{
	return ring->slots ? ring->used : NO_CHUNK;
}

/* Has the thread that had the ring freed just what it allocated, and done nothing else? One with events in several
 * chunks is worth its number. */
static int left_nothing(const struct mt_ring *ring)
{
	uint32_t end = slots_now(ring);
	uint64_t sum = 0;

	if (ring->number == MT_NO_THREAD || ring->lent || ring->seq != ring->first_seq ||
	    (ring->first_slot == NO_CHUNK) != (end == NO_CHUNK))
		return 0;
	for (uint32_t i = ring->first_slot; i < end; i++) {
		const struct mt_event *e = &ring->slots[i];
		if (e->kind == MT_ALLOC)
			sum += mix(e->addr);
		else if (e->kind == MT_FREE)
			sum -= mix(e->addr);
		else if (e->kind == MT_FOLD) /* of blocks that came and went */
			i++;
		else
			return 0;
	}
	return sum == 0;
}

/* Never 0 but for the first thread. */
static uint32_t new_number(void)
{
	uint32_t number = __atomic_fetch_add(&numbers, 1, __ATOMIC_RELAXED);

	/* before any event of this thread: see clock.h */
	if (number)
		__atomic_store_n(&mt_clock_shared, 1, __ATOMIC_SEQ_CST);
	return number;
}

/* Who has the ring from here on. Numbers are used again: so the thread's id is said, too, where it is known. */
static void announce(struct mt_ring *ring, uint32_t thread, uint32_t tid)
{
	struct mt_event e = { .ticks = mt_ticks(), .addr = thread, .size = tid, .kind = MT_THREAD };

	ring->thread = thread;
	mt_ring_write(ring, &e, 1);
}

void mt_ring_announce(struct mt_ring *ring, uint32_t thread)
{
	/* relaxed: who looks whether we are alive takes it for a moment; then the tid is that of the record */
	uint32_t owner = __atomic_load_n(&ring->owner, __ATOMIC_RELAXED);

	announce(ring, thread, thread == ring->number && owner < MT_OWNER_ANY ? owner : 0);
}

/* The calling thread has the ring to itself from here on. */
static void begin(struct mt_ring *ring, uint32_t tid, const char *name)
{
	int has_left;

	MT_SET_EACH (mt_ring_left, left)
		(*left)->leave(ring);
	has_left = !left_nothing(ring);

	if (has_left && (ring->number == MT_NO_THREAD || __atomic_load_n(&numbers, __ATOMIC_RELAXED) < MANY_THREADS)) {
		ring->number = new_number();
		ring->name_at = MT_LOG_NONE;
		set_name(ring, name, tid);
	} else if (has_left && !is_name_of_many(ring)) {
		set_name(ring, LATER_THREADS, 0);
	}
	__atomic_fetch_add(&mt_process.info->threads, 1, __ATOMIC_RELAXED);
	ring->captures = ring->lent = 0;
	mt_stack_reset(mt_ring_stack(ring));
	mt_python_reset(mt_ring_python(ring));
	announce(ring, ring->number, tid);
	if (ring->young.area)
		__atomic_store_n(&ring->young.area->thread, ring->number, __ATOMIC_RELAXED); /* see mt_young_take() */
	ring->first_slot = slots_now(ring);
	ring->first_seq = ring->seq;
}

/* ---- who has which ring ---- */

static struct mt_ring *make_ring(uint32_t i, uint32_t owner)
{
	struct mt_ring *ring = mt_sys_pages(ring_bytes()), *none = NULL;

	if (!ring)
		return NULL;
	ring->index = i;
	ring->stack_bytes = (uint32_t)stack_bytes();
	ring->owner = owner;
	ring->thread = ring->number = MT_NO_THREAD;
	mt_sample_start(&ring->sample, (mt_config.sample_seed ? mt_config.sample_seed : mt_ticks()) ^ (uint64_t)i << 48,
			mt_config.sample_bytes);
	if (!__atomic_compare_exchange_n(&rings[i], &none, ring, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		mt_sys_unmap(ring, ring_bytes());
		return NULL;
	}
	__atomic_fetch_add(&mt_process.info->rings, 1, __ATOMIC_RELAXED);
	return ring;
}

static int claim_ring(struct mt_ring *ring, uint32_t owner)
{
	uint32_t none = MT_OWNER_NONE;

	/* acquire pairs with the release in give_back(): the last owner's events are ours to continue */
	return __atomic_compare_exchange_n(&ring->owner, &none, owner, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* One that nobody has, or a new one. */
static struct mt_ring *find_idle(uint32_t owner)
{
	for (uint32_t i = __atomic_load_n(&idle_from, __ATOMIC_RELAXED); i < MAX_RINGS; i++) {
		struct mt_ring *ring = __atomic_load_n(&rings[i], __ATOMIC_ACQUIRE);

		__atomic_store_n(&idle_from, i, __ATOMIC_RELAXED);
		if (!ring) {
			if (mt_process_sandboxed())
				return NULL;
			if ((ring = make_ring(i, owner)) != NULL)
				return ring;
			ring = __atomic_load_n(&rings[i], __ATOMIC_ACQUIRE);
			if (!ring)
				return NULL;
		}
		if (claim_ring(ring, owner))
			return ring;
	}
	return NULL;
}

static void give_back(struct mt_ring *ring)
{
	__atomic_store_n(&ring->owner, MT_OWNER_NONE, __ATOMIC_RELEASE);
	if (ring->index < __atomic_load_n(&idle_from, __ATOMIC_RELAXED))
		/* who is looking may miss it, and makes one more */
		__atomic_store_n(&idle_from, ring->index, __ATOMIC_RELAXED);
}

/* Of a process that shares memory with ours, the kernel would not find the thread. */
static uint32_t owner_of(uint32_t tid)
{
	return tid && mt_process_is_owner() ? tid : MT_OWNER_ANY;
}

struct mt_ring *mt_ring_take(void)
{
	char name[16];
	uint32_t tid = mt_quiet_thread(name), owner = owner_of(tid);
	struct mt_ring *ring = owner == tid ? find_orphan(tid) : NULL;

	if (!ring && !(ring = find_idle(owner)))
		return NULL;
	begin(ring, tid, name);
	__atomic_store_n(&ring->owner, owner, __ATOMIC_RELEASE);
	return ring;
}

/* Beyond MANY_THREADS all have the last number. */
static uint32_t number_of(struct mt_loan *loan, struct mt_ring *own)
{
	if (own) {
		own->lent = 1;
		return own->number;
	}
	if (!loan->number) {
		__atomic_fetch_add(&mt_process.info->threads, 1, __ATOMIC_RELAXED);
		loan->number = 1 + (__atomic_load_n(&numbers, __ATOMIC_RELAXED) < MANY_THREADS ? new_number()
											       : MANY_THREADS - 1);
	}
	return loan->number - 1;
}

int mt_ring_borrow(struct mt_loan *loan, struct mt_ring *own)
{
	struct mt_ring *ring = loan->ring;
	uint32_t number;

	if (!ring || !claim_ring(ring, MT_OWNER_ANY))
		ring = find_idle(MT_OWNER_ANY);
	if (!ring)
		return 0;
	loan->ring = ring;
	loan->out = 1;
	number = number_of(loan, own);
	if (ring->thread != number || own) { /* of two threads of one number each may have a turn */
		mt_stack_reset(mt_ring_stack(ring));
		announce(ring, number, own && own->owner < MT_OWNER_ANY ? own->owner : 0);
	}
	return 1;
}

/* The chunk knows what is published. */
void mt_ring_mend(struct mt_ring *ring)
{
	if (ring->slots)
		ring->used = ring->chunk->used;
}

void mt_ring_return(struct mt_loan *loan)
{
	if (loan->out) {
		mt_ring_mend(loan->ring); /* a handler may have left in the middle of a store */
		give_back(loan->ring);
	}
	loan->out = 0;
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
		struct mt_ring *ring =
			__atomic_load_n(&rings[i], __ATOMIC_ACQUIRE) ? NULL : make_ring(i, MT_OWNER_NONE);
		n -= ring != NULL;
	}
}
