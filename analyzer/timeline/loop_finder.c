#include "analyzer/timeline/loop_finder.h"

#include "analyzer/util/vec.h"

#include <ctype.h>

#define BINS            28 /* of intervals, in allocations: powers of two */
#define LEAST_OPTIMIZER 3  /* visits */
#define LEAST_SITES     8  /* turns, of a loop that nothing but its sites tells */
#define LEAST_MICRO     8
#define REGULAR         0.75 /* of what is allocated is in intervals of the usual length */
#define NEARLY          0.9  /* as often as steps */
#define LEAST_TURNS     24   /* of all its sites: few turns of few sites may be chance */
#define LONG            0.1  /* of the time that the process was seen */
/* of the blocks on devices, or of all bytes: then it is what the process is for, however short it was */
#define MOST_MADE   0.5
#define LEAST_SHORT 20 /* turns, of such a loop, ... */
/* ... which frees at least so much of what it makes: layers of a model that is loaded recur, too */
#define FREES       0.25
#define LEAST_LAST  64      /* turns, of a short one that the process ends with */
#define SHORTEST_NS 100000u /* of a turn: faster ones may be parts of a step */
#define COVERS      0.8     /* of the time that the longest loop covers */

/* Mappings don't tell steps: the interpreter maps the next arena for whoever comes then. */
enum site_flag {
	SITE_KNOWN = 1,
	SITE_IMPORT = 2,
	SITE_THREADS = 4,
	SITE_MAPPED = 8,
	SITE_POOL = 16,
	SITE_MODULE = 32,
	SITE_DEVICE = 64,
	SITE_MACHINE = 128
};

/* How many blocks on devices were made and freed so far, and how many bytes were made of any memory. */
struct traffic {
	uint32_t made, freed;
	float bytes; /* watched.bytes, rounded: each site has two of these, so it takes 4 bytes */
};

/* How often and when one site allocated. */
struct turn {
	uint64_t first_ns, last_ns, last_index;
	struct traffic first, last;
	uint32_t count, thread;
	uint32_t freeing; /* turns in which blocks on devices were freed */
	uint32_t node2;
	uint32_t bins;      /* in watched.bins, plus 1; 0 = it came once. Most do */
	uint32_t call : 24; /* the optimizer's that it belongs to, plus 1; 0 = none */
	uint32_t flags : 8;
};

/* A place that calls an optimizer. */
struct call {
	uint32_t node2; /* of the caller's frame */
	uint64_t visits, first_ns, last_ns, first_index, last_index;
	uint64_t turns; /* visits behind one of another place */
	bool steps;     /* they are the loop's steps */
	uint32_t thread;
};

enum { MOST_CALLS = (1 << 24) - 1 };

struct watched {
	const struct process *process;
	struct turn *turns; /* by site */
	size_t turn_count, turn_room;
	struct bins {
		uint32_t n[BINS];
	} *bins; /* intervals between the turns of a site */
	size_t bins_count, bins_room;
	struct call *calls;
	size_t call_count, call_room;
	/* by node2: what look_at() found; no flags = nothing yet */
	struct looked {
		uint32_t call : 24, flags : 8, depth, line;
	} *looked;
	size_t looked_room;
	/* once it uses a device: how often it came to a line of a stack from another one; looked.line is in it, plus 1
	 * */
	struct turn *lines;
	size_t line_count, line_room;
	uint32_t *at; /* by thread: the Python stack of its last allocation; 0 = none */
	size_t at_room;
	uint32_t *chain; /* scratch of look_at() */
	size_t chain_room;
	uint32_t now;    /* the call that its thread is in, plus 1 */
	uint32_t before; /* the last one that a thread was in, plus 1 */
	uint32_t now_thread;
	uint64_t marks, ranges[3]; /* steps so far, by enum mt_mark_source */
	struct traffic traffic;
	uint64_t bytes;                    /* made so far, of any memory */
	uint64_t first_ns, last_ns, index; /* of any allocation; how many there were */
	struct loop loop;
	bool settled;
};

struct loop_finder {
	struct watched *watched; /* by process */
	size_t count, room;
};

struct loop_finder *loop_finder_new(void)
{
	return calloc(1, sizeof(struct loop_finder));
}

/* All but the result. */
static void forget(struct watched *w)
{
	free(w->turns);
	free(w->bins);
	free(w->calls);
	free(w->looked);
	free(w->lines);
	free(w->at);
	free(w->chain);
	w->turns = NULL;
	w->bins = NULL;
	w->calls = NULL;
	w->looked = NULL;
	w->lines = NULL;
	w->at = NULL;
	w->chain = NULL;
	w->turn_count = w->turn_room = w->bins_count = w->bins_room = w->call_count = w->call_room = w->chain_room =
		w->looked_room = 0;
	w->line_count = w->line_room = w->at_room = 0;
}

void loop_finder_free(struct loop_finder *finder)
{
	for (size_t i = 0; finder && i < finder->count; i++) {
		forget(&finder->watched[i]);
		free(finder->watched[i].loop.roles);
	}
	if (finder)
		free(finder->watched);
	free(finder);
}

