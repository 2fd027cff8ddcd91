/*
 * What is known of a buffer when it is ready: where it lies, or that it ended in an error.
 *
 *   on the host    (a plugin for the CPU) malloc has recorded the memory, and nothing is added here. But the plugin may
 *                  compute an output, and allocate its memory, on a thread of its own, whose stack has no line of
 *                  Python. So the block is told to be the dispatcher's (MT_MARK_OWNER)
 *   on CUDA        the driver's hooks have recorded the memory that the buffer lies in: the address says in which
 *   any device     of an error is told, with the dispatcher's stack
 *
 * A buffer is ready at once, or when the plugin says so, on one of its threads. Before that nothing is asked of it, as
 * the plugin would wait. A plugin refuses to donate a buffer while it is asked for its address. So nothing is asked of
 * a buffer while a call is under way that may take it, and such a call waits for the answer, which a buffer that is
 * ready gives at once.
 *
 * What the plugin allocates for events is recorded, as it may keep some of it, or free it on another thread.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "shim/base/config.h"
#include "shim/base/sys.h"
#include "shim/device/pjrt_internal.h"
#include "shim/trace/record.h"

enum { WAITS = 4096, TURNS = 100000 };

struct wait {
	struct mt_pjrt_buffer of;
	void *event;
	uint32_t held; /* calls that may take it */
	uint8_t users; /* who still needs this: the map, the plugin, calls */
	uint8_t ready, asking, over;
	struct wait *next;
};

static struct mt_pjrt_map waiting; /* value: struct wait * */
static struct wait *all, *unused;

/* ---- waits ---- */

static struct wait *take_wait(void)
{
	struct wait *w;

	if (!all && (all = mt_sys_pages(WAITS * sizeof(*all))) != NULL)
		for (unsigned i = 0; i < WAITS; i++) {
			all[i].next = unused;
			unused = &all[i];
		}
	w = unused;
	if (w)
		unused = w->next;
	return w;
}

static struct wait *find(const void *buffer)
{
	const struct mt_pjrt_known *known = mt_pjrt_find(&waiting, buffer);

	return known ? (struct wait *)(uintptr_t)known->value : NULL;
}

/* Under the lock. What nobody needs any more is copied to *unneeded. */
static void leave_locked(struct wait *w, struct wait *unneeded)
{
	if (--w->users)
		return;
	*unneeded = *w;
	w->next = unused;
	unused = w;
}

/* Not under the lock. */
static void destroy(const struct wait *unneeded)
{
	if (unneeded->event)
		mt_pjrt_ask(unneeded->of.api, PJRT_Event_Destroy, PJRT_ARGS(struct pjrt_one, .thing = unneeded->event));
}

/* No more is to be told of the buffer: the map leaves it. Under the lock. */
static void finish(struct wait *w, struct wait *unneeded)
{
	struct mt_pjrt_known *known = w->over ? NULL : mt_pjrt_find(&waiting, w->of.buffer);

	w->over = 1;
	if (!known)
		return;
	mt_pjrt_cut(&waiting, known);
	leave_locked(w, unneeded);
}

/* One user less; with `over` it is finished, too. */
static void leave(struct wait *w, int over)
{
	struct wait unneeded = { .event = NULL };

	if (!mt_lock_take(&mt_pjrt_lock))
		return;
	if (over)
		finish(w, &unneeded);
	leave_locked(w, &unneeded);
	mt_lock_drop(&mt_pjrt_lock);
	destroy(&unneeded);
}

/* ---- telling ---- */

static void tell(const struct mt_pjrt_buffer *b)
{
	void *p;

	if (b->place && mt_pjrt_vendor(b->place) == PJRT_OTHER)
		return;
	mt_record_mute(1);
	p = mt_pjrt_thing(b->api, PJRT_Buffer_UnsafePointer, b->buffer);
	mt_record_mute(0);
	if (p && b->place)
		mt_pjrt_lies_at(b, p);
	else if (p)
		mt_record_owner(p, b->native, b->python);
}

/* Takes the error; NULL = none. */
static void tell_error(const struct mt_pjrt_buffer *b, void *error)
{
	if (!error)
		return;
	mt_pjrt_never_was(b);
	mt_pjrt_failed(b, error, NULL);
	mt_pjrt_function(b->api, PJRT_Error_Destroy)(PJRT_ARGS(struct pjrt_one, .thing = error));
}

/* The buffer is ready. Nobody ends it or gives it away until its `asking` is 0 again. Nonzero: it is told. */
static int tell_ready(struct wait *w)
{
	int goes;

	if (!mt_lock_take(&mt_pjrt_lock))
		return 0;
	__atomic_store_n(&w->ready, 1, __ATOMIC_RELAXED);
	goes = !w->over && !w->held && !w->asking;
	w->asking |= goes != 0;
	mt_lock_drop(&mt_pjrt_lock);
	if (!goes)
		return 0;
	tell(&w->of);
	__atomic_store_n(&w->asking, 0, __ATOMIC_RELEASE);
	return 1;
}

/* Called by the plugin, on any thread. */
static void when_ready(void *error, void *argument)
{
	struct wait *w = argument;
	int kept = errno;

	tell_error(&w->of, error);
	leave(w, error || tell_ready(w));
	errno = kept;
}

/* Is a stack recorded of every block of that size? */
static int has_stacks(uint64_t bytes)
{
	return mt_config.stacks == MT_STACKS_ALL ||
	       (mt_config.stacks == MT_STACKS_SAMPLE && bytes >= mt_config.sample_bytes);
}

