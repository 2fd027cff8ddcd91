/*
 * Unwinding a 60-frame stack on every malloc is what makes tracers slow; but from one malloc of a thread to the next
 * only the innermost few frames differ. So the previous capture is kept, and the new one is made as follows.
 *
 * Walk outwards from the hook with the rules of rules.h. The state between two frames is (pc, sp, fp): everything
 * further out follows from it and from the words of the stack that the walk reads. When a frame has the
 * slot (where its return address lies), return address and caller's frame pointer of a kept frame, the state is the one
 * that the previous capture had there; then it only remains to see that the words it read further out are still the
 * same: each kept frame's return address, the saved frame pointer, where that frame saved it, and
 * the cell that holds the CFA of a realigned frame. If they are, the rest of the stack is the kept one. (Comparing
 * return addresses alone is wrong: with an indirect call to f() and then to g() from one call site, both calling a
 * function that uses alloca, the frame pointer can differ while all return addresses are equal.)
 *
 * To find a stack's node, each kept frame has a 64-bit hash of all pcs from the outermost frame to it, so that the
 * hash of a new stack takes two multiplications per new frame. A small cache of the thread maps hashes of whole stacks
 * to nodes; only when it doesn't know one are the new frames looked up in the call tree one by one. Two
 * stacks whose hashes collide would be one: with a million different stacks, 1 chance in 10^7.
 *
 * Frames beyond a signal frame, or one that needed the full interpreter (whose other registers nobody verifies), are
 * not kept.
 *
 * Of a stack deeper than `depth` the innermost frames are shown: a window, whose outer end moves with the innermost
 * frame. The hash is a polynomial in the pcs, so that a window's follows from those at its two ends; and what is kept
 * reaches further out than a window, so that a stack that has become a little less deep need not be walked anew. Only a
 * window's frames are compared: what lies outside of it is when a window reaches there. Nodes of kept frames are those
 * of one window, and looked up anew for another.
 *
 * What holds: a kept frame is taken for the current one only if every word through which it was found is the same now;
 * so a stack is either right or cut, and who reads a cut one is told. Memory is read where range.h says that it can be.
 * A signal handler may come between any two stores, and its captures have another state.
 *
 * What it does not do: take a lock or memory, set errno, follow a stack beyond what its rules can prove (another
 * thread's, or that of a coroutine that is not running), or name anything: a frame is a pc.
 */
#include <limits.h>

#include "shim/stack/tree.h"
#include "shim/stack/unwind_state.h"

static uint32_t epoch;

/* The compiler may not move stores across this; a signal handler sees them in order. */
static inline void in_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- start ---- */

/* Code of this library? Not asked in a program that the unwinder is linked into. */
static inline bool is_own(uint64_t pc)
{
#if defined(__PIC__) && !defined(__PIE__)
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	extern const char _end[] __attribute__((visibility("hidden")));

	return pc - (uintptr_t)__ehdr_start < (uintptr_t)_end - (uintptr_t)__ehdr_start;
#else
	return pc == 0;
#endif
}

void mt_unwind_boot(void)
{
	mt_range_boot();
	mt_ehframe_boot();
}

/* Frames of one walk: so often a stack has to lose a frame until the next one. */
static unsigned most(unsigned depth)
{
	return depth + depth / 4 + 1;
}

/* Each may bring a CELL with it. */
static size_t room(unsigned depth)
{
	return 2 * (size_t)most(depth) + 2;
}

size_t mt_unwind_bytes(unsigned depth)
{
	return sizeof(struct mt_unwind) + room(depth) * (2 * sizeof(struct frame) + sizeof(struct sum));
}

#define MANY_CAPTURES 256                   /* captures, of a thread that is worth more memory */
#define HASH_BASE     0x9E3779B97F4A7C15ull /* of the polynomial */

