/*
 * Blocks of TensorFlow's caching allocator, BFC. Its functions are virtual, and the vtables are filled in by the loader
 * with what it finds under the functions' names, which is ours. No object of TensorFlow's is looked into: where a pool
 * has its memory is seen when it asks for some, inside the call that needs it.
 *
 *   of the heap       the memory is a segment (MT_CLASS_SEGMENT), and blocks are the heap's, with the stack that
 *                     asked for them
 *   of a device       blocks are a pool's of that device, as PyTorch's are
 *   of anything else  (pinned, mapped, of before the recording) nothing of the pool is recorded but what it asked for
 */
#include <errno.h>

#include "shim/device/cuda.h"
#include "shim/device/device.h"
#include "shim/hooks/hooks.h"
#include "shim/host/heap.h"

static const struct mt_library framework = {
	.prefix = "libtensorflow_framework.so",
	.linked = 1,
	.link = { { "libtensorflow_framework.so.2", NULL } },
};

enum {
#define TAKE(name, symbol) ROW_##name,
#define GIVE               TAKE
#define ID(name)
#include "shim/hooks/hooks_bfc.def"
#undef TAKE
#undef GIVE
	ROW_size,
	ROW_size_before_2_9,
	ROWS
};

static struct mt_slot slots[ROWS][MT_INSTANCES];

static const struct mt_wrapped rows[ROWS] = {
#define TAKE(name, symbol) [ROW_##name] = { #symbol, &framework, slots[ROW_##name], NULL },
#define GIVE               TAKE
#include "shim/hooks/hooks_bfc.def"
#undef TAKE
#undef GIVE
	[ROW_size] = { "_ZNK3tsl12BFCAllocator13AllocatedSizeEPKv", &framework, slots[ROW_size], NULL },
	[ROW_size_before_2_9] = { "_ZNK10tensorflow12BFCAllocator13AllocatedSizeEPKv", &framework,
				  slots[ROW_size_before_2_9], NULL },
};

static const struct mt_wrap_table table = { rows, ROWS };
MT_SET_ADD(mt_wrap_table, table);

/* ---- where pools have their memory ---- */

enum { POOLS = 64 };

#define HEAP UINT32_MAX

/* By the pool's address, which is never followed. `where`: HEAP, or a device's id; 0 = elsewhere. */
static struct {
	const void *pool;
	uint32_t where;
} pools[POOLS];

static uint32_t where_of(const void *pool)
{
	const void *there;

	/* acquire pairs with the release in note_where */
	for (unsigned i = 0; i < POOLS && (there = __atomic_load_n(&pools[i].pool, __ATOMIC_ACQUIRE)) != NULL; i++)
		if (there == pool)
			return __atomic_load_n(&pools[i].where, __ATOMIC_RELAXED);
	return 0;
}

