#include "analyzer/timeline/phases.h"

#include "analyzer/model/selection/selection.h"
#include "analyzer/symbols/python_frames.h"
#include "analyzer/symbols/python_lines.h"
#include "analyzer/util/vec.h"

#include <stdio.h>

#define DEPTH             6   /* functions of the program's own that are looked into */
#define ONE_LINE          0.9 /* of the time, or of what is made: then its function's lines are the phases */
#define NO_LINE           UINT32_MAX
#define IMPORTS           1u /* the line that stands for all imports */
#define PHASES_MOST_LINES ((1u << 26) - 1)

/* A line in a tree of lines: `parent` is the line that called its function. 0 is the root, 1 all imports. */
struct line {
	uint32_t parent, first, next; /* children as a list */
	uint32_t code, number;
	uint32_t callee;   /* code object that it called, as the latest event said; 0 = none */
	uint64_t ns, made; /* time and bytes, in it or below */
	uint64_t first_ns; /* when it was first entered */
	uint32_t entered;  /* how often, from a line that is not below it */
	uint32_t entry;    /* in `entries`, plus 1 */
	bool cut;          /* it is a phase */
	bool imports;
	bool wrapped; /* the callee is but a wrapper */
};

/* A phase with its single visits. */
struct entry {
	char *name;
	enum phase_source source;
	uint32_t mark; /* id of its name; of lines 0 */
	uint64_t visits;
	struct phase *visit; /* up to PHASE_VISITS; all in the first if there were more */
	size_t count;
};

struct open_phase {
	uint32_t entry, thread;
	uint64_t range, begin_ns;
	struct phase *phase;
};

struct live_track {
	uint32_t kind, device;
	uint64_t live, peak, peak_ns;
	uint64_t driver;   /* of a pool: live of the device at the peak */
	uint64_t left_out; /* alive beyond `live`, as a folded block said */
	bool leveled;      /* peaks are as folded blocks say: changes show less */
};

struct run {
	const struct process *process;
	struct line *lines;
	size_t line_count, line_room;
	struct stand {
		uint32_t line : 26, depth : 3;
		bool imports : 1; /* at an import statement, or what its library does */
		bool called : 1;  /* by a function of the program's own: not at the top of a module */
		bool known : 1;
	} *stands; /* by node2 */
	size_t stand_room;
	uint32_t *chain; /* scratch of line_at() */
	size_t chain_room;
	uint32_t main_thread, now; /* now: the line the main thread is in */
	uint64_t now_ns;
	struct entry *entries;
	size_t entry_count, entry_room;
	struct open_phase *open;
	size_t open_count, open_room;
	struct live_track *tracks;
	size_t track_count, track_room;
	bool settled;
};

struct phases {
	struct run **runs; /* by process */
	size_t count, room;
	const struct phase **list;
	size_t list_count;
};

struct phases *phases_new(void)
{
	return calloc(1, sizeof(struct phases));
}

static void run_free(struct run *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->entry_count; i++) {
		for (size_t k = 0; k < r->entries[i].count; k++)
			free(r->entries[i].visit[k].tracks);
		free(r->entries[i].visit);
		free(r->entries[i].name);
	}
	for (size_t i = 0; i < r->open_count; i++) {
		free(r->open[i].phase->tracks);
		free(r->open[i].phase);
	}
	free(r->entries);
	free(r->open);
	free(r->lines);
	free(r->stands);
	free(r->chain);
	free(r->tracks);
	free(r);
}

void phases_free(struct phases *s)
{
	for (size_t i = 0; s && i < s->count; i++)
		run_free(s->runs[i]);
	if (s) {
		free(s->runs);
		free(s->list);
	}
	free(s);
}

static uint32_t main_thread(const struct process *p)
{
	for (uint32_t i = 0; i < p->thread_end; i++) {
		const struct process_thread *t = process_thread(p, i);
		if (t && t->tid == p->pid)
			return i;
	}
	return 0;
}