static struct watched *watched_of(struct loop_finder *finder, const struct process *p)
{
	if (p->id >= finder->count) {
		if (vec_reserve(finder->watched, finder->room, p->id + 1ul))
			return NULL;
		finder->count = p->id + 1ul;
	}
	finder->watched[p->id].process = p;
	return &finder->watched[p->id];
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* Letters alone, so that "Train step #12" and "train_step" are one. */
static void letters(const char *name, char *out, size_t size)
{
	size_t n = 0;
	for (; *name && n + 1 < size; name++)
		if (isalpha((unsigned char)*name))
			out[n++] = (char)tolower((unsigned char)*name);
	out[n] = '\0';
}

bool loop_finder_is_step_name(const char *name)
{
	static const char *const names[] = {
		"step", "trainstep", "trainingstep",   "profilerstep", "globalstep", "iteration",
		"iter", "trainiter", "trainiteration", "batch",        "trainbatch", "minibatch",
	};
	char text[32];
	letters(name, text, sizeof(text));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(text, names[i]))
			return true;
	return false;
}

/* An optimizer's step in PyTorch, MindSpore and what is built like them; its schedulers are none. */
static bool is_optimizer(const struct process_code *code)
{
	const char *dot = strrchr(code->name, '.'), *last = dot ? dot + 1 : code->name;
	if (!strstr(code->file, "/optim") || strstr(code->file, "lr_scheduler") || strstr(code->file, "/swa_utils"))
		return false;
	return !strcmp(last, "step") || !strcmp(last, "construct") || !strcmp(last, "apply_gradients");
}

static const struct process_code *code_of(const struct process *p, const struct mt_node *node)
{
	return node->flags & MT_NODE_PYTHON && MT_PY_CODE(node->pc) ? process_code(p, MT_PY_CODE(node->pc)) : NULL;
}

/* ---- the pass ------------------------------------------------------------------------------------------ */

static uint32_t find_call(struct watched *w, uint32_t node2)
{
	for (size_t i = 0; i < w->call_count; i++)
		if (w->calls[i].node2 == node2)
			return (uint32_t)i + 1;
	if (w->call_count == MOST_CALLS || vec_reserve(w->calls, w->call_room, w->call_count + 1))
		return 0;
	w->calls[w->call_count++] = (struct call){ .node2 = node2 };
	return (uint32_t)w->call_count;
}

/* Between an optimizer and who calls it: decorators, profilers' wrappers, schedulers that count. */
static bool is_wrapper(const struct process_code *code)
{
	return strstr(code->file, "/optim") || strstr(code->file, "/torch/");
}

/* The line that calls the optimizer at this node, by the node of its frame. */
static uint32_t caller_of(const struct watched *w, uint32_t optimizer)
{
	uint32_t caller = optimizer;
	const struct mt_node *node = process_node(w->process, optimizer);
	for (uint32_t id = node->parent; id && (node = process_node(w->process, id)) != NULL; id = node->parent) {
		const struct process_code *code = code_of(w->process, node);
		if (!code)
			continue;
		caller = id;
		if (!is_wrapper(code))
			break;
	}
	return caller;
}

/* What one more frame further in says. The outermost optimizer counts. */
static struct looked look_further(struct watched *w, uint32_t id, struct looked outer)
{
	const struct process_code *code = code_of(w->process, process_node(w->process, id));
	if (code && strstr(code->file, "<frozen importlib") != NULL)
		outer.flags |= SITE_IMPORT;
	if (code && !outer.call && is_optimizer(code))
		outer.call = find_call(w, caller_of(w, id));
	/* not _apply(), which moves it */
	if (code && strstr(code->name, "_call_impl") && strstr(code->file, "/torch/nn/modules/module.py"))
		outer.flags |= SITE_MODULE;
	outer.flags |= SITE_KNOWN;
	outer.depth++;
	outer.line = 0;
	return outer;
}

/* What a Python stack says: known for all stacks outwards of one that was looked at, so each node is visited once. */
static struct looked look_at(struct watched *w, uint32_t node2)
{
	struct looked found = { .flags = SITE_KNOWN };
	size_t count = 0;
	const struct mt_node *node;
	if (node2 >= w->looked_room && vec_sparse(w->looked, w->looked_room, w->process->node_end + 1ul))
		return found;
	for (uint32_t id = node2; id && (node = process_node(w->process, id)) != NULL; id = node->parent) {
		if (w->looked[id].flags) {
			found = w->looked[id];
			break;
		}
		if (vec_reserve_raw(w->chain, w->chain_room, count + 1))
			return found;
		w->chain[count++] = id;
	}
	while (count--)
		found = w->looked[w->chain[count]] = look_further(w, w->chain[count], found);
	return found;
}

static void visit(struct watched *w, const struct turn *t, const struct model_change *c)
{
	if (!c->node2 || (w->now && c->thread != w->now_thread))
		return;
	if (t->call && t->call != w->now) {
		struct call *call = &w->calls[t->call - 1];
		if (!call->visits++) {
			call->first_ns = c->ns;
			call->first_index = t->last_index;
			call->thread = c->thread;
		}
		call->last_ns = c->ns;
		call->last_index = t->last_index;
		call->turns += t->call != w->before;
		w->before = t->call;
	}
	w->now = t->call;
	w->now_thread = c->thread;
}

