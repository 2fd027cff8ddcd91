/* The file DIR/symbols: functions, files and lines of the addresses in a trace, for machines that lack its programs and
 * libraries. */
#ifndef MT_SYMBOLS_SYMBOL_FILE_H
#define MT_SYMBOLS_SYMBOL_FILE_H

#include "analyzer/symbols/redact.h"
#include "analyzer/symbols/module/symbols.h"

/* Reads the file and passes its contents to symbols_add_known(); with NULL it is only checked. Returns 0, also if there
 * is no such file, or an error that names the file and the offset. What was read before the error is kept; it is
 * valid. */
int symbol_file_read(struct symbols *, const char *dir);

/* Makes the contents of such a file from symbols_places(): *count bytes, to be freed by the caller. Names are redacted
 * unless `redact` is NULL. 0 or -MT_E*. */
int symbol_file_make(const struct symbols *, struct redact *redact, void **bytes, size_t *count);

/* Replaces the file DIR/symbols by one made from symbols_places(). 0 or -MT_E*. */
int symbol_file_write(const struct symbols *, const char *dir);

#endif
