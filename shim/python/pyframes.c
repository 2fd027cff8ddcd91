/*
 * A thread's frames are a chain from the innermost outwards. Most of it is what it was at the previous capture, so
 * that one is kept, outermost first, with the node of each frame, and a capture goes in three steps:
 *
 *   1. new frames are read until one is met that is kept
 *   2. from there outwards each kept frame is compared with what is in its place now. A frame may have been left
 *      and another one entered at the same address, so code, instruction and link are looked at. That code is the
 *      same when its address is the same is known from pycode.c, which watches code objects die
 *   3. frames from the outermost change inwards are looked up in the call tree
 *
 * What is read is the thread's own and doesn't change meanwhile: we are called by it. But the layout is a guess
 * (an interpreter may be patched), so the first captures read through the kernel and check the type of each code
 * object; only when that has gone well often enough are plain loads used. When the interpreter is about to end,
 * states may be freed by another thread: back to careful reading.
 */
#include <string.h>

#include "format/format.h"
#include "shim/base/config.h"
#include "shim/base/holders.h"
#include "shim/python/autograd.h"
#include "shim/python/peek.h"
#include "shim/python/pycode.h"
#include "shim/python/pyframes.h"
#include "shim/stack/tree.h"

struct frame {
	uintptr_t at;
	uintptr_t code; /* 0: no Python frame but the mark of an evaluator entered from C */
	uint64_t instr; /* as the interpreter keeps it */
	uint32_t entry; /* an evaluator was entered for it, where frames say so themselves; a mark's owner */
	uint32_t node;  /* of this frame; a mark's and plumbing's is the next outer one's */
};

struct mt_python {
	uint32_t n;           /* kept */
	uint32_t deaths;      /* mt_pycode_deaths then */
	uint32_t thread;      /* of which thread_node is the node */
	uint32_t thread_node; /* 0 = not made yet */
	uint32_t beginner;    /* the caller of thread_node */
	uint32_t main;        /* where thread_node says that the first thread is */
	uint64_t looked;      /* tick at which that was asked */
	uint32_t root;        /* the caller of the outermost kept frame */
	uint8_t worker;       /* of autograd's engine */
	uint8_t looks;        /* at whether it is one */
	struct frame frame[]; /* [0, room): kept, outermost first; [room, 2 room): new ones, innermost first */
};

/* One capture. */
struct walk {
	const struct mt_pyruntime *rt;
	struct frame *kept, *fresh;
	uint32_t n, count, room; /* kept ones that stay; new ones; of each */
	int careful, cut;
};

/* Who owns a mark: the evaluator, or since 3.14 other C code too. */
#define OWNER_EVALUATOR 3
#define OWNER_OTHER     4

#define WINDOW       8 /* kept frames in which the next one is looked for */
#define MAX_DISTRUST 1000
#define LOOKS        16
#define LARGE_BYTES  (32 << 10) /* for these a thread without Python looks at once where the first one is, ... */
#define LOOK_TICKS   (1u << 24) /* ... for others every few milliseconds: each place is a stack of its own */

/* Where the first thread was at its latest capture. On a line of its own, since others read it. */
static struct {
	uint32_t node;
} __attribute__((aligned(64))) first_thread;

static uint32_t room(void)
{
	return mt_config.depth;
}

uint64_t mt_python_bytes(void)
{
	return sizeof(struct mt_python) + 2 * (uint64_t)room() * sizeof(struct frame);
}

/* ---- reading ---- */

#define READER(name, type) \
	static inline __attribute__((always_inline)) int name(int careful, uintptr_t at, type *to) \
	{ \
		if (careful) \
			return mt_peek_copy(to, at, sizeof(*to)); \
		__builtin_memcpy(to, (const void *)at, sizeof(*to)); \
		return 1; \
	}
READER(read_word, uint64_t)
READER(read_int, uint32_t)
READER(read_byte, uint8_t)

static int is_code(const struct walk *w, uintptr_t object)
{
	uint64_t type;

	return read_word(1, object + w->rt->at.object_type, &type) && type == w->rt->code_type;
}

/* Everything but its node. False if there is no frame. Inlined for `careful` being a constant: this is what a
 * capture consists of. */
static inline __attribute__((always_inline)) int read_as(const struct walk *w, int careful, uintptr_t at,
							 struct frame *f, uintptr_t *previous)
{
	const struct mt_pylayout *l = &w->rt->at;
	uint8_t owner = 0, entry = 1;
	uint32_t last = 0;