/* Intervals are counted in allocations: time depends on what else the machine does. */
static unsigned bin_of(uint64_t interval)
{
	unsigned log = interval ? 63u - (unsigned)__builtin_clzll(interval) : 0;
	return log >= BINS ? BINS - 1 : log;
}

static void count_interval(struct watched *w, struct turn *t)
{
	if (!t->bins) {
		if (vec_reserve(w->bins, w->bins_room, w->bins_count + 1))
			return;
		t->bins = (uint32_t)++w->bins_count;
	}
	w->bins[t->bins - 1].n[bin_of(w->index - t->last_index)]++;
}

/* One more turn of a site or a line, now. */
static void take_turn(struct watched *w, struct turn *t, const struct model_change *c)
{
	if (t->thread != c->thread)
		t->flags |= SITE_THREADS;
	if (t->count++) {
		count_interval(w, t);
		t->freeing += w->traffic.freed > t->last.freed;
	} else {
		t->first_ns = c->ns;
		t->first = w->traffic;
	}
	t->last_ns = c->ns;
	t->last = w->traffic;
	t->last_index = w->index;
}

static void come_to(struct watched *w, uint32_t id, const struct model_change *c)
{
	struct looked *l = &w->looked[id];
	if (!l->line) {
		if (vec_reserve(w->lines, w->line_room, w->line_count + 1))
			return;
		w->lines[w->line_count] = (struct turn){ .flags = l->flags, .node2 = id, .thread = c->thread };
		l->line = (uint32_t)++w->line_count;
	}
	take_turn(w, &w->lines[l->line - 1], c);
}

/* From where the thread was: what both stacks have in common it has not left. */
static void go_on(struct watched *w, const struct model_change *c)
{
	const struct mt_node *node;
	if (!c->node2 || c->node2 >= w->looked_room || vec_reserve(w->at, w->at_room, c->thread + 1ul))
		return;
	uint32_t from = w->at[c->thread], to = c->node2;
	w->at[c->thread] = to;
	while (to != from) {
		bool in = w->looked[to].depth >= w->looked[from].depth;
		if (!(node = process_node(w->process, in ? to : from)) || !w->looked[to].flags)
			return;
		if (in)
			come_to(w, to, c);
		*(in ? &to : &from) = node->parent;
	}
}

/* A virtual machine whose programs have their objects in mappings of its own: what it allocates by itself, whenever it
 * collects or compiles, are no steps of theirs. */
static bool is_of_machine(const struct watched *w, uint32_t id)
{
	static const char *const machines[] = { "/libjvm.so", "/libj9", "/libcoreclr.so", "/libclrgc", "/libmono" };
	const struct process_module *m = NULL;
	const struct mt_node *node;
	for (; id && (node = process_node(w->process, id)) != NULL; id = node->parent)
		if ((m = reader_module_of(w->process, id)) == NULL || !m->path || !strstr(m->path, "/libc.so"))
			break;
	for (size_t i = 0; m && m->path && i < sizeof(machines) / sizeof(*machines); i++)
		if (strstr(m->path, machines[i]))
			return true;
	return false;
}

void loop_finder_change(struct loop_finder *finder, const struct model_change *c)
{
	struct watched *w = c->process->id < finder->count && finder->watched[c->process->id].process
				    ? &finder->watched[c->process->id]
				    : watched_of(finder, c->process);
	if (w && c->device != MODEL_NO_DEVICE && c->bytes)
		*(c->bytes > 0 ? &w->traffic.made : &w->traffic.freed) += 1;
	if (w && c->bytes > 0)
		w->traffic.bytes = (float)(w->bytes += (uint64_t)c->bytes);
	if (!w || c->bytes <= 0 || c->blocks <= 0 || c->site == UINT32_MAX)
		return;
	if (w->traffic.made && c->kind == MODEL_HEAP && (uint64_t)c->bytes < process_whole_from(c->process))
		return; /* of small blocks some have no events, of devices' all have */
	if (c->site >= w->turn_count) {
		if (vec_extend(w->turns, w->turn_count, w->turn_room, c->site + 1ul))
			return;
	}
	struct turn *t = &w->turns[c->site];
	w->last_ns = c->ns;
	w->first_ns = w->first_ns ? w->first_ns : c->ns;
	if (c->moves) { /* a list or a table that is full: that tells how much is in it, not that a turn begins */
		w->index++;
		return;
	}
	if (!t->flags) {
		struct looked l = look_at(w, c->node2);
		t->flags = (uint8_t)(l.flags | (c->kind == MODEL_MAP ? SITE_MAPPED : 0) |
				     (c->kind == MODEL_POOL ? SITE_POOL : 0) |
				     (c->device != MODEL_NO_DEVICE ? SITE_DEVICE : 0));
		t->call = l.call;
		t->node2 = c->node2;
		t->thread = c->thread;
	}
	take_turn(w, t, c);
	if (t->count == LEAST_SITES && is_of_machine(w, c->node))
		t->flags |= SITE_MACHINE;
	if (w->traffic.made)
		go_on(w, c);
	w->index++;
	if (w->call_count)
		visit(w, t, c);
}

