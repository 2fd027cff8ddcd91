#include "shim/trace/young.h"

#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/disk.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/base/tables.h"
#include "shim/trace/ring.h"

#define BYTES_STEP   16384
#define TABLE_PART   6  /* of what the trace may take, the table at most */
#define MOST_OTHERS  4u /* threads whose blocks one call writes: each takes a look at the whole table */
#define IDLE_WINDOWS 4u /* of blocks that are older the thread is taken to be idle: others write their events */
#define STATE        7ull

struct mt_young_block *mt_young_table;
static struct mt_young_head *head;
static uint64_t sets;                /* of two blocks each; a power of two */
static struct mt_young_area **areas; /* each is set once, before anything in the table names it */
static uint32_t forks;               /* under way: nothing is put into the table */
static uint32_t is_behind;           /* MT_RECORD_AUTO: blocks are put there */
uint32_t mt_young_on;

void mt_young_tables(struct mt_tables *t)
{
	areas = mt_tables_take(t, MT_YOUNG_AREAS * sizeof(*areas));
}

static uint64_t window_ticks(void)
{
	return mt_clock == MT_ARCH_CLOCK ? mt_arch_second() / (1000000000u / MT_YOUNG_WINDOW_NS) : MT_YOUNG_WINDOW_NS;
}

/* Neighbours in memory are neighbours here: a thread's cache has them both. */
static inline struct mt_young_block *set_of(uint64_t addr)
{
	uint64_t hash = addr >> 5 ^ (addr >> 18) * 0x9E3779B1u;

	return &mt_young_table[2 * (hash & (sets - 1))];
}

static inline uint64_t state_of(const struct mt_young_block *b)
{
	/* acquire pairs with the release in fill(): the entry is whole */
	return __atomic_load_n(&b->addr, __ATOMIC_ACQUIRE);
}

/* Of an entry that may be another's at any moment: what comes of it holds only if a change of `addr` succeeds. */
#define LOOK(field)       __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

/* Fields that are read and written together. */
typedef uint64_t __attribute__((may_alias)) word;
#define STACK(b) (*(word *)&(b)->node)   /* node, node2 */
#define KIND(b)  (*(word *)&(b)->size)   /* of a block: size, hook, area */
#define WHAT(s)  (*(word *)&(s)->thread) /* of a sum: thread, hook, size */
#define TIMES(s) (*(word *)&(s)->count)  /* of a sum, of an area: count, temporary */
#define FREES(a) (*(word *)&(a)->frees)  /* frees, sum */

