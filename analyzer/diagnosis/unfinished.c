#include "analyzer/diagnosis/unfinished.h"

#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#define ROUNDING   512u       /* of a pool's blocks */
#define UNSPLIT    (1u << 20) /* a pool leaves a large block so much larger than it was asked for */
#define LEAST_MADE 2          /* blocks of an optimizer's, or more: it makes one for each gradient */

/* What a site had on the heap or in the pool when the device failed. */
struct unfinished_site {
	uint64_t live, moved, freed;
	uint64_t least, most; /* bytes of a block */
};

/* Up to one device's failure, of the process that failed. */
struct unfinished_device {
	bool failed;
	uint32_t process;
	uint64_t ns;
	struct unfinished_site *sites; /* by index */
	size_t count, room;
	uint64_t made;  /* bytes of the latest block of the pool */
	bool was_moved; /* it took the place of one on the heap */
};

struct unfinished {
	struct unfinished_device *devices;
	unsigned count;
	int error;
};

struct unfinished *unfinished_new(const struct model *m)
{
	struct unfinished *a = calloc(1, sizeof(*a));
	const unsigned count = model_devices(m);
	if (!a || !(a->devices = calloc(count + 1, sizeof(*a->devices)))) {
		free(a);
		return NULL;
	}
	a->count = count;
	for (unsigned i = 0; i < count; i++) {
		const struct model_oom *oom = diagnosis_failure(model_device(m, i));
		if (oom)
			a->devices[i] =
				(struct unfinished_device){ .failed = true, .process = oom->process, .ns = oom->at.ns };
	}
	return a;
}

void unfinished_free(struct unfinished *a)
{
	for (unsigned i = 0; a && i < a->count; i++)
		free(a->devices[i].sites);
	if (a)
		free(a->devices);
	free(a);
}

/* A pool's block of `block` bytes may be for `bytes`. */
static bool is_for(uint64_t block, uint64_t bytes)
{
	return block >= bytes && block - bytes < (bytes > UNSPLIT ? UNSPLIT : ROUNDING);
}

static void made(struct unfinished_device *d, struct unfinished_site *s, const struct model_change *c)
{
	const uint64_t bytes = (uint64_t)c->bytes;
	s->live += bytes;
	s->least = s->least ? lower(s->least, bytes) : bytes;
	s->most = higher(s->most, bytes);
	if (c->kind == MODEL_POOL) {
		d->made = bytes;
		d->was_moved = false;
	}
}

static void freed(struct unfinished_device *d, struct unfinished_site *s, const struct model_change *c)
{
	const uint64_t bytes = (uint64_t)-c->bytes;
	s->live = less(s->live, bytes);
	s->freed += bytes;
	if (c->kind == MODEL_HEAP && !d->was_moved && is_for(d->made, bytes)) {
		s->moved += bytes;
		d->was_moved = true;
	}
}

static int change(struct unfinished_device *d, const struct model_change *c)
{
	int e = vec_reserve(d->sites, d->room, (size_t)c->site + 1);
	if (e < 0)
		return e;
	d->count = higher(d->count, (size_t)c->site + 1);
	(c->bytes > 0 ? made : freed)(d, &d->sites[c->site], c);
	return 0;
}

void unfinished_change(struct unfinished *a, const struct model_change *c)
{
	const uint64_t bytes = (uint64_t)(c->bytes < 0 ? -c->bytes : c->bytes);
	const bool heap = c->kind == MODEL_HEAP;
	if (bytes < MOMENT_LEAST_HEAP || (!heap && c->kind != MODEL_POOL) || c->site == UINT32_MAX)
		return;
	for (unsigned i = 0; i < a->count && !a->error; i++) {
		struct unfinished_device *d = &a->devices[i];
		if (d->failed && d->process == c->process->id && c->ns <= d->ns && (heap || c->device == i))
			a->error = change(d, c);
	}
}

/* ---- from the host ------------------------------------------------------------------------------------------- */

static uint32_t stack_of(struct diagnosis *diagnosis, const struct unfinished_device *d, size_t site)
{
	return diagnosis_stack(diagnosis, &(struct snapshot_block){
						  .process = reader_process(diagnosis->selection->reader, d->process),
						  .site = (uint32_t)site,
					  });
}

