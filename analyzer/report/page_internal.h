/* Parts of the page's data. All make JSON, as json.h does. */
#ifndef MT_REPORT_PAGE_INTERNAL_H
#define MT_REPORT_PAGE_INTERNAL_H

#include "analyzer/report/page.h"

#include <jansson.h>
#include <stdio.h>

/* ---- page_tree.c: call paths as they are shown, of all that the page tells ---- */

struct page_tree;

struct page_tree *page_tree_new(const struct selection *v);
void page_tree_free(struct page_tree *t); /* NULL is fine */

/* The node of a stack, whose outer frames are its parents; 0 = no stack is known, or the tree is full and it is that of
 * its outer frames. */
uint32_t page_tree_node(struct page_tree *t, uint32_t stack);

/* A node without an outer one, of a name that is no function's: `label` is a constant. Or of the frame that says who
 * wanted the stack's memory; 0: none does. */
uint32_t page_tree_label(struct page_tree *t, const char *label);
uint32_t page_tree_alone(struct page_tree *t, uint32_t stack);

/* The node's number in the JSON, which nodes have that anybody is told of. */
uint32_t page_tree_use(struct page_tree *t, uint32_t node);

/* The node itself, or of a path of more than `depth` frames that of its outermost ones. */
uint32_t page_tree_outer(const struct page_tree *t, uint32_t node, unsigned depth);

/* The number in the JSON of the frame that says who wanted the stack's memory; -1: none does. */
int64_t page_tree_site(struct page_tree *t, uint32_t stack);

/* {"frames": [[function, file, line, library, language]], "nodes": [parent, frame, ...]}: node i + 1 is at 2 i; frame
 * numbers begin with 0. */
void page_tree_json(json_t *o, const struct page_tree *t);

/* Calls f for the file and line of each frame that has them. */
void page_tree_each_line(const struct page_tree *t, void (*f)(void *arg, const char *file, uint32_t line), void *arg);

/* ---- page_stacks.c ---- */

/* "windows", "tracks", "stacks" of the page; `most` stacks at the most. 0 or -MT_E*. */
int page_stacks_json(json_t *o, const struct report *r, struct page_tree *t, size_t most);

/* ---- page_map.c ---- */

/* "maps": how blocks lay in segments; `most` rectangles in all. */
void page_maps_json(json_t *o, const struct report *r, struct page_tree *t, size_t most);

/* ---- page_series.c ---- */

void page_series_json(json_t *o, const struct selection *v); /* "series": memory over time */
void page_moments_json(json_t *o, const struct report *r);   /* "moments": failures, peaks, the end */
void page_growth_json(json_t *o, const struct report *r, struct page_tree *t);

/* ---- page_source.c ---- */

void page_source_json(json_t *o, const struct page_tree *t, enum page_source which);

/* ---- page_verdict.c ---- */

/* What happened, as HTML, into f. */
void page_verdict_print(FILE *f, const struct report *r, const struct page_changes *changes);
/* Text as text: markup means nothing in it. */
void page_print_text(FILE *f, const char *text);
/* The same of a name, which may hold anything: what a terminal would hide or obey is '?' here too. Takes the text. */
void page_print_name(FILE *f, char *text);
/* What memtrace report --all prints, as text. Allocated. */
char *page_report_text(const struct report *r);

#endif
