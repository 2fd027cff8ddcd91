#include "shim/device/seen.h"

#include "shim/base/sys.h"

#define ENTRIES (1u << 18) /* a power of two; half of them are used at most */
#define POOL    4u
#define TOLD    2u
#define CLAIMED 1u
#define STATE   (TOLD | CLAIMED)

uint32_t mt_seen_on;

/* Addresses, which are multiples of 8, with POOL and a state in the lower bits. Written by compare and exchange; an
 * entry's address never changes. */
static uint64_t *table;
static uint32_t count, full; /* full: an address could not be noted */

void mt_seen_begin(void)
{
	if (!table)
		table = mt_sys_pages(ENTRIES * sizeof(*table));
	if (table)
		__atomic_store_n(&mt_seen_on, 1, __ATOMIC_RELEASE);
}

void mt_seen_end(void)
{
	__atomic_store_n(&mt_seen_on, 0, __ATOMIC_RELEASE);
}

/* The entry of an address, made if there is none and room for one. */
static uint64_t *entry_of(uint64_t key, uint64_t state, int *made)
{
	uint64_t i = key * 0x9E3779B97F4A7C15ull >> 46;

	for (*made = 0;; i++) {
		uint64_t *e = &table[i % ENTRIES], now = __atomic_load_n(e, __ATOMIC_ACQUIRE);
		if (!now) {
			if (__atomic_load_n(&count, __ATOMIC_RELAXED) >= ENTRIES / 2) {
				__atomic_store_n(&full, 1, __ATOMIC_RELEASE);
				return NULL;
			}
			*made = __atomic_compare_exchange_n(e, &now, key | state, 0, __ATOMIC_ACQ_REL,
							    __ATOMIC_ACQUIRE);
			if (*made) {
				__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
				return e;
			}
		}
		if ((now & ~(uint64_t)STATE) == key)
			return e;
	}
}

static uint64_t key_of(enum mt_class class, uint64_t addr)
{
	return (addr & ~(uint64_t)7) | (class == MT_CLASS_POOL ? POOL : 0);
}

void mt_seen_note(enum mt_kind kind, enum mt_class class, uint64_t addr)
{
	int made, memory = class == MT_CLASS_DEVICE || kind == MT_DEVICE_MAP || kind == MT_DEVICE_UNMAP;
	uint64_t *e;

	if (!addr || (class != MT_CLASS_POOL && !memory))
		return;
	e = entry_of(key_of(class, addr), 0, &made);
	for (int tries = 0; e && tries < 100000 && (__atomic_load_n(e, __ATOMIC_ACQUIRE) & STATE) == CLAIMED; tries++)
		MT_SYS0(SYS_sched_yield);
}

uint64_t *mt_seen_claim(enum mt_class class, uint64_t addr)
{
	int made;
	uint64_t *e = addr && !__atomic_load_n(&full, __ATOMIC_ACQUIRE) ? entry_of(key_of(class, addr), CLAIMED, &made)
									: NULL;

	return e && made ? e : NULL;
}

void mt_seen_told(uint64_t *claim)
{
	__atomic_store_n(claim, (*claim & ~(uint64_t)STATE) | TOLD, __ATOMIC_RELEASE);
}
