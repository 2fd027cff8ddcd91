/*
 * A stack's name is a hash that is the same on all machines. It is made of what a machine has no part in: functions,
 * base names of Python files and of libraries, and lines of Python. Addresses, build ids and folders differ between
 * nodes; so do inlined functions and lines of C, which only debug information tells, and names of threads.
 */
#include "analyzer/reduce/reduce_internal.h"
#include "analyzer/report/json/json.h"
#include "analyzer/symbols/python_frames.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"
#include "format/fnv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_TEXT = 300 };

struct named {
	struct stack_name name;
	uint32_t id; /* in the merged tree */
	bool marked;
};

struct stack_names {
	struct stacks *stacks;
	struct named *list;
	size_t count, room;
	uint32_t *of; /* by id: number in the list, from 1 on; 0 = not asked yet */
	size_t of_room;
};

struct stack_names *stack_names_new(struct stacks *s)
{
	struct stack_names *n = calloc(1, sizeof(*n));
	if (n)
		n->stacks = s;
	return n;
}

void stack_names_free(struct stack_names *n)
{
	if (!n)
		return;
	free(n->list);
	free(n->of);
	free(n);
}

static uint64_t hash_word(uint64_t hash, const char *text, size_t count)
{
	return mt_fnv(mt_fnv(hash, text, count), "\n", 1);
}

/* "libc.so" of "/lib/x86_64-linux-gnu/libc.so.6": versions differ between machines. */
static size_t library_length(const char *name)
{
	const char *so = strstr(name, ".so");
	return so && (!so[3] || so[3] == '.') ? (size_t)(so - name) + 3 : strlen(name);
}

struct hashes {
	uint64_t with, without;
	bool unknown; /* the frame before has no name, either */
	const char *library;
};

static void add_frame(struct hashes *h, const struct frame *f)
{
	const char *name = f->name ? f->name : f->function, *file = base_name(f->file ? f->file : "");
	bool python = python_is_frame(f);
	if (f->inlined || python_thread(f))
		return;
	const char *library = base_name(f->library ? f->library : "");
	if (!python && !name) { /* neighbours without names are one: how many there are depends on symbols */
		if (h->unknown && !strcmp(h->library, library))
			return;
		h->unknown = true;
		h->library = library;
		h->with = hash_word(h->with, library, library_length(library));
		h->without = hash_word(h->without, library, library_length(library));
		return;
	}
	h->unknown = false;
	h->with = hash_word(h->with, name ? name : "", name ? strlen(name) : 0);
	h->without = hash_word(h->without, name ? name : "", name ? strlen(name) : 0);
	if (!python)
		return;
	char line[16];
	int n = snprintf(line, sizeof(line), "%" PRIu32, f->line);
	h->with = hash_word(hash_word(h->with, file, strlen(file)), line, (size_t)n);
	h->without = hash_word(h->without, file, strlen(file));
}

static struct named *find(struct stack_names *n, uint32_t id)
{
	uint32_t merged = stacks_merged(n->stacks, id);
	if (vec_reserve(n->of, n->of_room, merged + 1ul) < 0)
		return NULL;
	if (n->of[merged])
		return &n->list[n->of[merged] - 1];
	if (vec_reserve(n->list, n->room, n->count + 1) < 0)
		return NULL;
	struct hashes h = { .with = MT_FNV_START, .without = MT_FNV_START };
	for (struct stack_walk w = { .next = merged }; stack_step_shown(n->stacks, &w, 0);)
		add_frame(&h, w.frame);
	struct named *s = &n->list[n->count++];
	*s = (struct named){ .id = merged };
	snprintf(s->name.hash, sizeof(s->name.hash), "%016" PRIx64, h.with);
	snprintf(s->name.lineless, sizeof(s->name.lineless), "%016" PRIx64, h.without);
	n->of[merged] = (uint32_t)n->count;
	return s;
}

const struct stack_name *stack_names_find(struct stack_names *n, uint32_t id)
{
	struct named *s = find(n, id);
	return s ? &s->name : NULL;
}

void stack_names_mark(struct stack_names *n, uint32_t id)
{
	struct named *s = find(n, id);
	if (s)
		s->marked = true;
}

void stack_names_unmark(struct stack_names *n)
{
	for (size_t i = 0; i < n->count; i++)
		n->list[i].marked = false;
}

static json_t *place(const struct frame *f)
{
	char *text = f ? frame_place(f) : NULL;
	json_t *value = rows_text(text, FRAME_TEXT);
	free(text);
	return value;
}

static json_t *frames_of(struct stack_names *n, uint32_t id, size_t most)
{
	json_t *list = json_array();
	for (struct stack_walk w = { .next = id }; json_array_size(list) < most && stack_step_shown(n->stacks, &w, 0);)
		json_array_append_new(list, place(w.frame));
	return list;
}

static int by_hash(const void *a, const void *b)
{
	const struct named *const *x = a, *const *y = b;
	int order = strcmp((*x)->name.hash, (*y)->name.hash);
	return order ? order : ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

void stack_names_put(struct stack_names *n, struct rows *rows, size_t frames)
{
	struct named **list = calloc(n->count + 1, sizeof(*list));
	size_t count = 0;
	for (size_t i = 0; list && i < n->count; i++)
		if (n->list[i].marked)
			list[count++] = &n->list[i];
	if (count)
		qsort(list, count, sizeof(*list), by_hash);
	for (size_t i = 0; i < count; i++) {
		if (i && !strcmp(list[i]->name.hash, list[i - 1]->name.hash))
			continue;
		json_t *o = json_object();
		json_object_set_new(o, "stack", json_string(list[i]->name.hash));
		json_object_set_new(o, "stack_lineless", json_string(list[i]->name.lineless));
		json_object_set_new(o, "site", place(stacks_site_frame(n->stacks, list[i]->id, 0)));
		json_object_set_new(o, "frames", frames_of(n, list[i]->id, frames));
		rows_put(rows, TABLE_stack, o);
	}
	if (!list && !rows->error)
		rows->error = error_memory();
	free(list);
}
