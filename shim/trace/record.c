#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/holders.h"
#include "shim/base/state.h"
#include "shim/hooks/hooks.h"
#include "shim/python/pyframes.h"
#include "shim/stack/stack.h"
#include "shim/stack/tree.h"
#include "shim/stack/verify.h"
#include "shim/trace/record.h"
#include "shim/trace/recorder.h"
#include "shim/trace/ring.h"
#include "shim/trace/sampled.h"

/* Initial-exec TLS (see Makefile): the other models may allocate on a thread's first access, inside malloc. */
static __thread struct {
	struct mt_ring *ring; /* the thread's own */
	const char *busy;     /* frame that is recording; NULL = none; &muted = what comes is not the program's */
	const char *idle; /* what `busy` is between two events: NULL, or &shared where others have this storage, too */
	uint32_t tid;     /* whose storage it is, where it is shared */
	struct mt_loan loan;
} self;

static const char muted, shared;

/* ---- interrupted by a signal handler while recording ---- */

/* A handler that left by longjmp leaves `busy` behind. Its frame is gone if we are called in its place, or from further
 * out on the same stack. */
static int is_stale(const char *frame)
{
	stack_t alt = { 0 };

	if (frame <= self.busy || mt_sys_quiet())
		return frame == self.busy;
	return mt_sys_failed(MT_SYS2(SYS_sigaltstack, NULL, &alt)) || !(alt.ss_flags & SS_ONSTACK);
}

/* What the frame left half done is not published. */
static void forget_frame(void)
{
	if (self.ring) {
		mt_ring_mend(self.ring);
		mt_young_mend(self.ring);
	}
	mt_ring_return(&self.loan);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self.busy = self.idle;
}

/* ---- one event ---- */

/* What hooks count in by themselves. Not what is done for us, nor where somebody wants to see each free. */
static void set_tally(void)
{
	int may = self.ring && !self.idle && self.busy != &muted && !mt_holders_are_on();

	mt_tally = may ? mt_sampled_tally(self.ring) : NULL;
	mt_tally_alone = mt_allocator_count ? NULL : mt_tally;
}

/* A thread that begins once no system calls can be made has none to itself: nobody could tell when it has ended. */
static struct mt_ring *take_ring(void)
{
	if (!self.ring && !mt_process_sandboxed())
		self.ring = mt_ring_take();
	set_tally();
	return self.ring;
}

static int wants_stack(struct mt_ring *ring, const struct mt_event *e)
{
	if (e->kind != MT_ALLOC || mt_config.stacks == MT_STACKS_ALL)
		return 1;
	if (mt_config.stacks == MT_STACKS_NONE)
		return 0;
	return e->size >= mt_config.sample_bytes || mt_sample_hits(&ring->sample, e->size, mt_config.sample_bytes);
}

static const char *hush(void)
{
	const char *mark = self.busy;

	self.busy = &muted;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return mark;
}

static void unhush(const char *mark)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self.busy = mark;
}

static const struct mt_stack_hush stack_hush = { hush, unhush };
MT_SET_ADD(mt_stack_hush, stack_hush);

/* The other unwinder allocates. */
static __attribute__((noinline)) void verify(uint32_t node, int cut)
{
	const char *mark = hush();

	mt_verify(node, cut, mt_tree_stack);
	unhush(mark);
}

/* The native stack's node comes last: the cache line that it is kept in arrives while Python's frames are read. */
static inline __attribute__((always_inline)) uint32_t capture(struct mt_ring *ring, const struct mt_event *e,
							      const void *caller, const struct mt_frame *frame,
							      int *cut, uint32_t *python, int *python_cut)
{
	struct mt_stack *stack = mt_ring_stack(ring);
	struct mt_python *frames = mt_ring_python(ring);

	mt_stack_walk(stack, frame);
	if (mt_python_is_new(frames, ring->thread))
		mt_python_meet(frames, mt_stack_node(stack, caller, cut));
	*python = mt_python_capture(frames, ring->thread, e, python_cut);
	return mt_stack_node(stack, caller, cut);
}