void mt_unwind_init(struct mt_unwind *u, unsigned depth)
{
	u->depth = depth;
	u->most = most(depth) < SMALL ? most(depth) : SMALL;
	u->room = SMALL_ROOM;
	u->power = 1;
	for (unsigned i = 0; i < depth; i++)
		u->power *= HASH_BASE;
	u->kept = u->few_kept;
	u->new = u->few_new;
	u->sum = u->few_sums;
	u->guess = u->few_guesses;
	u->guess_mask = FEW_GUESSES - 1;
	u->memo_mask = MEMO_SETS_MIN - 1;
	u->epoch = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
	mt_range_copied(&u->guessed, u->copy);
}

/* A thread that is at home on short stacks has come to a longer one. */
static __attribute__((noinline)) void enlarge(struct mt_unwind *u)
{
	size_t n = room(u->depth);

	u->kept = (struct frame *)(u + 1);
	u->new = u->kept + n;
	u->sum = (struct sum *)(u->new + n);
	__builtin_memcpy(u->kept, u->few_kept, sizeof(u->few_kept));
	__builtin_memcpy(u->new, u->few_new, sizeof(u->few_new));
	__builtin_memcpy(u->sum, u->few_sums, sizeof(u->few_sums));
	u->most = most(u->depth);
	u->room = (unsigned)n;
}

static inline bool is_small(const struct mt_unwind *u)
{
	return u->kept == u->few_kept && most(u->depth) > SMALL;
}

void mt_unwind_flush(void)
{
	/* release: whoever sees the new epoch also sees what dlclose did */
	__atomic_fetch_add(&epoch, 1, __ATOMIC_RELEASE);
	mt_ehframe_forget();
	mt_rules_wipe();
	mt_range_unmapped();
}

void mt_unwind_sandboxed(void)
{
	mt_range_forbid();
}

void mt_unwind_unmapped(void)
{
	mt_range_unmapped();
}

/* ---- walk ---- */

/* The first kept entry behind the frame whose number is `from`, of which there are at least so many, less u->origin,
 * before it. */
static inline unsigned entry_behind(const struct mt_unwind *u, uint32_t from, unsigned count)
{
	unsigned i = from - u->origin;

	while (i < count && u->sum[i].frames <= from)
		i++;
	return i;
}

/* still_there() from frame `i` outwards, all of which were found through a guess: what is there is read through
 * copies. */
static __attribute__((noinline)) int unsure_still_there(struct mt_unwind *u, int i, int end)
{
	struct mt_range *g = &u->guessed;

	for (; i >= end; i--) {
		const struct frame *f = &u->kept[i];
		uint64_t saved = f->slot + (uint64_t)(f->fp_at * 8);
		if (!mt_range_has(g, f->slot) || mt_range_load(g, f->slot) != f->ra || !mt_range_has(g, saved) ||
		    mt_range_load(g, saved) != (f->fp_at ? f->fp : f->ra))
			return i;
	}
	return -1;
}

/* The kept frame with index `top` was reached: do the words that its outer frames were found through still say the
 * same, as far out as they are shown? If not, returns the index of the innermost that doesn't, else -1.
 *
 * They are looked at from the inside outwards: as long as they are the same, each next one is where this stack has it,
 * so it can be read. Further out there may be nothing any more: a coroutine's stack was freed, which libc unmaps
 * without a hook, and another one, which ends further in, lies in its place. */
static inline int still_there(struct mt_unwind *u, int top)
{
	uint32_t frames = u->sum[top].frames + u->new_count - u->cells;
	int end = 0, i = top - 1, unsure = (int)u->unsure;

	if (__builtin_expect(frames - u->origin > u->depth, 0))
		end = (int)entry_behind(u, frames - u->depth, (unsigned)top);
	for (int sure = end > unsure ? end : unsure; i >= sure; i--) {
		const struct frame *f = &u->kept[i];
		if (load(f->slot) != f->ra || load(f->slot + (uint64_t)(f->fp_at * 8)) != (f->fp_at ? f->fp : f->ra))
			return i;
	}
	return __builtin_expect(i >= end, 0) ? unsure_still_there(u, i, end) : -1;
}

