/* Writing a packed trace (reader/packed.h): a tar file under zstd, the same bytes for the same trace. */
#ifndef MT_REPORT_PACK_H
#define MT_REPORT_PACK_H

#include "analyzer/reader/file.h"
#include "analyzer/symbols/redact.h"

#include <stdio.h>

struct pack;

/* 0 or an error. pack_close() says whether all was written to `to`, which stays open; `whole`: else nothing more is
 * written. */
int pack_open(struct pack **out, FILE *to, const char *path);
int pack_close(struct pack *p, bool whole);

/* A file of `bytes` bytes, from memory or from where an open file stands. */
int pack_add_bytes(struct pack *p, const char *name, const void *bytes, size_t n);
int pack_add_stream(struct pack *p, const char *name, FILE *from);
int pack_add_file(struct pack *p, const char *name, const struct file *from);

/* pack_redact.c. A file of a trace, by its name there, with its names redacted, into `to`. 1 = it has no names, and
 * nothing was written. *samples_end: between `samples` and `samples.open` of a trace; 0 at first. */
int pack_redact_file(struct redact *r, const char *name, const struct file *from, FILE *to, uint64_t *samples_end);

#endif