/* Allocations that are left out take their place in intervals. */
void loop_finder_level(struct loop_finder *finder, const struct model_level_change *l)
{
	struct watched *w = watched_of(finder, l->process);
	if (w)
		w->index += l->allocations;
}

void loop_finder_event(struct loop_finder *finder, const struct process *p, const struct mt_event *slot)
{
	struct mt_ext_device ext;
	if (slot->kind != MT_MARK)
		return;
	struct watched *w = watched_of(finder, p);
	memcpy(&ext, slot + 1, sizeof(ext));
	if (!w)
		return;
	if (ext.class == MT_MARK_STEP)
		w->marks++;
	else if (ext.class == MT_MARK_BEGIN && ext.source <= MT_MARK_MSTX &&
		 loop_finder_is_step_name(process_mark(p, (uint32_t)slot->size)))
		w->ranges[ext.source]++;
}

/* ---- the result ---------------------------------------------------------------------------------------- */

/* The part of what is allocated between its turns that is in intervals of the usual length. */
static double regularity(const struct watched *w, const struct turn *t)
{
	const uint32_t *bins = t->bins ? w->bins[t->bins - 1].n : NULL;
	uint64_t seen = 0, usual = 0;
	double near = 0, all = 0;
	while (bins && usual < BINS - 1 && (seen += bins[usual]) * 2 < t->count)
		usual++;
	if (!usual)
		return 0; /* nothing else happens between its turns */
	for (unsigned i = 0; i < BINS; i++) {
		double much = (double)bins[i] * (double)(1ull << i);
		all += much;
		near += i <= usual + 1 ? much : 0;
	}
	return all > 0 ? near / all : 0;
}

static int new_roles(struct watched *w)
{
	w->loop.roles = calloc(w->turn_count + 1, 1);
	w->loop.role_count = w->turn_count;
	return w->loop.roles ? 0 : -MT_EMEMORY;
}

static double period_of(const struct loop *b)
{
	return b->count > 1 ? (double)(b->last_ns - b->first_ns) / (double)(b->count - 1) : 0;
}

/* Whether a site goes on for as long as the loop does, but for so many periods, and is in nearly every turn of it. To
 * its last turn in time or in allocations: a program may be held up in there. CALL: the optimizer's, of ROLE_STEP; NULL
 * if there is none. */
static bool is_in_loop(const struct turn *t, const struct loop *b, const struct call *call, double periods)
{
	double slack = periods * period_of(b);
	double allocations = call && call->visits > 1 ? periods * (double)(call->last_index - call->first_index) /
								(double)(call->visits - 1)
						      : 0;
	return t->count >= NEARLY * (double)b->count && t->thread == b->thread && !(t->flags & SITE_IMPORT) &&
	       ((double)t->last_ns + slack >= (double)b->last_ns ||
		(call && (double)t->last_index + allocations >= (double)call->last_index)) &&
	       (double)t->first_ns <= (double)b->first_ns + slack;
}

/* ---- micro-steps --------------------------------------------------------------------------------------- */

enum { MOST_MICRO = 64, MOST_LINES = 64, MOST_CALLERS = 6 };

/* The lines of the function that calls the optimizer, and how often the loop's sites below each recur in a step. */
struct line_count {
	uint64_t pc;
	size_t times[MOST_MICRO + 1], all;
};
struct line_counts {
	struct line_count list[MOST_LINES];
	size_t count;
};

/* The place in the function `frame` (the node of a call in it) that a stack goes through; 0 = none. */
static uint64_t place_in(const struct watched *w, uint32_t node2, const struct mt_node *frame)
{
	for (uint32_t id = node2; id;) {
		const struct mt_node *node = process_node(w->process, id);
		if (!node)
			return 0;
		if (node->parent == frame->parent && MT_PY_CODE(node->pc) == MT_PY_CODE(frame->pc))
			return node->pc;
		id = node->parent;
	}
	return 0;
}

static struct line_count *count_of(struct line_counts *c, uint64_t pc)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].pc == pc)
			return &c->list[i];
	if (c->count == MOST_LINES)
		return NULL;
	c->list[c->count] = (struct line_count){ .pc = pc };
	return &c->list[c->count++];
}

static void count_lines(const struct watched *w, const struct mt_node *frame, uint64_t steps, struct line_counts *c)
{
	c->count = 0;
	for (size_t i = 0; i < w->turn_count; i++) {
		const struct turn *t = &w->turns[i];
		uint64_t pc = w->loop.roles[i] & ROLE_LOOP && !t->call ? place_in(w, t->node2, frame) : 0;
		struct line_count *l = pc ? count_of(c, pc) : NULL;
		if (!l)
			continue;
		double times = (double)t->count / (double)steps;
		unsigned k = (unsigned)(times + 0.5);
		l->all++;
		if (k <= MOST_MICRO && times > k * 0.98 && times < k * 1.02)
			l->times[k]++;
	}
}

/* The least number that a fair part of the line's sites has: layers have more, and what only the first micro-step
 * allocates (gradients) is rare. */
static unsigned times_of(const struct line_count *l)
{
	for (unsigned k = 1; k <= MOST_MICRO; k++)
		if (l->times[k] * 5 >= l->all && l->times[k])
			return k;
	return 1;
}