/* Is f a kept frame, and everything outside of it as it was? *candidate: the innermost kept frame that can be it. */
static inline __attribute__((always_inline)) bool joins(struct mt_unwind *u, const struct frame *f, int *candidate)
{
	int j = *candidate, changed;
	struct frame *k;

	while (j >= 0 && u->kept[j].slot < f->slot)
		j--;
	*candidate = j;
	if (j < 0)
		return false;
	k = &u->kept[j];
	if (k->slot != f->slot || k->ra != f->ra || k->fp != f->fp)
		return false;
	changed = still_there(u, j);
	if (changed >= 0) {
		*candidate = changed - 1;
		return false;
	}
	k->fp_at = f->fp_at; /* another function may have saved the same frame pointer elsewhere */
	u->join = j;
	return true;
}

/* The common rule, CFA = register + offset. False if the stack can't be so. */
static inline __attribute__((always_inline)) bool step(struct mt_unwind *u, uint64_t word, struct cursor *c,
						       struct frame *f)
{
	uint64_t cfa = (mt_rules_kind(word) == MT_RULE_SP ? c->sp : c->fp) + mt_rules_cfa(word);
	uint32_t saved = mt_rules_saved(word);

	f->slot = cfa - mt_rules_ra(word);
	f->fp = c->fp;
	f->fp_at = 0;
	f->flags = 0;
	f->node = 0;
	if (cfa <= c->sp || !mt_range_has(u->ground, f->slot))
		return false;
	f->ra = mt_range_load(u->ground, f->slot);
	if (saved) {
		if (!mt_range_has(u->ground, cfa - 8 * saved))
			return false;
		f->fp = mt_range_load(u->ground, cfa - 8 * saved);
		f->fp_at = (int16_t)((int32_t)(mt_rules_ra(word) / 8) - (int32_t)saved);
	}
	c->sp = cfa;
	return true;
}

/* Each frame's rule is in a line of its own, which is known only when the frame further in is done; other work has
 * mostly driven it out of the caches. But from one call of malloc at one depth the way outwards is mostly the same: all
 * are fetched at once. */
static inline struct guess *fetch(struct mt_unwind *u, const struct mt_regs *at)
{
	struct guess *g = &u->guess[((at->pc ^ at->sp << 20) * 0x9E3779B97F4A7C15ull >> 40) & u->guess_mask];

	__builtin_prefetch(u->memo[g->memo]);
	for (unsigned i = 0; i < GUESSED_FRAMES; i++)
		__builtin_prefetch(mt_rules[g->rule[i]]);
	return g;
}

/* From `at` outwards until a kept frame, the end, or as many frames as there may be. */
static __attribute__((noinline)) void walk(struct mt_unwind *u, const struct mt_regs *at, bool may_join)
{
	struct cursor c = { at->pc, at->sp, at->fp, at->lr, !at->called };
	int candidate = may_join ? (int)u->kept_count - 1 : -1;
	struct frame f;
	enum step s;

	u->new_count = u->cells = u->barrier = 0;
	u->join = -1;
	u->cut = u->more = false;
	u->hint = NULL;
	u->sure = UINT_MAX;
	u->guessed.lo = UINT64_MAX; /* nothing is copied yet */
	u->ground = &u->range;
	if (at->called) {
		f = (struct frame){ .slot = at->sp - 8, .ra = at->pc, .fp = at->fp, .fp_at = -1 };
		if (!mt_range_has(u->ground, f.slot) || joins(u, &f, &candidate))
			return;
		u->new[u->new_count++] = f;
		u->hint = fetch(u, at);
	}
	for (;;) {
		uint64_t word = mt_rules_find(c.pc, c.exact, u->epoch);
		if (mt_rules_kind(word) - MT_RULE_SP <= MT_RULE_FP - MT_RULE_SP) {
			s = u->new_count - u->cells < u->most && step(u, word, &c, &f) ? STEP_FRAME : STEP_CUT;
		} else {
			u->at = c;
			u->rule = word ? mt_rules_unpack(word) : mt_rules_make(&u->cfi, c.pc, c.exact, u->epoch);
			s = mt_unwind_step(u);
			c = u->at;
			f = u->found;
			if (s == STEP_JUMP) {
				candidate = may_join && is_kept_ground(u) ? (int)u->kept_count - 1 : -1;
				continue;
			}
		}
		u->more = s == STEP_CUT && u->new_count - u->cells == u->most;
		u->cut = s == STEP_CUT && !u->more;
		if (s != STEP_FRAME || !f.ra)
			return;
		c.pc = mt_arch_strip(f.ra);
		c.fp = f.fp;
		c.exact = false;
		if (u->new_count == 0 && is_own(c.pc))
			continue;
		if (joins(u, &f, &candidate))
			return;
		u->new[u->new_count++] = f;
	}
}

