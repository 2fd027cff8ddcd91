#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_internal.h"
#include "analyzer/util/vec.h"

#include <inttypes.h>
#include <uthash.h>

enum { MOST_NODES = 200000, MOST_DEPTH = 400 }; /* nodes: those that are used are far fewer */

struct frame_key {
	const char *function, *file, *library;
	uint64_t place; /* its line, or the offset where there is no function */
};

struct tree_frame {
	UT_hash_handle hh;
	struct frame_key key;
	const char *language;
	uint32_t line, index;
	uint32_t number; /* in the JSON, from 1 on; 0 = nobody is told of it yet */
};

struct node_key {
	uint32_t parent, frame;
};

struct tree_node {
	UT_hash_handle hh;
	struct node_key key;
	uint32_t index;  /* from 1 on */
	unsigned depth;  /* frames, with its own */
	uint32_t number; /* in the JSON, as that of a frame */
};

struct page_tree {
	const struct selection *selection;
	struct tree_frame *by_key, **frames;
	size_t frame_count, frame_room;
	struct tree_node *by_path, **nodes;
	size_t node_count, node_room;
	/* by process and site: their node, and 1; 0 = not looked up yet */
	struct site_nodes {
		uint32_t *nodes;
		size_t count, room;
	} *of_sites;
	/* by process and thread of a model that is split by them */
	struct thread_name {
		UT_hash_handle hh;
		struct thread_key {
			uint32_t process, thread;
		} key;
		char *name;
		uint32_t node;
	} *threads;
	json_t *told_frames, *told_nodes;
	uint32_t told_frame_count, told_node_count;
};

struct page_tree *page_tree_new(const struct selection *sel)
{
	struct page_tree *t = calloc(1, sizeof(*t));
	if (t) {
		t->selection = sel;
		t->told_frames = json_array();
		t->told_nodes = json_array();
		t->of_sites = calloc(reader_processes(sel->reader) + 1ul, sizeof(*t->of_sites));
	}
	return t;
}

void page_tree_free(struct page_tree *t)
{
	if (!t)
		return;
	struct thread_name *name, *next;
	HASH_ITER(hh, t->threads, name, next)
	{
		HASH_DEL(t->threads, name);
		free(name->name);
		free(name);
	}
	HASH_CLEAR(hh, t->by_key);
	HASH_CLEAR(hh, t->by_path);
	for (size_t i = 0; i < t->frame_count; i++)
		free(t->frames[i]);
	for (size_t i = 0; i < t->node_count; i++)
		free(t->nodes[i]);
	for (unsigned id = 0; t->of_sites && id < reader_processes(t->selection->reader); id++)
		free(t->of_sites[id].nodes);
	free(t->of_sites);
	free(t->frames);
	free(t->nodes);
	json_decref(t->told_frames);
	json_decref(t->told_nodes);
	free(t);
}

/* Names are interned: the same text is the same pointer. NULL when there is no memory. */
static struct tree_frame *frame_of(struct page_tree *t, const struct frame *f)
{
	struct tree_frame *found;
	struct frame_key key;
	memset(&key, 0, sizeof(key));
	key = (struct frame_key){ f->function, f->file, f->library, f->function ? f->line : f->offset };
	HASH_FIND(hh, t->by_key, &key, sizeof(key), found);
	if (found)
		return found;
	if (vec_reserve(t->frames, t->frame_room, t->frame_count + 1) < 0 || !(found = calloc(1, sizeof(*found))))
		return NULL;
	found->key = key;
	found->language = f->language;
	found->line = f->line;
	found->index = (uint32_t)t->frame_count;
	t->frames[t->frame_count++] = found;
	HASH_ADD(hh, t->by_key, key, sizeof(found->key), found);
	return found;
}

static uint32_t child_of(struct page_tree *t, uint32_t parent, uint32_t frame)
{
	struct node_key key = { parent, frame };
	struct tree_node *found;
	HASH_FIND(hh, t->by_path, &key, sizeof(key), found);
	if (found)
		return found->index;
	if ((t->node_count >= MOST_NODES && parent) || vec_reserve(t->nodes, t->node_room, t->node_count + 1) < 0 ||
	    !(found = calloc(1, sizeof(*found))))
		return parent;
	found->key = key;
	t->nodes[t->node_count++] = found;
	found->index = (uint32_t)t->node_count;
	found->depth = 1 + (parent ? t->nodes[parent - 1]->depth : 0);
	HASH_ADD(hh, t->by_path, key, sizeof(found->key), found);
	return found->index;
}

uint32_t page_tree_node(struct page_tree *t, uint32_t stack)
{
	const unsigned flags = selection_flags(t->selection->options);
	const struct frame *frames[MOST_DEPTH];
	size_t depth = 0;
	for (struct stack_walk w = { .next = stack }; depth < MOST_DEPTH && stack_step(t->selection->stacks, &w);)
		if (stack_shows(&w, flags))
			frames[depth++] = w.frame;
	const struct frame *only = depth ? NULL : stacks_site(t->selection->stacks, stack, flags).frame;
	if (only)
		frames[depth++] = only;
	uint32_t node = 0;
	while (depth) {
		const struct tree_frame *f = frame_of(t, frames[--depth]);
		if (!f)
			break;
		node = child_of(t, node, f->index);
	}
	return node;
}