/* How often most of what the function does happens in a step. */
static unsigned micro_steps(const struct watched *w, const struct call *call)
{
	struct line_counts *c = calloc(1, sizeof(*c));
	size_t sites[MOST_MICRO + 1] = { 0 };
	unsigned best = 1;
	const struct mt_node *frame = process_node(w->process, call->node2);
	for (int i = 0; c && frame && i < MOST_CALLERS; i++, frame = process_node(w->process, frame->parent)) {
		count_lines(w, frame, call->visits, c);
		if (c->count >= 2)
			break;
	}
	for (size_t i = 0; c && i < c->count; i++)
		sites[times_of(&c->list[i])] += c->list[i].all;
	for (unsigned k = 1; k <= MOST_MICRO; k++)
		best = sites[k] > sites[best] ? k : best;
	free(c);
	return best;
}

/* Another place steps, too, where it does so again and again before it is left: a loop that warms up, one that comes
 * behind. Of two that take turns each is a part of the step, as in a GAN. */
static bool steps_too(const struct call *c, const struct call *best)
{
	return c == best || (c->visits >= LEAST_OPTIMIZER && c->turns * 2 <= c->visits && c->thread == best->thread);
}

enum { MOST_LOOPS = 16 };

static void join(struct loop *all, const struct loop *loop)
{
	all->count += loop->count;
	all->first_ns = loop->first_ns < all->first_ns ? loop->first_ns : all->first_ns;
	all->last_ns = loop->last_ns > all->last_ns ? loop->last_ns : all->last_ns;
}

/* The loops that step, each as if it were alone, the best first; how many. All of them together into w->loop. */
static size_t find_loops(struct watched *w, struct call *best, struct loop loops[MOST_LOOPS],
			 const struct call *calls[MOST_LOOPS])
{
	struct loop *b = &w->loop;
	size_t count = 0;
	for (size_t i = 0; i <= w->call_count && count < MOST_LOOPS; i++) {
		struct call *c = i ? &w->calls[i - 1] : best;
		if (c->steps || !steps_too(c, best))
			continue;
		c->steps = true;
		calls[count] = c;
		loops[count] = (struct loop){ LOOP_OPTIMIZER, c->visits, c->first_ns,   c->last_ns, c->thread, 1,
					      false,          b->roles,  b->role_count, 0,          false };
		if (count)
			join(b, &loops[count]);
		else
			*b = loops[count];
		count++;
	}
	return count;
}

/* Of what is around the optimizer, with so much slack at a loop's ends. Returns how many sites. */
static size_t find_around(struct watched *w, const struct loop *loops, const struct call *const *calls, size_t count,
			  double periods)
{
	size_t found = 0;
	for (size_t i = 0; i < w->turn_count; i++) {
		const struct turn *t = &w->turns[i];
		for (size_t k = 0; !t->call && !w->loop.roles[i] && k < count; k++)
			if (is_in_loop(t, &loops[k], calls[k], periods))
				w->loop.roles[i] = ROLE_LOOP;
		found += w->loop.roles[i] == ROLE_LOOP;
	}
	return found;
}

static bool by_optimizer(struct watched *w)
{
	struct loop *b = &w->loop, loops[MOST_LOOPS];
	const struct call *calls[MOST_LOOPS];
	uint32_t best = 0;
	for (uint32_t i = 0; i < w->call_count; i++)
		if (w->calls[i].visits >= LEAST_OPTIMIZER && (!best || w->calls[i].visits > w->calls[best - 1].visits))
			best = i + 1;
	if (!best || new_roles(w))
		return false;
	struct call *call = &w->calls[best - 1];
	size_t count = find_loops(w, call, loops, calls);
	for (size_t i = 0; i < w->turn_count; i++)
		if (w->turns[i].call && w->calls[w->turns[i].call - 1].steps)
			b->roles[i] = ROLE_STEP;
	/* where all else is a closure that the optimizer calls, a loader that is some batches ahead is what is left */
	if (!find_around(w, loops, calls, count, 1.5))
		find_around(w, loops, calls, count, 0.5 * (double)call->visits);
	b->micro = micro_steps(w, call);
	return true;
}

/* ---- by sites alone ------------------------------------------------------------------------------------ */

/* Sites that recur equally often, from about the same moment to about the same moment. */
struct level {
	uint32_t count;
	size_t of_modules;          /* of those of pools: within a module of PyTorch's */
	size_t sites, of_pools;     /* of these some whose blocks are a pool's: segments come when they have to */
	size_t of_devices;          /* and some whose blocks are on a device */
	uint64_t first_ns, last_ns; /* of its turns */
	struct traffic first, last;
	size_t lead; /* the site that comes first */
	/* while it runs blocks are made on devices and hardly any is freed: no step of anything works like that */
	bool only_loads;
	bool makes_most, frees; /* of what is made on devices; enough of what it makes */
	/* in all its turns one and the same site makes blocks on a device, which is always the same one */
	bool on_device;
	bool whole; /* it calls models: layers recur within one alone */
};

