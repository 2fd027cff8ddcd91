/*
 * Python's pickle, protocol 4, with the few opcodes that also other readers know than Python's own (PyTorch's viewer in
 * the browser refuses protocol 5, among others): no globals, no calls, no frames, no strings or numbers of 8-byte
 * lengths. What is memoized is written once and then named by its number.
 *
 *   struct pickle p;  pickle_open(&p);
 *   pickle_dict(&p);
 *   pickle_text(&p, "sizes"); pickle_list(&p); pickle_int(&p, 17); pickle_append(&p);
 *   pickle_dict_end(&p);
 *   int e = pickle_close(&p);                   also behind an error
 *
 * It goes where print_as_is() goes. Texts must be UTF-8. Where there is no memory pickle_close() says so.
 */
#ifndef MT_REPORT_PICKLE_H
#define MT_REPORT_PICKLE_H

#include <stdbool.h>
#include <stdint.h>

struct pickle {
	uint32_t memoized;
	struct pickle_text *texts; /* memoized, by what they say */
	struct pickle_key *keys;   /* the same, of the caller's */
	bool failed;
};

void pickle_open(struct pickle *p);
int pickle_close(struct pickle *p);

void pickle_int(struct pickle *p, uint64_t n);
void pickle_bool(struct pickle *p, bool truth);
void pickle_text(struct pickle *p, const char *text); /* memoized */
void pickle_pair(struct pickle *p, uint64_t a, uint64_t b);

/* Between the two: texts and values by turns. */
void pickle_dict(struct pickle *p);
void pickle_dict_end(struct pickle *p);

/* An empty list; pickle_append() behind each of its values. */
void pickle_list(struct pickle *p);
void pickle_append(struct pickle *p);

/* True: what was remembered under that key stands there now. */
bool pickle_recall(struct pickle *p, const void *key);

/* The value that was just written, from now on under that key. */
void pickle_remember(struct pickle *p, const void *key);

#endif
