#include "analyzer/util/print.h"

#include "analyzer/util/output.h"
#include "format/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_clean(FILE *to, const char *s)
{
	while (*s) {
		size_t plain = 0;
		while (s[plain] >= ' ' && s[plain] < 0x7f)
			plain++;
		fwrite_unlocked(s, 1, plain, to);
		s += plain;
		if (!*s)
			break;
		struct mt_character c = mt_text_character(s);
		bool shows = mt_text_shows(c.code);
		fwrite(shows ? s : "?", 1, shows ? c.bytes : 1, to);
		s += c.bytes;
	}
}

/* "%-*.3lu"; without one the width is 0, the precision -1. */
struct directive {
	char flags[8];
	int width, precision;
	bool wide; /* an integer of 64 bits */
	char conversion;
};

static int parse_number(const char **at, va_list *args)
{
	char *end;
	if (**at == '*') {
		++*at;
		return va_arg(*args, int);
	}
	int n = (int)strtol(*at, &end, 10);
	*at = end;
	return n;
}

/* Returns what follows it. */
static const char *parse(struct directive *d, const char *at, va_list *args)
{
	size_t flags = strspn(at, "-+ #0");
	*d = (struct directive){ .precision = -1 };
	memcpy(d->flags, at, flags < sizeof(d->flags) ? flags : sizeof(d->flags) - 1);
	at += flags;
	if (isdigit((unsigned char)*at) || *at == '*')
		d->width = parse_number(&at, args);
	if (*at == '.') {
		at++;
		d->precision = parse_number(&at, args);
	}
	for (; *at && strchr("hlzjt", *at); at++)
		d->wide = d->wide || *at != 'h';
	d->conversion = *at;
	return *at ? at + 1 : at;
}

static void put_text(FILE *to, const struct directive *d, const char *s)
{
	if (s && output_is_escape(s)) {
		fputs(s, to);
		return;
	}
	char *part = d->precision >= 0 && s ? strndup(s, (size_t)d->precision) : NULL;
	const char *text = part ? part : s ? s : "";
	bool left = strchr(d->flags, '-') || d->width < 0;
	int pad = d->width ? abs(d->width) - output_columns(text) : 0;
	for (; !left && pad > 0; pad--)
		fputc(' ', to);
	put_clean(to, text);
	for (; pad > 0; pad--)
		fputc(' ', to);
	free(part);
}

/* stdio prints it, with width and precision as arguments; a negative precision is none. */
static void put_number(FILE *to, const struct directive *d, va_list *args)
{
	char format[24];
	bool real = strchr("aAeEfFgG", d->conversion);
	char *end = stpcpy(stpcpy(stpcpy(stpcpy(format, "%"), d->flags), "*.*"), d->wide && !real ? "l" : "");
	memcpy(end, (char[2]){ d->conversion }, 2);
	if (real)
		fprintf(to, format, d->width, d->precision, va_arg(*args, double));
	else if (d->wide)
		fprintf(to, format, d->width, d->precision, va_arg(*args, uint64_t));
	else
		fprintf(to, format, d->width, d->precision, va_arg(*args, unsigned));
}

static void print_to(FILE *to, const char *format, va_list *args)
{
	struct directive d;
	while (*format) {
		size_t n = strcspn(format, "%");
		fwrite(format, 1, n, to);
		format += n;
		if (!*format)
			break;
		format = parse(&d, format + 1, args);
		if (d.conversion == '%')
			fputc('%', to);
		else if (d.conversion == 's')
			put_text(to, &d, va_arg(*args, const char *));
		else if (d.conversion == 'c')
			put_text(to, &d, (char[2]){ (char)va_arg(*args, int) });
		else
			put_number(to, &d, args);
	}
}

static FILE *through_out, *through_err; /* NULL: stdout and stderr themselves */
static FILE *into;                      /* NULL: stdout */

static FILE *standard_output(void)
{
	return through_out ? through_out : stdout;
}

static FILE *output(void)
{
	return into ? into : standard_output();
}

void print_through(FILE *out, FILE *err)
{
	print_flush();
	through_out = out;
	through_err = err;
}

int print_flush(void)
{
	return fflush(standard_output()) == 0 && !ferror(standard_output()) ? 0 : -1;
}

FILE *print_into(FILE *f)
{
	FILE *before = into;
	into = f;
	return before;
}

void print(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (strchr(format, 's'))
		print_to(output(), format, &args);
	else
		vfprintf(output(), format, args);
	va_end(args);
}

void print_text(const char *text)
{
	put_clean(output(), text);
}

static void put_digits(const char *prefix, uint64_t n, unsigned base)
{
	char digits[24], *at = digits + sizeof(digits);
	do {
		*--at = "0123456789abcdef"[n % base];
	} while ((n /= base) != 0);
	size_t before = strlen(prefix);
	at -= before;
	memcpy(at, prefix, before);
	print_as_is(at, (size_t)(digits + sizeof(digits) - at));
}

void print_decimal(uint64_t n)
{
	put_digits("", n, 10);
}

void print_hexadecimal(uint64_t n)
{
	put_digits("0x", n, 16);
}

void print_error(const char *format, ...)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		return;
	va_list args;
	va_start(args, format);
	print_to(f, format, &args);
	va_end(args);
	fclose(f);
	fwrite(text, 1, bytes, through_err ? through_err : stderr);
	free(text);
}

void print_as_is(const char *text, size_t bytes)
{
	fwrite_unlocked(text, 1, bytes, output());
}