static int by_count_and_time(const void *a, const void *b)
{
	const struct level *x = a, *y = b;
	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return (x->first_ns > y->first_ns) - (x->first_ns < y->first_ns);
}

static double apart(uint64_t a, uint64_t b)
{
	return a > b ? (double)(a - b) : (double)(b - a);
}

static bool is_same(const struct level *a, const struct level *b)
{
	double slack = 1.5 * (double)(a->last_ns - a->first_ns) / (double)(a->count - 1);
	return a->count == b->count && apart(a->first_ns, b->first_ns) <= slack &&
	       apart(a->last_ns, b->last_ns) <= slack;
}

/* Every regular one of these sites or lines, joined with those of the same count and time. */
static struct level *find_levels(const struct watched *w, const struct turn *turns, size_t turn_count, size_t *count)
{
	struct level *levels = calloc(turn_count + 1, sizeof(*levels));
	size_t n = 0, kept = 0;
	for (size_t i = 0; levels && i < turn_count; i++) {
		const struct turn *t = &turns[i];
		if (t->count >= LEAST_SITES &&
		    !(t->flags & (SITE_IMPORT | SITE_THREADS | SITE_MAPPED | SITE_MACHINE)) &&
		    regularity(w, t) >= REGULAR)
			levels[n++] = (struct level){ .count = t->count,
						      .sites = 1,
						      .of_pools = (t->flags & SITE_POOL) != 0,
						      .of_devices = (t->flags & SITE_DEVICE) != 0,
						      .of_modules = (t->flags & (SITE_POOL | SITE_MODULE)) ==
								    (SITE_POOL | SITE_MODULE),
						      .first_ns = t->first_ns,
						      .last_ns = t->last_ns,
						      .first = t->first,
						      .last = t->last,
						      .lead = i };
	}
	if (levels)
		qsort(levels, n, sizeof(*levels), by_count_and_time);
	for (size_t i = 0; i < n; i++) {
		struct level l = levels[i];
		size_t to = kept;
		while (to > 0 && levels[to - 1].count == l.count && !is_same(&levels[to - 1], &l))
			to--;
		if (!to || levels[to - 1].count != l.count) {
			levels[kept++] = l;
			continue;
		}
		levels[to - 1].sites++;
		levels[to - 1].of_pools += l.of_pools;
		levels[to - 1].of_devices += l.of_devices;
		levels[to - 1].of_modules += l.of_modules;
		if (l.last_ns > levels[to - 1].last_ns) {
			levels[to - 1].last_ns = l.last_ns;
			levels[to - 1].last = l.last;
		}
	}
	*count = kept;
	return levels;
}

/* Blocks on devices, while it runs and in all. Counted from turn to turn: what is freed right behind a loop that fills
 * a list is none of it. */
static void look_at_traffic(const struct watched *w, struct level *l)
{
	double made = l->last.made - l->first.made, freed = l->last.freed - l->first.freed;
	l->only_loads = made >= LEAST_TURNS && freed < LOOP_LOADS * made;
	l->makes_most = made > 0 && made >= MOST_MADE * w->traffic.made;
	l->frees = freed >= FREES * made;
}

static uint64_t span_of(const struct level *l)
{
	return l->last_ns - l->first_ns;
}

/* Which loops a program may work in, those that tell more first. */
typedef bool level_test(const struct watched *w, const struct level *l);

/* Loading may take minutes, and what is behind it seconds. What is done on one device after the other is a short loop
 * for each. */
static bool is_for_devices(const struct watched *w, const struct level *l)
{
	(void)w;
	return l->makes_most && (l->whole || (l->frees && l->on_device && l->count >= LEAST_SHORT));
}

/* What only puts blocks somewhere frees some at once when it is done, if at all. */
static bool is_work_for_devices(const struct watched *w, const struct level *l)
{
	return is_for_devices(w, l) && 2 * w->lines[l->lead].freeing >= l->count;
}

/* So fast that it may be a part of a step. */
static bool is_fast(const struct level *l)
{
	return span_of(l) < (uint64_t)(l->count - 1) * SHORTEST_NS;
}

static bool takes_time(const struct watched *w, const struct level *l)
{
	return (double)span_of(l) >= LONG * (double)(w->last_ns - w->first_ns);
}

/* Not what a program does for a moment. */
static bool is_long(const struct watched *w, const struct level *l)
{
	return takes_time(w, l) && !is_fast(l);
}

/* It runs until the process ends, or dies. */
static bool is_last(const struct watched *w, const struct level *l)
{
	return l->count >= LEAST_LAST && w->last_ns - l->last_ns <= span_of(l) && !is_fast(l);
}

/* However fast its turns are: while it runs most of what the process makes is made. */
static bool is_most(const struct watched *w, const struct level *l)
{
	return takes_time(w, l) && (double)(l->last.bytes - l->first.bytes) >= MOST_MADE * (double)w->bytes;
}