static struct run *new_run(struct phases *s, const struct process *p)
{
	if (p->id >= s->count) {
		if (vec_reserve(s->runs, s->room, p->id + 1ul))
			return NULL;
		s->count = p->id + 1ul;
	}
	struct run *r = calloc(1, sizeof(*r));
	if (!r || vec_reserve(r->lines, r->line_room, 2)) {
		free(r);
		return NULL;
	}
	r->process = p;
	r->main_thread = main_thread(p);
	r->line_count = 2;
	r->lines[IMPORTS] = (struct line){ .imports = true };
	r->lines[0].first = IMPORTS;
	return s->runs[p->id] = r;
}

static inline struct run *run_of(struct phases *s, const struct process *p)
{
	struct run *r = p->id < s->count ? s->runs[p->id] : NULL;
	if (!r)
		return new_run(s, p);
	r->process = p; /* the second pass has a reader of its own */
	return r;
}

/* ---- lines --------------------------------------------------------------------------------------------- */

static uint32_t child_line(struct run *r, uint32_t parent, uint32_t code, uint32_t number)
{
	for (uint32_t i = r->lines[parent].first; i; i = r->lines[i].next)
		if (r->lines[i].code == code && r->lines[i].number == number)
			return i;
	if (r->line_count == PHASES_MOST_LINES || vec_reserve(r->lines, r->line_room, r->line_count + 1))
		return parent;
	uint32_t id = (uint32_t)r->line_count++;
	r->lines[id] =
		(struct line){ .parent = parent, .next = r->lines[parent].first, .code = code, .number = number };
	r->lines[parent].first = id;
	return id;
}

/* Decorators of libraries, which are functions made by functions: what they call says what a line does. */
static bool is_wrapper(const struct process_code *code)
{
	static const char *const names[] = { "_wrapped_call_impl", "_call_impl" };
	const char *last = strrchr(code->name, '.');
	if (!python_is_library(code->file))
		return false;
	if (strstr(code->name, "<locals>"))
		return true;
	last = last ? last + 1 : code->name;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(last, names[i]))
			return true;
	return false;
}

/* A part of its function's line that older Pythons run as a function. */
static bool is_comprehension(const struct process_code *code)
{
	static const char *const names[] = { "<listcomp>", "<setcomp>", "<dictcomp>" };
	const char *last = strrchr(code->name, '.');
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(last ? last + 1 : code->name, names[i]))
			return true;
	return false;
}

/* What one more frame further in says: a stack's line is that of its outermost frames that are the program's own, also
 * of modules that it imports. */
static struct stand look_further(struct run *r, uint32_t id, struct stand s)
{
	const struct mt_node *node = process_node(r->process, id);
	const struct process_code *code =
		node->flags & MT_NODE_PYTHON ? process_code(r->process, MT_PY_CODE(node->pc)) : NULL;
	s.known = true;
	if (!code || (s.line && is_comprehension(code)))
		return s;
	struct line *line = &r->lines[s.line];
	const bool own = !python_is_library(code->file), importing = strstr(code->file, "<frozen importlib");
	if (s.line && !importing && (!line->callee || line->wrapped)) {
		line->callee = code->id;
		line->wrapped = is_wrapper(code);
	}
	s.called = s.called || (own && s.depth && !s.imports);
	s.imports = !own && (s.imports || importing);
	if (own && s.depth < DEPTH) {
		s.line = child_line(r, s.line, code->id, python_lines_find(code, MT_PY_OFFSET(node->pc)));
		s.depth++;
	}
	return s;
}

