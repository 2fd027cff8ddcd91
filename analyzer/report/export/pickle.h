/*
 * A writer of Python's pickle format, protocol 4. It uses only the few opcodes that readers other than Python know too
 * (PyTorch's viewer in the browser refuses protocol 5, for one): no globals, calls or frames, and no 8-byte lengths. A
 * value that is memoized is written once and then referred to by its number.
 *
 *   struct pickle p;  pickle_open(&p);
 *   pickle_dict(&p);
 *   pickle_text(&p, "sizes"); pickle_list(&p); pickle_int(&p, 17); pickle_append(&p);
 *   pickle_dict_end(&p);
 *   int e = pickle_close(&p);                   also behind an error
 *
 * Output goes through print_as_is(). Texts must be UTF-8. If there was no memory, pickle_close() returns -MT_EMEMORY.
 */
#ifndef MT_REPORT_EXPORT_PICKLE_H
#define MT_REPORT_EXPORT_PICKLE_H

#include <stdbool.h>
#include <stdint.h>

struct pickle {
	uint32_t memoized;         /* how many values */
	struct pickle_text *texts; /* memoized texts */
	struct pickle_key *keys;   /* values memoized by pickle_remember() */
	bool failed;
};

void pickle_open(struct pickle *p);
int pickle_close(struct pickle *p);

void pickle_int(struct pickle *p, uint64_t n);
void pickle_bool(struct pickle *p, bool truth);
void pickle_text(struct pickle *p, const char *text); /* memoized */
void pickle_pair(struct pickle *p, uint64_t a, uint64_t b);

/* Between these two calls: a key, its value, and so on. */
void pickle_dict(struct pickle *p);
void pickle_dict_end(struct pickle *p);

/* Begins a list; pickle_append() is called after each of its values. It has no end. */
void pickle_list(struct pickle *p);
void pickle_append(struct pickle *p);

/* Writes the value that was remembered under `key`. False = there is none, and nothing was written. */
bool pickle_recall(struct pickle *p, const void *key);

/* Remembers the value that was just written under `key`, a pointer of the caller's that is only compared. */
void pickle_remember(struct pickle *p, const void *key);

#endif