/* The innermost level of these that covers the time and has a fair number of sites. */
static const struct level *innermost_of(const struct watched *w, const struct level *levels, size_t count,
					level_test *is)
{
	uint64_t longest = 0;
	size_t most = 0;
	const struct level *best = NULL;
	for (size_t i = 0; i < count; i++)
		longest = span_of(&levels[i]) > longest && (is == is_long || is(w, &levels[i])) ? span_of(&levels[i])
												: longest;
	for (size_t i = 0; i < count; i++)
		if ((double)span_of(&levels[i]) >= COVERS * (double)longest && levels[i].sites > most &&
		    (is == is_long || is(w, &levels[i])))
			most = levels[i].sites;
	for (size_t i = 0; i < count; i++)
		if ((double)span_of(&levels[i]) >= COVERS * (double)longest && levels[i].sites * 10 >= most &&
		    is(w, &levels[i]) && (is == is_for_devices || levels[i].sites * levels[i].count >= LEAST_TURNS) &&
		    (!levels[i].only_loads || levels[i].whole))
			best = &levels[i];
	return best;
}

/* Runs while the inner one does. */
static bool covers(const struct level *l, const struct level *inner)
{
	uint64_t from = l->first_ns > inner->first_ns ? l->first_ns : inner->first_ns,
		 to = l->last_ns < inner->last_ns ? l->last_ns : inner->last_ns;
	return to > from && (double)(to - from) >= COVERS * (double)(inner->last_ns - inner->first_ns);
}

/*
 * What comes at least once in each turn of a loop, and less than twice, is no loop inside that: it comes now and then,
 * such as what a pool needs when it grows. Then it is the one around it, if that has half as many sites.
 */
static const struct level *loop_of(const struct watched *w, const struct level *levels, const struct level *inner,
				   level_test *is)
{
	const struct level *best = inner;
	for (const struct level *l = inner; !inner->of_pools && l-- > levels;)
		if (l->count < best->count && l->count * 2 > best->count && l->sites * 2 >= best->sites &&
		    covers(l, best) && covers(best, l) && is(w, l))
			best = l;
	return best;
}

static bool uses_a_device(const struct watched *w, const struct level *l)
{
	double slack = 1.5 * (double)span_of(l) / (double)(l->count - 1);
	for (size_t i = 0; l->makes_most && i < w->turn_count; i++) {
		const struct turn *t = &w->turns[i];
		if (t->flags & SITE_DEVICE && t->count >= NEARLY * l->count &&
		    (double)t->first_ns <= (double)l->first_ns + slack &&
		    (double)t->last_ns + slack >= (double)l->last_ns)
			return true;
	}
	return false;
}

/* It makes blocks outside of all modules, and while it runs modules make some as often or more. */
static bool calls_models(const struct level *levels, size_t count, const struct level *l)
{
	bool modules = false;
	for (size_t i = 0; i < count && l->of_pools > l->of_modules; i++)
		modules |= levels[i].of_modules && levels[i].count >= l->count && covers(&levels[i], l);
	return modules;
}

/* Levels of one kind, and what is known of each. */
struct levels {
	struct level *list;
	size_t count;
};

static struct levels levels_of(const struct watched *w, const struct turn *turns, size_t turn_count)
{
	struct levels l;
	l.list = find_levels(w, turns, turn_count, &l.count);
	for (size_t i = 0; i < l.count; i++) {
		look_at_traffic(w, &l.list[i]);
		l.list[i].on_device = uses_a_device(w, &l.list[i]);
	}
	for (size_t i = 0; i < l.count; i++)
		l.list[i].whole = calls_models(l.list, l.count, &l.list[i]);
	return l;
}

static const struct level *innermost(const struct watched *w, const struct levels *l, level_test *is)
{
	const struct level *best = innermost_of(w, l->list, l->count, is);
	return best ? loop_of(w, l->list, best, is) : NULL;
}

/* How many turns of the inner one each of its own has, if that is a fixed, small number; else 0. */
static unsigned turns_in(const struct level *l, const struct level *inner)
{
	for (unsigned k = 2; k <= LEAST_MICRO; k++)
		if (inner->count >= l->count * (k - 1) + 1 + l->count / 2 && inner->count <= l->count * k + k &&
		    inner->count + k >= l->count * k)
			return k;
	return 0;
}

/* Layers are no unit of work: of a level within modules the innermost one that calls whole models, as a server's
 * requests do. */
static const struct level *of_models(const struct level *levels, const struct level *inner)
{
	const struct level *best = inner;
	for (const struct level *l = levels;
	     !inner->whole && inner->of_pools && inner->of_pools == inner->of_modules && l < inner; l++)
		if (l->whole && l->makes_most && l->count >= LEAST_SHORT && covers(l, inner))
			best = l;
	return best;
}

/* In the first turn of a loop much is done in another way (an interpreter has not specialised, a library looks for what
 * it needs), by stacks of its own. A site that comes by the same stack in all of them has a turn before the first of
 * the others, and none behind their last. */
static bool has_first_turn_of(const struct level *l, const struct level *others)
{
	return l->count == others->count + 1 && l->first_ns < others->first_ns && l->last_ns <= others->last_ns;
}

/*
 * A unit of work that repeats as a whole: a level outside it, which makes blocks of a pool if the inner one does, and
 * the one with the most sites. Its turns have a fixed, small number of the inner one's, or more happens in them than in
 * those: a backward pass that gets longer in each.
 */