/* Who called the outermost constructor: the object that a block was made for. 0 = none. */
static uint32_t object_of(struct diagnosis *diagnosis, uint32_t stack)
{
	struct stacks *s = diagnosis->selection->stacks;
	uint32_t object = 0;
	for (stack = stacks_merged(s, stack); stack; stack = stacks_outer(s, stack)) {
		const struct frame *frames;
		const size_t count = stacks_frames(s, stack, &frames);
		for (size_t i = 0; i < count; i++)
			if (frames[i].name && strstr(frames[i].name, "__init__"))
				object = stacks_outer(s, stack);
	}
	return object;
}

/* Objects of which something was moved. */
struct objects {
	uint32_t *stacks;
	size_t count, room;
};

static bool has_object(const struct objects *o, uint32_t stack)
{
	size_t i = 0;
	while (i < o->count && o->stacks[i] != stack)
		i++;
	return i < o->count;
}

static int list_objects(struct diagnosis *diagnosis, const struct unfinished_device *d, struct objects *o)
{
	int e = 0;
	for (size_t i = 0; e == 0 && i < d->count; i++) {
		const uint32_t object = d->sites[i].moved ? object_of(diagnosis, stack_of(diagnosis, d, i)) : 0;
		if (object && !has_object(o, object) && (e = vec_reserve(o->stacks, o->room, o->count + 1)) == 0)
			o->stacks[o->count++] = object;
	}
	return e;
}

/* It is moved, too: a parameter of such an object. */
static bool is_of_moved(struct diagnosis *diagnosis, const struct objects *o, uint32_t stack)
{
	return stack &&
	       categories_of(diagnosis->selection->categories, stack, LIFETIME_UNKNOWN) == CATEGORY_parameters &&
	       has_object(o, object_of(diagnosis, stack));
}

/* What was made last on the device came from the host, and so would have what failed. */
static int still_on_host(struct diagnosis *diagnosis, const struct unfinished_device *d, uint64_t request,
			 uint64_t *left)
{
	struct objects o = { 0 };
	uint64_t bytes = 0;
	bool is_one = false;
	int e = d->was_moved ? list_objects(diagnosis, d, &o) : 0;
	for (size_t i = 0; e == 0 && d->was_moved && i < d->count; i++) {
		const struct unfinished_site *s = &d->sites[i];
		if (!s->live || (!s->moved && !is_of_moved(diagnosis, &o, stack_of(diagnosis, d, i))))
			continue;
		bytes += s->live;
		is_one |= is_for(request, s->least) || is_for(request, s->most) ||
			  (request > s->least && request < s->most);
	}
	free(o.stacks);
	*left = is_one ? bytes : 0;
	return e;
}

/* ---- for each gradient --------------------------------------------------------------------------------------- */

/* What one call of the optimizer has made. */
struct made {
	uint32_t stack;
	const struct frame *line; /* of the program: one optimizer's calls have one */
	uint64_t *sizes;
	size_t count, room;
	bool passing; /* it also freed some: it keeps nothing for a gradient */
};

struct gradients {
	struct diagnosis *diagnosis;
	const struct unfinished_device *device;
	uint32_t index;
	struct made all;
	struct made *calls;
	size_t count, room;
};

static int add_size(struct made *m, uint64_t size)
{
	int e = vec_reserve(m->sizes, m->room, m->count + 1);
	if (e == 0)
		m->sizes[m->count++] = size;
	return e;
}

static struct made *call_of(struct gradients *g, uint32_t stack)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->calls[i].stack == stack)
			return &g->calls[i];
	if (vec_reserve(g->calls, g->room, g->count + 1) < 0)
		return NULL;
	g->calls[g->count].stack = stack;
	g->calls[g->count].line = stacks_site_frame(g->diagnosis->selection->stacks, stack, 0);
	return &g->calls[g->count++];
}