/* Known for all stacks outwards of one that was looked at, so each node is visited once. */
static uint32_t line_at(struct run *r, uint32_t node2)
{
	struct stand found = { 0 };
	size_t count = 0;
	const struct mt_node *node;
	if (node2 >= r->stand_room && vec_sparse(r->stands, r->stand_room, r->process->node_end + 1ul))
		return NO_LINE;
	for (uint32_t id = node2; id && (node = process_node(r->process, id)) != NULL; id = node->parent) {
		found = r->stands[id];
		if (found.known)
			break;
		if (vec_reserve_raw(r->chain, r->chain_room, count + 1))
			return NO_LINE;
		r->chain[count++] = id;
	}
	while (count--)
		found = r->stands[r->chain[count]] = look_further(r, r->chain[count], found);
	return found.line && found.imports && !found.called ? IMPORTS : found.line;
}

/* The line the main thread is in now, or NO_LINE when this change doesn't say. Forked children run their parent's lines
 * and have no phases by them. */
static uint32_t line_of_change(struct run *r, const struct model_change *c)
{
	if (c->bytes <= 0 || !c->node2 || c->thread != r->main_thread || r->process->origin == MT_ORIGIN_FORK)
		return NO_LINE;
	uint32_t line = line_at(r, c->node2);
	return line ? line : NO_LINE;
}

static bool is_within(const struct run *r, uint32_t line, uint32_t outer)
{
	while (line > outer) /* children have larger ids */
		line = r->lines[line].parent;
	return line == outer;
}

/* The main thread goes from one line to another: into those that have the new one below them, but not the old one. */
static void count_entries(struct run *r, uint32_t line, uint64_t ns)
{
	for (uint32_t i = line; i && !(r->now && is_within(r, r->now, i)); i = r->lines[i].parent)
		if (!r->lines[i].entered++)
			r->lines[i].first_ns = ns;
}

void phases_first_change(struct phases *s, const struct model_change *c)
{
	struct run *r = run_of(s, c->process);
	if (!r)
		return;
	uint32_t line = line_of_change(r, c);
	if (line == NO_LINE)
		return;
	if (r->now)
		r->lines[r->now].ns += c->ns - r->now_ns;
	r->lines[line].made += c->bytes > 0 ? (uint64_t)c->bytes : 0;
	if (line != r->now)
		count_entries(r, line, c->ns);
	r->now = line;
	r->now_ns = c->ns;
}

/* ---- which lines are phases ---------------------------------------------------------------------------- */

/* Returns the one that took longest; 0 = there is none but imports. */
static uint32_t cut_children(struct run *r, uint32_t parent)
{
	uint32_t longest = 0;
	for (uint32_t i = r->lines[parent].first; i; i = r->lines[i].next) {
		r->lines[i].cut = true;
		if (i != IMPORTS && (!longest || r->lines[i].ns > r->lines[longest].ns))
			longest = i;
	}
	return longest;
}

static bool has_loop(const struct run *r, uint32_t line)
{
	if (r->lines[line].entered > PHASE_VISITS)
		return true;
	for (uint32_t i = r->lines[line].first; i; i = r->lines[i].next)
		if (has_loop(r, i))
			return true;
	return false;
}

/* Its function goes on to another one of the program's behind the loop: it is the course of the program as a script's
 * lines are. */
static bool is_course(const struct run *r, uint32_t line)
{
	uint64_t looped_ns = UINT64_MAX;
	for (uint32_t i = r->lines[line].first; i; i = r->lines[i].next)
		if (i != IMPORTS && r->lines[i].first_ns < looped_ns && has_loop(r, i))
			looped_ns = r->lines[i].first_ns;
	for (uint32_t i = r->lines[line].first; i; i = r->lines[i].next)
		if (r->lines[i].first && r->lines[i].entered <= PHASE_VISITS && r->lines[i].first_ns > looped_ns)
			return true;
	return false;
}

/* The line that made nearly all, where another took longer: waiting is no work. 0 = there is none. */
static uint32_t course_that_made_most(const struct run *r, uint32_t parent)
{
	const double all = (double)r->lines[parent].made;
	for (uint32_t i = r->lines[parent].first; i; i = r->lines[i].next)
		if (i != IMPORTS && r->lines[i].first && (double)r->lines[i].made >= ONE_LINE * all && is_course(r, i))
			return i;
	return 0;
}