static const struct level *around(const struct level *levels, const struct level *inner, unsigned *micro)
{
	const struct level *best = inner;
	for (const struct level *l = levels; l < inner; l++) {
		unsigned k = turns_in(l, inner);
		if (l->count < LEAST_SITES || !covers(l, inner) || (inner->of_pools && !l->of_pools) ||
		    (!k && (l->sites <= inner->sites || l->count * 2 > inner->count)) ||
		    (best != inner && l->sites <= best->sites && !has_first_turn_of(l, best)))
			continue;
		best = l;
		*micro = k ? k : 1;
	}
	return best;
}

/* Steps begin where a level does. */
static void set_loop(struct watched *w, const struct level *l, const struct turn *lead, unsigned micro)
{
	struct loop *b = &w->loop;
	*b = (struct loop){ LOOP_SITES, l->count, l->first_ns,   l->last_ns, lead->thread, micro,
			    l->whole,   b->roles, b->role_count, 0,          false };
	for (size_t i = 0; i < w->turn_count; i++)
		b->roles[i] = is_in_loop(&w->turns[i], b, NULL, 1.5) ? ROLE_LOOP : 0;
}

static void by_sites(struct watched *w, const struct levels *levels, const struct level *inner)
{
	unsigned micro = 1;
	inner = of_models(levels->list, inner);
	const struct level *l = around(levels->list, inner, &micro);
	set_loop(w, l, &w->turns[l->lead], micro);
	w->loop.node2 = w->turns[l->lead].node2;
	w->loop.roles[l->lead] |= ROLE_STEP;
	if (inner != l)
		w->loop.roles[inner->lead] |= ROLE_MICRO;
}

/* Of the lines that come about as often, and for as long, the one that comes first: a turn begins with it. */
static const struct level *first_line(const struct levels *lines, const struct level *found)
{
	const struct level *best = found;
	for (const struct level *l = lines->list; l < lines->list + lines->count; l++)
		if (l->count >= NEARLY * found->count && found->count >= NEARLY * l->count && covers(l, found) &&
		    covers(found, l) && l->first_ns < best->first_ns)
			best = l;
	return best;
}

static bool goes_through(const struct watched *w, uint32_t node2, uint32_t line)
{
	const struct mt_node *node;
	while (node2 && node2 != line && (node = process_node(w->process, node2)) != NULL)
		node2 = node->parent;
	return node2 == line;
}

static void by_lines(struct watched *w, const struct level *l)
{
	const struct turn *lead = &w->lines[l->lead];
	set_loop(w, l, lead, 1);
	w->loop.enters = true;
	for (size_t i = 0; i < w->turn_count; i++)
		if (w->turns[i].node2 && goes_through(w, w->turns[i].node2, lead->node2))
			w->loop.roles[i] = ROLE_LOOP | ROLE_STEP;
}

/* Sites of the host alone are no loop for devices where they come less often than these lines do (a list that is
 * sometimes long), or up to half as often again (a small block that comes by chance). */
static bool tell_less(const struct level *sites, const struct level *line)
{
	const bool same = sites->count == line->count || sites->count == line->count + 1;
	return !sites->of_devices && !same && 2 * sites->count < 3 * line->count && covers(line, sites);
}

/* What recurs tells: sites; where they don't, lines, of a loop that works for devices, and in which nothing but loops
 * of any length makes blocks. */
static void by_levels(struct watched *w)
{
	struct levels sites = levels_of(w, w->turns, w->turn_count), lines = { NULL, 0 };
	const struct level *found = innermost(w, &sites, is_for_devices), *line = NULL;
	if (w->traffic.made && !(found && found->of_devices)) {
		lines = levels_of(w, w->lines, w->line_count);
		line = innermost(w, &lines, is_work_for_devices);
		line = line && found && !tell_less(found, line) ? NULL : line;
	}
	found = found || line ? found : innermost(w, &sites, is_long);
	found = found || line ? found : innermost(w, &sites, is_last);
	found = found || line ? found : innermost(w, &sites, is_most);
	if ((found || line) && new_roles(w) == 0) {
		if (line)
			by_lines(w, first_line(&lines, line));
		else
			by_sites(w, &sites, found);
	}
	free(sites.list);
	free(lines.list);
}

const struct loop *loop_finder_loop(struct loop_finder *finder, unsigned process)
{
	if (process >= finder->count || !finder->watched[process].process)
		return NULL;
	struct watched *w = &finder->watched[process];
	if (w->settled)
		return &w->loop;
	w->settled = true;
	w->loop.micro = 1;
	if (w->marks >= 2)
		w->loop.source = LOOP_MARKS;
	else if (w->ranges[MT_MARK_NVTX] >= LEAST_OPTIMIZER || w->ranges[MT_MARK_PROGRAM] >= LEAST_OPTIMIZER)
		w->loop.source = LOOP_NVTX;
	else if (w->ranges[MT_MARK_MSTX] >= LEAST_OPTIMIZER)
		w->loop.source = LOOP_MSTX;
	else if (!by_optimizer(w))
		by_levels(w);
	forget(w);
	return &w->loop;
}

void loop_finder_settle(struct loop_finder *finder)
{
	for (size_t i = 0; i < finder->count; i++)
		loop_finder_loop(finder, (unsigned)i);
}