static inline int change(struct mt_young_block *b, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&b->addr, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline void order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- files ---- */

static uint64_t table_bytes(uint32_t blocks)
{
	return MT_YOUNG_TABLE + blocks * sizeof(struct mt_young_block);
}

/* As large as is useful: a block whose place is needed is an event. */
static uint32_t blocks_for(uint64_t limit)
{
	uint32_t blocks = MT_YOUNG_BLOCKS_MOST;

	while (limit && blocks > MT_YOUNG_BLOCKS_LEAST && table_bytes(blocks) > limit / TABLE_PART)
		blocks /= 2;
	return blocks;
}

/* The caller holds the lock. */
static int make_table(void)
{
	uint32_t blocks = blocks_for(mt_process.session->limit_bytes);
	uint64_t bytes = table_bytes(blocks);
	struct mt_young_head *h;

	if (head)
		return mt_young_table != NULL;
	if (!mt_disk_charge(bytes, MT_CHARGE_NEW))
		return 0;
	h = mt_disk_map("young", 0, bytes, bytes, MT_CREATE);
	if (!h) {
		mt_disk_refund(bytes);
		return 0;
	}
	h->version = MT_VERSION;
	h->blocks = blocks;
	order();
	memcpy(h->magic, MT_YOUNG_MAGIC, 8);
	head = h;
	sets = blocks / 2;
	/* release: who sees the table sees the head */
	__atomic_store_n(&mt_young_table, (struct mt_young_block *)((char *)h + MT_YOUNG_TABLE), __ATOMIC_RELEASE);
	return 1;
}

/* The caller holds the lock. */
static int make_area(struct mt_ring *ring)
{
	uint32_t i = head->areas;
	struct mt_young_area *a;

	if (i == MT_YOUNG_AREAS || !mt_disk_charge(sizeof(*a), MT_CHARGE_NEW))
		return 0;
	a = mt_disk_map("young", table_bytes(head->blocks) + (uint64_t)i * sizeof(*a), sizeof(*a), sizeof(*a),
			MT_EXTEND);
	if (!a) {
		mt_disk_refund(sizeof(*a));
		return 0;
	}
	a->ring = ring->index;
	a->thread = ring->number;
	areas[i] = a;
	/* release: who finds the number finds the area */
	__atomic_store_n(&head->areas, i + 1, __ATOMIC_RELEASE);
	ring->young.index = i;
	ring->young.area = a;
	return 1;
}

static int open_area(struct mt_ring *ring, uint64_t ticks)
{
	uint64_t signals;
	int ok = 0;

	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		ok = make_table() && make_area(ring);
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
	ring->young.due = ticks + window_ticks();
	return ok;
}

#define BEHIND 8 /* sixteenths of what rings may have: from then on, */
#define AGAIN  4 /* until it is no more than this */

/* Is it time to change? */
static void review(void)
{
	uint32_t was = LOOK(is_behind), part = mt_disk_behind(mt_ring_free_bytes()),
		 is = was ? part > AGAIN : part >= BEHIND;
	const struct mt_rec_mode mode = { is ? MT_RECORD_YOUNG : MT_RECORD_ALL, 0 };

	if (is != was && mt_process_is_owner() &&
	    __atomic_compare_exchange_n(&is_behind, &was, is, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		mt_log_add(MT_REC_MODE, &(struct mt_part){ &mode, sizeof(mode) }, 1);
		SET(mt_young_on, 1);
	}
}

static void look_behind(void)
{
	if (mt_config.record == MT_RECORD_AUTO && !mt_sys_quiet() && !mt_process.fixed)
		review();
}

static const struct mt_ring_filled filled = { look_behind };
MT_SET_ADD(mt_ring_filled, filled);

static inline int is_wanted(void)
{
	return mt_config.record == MT_RECORD_YOUNG || LOOK(is_behind);
}

/* Not where files can't be had as usual: then all is recorded as without this. */
static __attribute__((noinline)) int start(struct mt_ring *ring, uint64_t ticks)
{
	uint64_t now;
	int ok;

	if ((!ring->seq || (ring->seq == 1 && ring->used < MT_YOUNG_SLOTS)) || mt_sys_quiet() || mt_process.fixed)
		return 0;
	if (!is_wanted())
		return 0;
	now = mt_clock_ns(CLOCK_MONOTONIC_COARSE);
	if (now < ring->young.retry_ns || LOOK(ring->owner) == MT_OWNER_ANY || !mt_process_is_owner())
		return 0;
	ok = open_area(ring, ticks);
	ring->young.retry_ns = ok ? 0 : now + 50ull * MT_DISK_RETRY_NS;
	return ok;
}

/* ---- sums ---- */

static inline void count_bytes(struct mt_ring *ring, int64_t bytes)
{
	ring->young.bytes += bytes;
	if (__builtin_expect(ring->young.bytes > ring->young.most, 0)) {
		ring->young.most += BYTES_STEP;
		mt_count(&mt_process.info->young_bytes, BYTES_STEP);
	}
}

static void write_sum(struct mt_ring *ring, const struct mt_young_sum *s, uint64_t ticks)
{
	struct mt_event e[2] = { { .ticks = ticks,
				   .addr = s->count,
				   .size = s->size,
				   .hook = s->hook,
				   .kind = MT_FOLD,
				   .node = s->node,
				   .node2 = s->node2 } };
	const struct mt_ext_device ext = { .stream = s->bytes,
					   .other = s->temporary,
					   .class = MT_FOLD_SUM,
					   .kind_ext = (uint32_t)MT_EXT << 26,
					   .status = s->thread };

	__builtin_memcpy(&e[1], &ext, sizeof(ext));
	mt_ring_write(ring, e, 2);
}

/* From the moment at which the slot is published until `told` is 0 again the sum is in both places, and `position` says
 * so. Nonzero if it is told. */
static int tell_sum(struct mt_ring *ring, uint32_t i, uint64_t ticks)
{
	struct mt_young_area *a = ring->young.area;

	if (!mt_ring_room(ring, 2, ticks))
		return 0;
	a->position = mt_ring_position(ring);
	order();
	a->told = i + 1;
	order();
	write_sum(ring, &a->sums[i], ticks);
	order();
	a->sums[i].count = 0;
	order();
	a->told = 0;
	return 1;
}

/* All of them: then there is room for others. */
static __attribute__((noinline)) void tell_sums(struct mt_ring *ring, uint64_t ticks)
{
	struct mt_young_area *a = ring->young.area;

	for (uint32_t i = 0; i < ring->young.sums; i++)
		if (a->sums[i].count && !tell_sum(ring, i, ticks))
			return;
	a->since = ticks;
	ring->young.sums = 0;
	memset(a->places, 0, sizeof(a->places));
}

static inline uint32_t class_of(uint32_t size)
{
	return mt_config.stacks == MT_STACKS_SAMPLE || !size ? size : 1u << (31 - __builtin_clz(size));
}

/* What the blocks of a sum have in common. */
struct key {
	uint64_t stack, what;
};

/* Where the key's sum is, or begins: behind those that began before it, so that they are told in the order in which
 * their stacks were first there. NULL if all places are taken and can't be told. */
static inline struct mt_young_sum *place_of(struct mt_ring *ring, struct key key)
{
	struct mt_young_area *a = ring->young.area;
	uint64_t hash = (key.stack ^ (key.what >> 48 | key.what << 32)) * 0x9E3779B97F4A7C15ull;
	uint32_t i = (uint32_t)(hash >> 32) % MT_YOUNG_PLACES;

	for (; a->places[i]; i = (i + 1) % MT_YOUNG_PLACES) {
		struct mt_young_sum *s = &a->sums[a->places[i] - 1];
		if (STACK(s) == key.stack && WHAT(s) == key.what)
			return s;
	}
	if (__builtin_expect(ring->young.sums == MT_YOUNG_SUMS, 0)) {
		tell_sums(ring, mt_ticks());
		if (ring->young.sums)
			return NULL;
		i = (uint32_t)(hash >> 32) % MT_YOUNG_PLACES;
	}
	struct mt_young_sum *s = &a->sums[ring->young.sums];
	STACK(s) = key.stack;
	WHAT(s) = key.what;
	TIMES(s) = s->bytes = 0;
	a->places[i] = (uint16_t)++ring->young.sums;
	return s;
}

/* The sum becomes what the area says that it is with the freed block, whose entry is empty then. Until that it may be
 * done again. */
static inline void finish_free(struct mt_young_area *a, struct mt_young_block *b)
{
	struct mt_young_sum *s = &a->sums[a->sum];

	s->bytes = a->bytes;
	TIMES(s) = TIMES(a);
	order();
	__atomic_store_n(&b->addr, 0, __ATOMIC_RELEASE);
	order();
	a->frees = 0;
}

/* Without a sum: of a borrowed ring, or where there is no room on the disk. */
static __attribute__((noinline)) int add_alone(struct mt_ring *ring, struct mt_young_block *b, uint64_t state,
					       struct key key, uint32_t size, uint32_t temporary)
{
	struct mt_young_sum sum = { .count = 1, .temporary = temporary, .bytes = size };

	if (!(state & MT_YOUNG_FREED) && !change(b, state, state | MT_YOUNG_FREED))
		return 0;
	STACK(&sum) = key.stack;
	WHAT(&sum) = key.what;
	write_sum(ring, &sum, mt_ticks());
	__atomic_store_n(&b->addr, 0, __ATOMIC_RELEASE);
	return 1;
}

/* An entry goes from `state` to FREED and then to its sum; 0 if it is in that state no more. */
static inline __attribute__((always_inline)) int add_up(struct mt_ring *ring, struct mt_young_block *b, uint64_t state,
							uint32_t temporary)
{
	struct mt_young_area *a = ring->young.area;
	uint64_t kind = LOOK(KIND(b));
	uint32_t size = kind & 0xffff;
	struct key key = { LOOK(STACK(b)), LOOK(areas[kind >> 32 & 0xffff]->thread) | (kind & 0xffff0000u) << 16 |
						   (uint64_t)class_of(size) << 48 };
	struct mt_young_sum *s = a ? place_of(ring, key) : NULL;

	if (__builtin_expect(!s, 0)) {
		if (!add_alone(ring, b, state, key, size, temporary))
			return 0;
	} else {
		TIMES(a) = TIMES(s) + (1 | (uint64_t)temporary << 32);
		a->bytes = s->bytes + size;
		order();
		FREES(a) = (uint32_t)(b - mt_young_table + 1) | (uint64_t)(s - a->sums) << 32;
		order();
		if (!(state & MT_YOUNG_FREED) && !change(b, state, state | MT_YOUNG_FREED)) {
			a->frees = 0;
			return 0;
		}
		finish_free(a, b);
	}
	count_bytes(ring, -(int64_t)size);
	return 1;
}

/* ---- blocks that leave the table ---- */

static void write_free(struct mt_ring *ring, uint64_t addr, uint64_t ticks)
{
	struct mt_event e = { .ticks = ticks, .addr = addr, .size = 1, .kind = MT_FREE };

	mt_ring_write(ring, &e, 1);
}

/* Writes the event of the block at `addr`, which is in `b`. Nonzero if the entry is ours then, MT_YOUNG_TAKEN. `now` is
 * a stamp from before. */
static int expel(struct mt_ring *ring, struct mt_young_block *b, uint64_t addr, uint64_t now)
{
	struct mt_young_area *a = ring->young.area;
	struct mt_event e = { .addr = addr, .kind = MT_ALLOC };

	if (!mt_ring_room(ring, 1, now))
		return 0;
	a->position = mt_ring_position(ring);
	ring->young.held = b;
	order();
	a->leaves = (uint32_t)(b - mt_young_table) + 1;
	order();
	if (!change(b, addr, addr | MT_YOUNG_LEAVES)) {
		a->leaves = 0;
		ring->young.held = NULL;
		return 0;
	}
	/* read only now: until it was marked it could be another block with that address */
	e.ticks = b->ticks;
	e.size = b->size;
	e.hook = b->hook;
	e.node = b->node;
	e.node2 = b->node2;
	mt_ring_put(ring, &e, 1);
	if (!change(b, addr | MT_YOUNG_LEAVES, MT_YOUNG_TAKEN)) {
		/* It was freed after `now`, and whoever has the address next is stamped later. */
		write_free(ring, addr, now > e.ticks ? now : e.ticks + 1);
		__atomic_store_n(&b->addr, MT_YOUNG_TAKEN, __ATOMIC_RELEASE);
	}
	count_bytes(ring, -(int64_t)e.size);
	order();
	a->leaves = 0;
	return 1;
}

static void empty(struct mt_ring *ring, struct mt_young_block *b)
{
	__atomic_store_n(&b->addr, 0, __ATOMIC_RELEASE);
	order();
	ring->young.held = NULL;
}

/* Of all areas, a bit each. */
struct area_set {
	uint64_t bits[MT_YOUNG_AREAS / 64];
};

/* Blocks of one area from before `before`. Nonzero if others of it are left. */
static int expel_area(struct mt_ring *ring, uint32_t area, uint64_t before, uint64_t now)
{
	int left = 0;

	for (struct mt_young_block *b = mt_young_table; b < mt_young_table + 2 * sets; b++) {
		uint64_t addr = state_of(b);
		if (!addr || LOOK(b->area) != area)
			continue;
		if (!(addr & STATE) && LOOK(b->ticks) < before && expel(ring, b, addr, now))
			empty(ring, b);
		else
			left = 1;
	}
	return left;
}

static void note_areas(struct area_set *set, uint64_t before)
{
	for (const struct mt_young_block *b = mt_young_table; b < mt_young_table + 2 * sets; b++)
		if (state_of(b) && LOOK(b->ticks) < before)
			set->bits[LOOK(b->area) / 64 % (MT_YOUNG_AREAS / 64)] |= 1ull << LOOK(b->area) % 64;
}

/* Blocks of at most `most` other rings: one thread's after the other's, so that readers can put them in the order of
 * their times. */
static __attribute__((noinline)) void expel_others(struct mt_ring *ring, uint32_t most, uint64_t before, uint64_t now)
{
	struct area_set set = { { 0 } };
	uint32_t thread = ring->thread;

	note_areas(&set, before);
	for (uint32_t i = 0; most && i < LOOK(head->areas); i++) {
		if (i == ring->young.index || !(set.bits[i / 64] >> i % 64 & 1))
			continue;
		mt_ring_announce(ring, LOOK(areas[i]->thread));
		expel_area(ring, i, before, now);
		most--;
	}
	if (ring->thread != thread)
		mt_ring_announce(ring, thread);
}

static __attribute__((noinline)) void end_window(struct mt_ring *ring, uint64_t ticks)
{
	uint64_t window = window_ticks();
	int looks_at_all = ++ring->young.windows % IDLE_WINDOWS == 0;

	ring->young.due = ticks + window;
	look_behind();
	tell_sums(ring, ticks);
	if (ring->young.put)
		ring->young.put = expel_area(ring, ring->young.index, ticks - window, ticks);
	if (looks_at_all)
		expel_others(ring, MOST_OTHERS, ticks - IDLE_WINDOWS * window, ticks);
}

/* Nothing of the thread stays in the table. */
static void leave(struct mt_ring *ring)
{
	uint64_t now = mt_ticks();

	if (!ring->young.area)
		return;
	mt_young_mend(ring);
	tell_sums(ring, now);
	if (ring->young.put)
		expel_area(ring, ring->young.index, UINT64_MAX, now);
	ring->young.put = 0;
	SET(ring->young.area->latest, 0);
}

static const struct mt_ring_left left = { leave };
MT_SET_ADD(mt_ring_left, left);

/* ---- forks ---- */

void mt_young_before_fork(struct mt_ring *ring)
{
	uint64_t now = mt_ticks();

	__atomic_add_fetch(&forks, 1, __ATOMIC_SEQ_CST);
	if (!mt_young_is_used() || (!ring->young.area && (mt_sys_quiet() || !open_area(ring, now))))
		return;
	expel_area(ring, ring->young.index, UINT64_MAX, now);
	expel_others(ring, MT_YOUNG_AREAS, UINT64_MAX, now);
}

void mt_young_after_fork(void)
{
	uint32_t n = __atomic_load_n(&forks, __ATOMIC_RELAXED);

	while (n && !__atomic_compare_exchange_n(&forks, &n, n - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

void mt_young_reset(void)
{
	for (uint32_t i = 0; areas && i < MT_YOUNG_AREAS && areas[i]; i++) {
		mt_sys_unmap(areas[i], sizeof(*areas[i]));
		areas[i] = NULL;
	}
	if (head)
		mt_sys_unmap(head, table_bytes(head->blocks));
	head = NULL;
	mt_young_table = NULL;
	forks = is_behind = mt_young_on = 0;
}

/* An entry whose ALLOC was about to be written, or is. */
static void mend_leaving(struct mt_ring *ring, struct mt_young_block *b, int published)
{
	uint64_t state = state_of(b), addr = state & ~STATE;

	if ((state & STATE) == MT_YOUNG_LEAVES && change(b, state, published ? 0 : addr))
		return;
	state = state_of(b);
	if ((state & STATE) != (MT_YOUNG_LEAVES | MT_YOUNG_FREED))
		return;
	if (published) {
		write_free(ring, addr, mt_ticks());
		__atomic_store_n(&b->addr, 0, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(&b->addr, addr | MT_YOUNG_FREED, __ATOMIC_RELEASE);
		add_up(ring, b, addr | MT_YOUNG_FREED, 0);
	}
}

void mt_young_mend(struct mt_ring *ring)
{
	struct mt_young_area *a = ring->young.area;
	struct mt_young_block *held = ring->young.held;
	int published = a && mt_ring_position(ring) > a->position;

	if (!a)
		return;
	if (a->frees) {
		struct mt_young_block *b = &mt_young_table[a->frees - 1];
		if ((state_of(b) & STATE) == MT_YOUNG_FREED)
			finish_free(a, b);
		a->frees = 0;
	}
	if (a->told) {
		if (published)
			a->sums[a->told - 1].count = 0;
		a->told = 0;
	}
	if (a->leaves) {
		mend_leaving(ring, &mt_young_table[a->leaves - 1], published);
		a->leaves = 0;
	}
	if (held && state_of(held) == MT_YOUNG_TAKEN)
		__atomic_store_n(&held->addr, 0, __ATOMIC_RELEASE);
	ring->young.held = NULL;
}

/* ---- hot path ---- */

static inline void fill(struct mt_ring *ring, struct mt_young_block *b, const struct mt_event *e)
{
	SET(b->ticks, e->ticks);
	SET(STACK(b), STACK(e));
	SET(KIND(b), e->size | (uint32_t)e->hook << 16 | (uint64_t)ring->young.index << 32);
	__atomic_store_n(&b->addr, e->addr, __ATOMIC_RELEASE);
	order();
	ring->young.held = NULL;
	ring->young.put = 1;
	count_bytes(ring, (int64_t)e->size);
}

/* Both places are occupied: the older block goes, if it is ours. */
static struct mt_young_block *make_place(struct mt_ring *ring, struct mt_young_block *set, uint64_t now)
{
	struct mt_young_block *b = NULL;

	for (int i = 0; i < 2; i++)
		if (!(state_of(&set[i]) & STATE) && LOOK(set[i].area) == ring->young.index &&
		    (!b || LOOK(set[i].ticks) < LOOK(b->ticks)))
			b = &set[i];
	if (!b)
		return NULL;
	uint64_t addr = state_of(b);
	return addr && !(addr & STATE) && expel(ring, b, addr, now) ? b : NULL;
}

static inline struct mt_young_block *claim_place(struct mt_ring *ring, struct mt_young_block *b)
{
	if (!change(b, 0, MT_YOUNG_TAKEN))
		return NULL;
	ring->young.held = b;
	order();
	return b;
}

/* Nobody saw the free of a block with this address: its event comes first, as if all were recorded. */
static __attribute__((noinline)) void expel_twin(struct mt_ring *ring, struct mt_young_block *b, uint64_t now)
{
	uint64_t addr = state_of(b);
	uint32_t thread = ring->thread, area = LOOK(b->area);

	if (!addr || (addr & STATE))
		return;
	if (areas[area] && LOOK(areas[area]->thread) != thread)
		mt_ring_announce(ring, LOOK(areas[area]->thread));
	if (expel(ring, b, addr, now))
		empty(ring, b);
	if (ring->thread != thread)
		mt_ring_announce(ring, thread);
}

int mt_young_put(struct mt_ring *ring, const struct mt_event *e)
{
	struct mt_young_block *set, *b;
	uint64_t a0, a1;

	if (__builtin_expect(!ring->young.area, 0) && !start(ring, e->ticks))
		return 0;
	SET(ring->young.area->latest, e->addr);
	if (__builtin_expect(e->ticks >= ring->young.due, 0))
		end_window(ring, e->ticks);
	set = set_of(e->addr);
	a0 = state_of(&set[0]);
	a1 = state_of(&set[1]);
	if (__builtin_expect(a0 == e->addr || a1 == e->addr, 0)) {
		expel_twin(ring, a0 == e->addr ? &set[0] : &set[1], e->ticks);
		a0 = state_of(&set[0]);
		a1 = state_of(&set[1]);
	}
	if (e->size >= MT_YOUNG_LIMIT || (e->addr & STATE) || LOOK(forks) || !is_wanted())
		return 0;
	b = !a0 ? claim_place(ring, &set[0]) : !a1 ? claim_place(ring, &set[1]) : make_place(ring, set, e->ticks);
	if (!b)
		return 0;
	fill(ring, b, e);
	return 1;
}

/* One that is alive first: one that leaves may have been freed, and its address be used again. */
static inline struct mt_young_block *find(uint64_t addr)
{
	struct mt_young_block *set = set_of(addr);
	uint64_t a0 = state_of(&set[0]), a1 = state_of(&set[1]);

	return a0 == addr || (a1 != addr && a0 == (addr | MT_YOUNG_LEAVES)) ? &set[0] : &set[1];
}

/* Whoever writes its ALLOC writes that of the free, too. */
static inline int frees_leaving(struct mt_young_block *b, uint64_t addr)
{
	return change(b, addr | MT_YOUNG_LEAVES, addr | MT_YOUNG_LEAVES | MT_YOUNG_FREED);
}

static inline uint32_t is_temporary(const struct mt_young_block *b, uint64_t addr)
{
	return LOOK(areas[LOOK(b->area)]->latest) == addr;
}

int mt_young_free(struct mt_ring *ring, uint64_t addr)
{
	struct mt_young_block *b = find(addr);
	uint64_t state = state_of(b);

	if (state == addr && add_up(ring, b, addr, is_temporary(b, addr)))
		return 1;
	return (state & ~STATE) == addr && frees_leaving(b, addr);
}

int mt_young_take(uint64_t addr, struct mt_young_taken *t)
{
	struct mt_young_block *b = find(addr);
	uint64_t state = state_of(b);

	t->entry = NULL;
	if (state == addr && change(b, addr, addr | MT_YOUNG_FREED)) {
		*t = (struct mt_young_taken){ b, addr, is_temporary(b, addr) };
		return 1;
	}
	return (state & ~STATE) == addr && frees_leaving(b, addr);
}

void mt_young_freed(struct mt_ring *ring, const struct mt_young_taken *t)
{
	add_up(ring, t->entry, t->addr | MT_YOUNG_FREED, t->temporary);
}

void mt_young_kept(const struct mt_young_taken *t)
{
	__atomic_store_n(&t->entry->addr, t->addr, __ATOMIC_RELEASE);
}

int mt_young_is_older(const struct mt_ring *ring, uint64_t addr)
{
	return ring->young.area && ring->young.area->latest != addr;
}