/* Several threads may do so at once; of one pool they say the same. */
static void note_where(const void *pool, uint32_t where)
{
	for (unsigned i = 0; i < POOLS; i++) {
		const void *empty = NULL;
		if (__atomic_compare_exchange_n(&pools[i].pool, &empty, pool, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		    empty == pool) {
			__atomic_store_n(&pools[i].where, where, __ATOMIC_RELAXED);
			return;
		}
	}
	mt_process_lost(1); /* more pools than anybody has: this one's blocks go unseen */
}

/* ---- blocks ---- */

/* What the pool gave away, which may be more than was asked for. It answers for a block that is there, and this one is
 * ours alone until we return it. */
static size_t size_of(unsigned row, const void *pool, const void *p, size_t asked)
{
	size_t (*real)(const void *, const void *) =
		(size_t (*)(const void *, const void *))(uintptr_t)mt_slot_real(&rows[row], &slots[row][0], NULL);

	return real ? real(pool, p) : asked;
}

struct request {
	const void *pool;
	size_t asked;
	unsigned hook, size_row;
	int trial; /* who asks does without it if need be */
	const void *caller;
	const struct mt_frame *frame;
};

static void note_block(const struct request *r, uint32_t where, const void *p)
{
	size_t bytes = size_of(r->size_row, r->pool, p, r->asked);
	struct mt_device_event event = { .hook = r->hook,
					 .class = MT_CLASS_POOL,
					 .addr = (uintptr_t)p,
					 .bytes = bytes,
					 .other = bytes >= r->asked ? bytes - r->asked + 1 : 0,
					 .device = where,
					 .caller = r->caller };

	if (where == HEAP)
		mt_record_alloc(r->hook, p, bytes, r->caller, r->frame);
	else
		mt_device_note(MT_DEVICE_ALLOC, &event);
}

/* What the pool has got in this call tells where it is. */
static uint32_t see_pool(const struct request *r, const struct mt_heap_pool *got, const void *p)
{
	uint32_t where = got->device;

	if (got->bytes && (uintptr_t)p - got->start < got->bytes)
		where = HEAP;
	if (where && where_of(r->pool) != where)
		note_where(r->pool, where);
	return where ? where : where_of(r->pool);
}

/* The pool gave up, after all that it tries. What the driver says counts if the device is the current one. */
static void note_failure(const struct request *r, uint32_t where)
{
	const struct mt_device_event event = {
		.hook = r->hook, .class = MT_CLASS_POOL, .bytes = r->asked, .device = where, .caller = r->caller
	};
	const int current = mt_cuda_current();
	uint64_t free = 0, total = 0;

	if (current >= 0 && mt_cuda_id(current) == where)
		mt_cuda_memory(current, &free, &total);
	mt_device_note_failure(&event, 2 /* out of memory, as CUDA says it */, free, total);
}

static void note(const struct request *r, const struct mt_heap_pool *got, const void *p)
{
	int kept = errno;
	uint32_t where = see_pool(r, got, p);

	if (p && where)
		note_block(r, where, p);
	else if (where == HEAP && r->asked)
		mt_record_fail(r->hook, MT_ALLOC | (r->trial ? MT_TRIAL : 0), r->asked, r->caller);
	else if (where && r->asked && !r->trial)
		note_failure(r, where);
	errno = kept;
}

static void note_free(unsigned hook, const void *pool, const void *p)
{
	uint32_t where = p ? where_of(pool) : 0;
	int kept = errno;

	if (where == HEAP)
		mt_record_free(hook, p);
	else if (where)
		mt_device_note(MT_DEVICE_FREE,
			       &(struct mt_device_event){
				       .hook = hook, .class = MT_CLASS_POOL, .addr = (uintptr_t)p, .device = where });
	errno = kept;
}

/* ---- hooks ---- */

/* AllocationAttributes begins with whether to try again; in TensorFlow 1 with the opposite: older ones aren't asked. */
#define IS_TRIAL(row, attributes) ((row) == ROW_tensorflow_AllocateRaw && !*(const unsigned char *)(attributes))

typedef void *take_function(void *pool, size_t align, size_t bytes, const void *attributes);
typedef void give_function(void *pool, void *p);

#define TAKE(name, symbol) \
	MT_LINK_AS(0, name, #symbol, "MEMTRACE_HOOKS") \
	MT_EXPORT void *mt_entry_0_##name(void *pool, size_t align, size_t bytes, const void *attributes) \
	{ \
		take_function *real = \
			(take_function *)(uintptr_t)mt_slot_real(&rows[ROW_##name], &slots[ROW_##name][0], NULL); \
		const struct request r = { \
			pool, \
			bytes, \
			MT_HOOK_##name, \
			ROW_##name == ROW_tensorflow_AllocateRaw ? ROW_size : ROW_size_before_2_9, \
			IS_TRIAL(ROW_##name, attributes), \
			MT_CALLER, \
			MT_FRAME, \
		}; \
		struct mt_heap_pool outer = mt_heap_pool, got; \
		void *p; \
		if (!real || mt_record_is_off()) \
			return real ? real(pool, align, bytes, attributes) : NULL; \
		mt_heap_pool = (struct mt_heap_pool){ .frame = __builtin_frame_address(0), \
						      .hook = MT_HOOK_tensorflow_Extend, \
						      .least = bytes }; \
		p = real(pool, align, bytes, attributes); \
		got = mt_heap_pool; \
		mt_heap_pool = outer; \
		note(&r, &got, p); \
		return p; \
	}
#define GIVE(name, symbol) \
	MT_LINK_AS(0, name, #symbol, "MEMTRACE_HOOKS") \
	MT_EXPORT void mt_entry_0_##name(void *pool, void *p) \
	{ \
		give_function *real = \
			(give_function *)(uintptr_t)mt_slot_real(&rows[ROW_##name], &slots[ROW_##name][0], NULL); \
		if (!mt_record_is_off()) \
			note_free(MT_HOOK_##name, pool, p); \
		if (real) \
			real(pool, p); \
	}
#include "shim/hooks/hooks_bfc.def"