static void count_cut(void)
{
	mt_count(&mt_process.info->truncated_stacks, 1);
	if (mt_tree_is_full())
		mt_count(&mt_process.info->unplaced_stacks, 1);
}

static void take_stacks(struct mt_ring *ring, struct mt_event *e, const void *caller, const struct mt_frame *frame)
{
	int cut = 0, python_cut = 0;

	if (wants_stack(ring, e)) {
		/* most threads are named only after they have started: look less and less often */
		if (__builtin_expect((ring->captures & (ring->captures + 1)) == 0, 0) && ring == self.ring)
			mt_ring_renamed(ring);
		ring->captures++;
		e->node = capture(ring, e, caller, frame, &cut, &e->node2, &python_cut);
		if (__builtin_expect(mt_verify != NULL, 0))
			verify(e->node, cut);
		if (cut | python_cut)
			count_cut();
	} else if (mt_config.stacks == MT_STACKS_SAMPLE) {
		e->node = mt_tree_child(0, (uint64_t)(uintptr_t)caller, MT_NODE_CALLER);
		if (e->node == MT_NODE_FAILED)
			e->node = 0;
	}
}

/* A child in its parent's memory may have its thread-local storage as well, and runs at the same time. It touches
 * nothing here: a ring has one writer. Where it can't be asked who this is, neither does the parent. */
static int is_stranger(void)
{
	return self.idle && (mt_sys_quiet() || (uint32_t)MT_SYS0(SYS_gettid) != self.tid);
}

/* The first event of a forked child makes its files: a handler that left in the middle would end that for good. Before
 * the first one of an image it is not known whether signals may be blocked. */
static void enter(void)
{
	int blocks = mt_process.pid != 0;
	uint64_t signals;

	if (blocks)
		mt_sys_block_signals(&signals);
	self.busy = &muted;
	mt_process_enter();
	self.busy = self.idle;
	if (blocks)
		mt_sys_restore_signals(&signals);
}

/* Everything that is not the plain case: not recording, a new process, a handler that interrupted us. If it is one,
 * self.busy is still set. */
static __attribute__((noinline)) int may_record(const char *frame)
{
	uint32_t state = mt_process_state();

	if (self.busy == &muted)
		return 0;
	if (state != MT_STATE_NEW && is_stranger()) {
		mt_process_lost_for(1, MT_LOSS_SHARED);
		return 0;
	}
	if ((state == MT_STATE_ACTIVE || state == MT_STATE_PAUSED) && mt_process_is_asked()) {
		mt_process_obey();
		state = mt_process_state();
	}
	if (self.busy != self.idle && state == MT_STATE_ACTIVE && is_stale(frame))
		forget_frame();
	if (state == MT_STATE_NEW && self.busy == self.idle)
		enter();
	return mt_process_state() == MT_STATE_ACTIVE;
}

int mt_record_enter(void)
{
	return (mt_process_state() == MT_STATE_ACTIVE && !self.busy) ||
	       (may_record(__builtin_frame_address(0)) && self.busy == self.idle);
}

/* What is to be done with an event. */
enum way {
	PLAIN,
	PICKS,   /* only if the block is picked */
	UNPICKS, /* only if it was; neither has a stamp yet */
	/* of young blocks: */
	FREES,    /* the block may be in the table, and the event has no stamp yet */
	TAKES,    /* the same, of a realloc */
	FREED,    /* that has gone well: there is no event */
	ALLOCATES /* the block may be put into the table */
};

/* Nonzero if there is nothing to write. */
static inline __attribute__((always_inline)) int is_young(struct mt_ring *ring, struct mt_event *e, enum way way,
							  struct mt_young_taken *taken)
{
	if (way == ALLOCATES)
		return ring == self.ring && mt_young_put(ring, e);
	if (way == FREED) {
		mt_young_freed(ring, taken);
		return 1;
	}
	if (way == FREES ? mt_young_free(ring, e->addr) : mt_young_take(e->addr, taken))
		return 1;
	e->ticks = mt_ticks();
	e->size = (uint64_t)mt_young_is_older(ring, e->addr);
	return 0;
}

