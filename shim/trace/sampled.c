#include "shim/trace/sampled.h"

#include "shim/base/config.h"
#include "shim/base/disk.h"
#include "shim/base/lock.h"
#include "shim/base/tables.h"
#include "shim/hooks/hooks.h"
#include "shim/trace/ring.h"

#define PAGE  4096u
#define WORDS (1u << 20) /* of the table; the kernel gives pages as they are touched */
#define TRIES 32u        /* words that may have an address */

__thread struct mt_tally *mt_tally, *mt_tally_alone;
uint8_t *mt_sampled_filter;
static uint64_t *table;
static uint32_t ready; /* pages of tallies that exist on disk, a bit each */

void mt_sampled_tables(struct mt_tables *t)
{
	if (mt_config.record != MT_RECORD_SAMPLED)
		return;
	table = mt_tables_take(t, WORDS * sizeof(*table));
	mt_sampled_filter = mt_tables_take(t, MT_FILTER);
	if (!mt_sampled_filter)
		return;
	mt_sampled_filter[mt_sampled_place(0)] = UINT8_MAX;
	for (uintptr_t i = 0; i <= MT_BOOT_BYTES; i += 64)
		mt_sampled_filter[mt_sampled_place((uintptr_t)mt_boot_pool + i)] = UINT8_MAX;
}

void mt_sampled_reset(void)
{
	ready = 0;
}

/* ---- addresses ---- */

/* The i-th word that may have it. Few pages are touched where few addresses are there, as with the filter. */
static uint64_t *word_of(uintptr_t addr, uint32_t i)
{
	return &table[(mt_sampled_place(addr) * (WORDS / MT_FILTER) + i) % WORDS];
}

static uint64_t *find(uintptr_t addr)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		uint64_t *word = word_of(addr, i);
		if (__atomic_load_n(word, __ATOMIC_RELAXED) == addr)
			return word;
	}
	return NULL;
}

/* A byte that is full stays so: then the table itself is asked. */
static void count_in_filter(uintptr_t addr, int more)
{
	uint8_t *at = &mt_sampled_filter[mt_sampled_place(addr)], n = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (n != UINT8_MAX &&
	       !__atomic_compare_exchange_n(at, &n, (uint8_t)(n + more), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

/* One that is there was freed unseen: its event says so when it is allocated again. */
int mt_sampled_put(uintptr_t addr)
{
	if (!table || find(addr))
		return table != NULL;
	count_in_filter(addr, 1);
	for (uint32_t i = 0; i < TRIES; i++) {
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(word_of(addr, i), &none, addr, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return 1;
	}
	count_in_filter(addr, -1);
	return 0;
}

int mt_sampled_take(uintptr_t addr)
{
	uint64_t *word, is = addr;

	if (!__atomic_load_n(&mt_sampled_filter[mt_sampled_place(addr)], __ATOMIC_RELAXED))
		return 0;
	word = find(addr);
	if (!word || !__atomic_compare_exchange_n(word, &is, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
	count_in_filter(addr, -1);
	return 1;
}

int mt_sampled_has(uintptr_t addr)
{
	return find(addr) != NULL;
}

/* ---- tallies ---- */

/* The caller holds the lock. */
static int make_page(uint32_t page)
{
	uint64_t at = MT_INFO_TALLIES + page * PAGE;

	if (!(ready >> page & 1) && mt_disk_reserve("info", at, PAGE, (char *)mt_process.info + at))
		__atomic_fetch_or(&ready, 1u << page, __ATOMIC_RELEASE);
	return ready >> page & 1;
}

static int has_page(uint32_t page)
{
	uint64_t signals;
	int ok = __atomic_load_n(&ready, __ATOMIC_ACQUIRE) >> page & 1;

	if (ok || mt_process_sandboxed())
		return ok;
	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		ok = make_page(page);
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
	return ok;
}

/* A block of mt_config.sample_bytes is picked, however far the goal is: it must reach `next`, too. */
static void set_next(const struct mt_ring *ring, struct mt_tally *t)
{
	uint64_t most = t->bytes + mt_config.sample_bytes;

	t->next = ring->goal < most ? ring->goal : most;
}

/* Made with the ring's first use. */
static struct mt_tally *tally_of(struct mt_ring *ring)
{
	struct mt_tally *t = ring->tally;

	if (t)
		return t;
	t = &ring->own_tally;
	if (ring->index < MT_TALLIES && has_page(ring->index * (uint32_t)sizeof(*t) / PAGE))
		t = (struct mt_tally *)((char *)mt_process.info + MT_INFO_TALLIES) + ring->index;
	ring->goal = t->bytes + ring->sample.left;
	ring->tally = t;
	set_next(ring, t);
	return t;
}

struct mt_tally *mt_sampled_tally(struct mt_ring *ring)
{
	struct mt_tally *t = mt_sampled_is_on() ? tally_of(ring) : NULL;

	return t == &ring->own_tally ? NULL : t;
}

void mt_sampled_count_free(struct mt_ring *ring, uint64_t n)
{
	struct mt_tally *t = ring ? mt_sampled_tally(ring) : NULL;

	if (t)
		t->frees += n;
	else
		mt_count(&mt_process.info->heap_frees, n);
}

/* Once a block is picked the rest of its bytes don't count: the next distance is drawn from its end. */
static int is_hit(struct mt_ring *ring, struct mt_tally *t, uint64_t bytes)
{
	uint64_t counts = bytes + !bytes;

	if (bytes >= mt_config.sample_bytes) {
		ring->goal += bytes;
		return 1;
	}
	if ((int64_t)(ring->goal - t->bytes) > (int64_t)counts) {
		ring->goal -= !bytes;
		return 0;
	}
	mt_sample_next(&ring->sample, mt_config.sample_bytes);
	ring->goal = t->bytes + bytes + ring->sample.left;
	return 1;
}

int mt_sampled_pick(struct mt_ring *ring, uint64_t addr, uint64_t bytes)
{
	struct mt_tally *t = tally_of(ring);
	int hit = is_hit(ring, t, bytes);

	t->calls++;
	t->bytes += bytes;
	set_next(ring, t);
	if (t == &ring->own_tally) {
		mt_count(&mt_process.info->heap_calls, 1);
		mt_count(&mt_process.info->heap_bytes, bytes);
	}
	if (hit && !mt_sampled_put(addr)) {
		mt_process_lost_for(1, MT_LOSS_MEMORY);
		return 0;
	}
	return hit;
}
