/*
 * Threads write into rings and end, and others take these over, while a reader empties full chunks as the recorder does
 * and looks into those being filled. Every event must arrive once and in its thread's order, with no race on the way.
 */
#include <stdio.h>

#include "tests/unit/ring_stubs.h"

#define WRITERS 4
#define LIVES   5     /* threads that each writer starts, one after the other */
#define EVENTS  20000 /* of one thread; every eighth takes two slots */
#define CHUNKS  100   /* more than they fill: none is lost however slow the reader is */

static uint64_t next_event[WRITERS * LIVES];
static uint64_t next_seq[MAX_RINGS];
static const char *wrong;
static int written;
static uint8_t reused[MT_MAX_CHUNKS]; /* freed, and not seen empty since */

static void *write_events(void *arg)
{
	struct mt_ring *ring = mt_ring_take();

	for (uint64_t i = 0; i < EVENTS; i++) {
		struct mt_event e[2] = { { .ticks = i, .addr = (uintptr_t)arg, .kind = MT_ALLOC }, { .kind = MT_EXT } };
		mt_ring_write(ring, e, i % 8 ? 1 : 2);
	}
	/* what the kernel does when the thread ends, for ThreadSanitizer: pairs with the acquire in inherit() */
	return (void *)(uintptr_t)__atomic_fetch_add(&ring->owner, 0, __ATOMIC_RELEASE);
}

static void *start_writers(void *arg)
{
	for (uintptr_t life = 0; life < LIVES; life++) {
		pthread_t thread;
		void *tid;
		pthread_create(&thread, NULL, write_events, (void *)((uintptr_t)arg * LIVES + life));
		pthread_join(thread, &tid);
		while (is_alive((uint32_t)(uintptr_t)tid)) /* some microseconds longer than the join */
			;
	}
	return NULL;
}

static void read_slot(const struct mt_event *e)
{
	if (e->kind != MT_ALLOC)
		return;
	if (e->addr >= WRITERS * LIVES || e->ticks != next_event[e->addr])
		wrong = "an event is missing or out of order";
	else
		next_event[e->addr]++;
}

/* Takes a chunk if it is the next of its ring; the acquire of the state pairs with close_chunk(). */
static int read_chunk(uint32_t i, enum mt_chunk_state state)
{
	struct mt_chunk *chunk = __atomic_load_n(&chunk_at[i], __ATOMIC_ACQUIRE);

	if (!chunk || __atomic_load_n(&stub_states[i], __ATOMIC_ACQUIRE) != state ||
	    chunk->seq != next_seq[chunk->ring])
		return 0;
	for (uint32_t k = 0; k < chunk->used; k++)
		read_slot((struct mt_event *)(chunk + 1) + k);
	next_seq[chunk->ring]++;
	reused[i] = 1;
	__atomic_store_n(&stub_states[i], MT_CHUNK_FREE, __ATOMIC_RELEASE);
	return 1;
}

/*
 * What a reader of a running process does: nothing above `used` is touched. A chunk that was just claimed again still
 * has the `used` of its last life; real readers look at the header twice, which is a race by the letter, so here it
 * must have been seen empty before.
 */
static void look_into(uint32_t i)
{
	struct mt_chunk *chunk = __atomic_load_n(&chunk_at[i], __ATOMIC_ACQUIRE);
	uint32_t used;

	if (!chunk || __atomic_load_n(&stub_states[i], __ATOMIC_ACQUIRE) != MT_CHUNK_FILLING)
		return;
	used = __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE);
	reused[i] = reused[i] && used;
	if (reused[i])
		return;
	if (used > MT_CHUNK_SLOTS || (used && chunk->magic != MT_CHUNK_MAGIC))
		wrong = "a chunk being filled makes no sense";
	else if (used && ((struct mt_event *)(chunk + 1))[used - 1].kind == MT_NONE)
		wrong = "a published slot is empty";
}

static void *read_chunks(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&written, __ATOMIC_ACQUIRE)) {
		uint32_t n = __atomic_load_n(&stub_info.chunks, __ATOMIC_ACQUIRE);
		for (uint32_t i = 0; i < n; i++)
			if (!read_chunk(i, MT_CHUNK_FULL))
				look_into(i);
	}
	return NULL;
}

static void read_rest(void)
{
	for (int found = 1; found;) {
		found = 0;
		for (uint32_t i = 0; i < stub_info.chunks; i++)
			found += read_chunk(i, MT_CHUNK_FULL) + read_chunk(i, MT_CHUNK_FILLING);
	}
	for (int i = 0; i < WRITERS * LIVES; i++)
		if (next_event[i] != EVENTS)
			wrong = "events are missing at the end";
	if (stub_info.lost_events)
		wrong = "events were lost";
	if (stub_info.rings > 2 * WRITERS) /* one is passed over while another thread looks at it */
		wrong = "rings are not reused";
}

int main(void)
{
	pthread_t writers[WRITERS], reader;

	static char room[MT_MAX_CHUNKS * 32];
	struct mt_tables tables = { room, 0 };

	mt_ring_tables(&tables);
	stub_start(CHUNKS * MT_CHUNK_BYTES);
	pthread_create(&reader, NULL, read_chunks, NULL);
	for (uintptr_t i = 0; i < WRITERS; i++)
		pthread_create(&writers[i], NULL, start_writers, (void *)i);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	__atomic_store_n(&written, 1, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	read_rest();
	return stub_result("rings under ThreadSanitizer", wrong);
}