/* ---- from frames to a node ---- */

static inline uint64_t mix(uint64_t h, const struct frame *f)
{
	uint64_t pc = (mt_arch_strip(f->ra) ^ (uint64_t)(f->flags & EXACT) << 63) * 0xD6E8FEB86659FD93ull;

	return h * HASH_BASE + (pc ^ pc >> 29);
}

/* There is no room for all that is to be kept: the outermost go, as many as one walk would not have found. Returns how
 * many entries are left of the `n` that were joined. */
static __attribute__((noinline)) unsigned slide(struct mt_unwind *u, unsigned n)
{
	uint32_t end = u->sum[n - 1].frames + u->new_count - u->cells;
	unsigned gone = entry_behind(u, end - u->most, n);

	u->origin = u->sum[gone - 1].frames;
	u->unsure = u->unsure > gone ? u->unsure - gone : 0;
	u->kept_more = true;
	u->base = UINT_MAX;
	__builtin_memmove(u->kept, u->kept + gone, (n - gone) * sizeof(*u->kept));
	__builtin_memmove(u->sum, u->sum + gone, (n - gone) * sizeof(*u->sum));
	return n - gone;
}

/* Hash of the stack, or of the innermost `depth` frames of it. New frames become kept ones, unless the walk says
 * otherwise. */
static __attribute__((noinline)) uint64_t absorb(struct mt_unwind *u)
{
	unsigned n = (unsigned)(u->join + 1), first = is_kept_ground(u) ? u->barrier : u->new_count;
	uint64_t seed = ((uint64_t)u->epoch + 1) * 0xD6E8FEB86659FD93ull, h = seed, before = 0;
	uint32_t frames, from;
	bool cut;

	if (__builtin_expect(n + u->new_count - first > u->room, 0)) {
		if (is_small(u))
			enlarge(u);
		else
			n = slide(u, n);
	}
	if (u->unsure > n)
		u->unsure = n;
	if (__builtin_expect(u->sure < u->new_count, 0))
		u->unsure = n + u->new_count - (u->sure > first ? u->sure : first);
	u->origin = n ? u->origin : 0;
	frames = n ? u->sum[n - 1].frames : 0;
	h = n ? u->sum[n - 1].hash : h;
	from = frames + u->new_count - u->cells - u->depth;
	cut = (int32_t)(from - u->origin) > 0;
	u->first = 0;
	if (__builtin_expect(cut && from <= frames, 0)) {
		u->first = entry_behind(u, from, n);
		before = u->sum[u->first - 1].hash;
	}
	u->kept_cut = u->cut || (n && u->kept_cut);
	u->kept_more = n ? u->kept_more : u->more;
	u->cut = u->kept_cut || cut;
	for (unsigned i = u->new_count; i-- > 0;) {
		const struct frame *f = &u->new[i];
		if (!(f->flags & CELL)) {
			h = mix(h, f);
			frames++;
		}
		if (i >= first) {
			u->kept[n] = *f;
			u->sum[n++] = (struct sum){ h, frames };
		}
		if (__builtin_expect(cut && frames == from, 0)) {
			before = h;
			u->first = n + (i < first ? first - i : 0);
		}
	}
	u->kept_count = n;
	if (u->join < 0)
		u->base = u->first;
	return cut ? h - before * u->power + seed : h;
}