static int can_tell(const struct mt_pjrt *api)
{
	return mt_pjrt_function(api, PJRT_Buffer_ReadyEvent) && mt_pjrt_function(api, PJRT_Event_IsReady) &&
	       mt_pjrt_function(api, PJRT_Event_Error) && mt_pjrt_function(api, PJRT_Event_OnReady) &&
	       mt_pjrt_function(api, PJRT_Event_Destroy);
}

/* Of an event that is ready; the caller's to destroy. NULL = none. */
static void *error_of(const struct mt_pjrt *api, void *event)
{
	return mt_pjrt_function(api, PJRT_Event_Error)(PJRT_ARGS(struct pjrt_one, .thing = event));
}

/* Nonzero: it is waited for, and the event is somebody's. */
static int wait_for(const struct wait *what)
{
	struct wait *w = NULL;
	int called;

	if (!mt_lock_take(&mt_pjrt_lock))
		return 0;
	w = take_wait();
	if (w) {
		const struct mt_pjrt_known known = { .handle = what->of.buffer, .value = (uintptr_t)w };
		*w = *what;
		w->users = 3; /* the map, the plugin, this call */
		if (!mt_pjrt_put(&waiting, &known)) {
			w->next = unused;
			unused = w;
			w = NULL;
		}
	}
	mt_lock_drop(&mt_pjrt_lock);
	if (!w)
		return 0;
	called =
		mt_pjrt_ask(w->of.api, PJRT_Event_OnReady,
			    PJRT_ARGS(struct pjrt_Event_OnReady, .event = w->event, .call = when_ready, .argument = w));
	if (!called)
		leave(w, 1); /* for the plugin */
	leave(w, 0);
	return 1;
}

static int is_ready(const struct wait *w)
{
	return mt_pjrt_flag(w->of.api, PJRT_Event_IsReady, w->event);
}

/* Of one that is ready. The plugin tells of the error. */
static int has_error(const struct wait *w)
{
	void *error = error_of(w->of.api, w->event);

	if (error)
		mt_pjrt_function(w->of.api, PJRT_Error_Destroy)(PJRT_ARGS(struct pjrt_one, .thing = error));
	return error != NULL;
}

/* Ready at once. */
static void look(const struct wait *w)
{
	void *error;

	error = error_of(w->of.api, w->event);
	destroy(w);
	if (error)
		tell_error(&w->of, error);
	else
		tell(&w->of);
}

void mt_pjrt_watch(const struct mt_pjrt_buffer *b)
{
	struct wait w = { .of = *b };
	int ready, has;

	if (!can_tell(b->api) || (!b->place && !has_stacks(b->bytes)))
		return;
	w.of.is_told = 1;
	has = mt_record_stacks(&w.of.native, &w.of.python);
	if (!has && !b->place)
		return;
	w.event = mt_pjrt_thing(b->api, PJRT_Buffer_ReadyEvent, b->buffer);
	ready = w.event && is_ready(&w);
	if (ready)
		look(&w);
	else if (w.event && !wait_for(&w))
		destroy(&w);
}

/* ---- the program's calls ---- */

/* Takes the lock when the buffer is not being asked about; 0 = not to be had. *w: NULL = nothing is waited for, or has
 * been told meanwhile. */
static int lock_quiet(const void *buffer, struct wait **w)
{
	for (unsigned i = 0; mt_lock_take(&mt_pjrt_lock); i++) {
		*w = find(buffer);
		if (!*w || i == TURNS || !__atomic_load_n(&(*w)->asking, __ATOMIC_ACQUIRE))
			return 1;
		mt_lock_drop(&mt_pjrt_lock);
		if (mt_sys_may(SYS_sched_yield))
			MT_SYS0(SYS_sched_yield);
	}
	return 0;
}

void mt_pjrt_unwatch(const void *buffer)
{
	struct wait *w, unneeded = { .event = NULL };

	if (mt_pjrt_is_empty(&waiting) || !lock_quiet(buffer, &w))
		return;
	if (w)
		finish(w, &unneeded);
	mt_lock_drop(&mt_pjrt_lock);
	destroy(&unneeded);
}

int mt_pjrt_is_pending(const void *buffer)
{
	return mt_pjrt_look_up(&waiting, buffer, 0).value != 0;
}

int mt_pjrt_hold(const void *buffer)
{
	struct wait *w;

	if (mt_pjrt_is_empty(&waiting) || !lock_quiet(buffer, &w))
		return 0;
	if (w)
		w->held++;
	mt_lock_drop(&mt_pjrt_lock);
	return w != NULL;
}

void mt_pjrt_release(void *buffer)
{
	struct wait *w;
	int tells = 0;

	if (mt_pjrt_is_empty(&waiting) || !mt_lock_take(&mt_pjrt_lock))
		return;
	w = find(buffer);
	if (w && w->held) {
		tells = !--w->held;
		w->users += tells;
	}
	mt_lock_drop(&mt_pjrt_lock);
	if (!tells)
		return;
	/* maybe the plugin hasn't come to say so yet */
	tells = __atomic_load_n(&w->ready, __ATOMIC_RELAXED) || (is_ready(w) && !has_error(w));
	leave(w, tells && tell_ready(w)); /* of what was donated no address is given */
}

void mt_pjrt_ready_reset(void)
{
	waiting = (struct mt_pjrt_map){ NULL, 0, 0 };
	all = unused = NULL;
}
