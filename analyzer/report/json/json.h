/* JSON values that several commands print. Functions return new references, or NULL if there is no memory: given to a
 * setter of jansson's that means a missing key. */
#ifndef MT_REPORT_JSON_JSON_H
#define MT_REPORT_JSON_JSON_H

#include "analyzer/model/selection/owners.h"

#include <jansson.h>

json_t *json_bytes(uint64_t n);
json_t *json_seconds(uint64_t ns);
json_t *json_real_or_null(bool known, double n); /* null unless it is known, and finite */
json_t *json_text(const char *text);             /* U+FFFD for each byte that is no UTF-8; null for NULL */
json_t *json_time(uint64_t real_ns);             /* ISO 8601, UTC */
json_t *json_rank(int64_t rank);                 /* null for PROCESS_NO_RANK */
json_t *json_totals(const struct model_totals *t);
json_t *json_fold(const struct model_fold *f);        /* null if nothing was folded */
json_t *json_estimated(const struct model_totals *t); /* in which range what is alive is; null if it is exact */
json_t *json_young(const struct model_fold *f);       /* null if no blocks were recorded as totals */
json_t *json_frame(const struct frame *f);
json_t *json_stack(struct stacks *s, uint32_t stack, unsigned flags);

/* [{"path", "why"}] of modules whose files could not be read. Called after all stacks were looked up. */
json_t *json_unread(struct stacks *s);

/* {"bytes", "blocks", "category", "stack", ...} of one owner: the stack is that of its largest part. */
json_t *json_owner(struct stacks *s, const struct owner *o, enum model_kind kind, unsigned flags);

/* For a list that is cut short: sets LIST_total, and LIST_left_out with "count" and "bytes". */
void json_set_left_out(json_t *o, const char *list, size_t total, size_t left_out, uint64_t bytes);

/* Print a value, over several lines or on one, and release it. 0, or an error if it is NULL, so if there was no memory.
 * Characters that a terminal would not show (format/text.h) are printed as \uXXXX. */
int json_print(json_t *root);
int json_print_line(json_t *object);
int json_print_members(json_t *object); /* on one line, what stands between its braces */

/* What json_print_line() prints, but for the line's end. Releases; allocated, NULL when there is no memory. */
char *json_line_text(json_t *object);

/* Prints a text as a JSON string, with the same escapes. */
void json_print_text(const char *text);

#endif