static inline __attribute__((always_inline)) void write_event(struct mt_ring *ring, struct mt_event *slots, uint32_t n,
							      const void *caller, const struct mt_frame *hook_frame,
							      enum way way, struct mt_record_taken *taken)
{
	if (way == PICKS) {
		if (!mt_sampled_pick(ring, slots->addr, slots->size))
			return;
		slots->ticks = mt_ticks_ordered();
	} else if (way == UNPICKS) {
		mt_sampled_count_free(ring, 1);
		if (!mt_sampled_take(slots->addr))
			return;
		if (taken)
			taken->picked = 1;
		slots->ticks = mt_ticks();
	}
	if (caller)
		take_stacks(ring, slots, caller, hook_frame);
	if (way <= UNPICKS || !is_young(ring, slots, way, &taken->young))
		mt_ring_write(ring, slots, n);
	if (__builtin_expect(slots->ticks >= mt_recorder_due, 0))
		mt_recorder_want();
}

/* The thread's own ring is in the middle of an event, or it has none: another one is borrowed for this event. The frame
 * that was interrupted may be gone all the same, if a handler has left by longjmp and the program went deeper: then no
 * handler's frame lies between it and us. */
static __attribute__((noinline)) void record_aside(struct mt_event *slots, uint32_t n, const void *caller,
						   const struct mt_frame *hook_frame, const char *interrupted,
						   enum way way, struct mt_record_taken *taken)
{
	struct mt_loan outer = self.loan;
	struct mt_ring *ring;
	int gone = 0;

	if (!mt_ring_borrow(&self.loan, self.ring)) {
		mt_process_lost(1);
		return;
	}
	ring = self.loan.ring;
	if (interrupted)
		gone = mt_stack_passes(mt_ring_stack(ring), (uintptr_t)interrupted);
	write_event(ring, slots, n, caller, hook_frame, way, taken);
	mt_ring_return(&self.loan);
	if (outer.out)
		self.loan = (struct mt_loan){ outer.ring, 1, self.loan.number };
	if (gone)
		forget_frame();
}

static inline __attribute__((always_inline)) void record_from(struct mt_event *slots, uint32_t n, const void *caller,
							      const struct mt_frame *hook_frame, enum way way,
							      struct mt_record_taken *taken)
{
	const char *frame = __builtin_frame_address(0);
	struct mt_ring *ring;

	if (__builtin_expect(mt_process_state() != MT_STATE_ACTIVE || self.busy || mt_process_is_asked(), 0)) {
		if (!may_record(frame))
			return;
		if (self.busy != self.idle) {
			record_aside(slots, n, caller, hook_frame, self.busy, way, taken);
			return;
		}
	}
	self.busy = frame;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ring = self.ring ? self.ring : take_ring();
	if (__builtin_expect(ring != NULL, 1))
		write_event(ring, slots, n, caller, hook_frame, way, taken);
	else
		record_aside(slots, n, caller, hook_frame, NULL, way, taken);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self.busy = self.idle;
}

static inline __attribute__((always_inline)) void record(struct mt_event *slots, uint32_t n, const void *caller)
{
	record_from(slots, n, caller, NULL, PLAIN, NULL);
}

/* ---- what the hooks call ---- */

void mt_record_fail(unsigned hook, unsigned kind, size_t bytes, const void *caller)
{
	if (mt_record_is_off())
		return;
	struct mt_event e = { .ticks = mt_ticks_ordered(), .addr = bytes, .size = kind, .hook = hook, .kind = MT_FAIL };

	if (!(kind & MT_TRIAL) && self.busy == self.idle) {
		mt_process_note_refusal();
		mt_holders_want(MT_HOLD_HOST, NULL);
		mt_recorder_hurry(); /* what the machine had is for the recorder to see */
	}
	record(&e, 1, caller);
}