static void choose_lines(struct run *r)
{
	/* children have larger ids than their parents; imports, however long they take, are not what a program does */
	for (size_t i = r->line_count; i-- > 2;) {
		r->lines[r->lines[i].parent].ns += r->lines[i].ns;
		r->lines[r->lines[i].parent].made += r->lines[i].made;
	}
	uint32_t parent = 0, longest;
	while ((longest = cut_children(r, parent))) {
		struct line *l = &r->lines[longest];
		if (!l->first || ((double)l->ns < ONE_LINE * (double)r->lines[parent].ns && !is_course(r, longest)))
			longest = course_that_made_most(r, parent);
		if (!longest)
			return;
		parent = longest;
		r->lines[parent].cut = false;
	}
}

static uint32_t cut_of(const struct run *r, uint32_t line)
{
	while (line && !r->lines[line].cut)
		line = r->lines[line].parent;
	return line;
}

static char *line_name(const struct run *r, const struct line *l)
{
	const struct process_code *code = process_code(r->process, l->code),
				  *callee = l->wrapped ? NULL : process_code(r->process, l->callee);
	/* what only leads to other code: that has lines of its own */
	if (callee && python_is_plumbing(&(struct frame){ .function = callee->name, .file = callee->file }))
		callee = NULL;
	char *name = NULL, cell[PROCESS_CELL_NAME];
	if (l->imports)
		return strdup("imports");
	if (!code)
		return strdup("?");
	const char *file = process_cell(r->process, code->file, cell) ? cell : base_name(code->file);
	/* a library's function alone would read as if the line were in it */
	const bool within = *code->name != '<' && !(callee && !python_is_library(callee->file));
	if (asprintf(&name, "%s:%u%s%s%s%s", file, l->number, within ? " " : "", within ? code->name : "",
		     !callee  ? ""
		     : within ? " > "
			      : " ",
		     callee ? callee->name : "") < 0)
		return strdup("?");
	for (char *at; (at = strstr(name, ".<locals>"));)
		memmove(at, at + 9, strlen(at + 9) + 1);
	return name;
}

/* ---- tracks -------------------------------------------------------------------------------------------- */

static struct phase_track *phase_track_of(struct phase *p, const struct live_track *t)
{
	for (size_t i = 0; i < p->track_count; i++)
		if (p->tracks[i].kind == t->kind && p->tracks[i].device == t->device)
			return &p->tracks[i];
	struct phase_track *tracks = realloc(p->tracks, (p->track_count + 1) * sizeof(*tracks));
	if (!tracks)
		return NULL;
	p->tracks = tracks;
	tracks[p->track_count] = (struct phase_track){ .kind = t->kind, .device = t->device };
	return &tracks[p->track_count++];
}

static uint64_t all_live(const struct live_track *t)
{
	return t->live + t->left_out;
}

static uint64_t driver_under(const struct run *r, const struct live_track *t)
{
	for (size_t i = 0; t->kind == MODEL_POOL && i < r->track_count; i++)
		if (r->tracks[i].kind == MODEL_DEVICE && r->tracks[i].device == t->device)
			return r->tracks[i].live;
	return 0;
}

/* The greatest values since the latest such moment are those of every phase that is open. */
static void settle(struct run *r)
{
	for (size_t k = 0; k < r->track_count; k++) {
		struct live_track *t = &r->tracks[k];
		for (size_t i = 0; i < r->open_count; i++) {
			struct phase_track *to = phase_track_of(r->open[i].phase, t);
			if (to && t->peak > to->peak_bytes) {
				to->peak_bytes = t->peak;
				to->peak_ns = t->peak_ns;
				to->driver_bytes = t->driver;
			}
		}
		t->peak = all_live(t);
	}
}

