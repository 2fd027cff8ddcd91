/* Writing a packed trace (reader/files/packed.h): a tar file, compressed by zstd. The same trace gives the same bytes.
 * Functions return 0 or -MT_E*, unless something else is said. */
#ifndef MT_PACK_PACK_H
#define MT_PACK_PACK_H

#include "analyzer/reader/files/file.h"
#include "analyzer/symbols/redact.h"

#include <stdio.h>

struct pack;

/* Packs into `to`, which the caller closes; `path` is its name in errors. pack_close() writes the end and tells whether
 * all was written; without `whole` it only frees, as after an error. */
int pack_open(struct pack **out, FILE *to, const char *path);
int pack_close(struct pack *p, bool whole);

/* Add a file, from memory, from the position of an open stream, or from a file of a trace. */
int pack_add_bytes(struct pack *p, const char *name, const void *bytes, size_t n);
int pack_add_stream(struct pack *p, const char *name, FILE *from);
int pack_add_file(struct pack *p, const char *name, const struct file *from);

/* pack_redact.c. Copies a file of a trace, `name` there, into `to`, with all names in it redacted. 1 = the file holds
 * no names, and nothing was written. *samples_end carries a size from `samples` to `samples.open` of one trace; it is 0
 * before the first file. */
int pack_redact_file(struct redact *r, const char *name, const struct file *from, FILE *to, uint64_t *samples_end);

#endif
