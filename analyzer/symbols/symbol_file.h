/* DIR/symbols: what the addresses of a trace are, for machines without its programs and libraries. */
#ifndef MT_SYMBOLS_SYMBOL_FILE_H
#define MT_SYMBOLS_SYMBOL_FILE_H

#include "analyzer/symbols/redact.h"
#include "analyzer/symbols/symbols.h"

/* Hands all of it to symbols_add_known(); with NULL it is only checked. Returns 0, also when there is no such file, or
 * an error that names the file and the offset; then some of it may be known already, but nothing wrong. */
int symbol_file_read(struct symbols *, const char *dir);

/* What the file would hold of symbols_places(), to be freed; with names redacted, if `redact` is not NULL. */
int symbol_file_make(const struct symbols *, struct redact *redact, void **bytes, size_t *count);

/* Replaces DIR/symbols by symbols_places(). */
int symbol_file_write(const struct symbols *, const char *dir);

#endif