static struct live_track *new_live_track(struct run *r, uint32_t kind, uint32_t device)
{
	if (vec_reserve(r->tracks, r->track_room, r->track_count + 1))
		return NULL;
	r->tracks[r->track_count] = (struct live_track){ .kind = kind, .device = device };
	return &r->tracks[r->track_count++];
}

/* NULL = no memory. */
static inline struct live_track *live_track_of(struct run *r, uint32_t kind, uint32_t device)
{
	for (size_t i = 0; i < r->track_count; i++)
		if (r->tracks[i].kind == kind && r->tracks[i].device == device)
			return &r->tracks[i];
	return new_live_track(r, kind, device);
}

static void rise(struct run *r, struct live_track *t, uint64_t bytes, uint64_t ns)
{
	if (bytes <= t->peak)
		return;
	t->peak = bytes;
	t->peak_ns = ns;
	t->driver = driver_under(r, t);
}

static void change_live(struct run *r, const struct model_change *c)
{
	struct live_track *t = live_track_of(r, c->kind, c->device);
	if (!t)
		return;
	t->live += (uint64_t)c->bytes;
	if (!t->leveled)
		rise(r, t, t->live, c->ns);
}

/* ---- phases that begin and end ------------------------------------------------------------------------- */

static void begin_phase(struct run *r, uint32_t entry, uint32_t thread, uint64_t range, uint64_t ns)
{
	struct phase *p = calloc(1, sizeof(*p));
	settle(r);
	if (!p || vec_reserve(r->open, r->open_room, r->open_count + 1)) {
		free(p);
		return;
	}
	*p = (struct phase){ .process = r->process, .begin_ns = ns, .visits = 1 };
	for (size_t k = 0; k < r->track_count; k++) {
		struct phase_track *t = phase_track_of(p, &r->tracks[k]);
		if (t)
			*t = (struct phase_track){
				t->kind, t->device, all_live(&r->tracks[k]),       0, all_live(&r->tracks[k]),
				ns,      0,         driver_under(r, &r->tracks[k])
			};
	}
	r->open[r->open_count++] = (struct open_phase){ entry, thread, range, ns, p };
}

static void add_visit(struct phase *to, const struct phase *p)
{
	to->visits += p->visits;
	to->busy_ns += p->busy_ns;
	to->begin_ns = p->begin_ns < to->begin_ns ? p->begin_ns : to->begin_ns;
	to->end_ns = p->end_ns > to->end_ns ? p->end_ns : to->end_ns;
	for (size_t k = 0; k < p->track_count; k++) {
		const struct phase_track *from = &p->tracks[k];
		struct phase_track *t =
			phase_track_of(to, &(struct live_track){ .kind = from->kind, .device = from->device });
		if (!t)
			continue;
		if (from->peak_bytes > t->peak_bytes) {
			t->peak_bytes = from->peak_bytes;
			t->peak_ns = from->peak_ns;
		}
		t->end_bytes = from->end_bytes;
		t->kept_bytes += from->kept_bytes;
	}
}

/* Takes p over. */
static void put_visit(struct entry *e, struct phase *p)
{
	if (!e->visit)
		e->visit = calloc(PHASE_VISITS, sizeof(*e->visit));
	if (e->visit && e->visits++ < PHASE_VISITS) {
		e->visit[e->count++] = *p;
		free(p);
		return;
	}
	while (e->count > 1) {
		add_visit(&e->visit[0], &e->visit[--e->count]);
		free(e->visit[e->count].tracks);
	}
	if (e->visit)
		add_visit(&e->visit[0], p);
	free(p->tracks);
	free(p);
}