static inline struct memo *memo_set(struct mt_unwind *u, uint64_t h)
{
	return u->memo[h >> 40 & u->memo_mask];
}

/* Random replacement: a loop over more stacks than there is room for would make any order miss always. */
static void memo_put(struct mt_unwind *u, uint64_t h, uint32_t node)
{
	unsigned way = MEMO_WAYS;
	struct memo *set;

	u->stats.missed++;
	u->memo_turn = u->memo_turn * 1664525 + 1013904223;
	if (u->memo_mask < MEMO_SETS_MAX - 1 && u->stats.missed > 2 * (u->memo_mask + 1))
		u->memo_mask = u->memo_mask * 2 + 1;
	set = memo_set(u, h);
	for (unsigned i = 0; i < MEMO_WAYS && way == MEMO_WAYS; i++)
		way = set[i].node ? MEMO_WAYS : i;
	set += way < MEMO_WAYS ? way : u->memo_turn >> 30;
	/* never a hash with another one's node, even if we are left in the middle */
	set->node = 0;
	in_order();
	set->hash = h;
	in_order();
	set->node = node;
}

/* The i-th frame from the outside, be it kept or not. */
static inline struct frame *frame_at(struct mt_unwind *u, unsigned i, unsigned unkept)
{
	return i < u->kept_count ? &u->kept[i] : &u->new[unkept - 1 - (i - u->kept_count)];
}

/* Nodes for frames from *i on, called from `node`, as many as go at once. The last one's node. *i is where to go on, or
 * UINT32_MAX when the tree is full. */
static uint32_t resolve_some(struct mt_unwind *u, unsigned *i, unsigned unkept, uint32_t node)
{
	unsigned end = u->kept_count + unkept, n = 0, from = *i, done;

	for (; *i < end && n < MT_TREE_PATH; ++*i) {
		const struct frame *f = frame_at(u, *i, unkept);
		if (!(f->flags & CELL))
			u->path[n++] = (struct mt_tree_frame){ mt_arch_strip(f->ra), f->flags & EXACT, 0 };
	}
	done = n ? mt_tree_path(node, u->path, n) : 0;
	n = 0;
	for (; from < *i; from++) {
		struct frame *f = frame_at(u, from, unkept);
		if (!(f->flags & CELL)) {
			if (n == done) {
				u->cut = true;
				*i = UINT32_MAX;
				return node;
			}
			node = u->path[n++].node;
		}
		f->node = node;
	}
	return node;
}

/* Looks frames up in the tree, from the outermost that has no node yet. */
static __attribute__((noinline)) uint32_t resolve(struct mt_unwind *u, uint64_t h)
{
	unsigned i = u->kept_count, unkept = is_kept_ground(u) ? u->barrier : u->new_count;
	uint32_t node = 0;

	for (unsigned k = 0; u->base != u->first && k < u->kept_count; k++)
		u->kept[k].node = 0;
	u->base = u->first;
	while (i > u->first && !u->kept[i - 1].node)
		i--;
	if (i > u->first)
		node = u->kept[i - 1].node;
	else
		i = u->first;
	while (i < u->kept_count + unkept)
		node = resolve_some(u, &i, unkept, node);
	if (i != UINT32_MAX)
		memo_put(u, h, node);
	return node;
}

