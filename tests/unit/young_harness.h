/* A process with young blocks, for tests of the shim's table: its files are plain memory, and what a reader would find
 * in them at any moment is a list of slots. */
#ifndef YOUNG_HARNESS_H
#define YOUNG_HARNESS_H

#include <stdio.h>

#define STUB_RECORD MT_RECORD_YOUNG
#include "tests/unit/ring_stubs.h"

#include "analyzer/util/late_slots.h"
#include "analyzer/util/ring_slots.h"
#include "analyzer/util/young_file.h"

#ifdef __SANITIZE_THREAD__ /* then it is not linked */
int error_memory(void)
{
	return -1;
}
#endif

/* As the hooks do. */
static void harness_alloc(struct mt_ring *ring, uint64_t addr, uint32_t size, uint32_t node)
{
	struct mt_event e = {
		.ticks = mt_ticks_ordered(), .addr = addr, .size = size, .hook = 1, .kind = MT_ALLOC, .node = node
	};

	if (!mt_young_put(ring, &e))
		mt_ring_write(ring, &e, 1);
}

static void harness_free(struct mt_ring *ring, uint64_t addr)
{
	struct mt_event e = { .addr = addr, .hook = 2, .kind = MT_FREE };

	if (mt_young_is_used() && mt_young_free(ring, addr))
		return;
	e.ticks = mt_ticks();
	mt_ring_write(ring, &e, 1);
}

/* ---- what a reader finds ---- */

struct harness_trace {
	struct mt_event *slots;
	uint32_t *rings;
	size_t count;
};

static uint64_t harness_end(void *context, uint32_t ring)
{
	uint64_t end = 0;

	(void)context;
	for (uint32_t i = 0; i < stub_info.chunks; i++)
		if (stub_states[i] != MT_CHUNK_FREE && chunk_at[i]->used && chunk_at[i]->ring == ring &&
		    ring_chunk_start(chunk_at[i]->seq) + chunk_at[i]->used > end)
			end = ring_chunk_start(chunk_at[i]->seq) + chunk_at[i]->used;
	return end;
}

static void *harness_file(size_t *bytes)
{
	uint32_t n = head ? head->areas : 0;
	uint64_t table = head ? table_bytes(head->blocks) : 0;
	char *file;

	*bytes = head ? table + n * sizeof(struct mt_young_area) : 0;
	file = malloc(*bytes + 1);
	if (head)
		memcpy(file, head, table);
	for (uint32_t i = 0; i < n; i++)
		memcpy(file + table + i * sizeof(struct mt_young_area), areas[i], sizeof(*areas[i]));
	return file;
}

struct harness_source {
	const struct mt_event *slots;
	size_t count;
};

/* Rings merged by ticks, as readers do, and late slots put in their places. The caller frees slots and rings. */
static int harness_read(struct harness_trace *t)
{
	static struct harness_source sources[4096];
	size_t n = 0, slots = 0, bytes;
	void *file = harness_file(&bytes);
	struct young_rest rest;
	int e = young_rest_make(&rest, file, bytes, stub_info.rings, UINT64_MAX, harness_end, NULL);

	*t = (struct harness_trace){ NULL, NULL, 0 };
	for (uint32_t ring = 0; ring < stub_info.rings; ring++)
		for (uint64_t seq = 0, found = 1; found; seq++) {
			found = 0;
			for (uint32_t i = 0; i < stub_info.chunks && !found; i++)
				if (stub_states[i] != MT_CHUNK_FREE && chunk_at[i]->used && chunk_at[i]->ring == ring &&
				    chunk_at[i]->seq == seq) {
					/* chunks of one ring follow each other: they are one source each here */
					sources[n++] = (struct harness_source){ (struct mt_event *)(chunk_at[i] + 1),
										chunk_at[i]->used };
					slots += chunk_at[i]->used;
					found = 1;
				}
		}
	for (size_t i = 0; !e && i < rest.count; i++) {
		sources[n++] = (struct harness_source){ rest.rings[i].slots, rest.rings[i].count };
		slots += rest.rings[i].count;
	}
	t->slots = malloc((slots + 1) * sizeof(*t->slots));
	t->rings = calloc(slots + 1, sizeof(*t->rings));
	for (;;) {
		struct harness_source *first = NULL;
		size_t ring = 0;
		for (size_t i = 0; i < n; i++)
			if (sources[i].count && (!first || ring_order(sources[i].slots) < ring_order(first->slots))) {
				first = &sources[i];
				ring = i;
			}
		if (!first)
			break;
		for (int k = mt_has_ext(first->slots->kind); k >= 0; k--) {
			t->slots[t->count] = *first->slots++;
			t->rings[t->count++] = (uint32_t)ring;
			first->count--;
		}
	}
	if (!e)
		e = late_slots_sort(t->slots, t->rings, t->count);
	young_rest_fini(&rest);
	free(file);
	return e;
}

/* Addresses of few sets of the table, so that blocks are in each other's way. */
static uint64_t harness_address(uint32_t i, uint32_t few)
{
	uint64_t addr = 0x10000;

	for (uint32_t found = 0;; addr += 16)
		if (((addr >> 5 ^ (addr >> 18) * 0x9E3779B1u) & (MT_YOUNG_BLOCKS_MOST / 2 - 1)) < few && found++ == i)
			return addr;
}

#endif