static void end_phase(struct run *r, size_t open, uint64_t ns)
{
	settle(r);
	struct open_phase o = r->open[open];
	o.phase->end_ns = ns;
	o.phase->busy_ns = ns - o.begin_ns;
	for (size_t k = 0; k < r->track_count; k++) {
		struct phase_track *t = phase_track_of(o.phase, &r->tracks[k]);
		if (!t)
			continue;
		t->end_bytes = all_live(&r->tracks[k]);
		t->kept_bytes = (int64_t)t->end_bytes - (int64_t)t->begin_bytes;
	}
	memmove(&r->open[open], &r->open[open + 1], (--r->open_count - open) * sizeof(*r->open));
	put_visit(&r->entries[o.entry], o.phase);
}

/* ---- lines in the second pass -------------------------------------------------------------------------- */

static uint32_t new_entry(struct run *r, char *name, enum phase_source source, uint32_t mark)
{
	if (!name || vec_reserve(r->entries, r->entry_room, r->entry_count + 1)) {
		free(name);
		return 0;
	}
	r->entries[r->entry_count++] = (struct entry){ .name = name, .source = source, .mark = mark };
	return (uint32_t)r->entry_count;
}

static void enter_line(struct run *r, uint32_t line, uint64_t ns)
{
	for (size_t i = 0; i < r->open_count; i++)
		if (r->entries[r->open[i].entry].source == PHASE_LINE) {
			end_phase(r, i, ns);
			break;
		}
	if (!r->lines[line].entry)
		r->lines[line].entry = new_entry(r, line_name(r, &r->lines[line]), PHASE_LINE, 0);
	if (r->lines[line].entry)
		begin_phase(r, r->lines[line].entry - 1, r->main_thread, 0, ns);
}

static void settle_lines(struct run *r)
{
	r->settled = true;
	if (r->now && r->process->end_ns > r->now_ns)
		r->lines[r->now].ns += r->process->end_ns - r->now_ns;
	r->now = 0;
	choose_lines(r);
}

void phases_change(struct phases *s, const struct model_change *c)
{
	struct run *r = run_of(s, c->process);
	if (!r)
		return;
	if (!r->settled)
		settle_lines(r);
	uint32_t line = line_of_change(r, c);
	line = line == NO_LINE ? 0 : cut_of(r, line);
	if (line && line != r->now) {
		enter_line(r, line, c->ns);
		r->now = line;
	}
	change_live(r, c);
}

void phases_level(struct phases *s, const struct model_level_change *l)
{
	struct run *r = l->kind == MODEL_KINDS ? NULL : run_of(s, l->process);
	struct live_track *t = r ? live_track_of(r, l->kind, l->device) : NULL;
	if (!t)
		return;
	t->leveled = !l->end;
	t->left_out = l->end ? 0 : l->now - t->live;
	rise(r, t, l->high, l->ns);
}

/* ---- ranges -------------------------------------------------------------------------------------------- */

static uint32_t mark_entry(struct run *r, uint32_t mark, enum phase_source source)
{
	for (size_t i = 0; i < r->entry_count; i++)
		if (r->entries[i].mark == mark && r->entries[i].source == source)
			return (uint32_t)i + 1;
	if (r->entry_count >= PHASE_NAMES || !*process_mark(r->process, mark))
		return 0;
	return new_entry(r, strdup(process_mark(r->process, mark)), source, mark);
}

static bool ends(const struct run *r, const struct open_phase *o, const struct mt_event *slot,
		 const struct mt_ext_device *ext, uint32_t thread)
{
	const struct entry *e = &r->entries[o->entry];
	if (e->source == PHASE_LINE)
		return false;
	if (ext->other)
		return o->range == ext->other;
	return o->thread == thread && !o->range && (!slot->size || e->mark == slot->size);
}