static inline uint32_t find_node(struct mt_unwind *u, uint64_t h)
{
	struct memo *set = memo_set(u, h);

	for (int i = 0; i < MEMO_WAYS; i++)
		if (set[i].hash == h && set[i].node) {
			if (u->kept_count && u->barrier == 0 && is_kept_ground(u) && u->base == u->first)
				u->kept[u->kept_count - 1].node = set[i].node;
			return set[i].node;
		}
	return resolve(u, h);
}

/* What is kept was joined, but does not reach as far out as the frames that are to be shown. */
static bool too_short(const struct mt_unwind *u)
{
	return u->kept_more && u->sum[u->join].frames - u->origin + u->new_count - u->cells <= u->depth;
}

static inline void remember(const struct mt_unwind *u, struct guess *g)
{
	for (unsigned i = 0; i < GUESSED_FRAMES && i + 1 < u->new_count; i++)
		g->rule[i] = (uint16_t)mt_rules_set(mt_arch_pc_key(mt_arch_strip(u->new[i + 1].ra), false));
	g->memo = (uint16_t)(u->whole >> 40 & u->memo_mask);
}

/* The walk is done. Which node its stack has is kept in a line that other work has mostly driven out of the caches. */
static inline void conclude(struct mt_unwind *u)
{
	if (__builtin_expect(++u->stats.captures == MANY_CAPTURES, 0)) {
		u->guess = u->guesses;
		u->guess_mask = GUESSES - 1;
		u->hint = NULL;
	}
	u->stats.joined += u->join >= 0;
	u->stats.frames += u->new_count;
	u->whole = absorb(u);
	__builtin_prefetch(memo_set(u, u->whole));
	if (u->hint)
		remember(u, u->hint);
}

/* Another thread's state, or one that was left in the middle of a capture, is as good as none. */
static __attribute__((noinline)) void start_anew(struct mt_unwind *u)
{
	if (u->busy) {
		u->stats = (struct mt_unwind_stats){ 0 };
		mt_unwind_init(u, u->depth);
	}
	u->kept_count = 0;
	u->range = (struct mt_range){ 0 };
	mt_range_copied(&u->guessed, u->copy);
	u->thread = mt_arch_thread();
}

void mt_unwind_reset(struct mt_unwind *u)
{
	u->thread = 0;
}

/* The frames that are not kept are as far out as they need be. */
static inline __attribute__((always_inline)) void walk_out(struct mt_unwind *u, const struct mt_regs *at, bool may_join)
{
	uint32_t now = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);

	if (u->busy || u->thread != mt_arch_thread())
		start_anew(u);
	u->busy = true;
	in_order();
	if (!mt_range_enter(&u->range, (uintptr_t)__builtin_frame_address(0)) || u->epoch != now)
		u->kept_count = 0;
	u->epoch = now;
	walk(u, at, may_join);
	if (__builtin_expect(u->more, 0) && is_small(u)) {
		enlarge(u);
		walk(u, at, may_join);
	}
	if (u->join >= 0 && too_short(u))
		walk(u, at, false);
}

void mt_unwind_walk(struct mt_unwind *u, const struct mt_regs *at)
{
	walk_out(u, at, true);
	conclude(u);
}

/* The interpreter of all registers also comes through signal frames. What a guess leads past proves nothing. */
bool mt_unwind_passes(struct mt_unwind *u, const struct mt_regs *at, uint64_t address)
{
	bool passes = false;

	walk_out(u, at, false);
	for (unsigned i = 0; i < u->new_count && !u->barrier && !passes && !(u->new[i].flags &GUESSED); i++)
		passes = u->new[i].slot > address && !(u->new[i].flags &CELL);
	u->kept_count = 0;
	in_order();
	u->busy = false;
	return passes;
}

uint32_t mt_unwind_node(struct mt_unwind *u, bool *truncated)
{
	uint32_t node = find_node(u, u->whole);

	*truncated = *truncated || u->cut;
	in_order();
	u->busy = false;
	return node;
}

struct mt_unwind_stats mt_unwind_stats(const struct mt_unwind *u)
{
	return u->stats;
}
