#include "analyzer/util/output.h"

#include "analyzer/util/memory/memory.h"
#include "analyzer/util/memory/whole.h"
#include "analyzer/util/print.h"
#include "format/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- ASCII --------------------------------------------------------------------------------------------- */

/* As the C library finds it, but without asking whether the locale is installed. */
static bool is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *locale = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !(locale && *locale); i++)
		locale = getenv(names[i]);
	return locale && (strcasestr(locale, ".utf-8") || strcasestr(locale, ".utf8"));
}

char output_ascii(const char *s, int length)
{
	static const struct {
		const char *text;
		char ascii;
	} alike[] = {
		{ "▁", '_' }, { "▂", '.' }, { "▃", ':' }, { "▄", '-' }, { "▅", '=' }, { "▆", '+' },
		{ "▇", '*' }, { "█", '#' }, { "·", '.' }, { "░", '-' }, { "▒", '+' }, { "▓", '*' },
		{ "│", '|' }, { "┤", '+' }, { "└", '+' }, { "─", '-' },
	};
	if (length == 1)
		return (unsigned char)*s < 0x80 ? *s : '?';
	for (size_t i = 0; i < sizeof(alike) / sizeof(*alike); i++)
		if (!strncmp(s, alike[i].text, (size_t)length))
			return alike[i].ascii;
	return '?';
}

/* A stream that is ASCII, and the character that the latest write ended in. */
struct ascii {
	int fd;
	char text[5];
	int have;
};

