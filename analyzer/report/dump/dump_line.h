/* A line of memtrace dump, field by field: text with blanks between them, or a JSON object. */
#ifndef MT_REPORT_DUMP_DUMP_LINE_H
#define MT_REPORT_DUMP_DUMP_LINE_H

#include <stdbool.h>
#include <stdint.h>

/* What all lines are from now on. */
void dump_as_json(bool json);

/* The record, and the process that it is of. */
void dump_begin(const char *record, unsigned process);
void dump_begin_alone(const char *record); /* of none */
void dump_end(void);

void dump_number(const char *key, uint64_t n);
void dump_signed(const char *key, int32_t n);
void dump_address(const char *key, uint64_t n); /* in hexadecimal; in JSON as a number */
void dump_word(const char *key, const char *s); /* without blanks */
void dump_text(const char *key, const char *s); /* quoted as in JSON */
void dump_none(const char *key);
void dump_text_or_none(const char *key, const char *s); /* NULL: none */
void dump_hex(const char *key, const unsigned char *bytes, unsigned n);

/* A word of the trace's own, without blanks: they separate words. */
void dump_function(const char *key, const char *s);

/* `strings` ends with NULL. */
void dump_list(const char *key, const char *const *strings);

/* A label that only text has: in JSON the keys say as much. */
void dump_label(const char *s);

#endif