	if (!mt_peek_plausible(at) || !read_word(careful, at + l->frame_previous, previous))
		return 0;
	*f = (struct frame){ .at = at };
	if (l->frame_owner != MT_PY_NONE && (!read_byte(careful, at + l->frame_owner, &owner) || owner > 2))
		return (f->entry = owner) <= OWNER_OTHER;
	if (l->frame_entry != MT_PY_NONE && !read_byte(careful, at + l->frame_entry, &entry))
		return 0;
	f->entry = entry;
	if (l->code_instr == MT_PY_NONE) {
		if (!read_int(careful, at + l->frame_instr, &last))
			return 0;
		f->instr = last;
	} else if (!read_word(careful, at + l->frame_instr, &f->instr)) {
		return 0;
	}
	if (!read_word(careful, at + l->frame_code, &f->code))
		return 0;
	f->code &= ~(uintptr_t)7; /* references are tagged since 3.14 */
	return mt_peek_plausible(f->code) && (!careful || is_code(w, f->code));
}

static int read_frame(const struct walk *w, uintptr_t at, struct frame *f, uintptr_t *previous)
{
	return w->careful ? read_as(w, 1, at, f, previous) : read_as(w, 0, at, f, previous);
}

static uintptr_t innermost(const struct walk *w, uintptr_t state)
{
	const struct mt_pylayout *l = &w->rt->at;
	uint64_t at = 0;

	if (!mt_peek_plausible(state) || !read_word(w->careful, state + l->state_frame, &at) || !at)
		return 0;
	if (l->cframe_frame != MT_PY_NONE &&
	    (!mt_peek_plausible(at) || !read_word(w->careful, at + l->cframe_frame, &at)))
		return 0;
	return at;
}

/* ---- comparing ---- */

static inline int same(const struct frame *a, const struct frame *b)
{
	return a->at == b->at && a->code == b->code && a->instr == b->instr && a->entry == b->entry;
}

/* 1 + index of the kept frame at this address, as far as it is among the innermost. */
static uint32_t find_kept(const struct walk *w, uintptr_t at)
{
	uint32_t end = w->n > WINDOW ? w->n - WINDOW : 0;

	for (uint32_t i = w->n; i > end; i--)
		if (w->kept[i - 1].at == at)
			return i;
	return 0;
}

/* Step 1. Leaves in w->n what is kept from the frame on that was met. */
static int read_fresh(struct walk *w, uintptr_t at)
{
	uint32_t met = 0;

	for (w->count = 0; at && !(met = find_kept(w, at)); w->count++) {
		if (w->count == w->room) {
			w->cut = 1;
			break;
		}
		if (!read_frame(w, at, &w->fresh[w->count], &at))
			return 0;
	}
	w->n = met;
	return 1;
}

/* Whether frame f, which was read before, is what it was and the next one outwards is at `previous`: the same as
 * read_as() and comparing, with one branch. `wide`: how the interpreter keeps the instruction. */
static inline __attribute__((always_inline)) int is_same(const struct mt_pylayout *l, int wide, const struct frame *f,
							 uintptr_t previous)
{
	uint64_t before = 0, code = 0, instr = 0;
	uint32_t narrow = 0;
	uint8_t owner = 0, entry = (uint8_t)f->entry;

	read_word(0, f->at + l->frame_previous, &before);
	read_word(0, f->at + l->frame_code, &code);
	if (wide)
		read_word(0, f->at + l->frame_instr, &instr);
	else
		read_int(0, f->at + l->frame_instr, &narrow);
	if (l->frame_owner != MT_PY_NONE)
		read_byte(0, f->at + l->frame_owner, &owner);
	if (l->frame_entry != MT_PY_NONE)
		read_byte(0, f->at + l->frame_entry, &entry);
	/* a mark's code is 0, so it never passes */
	return ((before ^ previous) | ((code & ~7ull) ^ f->code) | (instr ^ (wide ? f->instr : 0)) |
		(narrow ^ (wide ? 0 : f->instr)) | (entry ^ f->entry) | (owner > 2)) == 0;
}

/* Step 2. How many of the n kept frames, from the outermost on, are what they were; the others are brought up to
 * date. UINT32_MAX if they no longer follow each other. */