void phases_event(struct phases *s, const struct process *p, const struct mt_event *slot, uint32_t thread)
{
	struct mt_ext_device ext;
	if (slot->kind != MT_MARK)
		return;
	struct run *r = run_of(s, p);
	memcpy(&ext, slot + 1, sizeof(ext));
	if (!r)
		return;
	if (!r->settled)
		settle_lines(r);
	uint64_t ns = process_ns(p, slot->ticks);
	if (ext.class == MT_MARK_BEGIN) {
		enum phase_source source = ext.source == MT_MARK_NVTX   ? PHASE_NVTX
					   : ext.source == MT_MARK_MSTX ? PHASE_MSTX
									: PHASE_MARK;
		uint32_t entry = mark_entry(r, (uint32_t)slot->size, source);
		if (entry)
			begin_phase(r, entry - 1, thread, ext.other, ns);
	} else if (ext.class == MT_MARK_END) {
		for (size_t i = r->open_count; i-- > 0;)
			if (ends(r, &r->open[i], slot, &ext, thread)) {
				end_phase(r, i, ns);
				break;
			}
	}
}

/* ---- the result ---------------------------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
	const struct phase *const *x = a, *const *y = b;
	if ((*x)->begin_ns != (*y)->begin_ns)
		return (*x)->begin_ns < (*y)->begin_ns ? -1 : 1;
	return ((*x)->process->id > (*y)->process->id) - ((*x)->process->id < (*y)->process->id);
}

static void list_run(struct phases *s, struct run *r)
{
	for (size_t i = 0; i < r->entry_count; i++)
		for (size_t k = 0; k < r->entries[i].count; k++) {
			struct phase *p = &r->entries[i].visit[k];
			p->name = r->entries[i].name;
			p->source = r->entries[i].source;
			s->list[s->list_count++] = p;
		}
}

void phases_finish(struct phases *s)
{
	size_t count = 0;
	for (size_t id = 0; id < s->count; id++) {
		struct run *r = s->runs[id];
		while (r && r->open_count)
			end_phase(r, r->open_count - 1, r->process->end_ns);
		for (size_t i = 0; r && i < r->entry_count; i++)
			count += r->entries[i].count;
		if (r) {
			free(r->stands);
			r->stands = NULL;
			r->stand_room = 0;
		}
	}
	free(s->list);
	s->list_count = 0;
	s->list = calloc(count + 1, sizeof(*s->list));
	for (size_t id = 0; s->list && id < s->count; id++)
		if (s->runs[id])
			list_run(s, s->runs[id]);
	if (s->list)
		qsort(s->list, s->list_count, sizeof(*s->list), by_begin);
}

bool phase_freed(const struct phase *p, const struct phase_track *t, struct phase_freed *out)
{
	const struct phase_track *driver = NULL;
	for (size_t i = 0; i < p->track_count; i++)
		if (p->tracks[i].kind == MODEL_DEVICE && p->tracks[i].device == t->device)
			driver = &p->tracks[i];
	if (t->kind != MODEL_POOL || p->visits != 1 || !driver || !t->driver_bytes)
		return false;
	out->freed = t->peak_bytes - t->end_bytes;
	out->to_driver = (int64_t)t->driver_bytes - (int64_t)driver->end_bytes;
	out->in_pool = (int64_t)out->freed - out->to_driver;
	return true;
}

size_t phases_count(const struct phases *s)
{
	return s->list_count;
}
const struct phase *phases_get(const struct phases *s, size_t i)
{
	return s->list[i];
}

/* Where it is, or what it calls. */
static bool is_half(const char *name, const char *wanted)
{
	const char *space = strchr(name, ' '), *called = strstr(name, " > ");
	size_t n = strlen(wanted);
	return space && (!strcmp(called ? called + 3 : space + 1, wanted) ||
			 ((size_t)(space - name) == n && !strncmp(name, wanted, n)));
}

size_t phases_find(const struct phases *s, const char *name, size_t from)
{
	for (size_t i = from; i < s->list_count; i++)
		if (!strcmp(s->list[i]->name, name))
			return i;
	for (size_t i = from; i < s->list_count; i++)
		if (is_half(s->list[i]->name, name))
			return i;
	for (size_t i = from; i < s->list_count; i++)
		if (strstr(s->list[i]->name, name))
			return i;
	return s->list_count;
}