static uint32_t look_up(struct page_tree *t, uint32_t process, uint32_t site)
{
	const struct selection *sel = t->selection;
	const struct model_site *s = model_site(sel->model, process, site);
	if (!s)
		return 0;
	return page_tree_node(t, stacks_of_site(sel->stacks, reader_process(sel->reader, process), site, s->node,
						s->node2));
}

uint32_t page_tree_site_node(struct page_tree *t, uint32_t process, uint32_t site)
{
	struct site_nodes *k = t->of_sites ? &t->of_sites[process] : NULL;
	if (site == UINT32_MAX)
		return 0;
	if (!k || (site >= k->count && vec_extend(k->nodes, k->count, k->room, site + 1ul) < 0))
		return look_up(t, process, site);
	if (!k->nodes[site])
		k->nodes[site] = look_up(t, process, site) + 1;
	return k->nodes[site] - 1;
}

uint32_t page_tree_label(struct page_tree *t, const char *label)
{
	const struct tree_frame *f = frame_of(t, &(struct frame){ .function = label });
	return f ? child_of(t, 0, f->index) : 0;
}

uint32_t page_tree_thread(struct page_tree *t, uint32_t process, uint32_t site)
{
	const struct selection *sel = t->selection;
	const struct model_site *s =
		selection_split(sel) == MODEL_SPLIT_THREAD ? model_site(sel->model, process, site) : NULL;
	if (!s)
		return 0;
	struct thread_name *found;
	struct thread_key key = { process, s->split };
	HASH_FIND(hh, t->threads, &key, sizeof(key), found);
	if (found || !(found = calloc(1, sizeof(*found))))
		return found ? found->node : 0;
	found->key = key;
	found->name = owners_thread(sel->reader, s);
	found->node = found->name ? page_tree_label(t, found->name) : 0;
	HASH_ADD(hh, t->threads, key, sizeof(found->key), found);
	return found->node;
}

uint32_t page_tree_alone(struct page_tree *t, uint32_t stack)
{
	const struct selection *sel = t->selection;
	const struct frame *f = stacks_site_frame(sel->stacks, stack, selection_flags(sel->options));
	const struct tree_frame *found = f ? frame_of(t, f) : NULL;
	return found ? child_of(t, 0, found->index) : 0;
}

static json_t *json_tree_frame(const struct tree_frame *f)
{
	char where[32] = "";
	if (!f->key.function)
		snprintf(where, sizeof(where), "+0x%" PRIx64, f->key.place);
	json_t *list = json_array();
	json_array_append_new(list, f->key.function ? json_text(f->key.function) : json_text(where));
	json_array_append_new(list, json_text(f->key.file));
	json_array_append_new(list, json_integer(f->line));
	json_array_append_new(list, json_text(f->key.library));
	json_array_append_new(list, json_text(f->language));
	return list;
}

/* The number of the frame, from 0 on. */
static uint32_t tell_frame(struct page_tree *t, struct tree_frame *f)
{
	if (!f->number) {
		json_array_append_new(t->told_frames, json_tree_frame(f));
		f->number = ++t->told_frame_count;
	}
	return f->number - 1;
}

uint32_t page_tree_use(struct page_tree *t, uint32_t node)
{
	if (!node)
		return 0;
	struct tree_node *n = t->nodes[node - 1];
	if (n->number)
		return n->number;
	const uint32_t parent = page_tree_use(t, n->key.parent);
	json_array_append_new(t->told_nodes, json_integer(parent));
	json_array_append_new(t->told_nodes, json_integer(tell_frame(t, t->frames[n->key.frame])));
	n->number = ++t->told_node_count;
	return n->number;
}

uint32_t page_tree_outer(const struct page_tree *t, uint32_t node, unsigned depth)
{
	while (node && t->nodes[node - 1]->depth > depth)
		node = t->nodes[node - 1]->key.parent;
	return node;
}

int64_t page_tree_site(struct page_tree *t, uint32_t stack)
{
	const struct selection *sel = t->selection;
	const struct frame *f = stacks_site_frame(sel->stacks, stack, selection_flags(sel->options));
	struct tree_frame *found = f ? frame_of(t, f) : NULL;
	return found ? (int64_t)tell_frame(t, found) : -1;
}

void page_tree_json(json_t *o, const struct page_tree *t)
{
	json_object_set(o, "frames", t->told_frames);
	json_object_set(o, "nodes", t->told_nodes);
	json_object_set_new(o, "tree_full", json_boolean(t->node_count >= MOST_NODES));
}

void page_tree_each_line(const struct page_tree *t, void (*f)(void *arg, const char *file, uint32_t line), void *arg)
{
	for (size_t i = 0; i < t->frame_count; i++)
		if (t->frames[i]->number && t->frames[i]->key.file && t->frames[i]->line)
			f(arg, t->frames[i]->key.file, t->frames[i]->line);
}
