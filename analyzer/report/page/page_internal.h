/* Parts of the page and its data. JSON is made as json.h says: functions *_json(o, ...) set keys of `o`. */
#ifndef MT_REPORT_PAGE_PAGE_INTERNAL_H
#define MT_REPORT_PAGE_PAGE_INTERNAL_H

#include "analyzer/report/page/page.h"

#include <jansson.h>
#include <stdio.h>

/* ---- page_tree.c: a tree of all call paths on the page. Nodes have numbers from 1 on; 0 = none ---- */

struct page_tree;

struct page_tree *page_tree_new(const struct selection *sel);
void page_tree_free(struct page_tree *t); /* NULL is fine */

/* The node of a stack, made if it is new; outer frames are its parents. If the tree is full it is the node of an outer
 * part of the stack. 0 = the stack is not known, or the tree is full and has nothing of it. */
uint32_t page_tree_node(struct page_tree *t, uint32_t stack);
/* ... of the stack of a process's site, which is looked up once; UINT32_MAX = no site. */
uint32_t page_tree_site_node(struct page_tree *t, uint32_t process, uint32_t site);

/* A node without a parent: for a name that is no function's (`label` is a constant), or for the frame of stacks_site();
 * 0 = there is no such frame. */
uint32_t page_tree_label(struct page_tree *t, const char *label);
uint32_t page_tree_alone(struct page_tree *t, uint32_t stack);
/* ... for the name of the thread that allocated at a process's site, where the model is split by threads; else 0. */
uint32_t page_tree_thread(struct page_tree *t, uint32_t process, uint32_t site);

/* The node's number in the JSON. Only nodes that were asked for by this, and their parents, are in the JSON. */
uint32_t page_tree_use(struct page_tree *t, uint32_t node);

/* The node of the outermost `depth` frames of a node's path; the node itself if it has no more. */
uint32_t page_tree_outer(const struct page_tree *t, uint32_t node, unsigned depth);

/* The number in the JSON of the frame of stacks_site(); -1 = there is none. */
int64_t page_tree_site(struct page_tree *t, uint32_t stack);

/* Sets "frames": [[function, file, line, library, language], ...], numbered from 0, and "nodes": [parent, frame, ...],
 * where node i + 1 is at index 2 i. */
void page_tree_json(json_t *o, const struct page_tree *t);

/* Calls f for the file and line of each frame that has them. */
void page_tree_each_line(const struct page_tree *t, void (*f)(void *arg, const char *file, uint32_t line), void *arg);

/* ---- page_lists.c ---- */

/* Which devices are on the page, by index: those that failed, then the largest. Allocated. */
bool *page_devices(const struct selection *sel);

/* Which processes are listed, by id: the page's own, those that did not end well, then the largest. Allocated. */
bool *page_processes(const struct report *r, size_t most, size_t *left_out);

/* Cuts what report_json() made: devices to those, and lists of phases and of shares of devices to the `most` that say
 * most. Sets "LIST_left_out": how many are missing. */
void page_lists_cut(json_t *o, json_t *report, const struct selection *sel, const bool *devices, size_t most);

/* ---- page_stacks.c ---- */

/* Sets "times_s", "tracks", and "stacks", of which there are at most `most`. Tracks that are not on the page are null.
 * 0 or -MT_E*. */
int page_stacks_json(json_t *o, const struct report *r, struct page_tree *t, const bool *devices, size_t most);

/* ---- page_map.c ---- */

/* Sets "maps": how blocks lay in segments, in at most `most` rectangles. */
void page_maps_json(json_t *o, const struct report *r, struct page_tree *t, size_t most);

/* ---- page_blocks.c ---- */

/* Sets "blocks": of each device's pool the lives of its blocks around a moment, at most `most`. */
void page_blocks_json(json_t *o, const struct report *r, struct page_tree *t, const bool *devices, size_t most);

/* ---- page_series.c ---- */

void page_series_json(json_t *o, const struct selection *sel, const bool *devices); /* "series": memory over time */
/* "resident", of the host, and "device_samples": what else was on devices */
void page_resident_json(json_t *o, const struct report *r);
void page_device_samples_json(json_t *o, const struct report *r, const bool *devices);
/* "opens_on": the track that is looked at first */
void page_opens_json(json_t *o, const struct report *r);
/* "moments": failures, peaks, the end */
void page_moments_json(json_t *o, const struct report *r, const bool *devices);
void page_growth_json(json_t *o, const struct report *r, struct page_tree *t, const bool *devices);

/* ---- page_holders.c ---- */

/* Adds to the list: of each kind of memory the objects that keep most, with the way to each. 0 or -MT_E*. */
int page_holders(json_t *list, const struct selection *sel);

/* ---- page_source.c ---- */

void page_source_json(json_t *o, const struct page_tree *t, enum page_source which);

/* ---- page_verdict.c ---- */

/* Prints what happened, as HTML. */
void page_verdict_print(FILE *f, const struct report *r, const struct page_changes *changes);
/* Prints a text with its markup escaped. */
void page_print_text(FILE *f, const char *text);
/* The same for a name, which may hold anything: control characters, as for a terminal, become '?'. Frees the text. */
void page_print_name(FILE *f, char *text);
/* What memtrace report --all prints, as text. Allocated. */
char *page_report_text(const struct report *r);

#endif