static inline __attribute__((always_inline)) uint32_t check_as(struct walk *w, int careful, int wide)
{
	const struct mt_pylayout l = w->rt->at;
	uint32_t good = w->n;

	for (uint32_t i = w->n; i-- > 0;) {
		uintptr_t outer = i ? w->kept[i - 1].at : 0, previous;
		struct frame now;

		if (!careful && is_same(&l, wide, &w->kept[i], outer))
			continue;
		if (!read_as(w, careful, w->kept[i].at, &now, &previous) || previous != outer)
			return UINT32_MAX;
		if (!same(&now, &w->kept[i])) {
			w->kept[i] = now;
			good = i;
		}
	}
	return good;
}

static uint32_t check_kept(struct walk *w)
{
	if (w->careful)
		return check_as(w, 1, 0);
	return w->rt->at.code_instr != MT_PY_NONE ? check_as(w, 0, 1) : check_as(w, 0, 0);
}

/* Puts the new frames behind the kept ones. What lay there before is good as well if it is the same: after a way
 * back that was longer than WINDOW. */
static uint32_t append(struct walk *w, uint32_t good, uint32_t before)
{
	for (; w->count; w->n++) {
		const struct frame *f = &w->fresh[--w->count];
		if (good == w->n && w->n < before && same(f, &w->kept[w->n]))
			good++;
		else
			w->kept[w->n] = *f;
	}
	return good;
}

/* Brings the kept frames up to date. How many of them have their nodes already, or UINT32_MAX: no stack. */
static uint32_t update(struct walk *w, uintptr_t top)
{
	uint32_t before = w->n, good;

	if (!read_fresh(w, top))
		return UINT32_MAX;
	good = w->n + w->count > w->room ? UINT32_MAX : check_kept(w);
	if (good == UINT32_MAX) {
		before = w->n = 0;
		if (!read_fresh(w, top))
			return UINT32_MAX;
		good = 0;
	}
	good = append(w, good, before);
	/* a mark's node depends on what is further in */
	return good && !w->kept[good - 1].code ? good - 1 : good;
}

/* ---- nodes ---- */

static int is_entry(const struct walk *w, uint32_t i)
{
	if (w->rt->at.frame_owner != MT_PY_NONE)
		return i == 0 ? !w->cut : !w->kept[i - 1].code;
	return w->kept[i].entry;
}

/* Bytes from the first instruction. Before the first one has begun there is nothing better than the first. */
static uint32_t offset_of(const struct walk *w, const struct frame *f)
{
	int64_t offset = (int32_t)f->instr;

	if (w->rt->at.code_instr != MT_PY_NONE)
		offset = (int64_t)(f->instr - f->code - w->rt->at.code_instr);
	else if (w->rt->version == 0x30a)
		offset *= 2;
	return offset < 0 || offset > INT32_MAX ? 0 : (uint32_t)offset;
}

/* A mark with no frame of its own further in: the evaluator has left its frame and is clearing it. */
static int is_idle(const struct walk *w, uint32_t i)
{
	return w->kept[i].entry == OWNER_EVALUATOR && (i + 1 == w->n || !w->kept[i + 1].code);
}

static uint32_t node_of(const struct walk *w, uint32_t i, uint32_t outer)
{
	const struct frame *f = &w->kept[i];
	uint64_t pc = MT_PY_FRAME | (is_entry(w, i) ? MT_PY_ENTRY : 0);
	uint32_t id;

	if (!f->code)
		return is_idle(w, i) ? mt_tree_child(outer, MT_PY_FRAME | MT_PY_ENTRY, MT_NODE_PYTHON) : outer;
	id = mt_pycode_id(w->rt, f->code);
	if (!id)
		return MT_NODE_FAILED;
	if (id == MT_PYCODE_PLUMBING)
		return outer;
	return mt_tree_child(outer, pc | (uint64_t)id << 32 | offset_of(w, f), MT_NODE_PYTHON);
}

/* Step 3. */
static uint32_t name_frames(struct walk *w, uint32_t good, uint32_t root, int *truncated)
{
	uint32_t node = good ? w->kept[good - 1].node : root;

	for (uint32_t i = good; i < w->n; i++) {
		uint32_t child = node_of(w, i, node);
		if (child == MT_NODE_FAILED) {
			*truncated = 1;
			w->n = i;
			return node;
		}
		w->kept[i].node = node = child;
	}
	return node;
}

static void judge(struct mt_pyruntime *rt, int right)
{
	uint32_t *count = right ? &rt->trust : &rt->distrust;

	if (__atomic_fetch_add(count, 1, __ATOMIC_RELAXED) >= MAX_DISTRUST && !right)
		mt_pyruntime = NULL;
}