void mt_record_alloc(unsigned hook, const void *p, size_t bytes, const void *caller, const struct mt_frame *frame)
{
	if (mt_record_is_off())
		return;
	struct mt_event e = {
		.ticks = mt_ticks_ordered(), .addr = (uintptr_t)p, .size = bytes, .hook = hook, .kind = MT_ALLOC
	};

	mt_recorder_weigh(bytes);
	if (__builtin_expect(mt_config.record == MT_RECORD_YOUNG || mt_young_on, 0))
		record_from(&e, 1, caller, frame, ALLOCATES, NULL);
	else
		record_from(&e, 1, caller, frame, PLAIN, NULL);
}

/* Whether it is picked is known before there is a stamp. */
void mt_record_sampled(unsigned hook, const void *p, size_t bytes, const void *caller, const struct mt_frame *frame)
{
	struct mt_event e = { .addr = (uintptr_t)p, .size = bytes, .hook = hook, .kind = MT_ALLOC };

	if (!mt_record_is_off())
		record_from(&e, 1, caller, frame, PICKS, NULL);
}

static void look_idle(void)
{
	if (mt_holders_are_on() && self.ring && !self.ring->thread)
		mt_holders_idle();
}

/* Nobody knows what its thread has allocated since, which size 1 says. */
void mt_record_sampled_free(unsigned hook, const void *p)
{
	struct mt_event e = { .addr = (uintptr_t)p, .size = 1, .hook = hook, .kind = MT_FREE };

	if (mt_record_is_off())
		return;
	record_from(&e, 1, NULL, NULL, UNPICKS, NULL);
	look_idle();
}

int mt_record_take(unsigned hook, const void *p, struct mt_record_taken *taken)
{
	struct mt_event e = { .addr = (uintptr_t)p, .hook = hook, .kind = MT_FREE };

	taken->young.entry = NULL;
	taken->picked = 0;
	if (mt_record_is_off())
		return 0;
	if (mt_sampled_is_on()) {
		e.size = 1;
		record_from(&e, 1, NULL, NULL, UNPICKS, taken);
	} else if (!mt_young_is_used()) {
		mt_record_free(hook, p);
	} else {
		record_from(&e, 1, NULL, NULL, TAKES, taken);
	}
	return taken->young.entry != NULL;
}

void mt_record_freed(struct mt_record_taken *taken)
{
	struct mt_event none = { .kind = MT_NONE };

	if (!mt_record_is_off())
		record_from(&none, 1, NULL, NULL, FREED, taken);
}

void mt_record_kept(unsigned hook, const void *p, struct mt_record_taken *taken)
{
	if (mt_record_is_off())
		return;
	if (taken->young.entry) {
		mt_young_kept(&taken->young);
	} else if (!mt_sampled_is_on()) {
		mt_record_undo(hook, p);
	} else {
		mt_sampled_count_free(self.ring, (uint64_t)-1);
		if (taken->picked) {
			mt_record_undo(hook, p);
			mt_sampled_put((uintptr_t)p);
		}
	}
}

static __attribute__((noinline)) void free_young(unsigned hook, const void *p)
{
	struct mt_event e = { .addr = (uintptr_t)p, .hook = hook, .kind = MT_FREE };

	record_from(&e, 1, NULL, NULL, FREES, NULL);
}

