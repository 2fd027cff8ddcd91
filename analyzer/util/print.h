/*
 * The only way to stdout and stderr. What a format says is ours; what it is given by %s and %c may be anybody's (a
 * trace's names, paths, what somebody typed, an error's text) and is printed so that a terminal shows it and obeys
 * nothing: '?' stands for each character that does not show (format/text.h), newlines among them. So nobody has to
 * think of it, and text may be cut, joined and measured as it is.
 *
 * scripts/layers refuses stdio's functions on stdout and stderr everywhere else.
 */
#ifndef MT_UTIL_PRINT_H
#define MT_UTIL_PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* As printf() on stdout, with %s as above: its width is in columns, NULL is an empty string, and what output_begin()
 * and output_end() return stays as it is. %p and %n it has not. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same on stderr, in one piece. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* All but print_error() goes into f from now on; NULL: to stdout again. Returns where it went before. */
FILE *print_into(FILE *f);

/* From now on what goes to stdout and stderr passes these streams; NULL: it goes there itself. They stay open. */
void print_through(FILE *out, FILE *err);

/* Writes what stdout still holds. 0, or -1 with errno if that failed, or if it had failed before. */
int print_flush(void);

/* print("%s"), print("%" PRIu64) and print("0x%" PRIx64) without a format to read: for what is printed by the million.
 * */
void print_text(const char *text);
void print_decimal(uint64_t n);
void print_hexadecimal(uint64_t n);

/* Prints what is ours, or was made harmless by somebody else: help, JSON, what print() printed into memory. */
void print_as_is(const char *text, size_t bytes);

#endif