static uint32_t capture(struct mt_python *p, struct mt_pyruntime *rt, uintptr_t state, uint32_t root, int *truncated)
{
	struct walk w = { .rt = rt,
			  .kept = p->frame,
			  .fresh = p->frame + room(),
			  .room = room(),
			  .careful = mt_pyruntime_careful(rt) };
	/* acquire pairs with the release in pycode.c */
	uint32_t deaths = __atomic_load_n(&mt_pycode_deaths, __ATOMIC_ACQUIRE), good, node;
	uintptr_t top = innermost(&w, state);

	if (!top)
		return 0;
	w.n = p->deaths == deaths && p->root == root ? p->n : 0;
	p->deaths = deaths;
	p->root = root;
	p->n = 0; /* in case a signal handler never comes back */
	good = update(&w, top);
	if (w.careful)
		judge(rt, good != UINT32_MAX);
	if (good == UINT32_MAX)
		return 0;
	node = name_frames(&w, good, root, truncated);
	*truncated |= w.cut;
	p->n = w.cut ? 0 : w.n; /* of a cut stack nothing can be told about what is further out */
	return node;
}

/* Numbers of threads are used again. Without Python its memory is never touched. */
void mt_python_reset(struct mt_python *p)
{
	if (!__atomic_load_n(&mt_pyruntime, __ATOMIC_RELAXED))
		return;
	p->n = 0;
	p->thread = 0;
}

/* Rings change hands. A thread of the engine is in a function that says so from its first allocations on. */
int mt_python_is_new(struct mt_python *p, uint32_t thread)
{
	if (!thread || !__atomic_load_n(&mt_pyruntime, __ATOMIC_RELAXED))
		return 0;
	if (p->thread != thread) {
		p->thread = thread;
		p->thread_node = p->beginner = p->main = 0;
		p->looked = 0;
		p->worker = p->looks = 0;
	}
	return !p->worker && p->looks < LOOKS;
}

void mt_python_meet(struct mt_python *p, uint32_t native)
{
	p->looks++;
	p->worker = (uint8_t)mt_autograd_is_worker(native);
}

static uint32_t look_beside(struct mt_python *p, const struct mt_event *e)
{
	if (p->looked && !(e && (e->size >= LARGE_BYTES || e->ticks - p->looked > LOOK_TICKS)))
		return p->main;
	p->looked = e ? e->ticks : 1;
	/* acquire pairs with the release in mt_python_capture */
	return __atomic_load_n(&first_thread.node, __ATOMIC_ACQUIRE);
}

static uint32_t name_thread(struct mt_python *p, uint32_t thread, const struct mt_event *e)
{
	uint32_t beginner = p->worker ? mt_autograd_caller() : 0, main = p->worker ? 0 : look_beside(p, e);

	if (!p->thread_node || p->beginner != beginner || p->main != main) {
		uint64_t pc = MT_PY_FRAME | thread | (main ? MT_PY_BESIDE | (uint64_t)main << 32 : 0);
		uint32_t node = mt_tree_child(beginner, pc, MT_NODE_PYTHON);
		if (node == MT_NODE_FAILED)
			return 0;
		p->beginner = beginner;
		p->main = main;
		p->thread_node = node;
	}
	return p->thread_node;
}

uint32_t mt_python_capture(struct mt_python *p, uint32_t thread, const struct mt_event *e, int *truncated)
{
	/* acquire pairs with the release in pyfind.c */
	struct mt_pyruntime *rt = __atomic_load_n(&mt_pyruntime, __ATOMIC_ACQUIRE);
	uint32_t node = 0;
	void *state;

	if (!rt)
		return 0;
	state = rt->this_state();
	if (__builtin_expect(state && !rt->watched, 0) && !mt_pycode_watch(rt)) {
		mt_say("Python without frames: ", "code objects can't be watched");
		mt_pyruntime = NULL;
		return 0;
	}
	if (state)
		node = capture(p, rt, (uintptr_t)state, thread && p->worker ? name_thread(p, thread, e) : 0, truncated);
	if (thread)
		return node ? node : name_thread(p, thread, e);
	if (state && node && p->n)
		mt_holders_runs(p->frame[p->n > 1 && !p->frame[0].code].code);
	else if (state)
		mt_holders_idle();
	if (node && first_thread.node != node)
		__atomic_store_n(&first_thread.node, node, __ATOMIC_RELEASE);
	return node;
}