static int sort_block(void *arg, const struct snapshot_block *b)
{
	struct gradients *g = arg;
	const struct selection *sel = g->diagnosis->selection;
	if (b->kind != MODEL_POOL || b->device != g->index || b->process->id != g->device->process)
		return 0;
	const uint32_t stack = diagnosis_stack(g->diagnosis, b);
	const enum category c = stack ? categories_of(sel->categories, stack, LIFETIME_UNKNOWN) : CATEGORY_unknown;
	if (c == CATEGORY_gradients)
		return add_size(&g->all, b->size);
	if (c != CATEGORY_optimizer)
		return 0;
	struct made *call = call_of(g, stacks_merged(sel->stacks, stack));
	if (!call)
		return error_memory();
	call->passing |= b->site < g->device->count && g->device->sites[b->site].freed;
	return add_size(call, b->size);
}

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Both are sorted: each block of the call's is as large as a gradient of its own. */
static bool is_for_some(const struct made *call, const struct made *all)
{
	size_t at = 0;
	for (size_t i = 0; i < call->count; i++, at++) {
		while (at < all->count && !is_for(all->sizes[at], call->sizes[i]) &&
		       !is_for(call->sizes[i], all->sizes[at]))
			at++;
		if (at >= all->count)
			return false;
	}
	return true;
}

static uint64_t sum_of(const struct made *m)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < m->count; i++)
		sum += m->sizes[i];
	return sum;
}

/* The gradients of other lines' optimizers, which have as much state for each. */
static uint64_t of_others(const struct gradients *g, const struct frame *line)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < g->count; i++) {
		uint64_t most = 0;
		bool first = g->calls[i].line != line;
		for (size_t k = 0; k < g->count; k++) {
			first = first && (k >= i || g->calls[k].line != g->calls[i].line);
			most = g->calls[k].line == g->calls[i].line ? higher(most, sum_of(&g->calls[k])) : most;
		}
		sum += first ? most : 0;
	}
	return sum;
}

/* A call that has made some for gradients, and keeps them, goes on until each of its optimizer's has one. `line` is
 * that of what failed. */
static int still_for_gradients(struct diagnosis *diagnosis, const struct unfinished_device *d, uint32_t index,
			       const struct frame *line, uint64_t *bytes)
{
	struct gradients g = { .diagnosis = diagnosis, .device = d, .index = index };
	uint64_t own = 0;
	int e = snapshot_each(diagnosis->parts->snapshots, sort_block, &g);
	if (e == 0 && g.all.count)
		qsort(g.all.sizes, g.all.count, sizeof(*g.all.sizes), by_size);
	own = less(sum_of(&g.all), of_others(&g, line));
	for (size_t i = 0; i < g.count; i++) {
		struct made *call = &g.calls[i];
		if (call->count)
			qsort(call->sizes, call->count, sizeof(*call->sizes), by_size);
		if (e == 0 && call->line == line && !call->passing && call->count >= LEAST_MADE &&
		    is_for_some(call, &g.all))
			*bytes += less(own, sum_of(call));
		free(call->sizes);
	}
	free(g.calls);
	free(g.all.sizes);
	return e;
}

/* -------------------------------------------------------------------------------------------------------------- */

int unfinished_find(struct diagnosis *diagnosis, const struct model_device *device, const struct model_oom *oom,
		    struct evidence_request *r)
{
	const struct selection *sel = diagnosis->selection;
	const struct unfinished *a = diagnosis->parts->unfinished;
	const struct unfinished_device *d = &a->devices[device->index];
	if (a->error || r->caller != CALLER_POOL || evidence_known(r->rise))
		return a->error;
	const uint32_t stack = stacks_of(sel->stacks, reader_process(sel->reader, oom->process), oom->node, oom->node2);
	if (stack && categories_of(sel->categories, stack, LIFETIME_UNKNOWN) == CATEGORY_optimizer) {
		r->ahead_for = "the optimizer's state";
		return still_for_gradients(diagnosis, d, device->index, stacks_site_frame(sel->stacks, stack, 0),
					   &r->ahead);
	}
	r->ahead_for = "what is moved from the host";
	return still_on_host(diagnosis, d, r->bytes, &r->ahead);
}