void mt_record_before_fork(void)
{
	struct mt_ring *ring;

	if (!mt_young_is_used() || mt_process_state() != MT_STATE_ACTIVE || self.busy != self.idle || is_stranger())
		return;
	self.busy = __builtin_frame_address(0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ring = take_ring();
	if (ring)
		mt_young_before_fork(ring);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self.busy = self.idle;
}

void mt_record_free(unsigned hook, const void *p)
{
	if (mt_record_is_off())
		return;
	if (__builtin_expect(mt_young_is_used(), 0)) {
		free_young(hook, p);
	} else {
		struct mt_event e = { .ticks = mt_ticks(), .addr = (uintptr_t)p, .hook = hook, .kind = MT_FREE };

		record(&e, 1, NULL);
	}
	look_idle();
}

void mt_record_undo(unsigned hook, const void *p)
{
	if (mt_record_is_off())
		return;
	struct mt_event e = { .ticks = mt_ticks_ordered(), .addr = (uintptr_t)p, .hook = hook, .kind = MT_UNDO };

	record(&e, 1, NULL);
}

void mt_record_map(unsigned hook, const void *p, size_t bytes, const struct mt_ext_map *ext, const void *caller)
{
	if (mt_record_is_off())
		return;
	struct mt_event e[2] = {
		{ .ticks = mt_ticks_ordered(), .addr = (uintptr_t)p, .size = bytes, .hook = hook, .kind = MT_MAP }
	};

	__builtin_memcpy(&e[1], ext, sizeof(*ext));
	e[1].kind = MT_EXT;
	if (ext->prot & PROT_WRITE) /* else it is address space, or the file's pages */
		mt_recorder_weigh(bytes);
	record(e, 2, caller);
}

static void record_device(const struct mt_event *slot, const struct mt_ext_device *ext, const void *caller)
{
	struct mt_event e[2] = { *slot };

	e[0].ticks = mt_gives_back(slot->kind) ? mt_ticks() : mt_ticks_ordered();
	__builtin_memcpy(&e[1], ext, sizeof(*ext));
	e[1].kind = MT_EXT;
	record(e, 2, caller);
}

void mt_record_device(enum mt_kind kind, unsigned hook, uint64_t addr, uint64_t size, const struct mt_ext_device *ext,
		      const void *caller)
{
	if (!mt_record_is_off())
		record_device(&(struct mt_event){ .addr = addr, .size = size, .hook = hook, .kind = kind }, ext,
			      caller);
}

void mt_record_told(enum mt_kind kind, unsigned hook, uint64_t addr, uint64_t size, const struct mt_ext_device *ext,
		    uint32_t native, uint32_t python)
{
	if (!mt_record_is_off())
		record_device(&(struct mt_event){ .addr = addr,
						  .size = size,
						  .hook = hook,
						  .kind = kind,
						  .node = native,
						  .node2 = python },
			      ext, NULL);
}

void mt_record_unmap(unsigned hook, const void *p, size_t bytes)
{
	if (mt_record_is_off())
		return;
	struct mt_event e = {
		.ticks = mt_ticks(), .addr = (uintptr_t)p, .size = bytes, .hook = hook, .kind = MT_UNMAP
	};

	record(&e, 1, NULL);
}

int mt_record_stacks(uint32_t *native, uint32_t *python)
{
	struct mt_ring *ring;
	int cut = 0;

	if (mt_process_state() != MT_STATE_ACTIVE || mt_config.stacks == MT_STACKS_NONE || self.busy != self.idle ||
	    is_stranger())
		return 0;
	self.busy = __builtin_frame_address(0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ring = take_ring();
	if (ring)
		*native = capture(ring, NULL, NULL, NULL, &cut, python, &cut);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self.busy = self.idle;
	return ring != NULL;
}

void mt_record_owner(const void *p, uint32_t native, uint32_t python)
{
	const struct mt_ext_device ext = { .class = MT_MARK_OWNER };

	if (mt_record_is_off() || (mt_sampled_is_on() && !mt_sampled_has((uintptr_t)p)))
		return;
	struct mt_event e[2] = {
		{ .ticks = mt_ticks_ordered(), .addr = (uintptr_t)p, .kind = MT_MARK, .node = native, .node2 = python }
	};

	__builtin_memcpy(&e[1], &ext, sizeof(ext));
	e[1].kind = MT_EXT;
	record(e, 2, NULL);
}

void mt_record_mute(int on)
{
	self.busy = on ? &muted : self.idle;
	set_tally();
}

void mt_record_reset(void)
{
	self.ring = NULL;
	set_tally();
	self.loan = (struct mt_loan){ 0 };
	self.idle = NULL;
	if (self.busy == &shared)
		self.busy = NULL;
}

void mt_record_share(void)
{
	if (self.busy)
		return; /* a handler that interrupted us: its child, too, finds a frame that is recording */
	self.tid = (uint32_t)MT_SYS0(SYS_gettid);
	self.idle = self.busy = &shared;
	set_tally();
}