static int length_of(unsigned char first)
{
	return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static ssize_t write_ascii(void *cookie, const char *text, size_t size)
{
	struct ascii *a = cookie;
	char out[BUFSIZ];
	for (size_t i = 0; i < size;) {
		size_t n = 0;
		for (; i < size && n + 2 < sizeof(out); i++) {
			if (a->have && (text[i] & 0xc0) != 0x80) { /* it ended too early */
				out[n++] = '?';
				a->have = 0;
			}
			a->text[a->have++] = text[i];
			int length = length_of((unsigned char)*a->text);
			if (a->have < length)
				continue;
			a->text[length] = '\0';
			for (int columns = mt_text_columns(mt_text_character(a->text).code); columns > 0; columns--)
				out[n++] = output_ascii(a->text, length);
			a->have = 0;
		}
		if (!whole_write(a->fd, out, n))
			return 0; /* stdio's word for an error */
	}
	return (ssize_t)size;
}

static FILE *ascii_stream(struct ascii *a, int mode)
{
	FILE *f = fopencookie(a, "w", (cookie_io_functions_t){ .write = write_ascii });
	if (f)
		setvbuf(f, NULL, mode, mode == _IONBF ? 0 : BUFSIZ);
	return f;
}

void output_screen(void)
{
	static struct ascii out = { .fd = STDOUT_FILENO }, err = { .fd = STDERR_FILENO };
	static bool done;
	if (done || is_utf8())
		return;
	done = true;
	print_through(ascii_stream(&out, output_is_terminal() ? _IOLBF : _IOFBF), ascii_stream(&err, _IONBF));
}

/* ---- progress ------------------------------------------------------------------------------------------ */

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct {
	double start, last; /* start 0: nothing is shown */
	bool shown;
} progress;

void output_progress_start(bool quiet)
{
	const char *term = getenv("TERM");
	bool shows = !quiet && isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
	progress.start = shows ? seconds() : 0;
}

void output_progress(double done, uint64_t events)
{
	output_progress_of("reading", events, "events", done);
}

void output_progress_of(const char *doing, uint64_t count, const char *what, double done)
{
	double now = progress.start ? seconds() : 0;
	if (!progress.start || now - progress.start < 1 || now - progress.last < 0.1)
		return;
	char text[32];
	snprintf(text, sizeof(text), count < 1000000 ? "%.0f" : "%.1f M",
		 count < 1000000 ? (double)count : (double)count / 1e6);
	print_error("\r%s %s %s ... %.0f %%\033[K", doing, text, what, done * 100);
	progress.shown = true;
	progress.last = now;
}

void output_progress_end(void)
{
	if (progress.shown)
		print_error("\r\033[K");
	progress.shown = false;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

const char *output_bytes(struct number *out, uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes / 1024;
	size_t unit = 0;
	if (bytes < 1024) {
		snprintf(out->text, sizeof(out->text), "%" PRIu64 " B", bytes);
		return out->text;
	}
	while (value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(*units)) {
		value /= 1024;
		unit++;
	}
	snprintf(out->text, sizeof(out->text), "%.*f %s", unit >= 2 ? 2 : 1, value, units[unit]);
	return out->text;
}

const char *output_exact(struct number *out, uint64_t count)
{
	char digits[24], *to = out->text;
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return out->text;
}

const char *output_count(struct number *out, uint64_t count)
{
	if (count >= 10000000000u)
		snprintf(out->text, sizeof(out->text), "%.1f G", (double)count / 1e9);
	else if (count >= 10000000u)
		snprintf(out->text, sizeof(out->text), "%.1f M", (double)count / 1e6);
	else
		output_exact(out, count);
	return out->text;
}

const char *output_percent(struct number *out, uint64_t part, uint64_t all)
{
	snprintf(out->text, sizeof(out->text), "%.1f", all ? 100.0 * (double)part / (double)all : 0.0);
	return out->text;
}

const char *output_duration(struct number *out, uint64_t ns)
{
	uint64_t s = ns / 1000000000u;
	if (s >= 100)
		snprintf(out->text, sizeof(out->text), "%02" PRIu64 ":%02u:%02u", s / 3600, (unsigned)(s / 60 % 60),
			 (unsigned)(s % 60));
	else
		snprintf(out->text, sizeof(out->text), "%.*f s", s >= 10 ? 1 : s >= 1 ? 2 : 3, (double)ns / 1e9);
	return out->text;
}

const char *output_wall(struct number *out, uint64_t real_ns)
{
	struct tm tm;
	time_t seconds = (time_t)(real_ns / 1000000000u);
	if (!gmtime_r(&seconds, &tm) || !strftime(out->text, sizeof(out->text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		*out->text = '\0';
	return out->text;
}

static char *size_text(uint64_t size)
{
	static const char units[] = " KMGTPE";
	size_t unit = 0;
	while (size >= 1024 && size % 1024 == 0 && unit + 1 < sizeof(units) - 1) {
		size /= 1024;
		unit++;
	}
	return unit ? output_format("%" PRIu64 "%c", size, units[unit]) : output_format("%" PRIu64, size);
}

char *output_size_class(unsigned bin)
{
	if (bin <= 1)
		return output_format("%u", bin);
	uint64_t low = 1ull << (bin - 1);
	if (bin <= 10)
		return output_format("%" PRIu64 "-%" PRIu64, low, 2 * low - 1);
	char *from = size_text(low), *to = size_text(2 * low);
	char *text = output_format("%s-%s", from ? from : "?", to ? to : "?");
	free(from);
	free(to);
	return text;
}

/* ---- text ---------------------------------------------------------------------------------------------- */

char *output_format(const char *format, ...)
{
	char *text;
	va_list args;
	va_start(args, format);
	int n = vasprintf(&text, format, args);
	va_end(args);
	return n < 0 ? NULL : mem_adopt(text, (size_t)n + 1);
}

/* Behind as much of the text as fits into so many columns. */
static const char *behind(const char *text, int columns)
{
	while (*text) {
		struct mt_character c = mt_text_character(text);
		columns -= mt_text_columns(c.code);
		if (columns < 0)
			break;
		text += c.bytes;
	}
	return text;
}

/* As much of the text's end as fits into so many columns. */
static const char *ending(const char *text, int columns)
{
	for (int width = output_columns(text); width > columns;) {
		struct mt_character c = mt_text_character(text);
		width -= mt_text_columns(c.code);
		text += c.bytes;
	}
	return text;
}

char *output_fit(const char *text, int columns)
{
	if (output_columns(text) <= columns)
		return strdup(text);
	if (columns < 8)
		return strndup(text, (size_t)(behind(text, columns) - text));
	int right = (columns - 2) / 2, left = columns - 2 - right;
	return output_format("%.*s..%s", (int)(behind(text, left) - text), text, ending(text, right));
}

char *output_tail(const char *text, int columns)
{
	bool arrow = strncmp(text, "< ", 2) == 0;
	if (output_columns(text) <= columns || columns < 8)
		return output_fit(text, columns);
	return output_format("%s..%s", arrow ? "< " : "", ending(text, columns - (arrow ? 4 : 2)));
}

char *output_cut(const char *text, int columns)
{
	if (output_columns(text) <= columns)
		return strdup(text);
	return output_format("%.*s..", (int)(behind(text, columns > 2 ? columns - 2 : 0) - text), text);
}

void output_line(enum output_style style, char *text)
{
	char *fitted = text ? output_cut(text, output_width()) : NULL;
	print("%s%s%s\n", output_begin(style), fitted, output_end(style));
	free(fitted);
	free(text);
}

void output_fit_line(enum output_style style, char *text)
{
	char *fitted = text ? output_fit(text, output_width()) : NULL;
	if (fitted)
		print("%s%s%s\n", output_begin(style), fitted, output_end(style));
	free(fitted);
	free(text);
}

void output_first_line(enum output_style style, char **texts, int count)
{
	int chosen = 0;
	while (chosen + 1 < count && (!texts[chosen] || output_columns(texts[chosen]) > output_width()))
		chosen++;
	for (int i = 0; i < count; i++)
		if (i != chosen)
			free(texts[i]);
	output_line(style, texts[chosen]);
}

/* Between a number and its unit, or what it counts. */
static bool belongs_together(const char *text, size_t at)
{
	return at && isdigit((unsigned char)text[at - 1]) && isalpha((unsigned char)text[at + 1]);
}

/* How many bytes of `text` fit into so many columns without cutting a word or a figure, if it can be helped. */
static size_t breaking(const char *text, int columns)
{
	size_t at = 0, last = 0;
	while (text[at]) {
		struct mt_character c = mt_text_character(text + at);
		columns -= mt_text_columns(c.code);
		if (columns < 0)
			break;
		if (text[at] == ' ' && !belongs_together(text, at))
			last = at;
		at += c.bytes;
	}
	return !text[at] ? at : last ? last : at;
}

/* The last line of a text that goes on. A list is cut behind a whole item, if at least half of the line is kept. */
static char *last_line(const char *text, int columns)
{
	char *line = output_cut(text, columns), *end = line;
	for (char *comma = line; comma && (comma = strstr(comma, ", ")) != NULL; comma++)
		end = comma - line >= columns / 2 ? comma + 2 : end;
	if (end != line)
		strcpy(end, "..");
	return line;
}

unsigned output_wrapped(const char *text, int indent, unsigned most, int first, const char *figures)
{
	const char *at = text ? text : "";
	unsigned lines = 0;
	do {
		int columns = lines ? output_width() - indent : first;
		size_t n = breaking(at, columns);
		char *part = lines + 1 == most && at[n] ? last_line(at, columns) : strndup(at, n);
		print("%*s%s", lines ? indent : 0, "", part);
		if (!lines && figures)
			print("%*s%s", columns - output_columns(part ? part : ""), "", figures);
		print("\n");
		free(part);
		at += n;
		at += *at == ' ';
		lines++;
	} while (*at && lines < most);
	return lines;
}

void output_whole_line(enum output_style style, char *text)
{
	const int indent = text ? (int)strspn(text, " ") : 0;
	if (!text)
		return;
	print("%s%*s", output_begin(style), indent, "");
	output_wrapped(text + indent, indent + 2, UINT_MAX, output_width() - indent, NULL);
	print("%s", output_end(style));
	free(text);
}

char *output_sparkline(const uint64_t *values, size_t count, uint64_t max)
{
	static const char *const bars[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	char *line = malloc(count * 3 + 1), *end = line;
	if (!line)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		double part = max ? (double)values[i] / (double)max : 0;
		int bar = values[i] == 0 ? 0 : 1 + (int)(part * 7 + 0.5);
		end = stpcpy(end, bars[bar > 8 ? 8 : bar]);
	}
	*end = '\0';
	return line;
}
