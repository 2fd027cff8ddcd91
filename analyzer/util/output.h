/*
 * What goes on the screen: numbers for humans, tables that fit, colours only where they are seen.
 *
 * Text from a trace (names, paths) may hold anything until print() prints it: analyzer/util/print.h.
 */
#ifndef MT_UTIL_OUTPUT_H
#define MT_UTIL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the terminal ---- */

bool output_is_terminal(void); /* stdout */
int output_width(void);        /* columns; where stdout is no terminal $COLUMNS, else what was assumed, else 100 */
int output_rows(void);         /* lines; where stdout is no terminal $LINES, else 24 */

/* The columns where nobody says how many there are. */
void output_assume_width(int columns);

enum output_style { STYLE_NONE, STYLE_HEAD, STYLE_BAD, STYLE_FAINT };

/* Escape sequences, or "" where there are no colours. */
const char *output_begin(enum output_style);
const char *output_end(enum output_style);
bool output_is_escape(const char *text); /* is it what one of these returned, which is told by its address? */

/* From here on stdout and stderr are for eyes: where the locale's characters are not UTF-8, all others than ASCII are
 * printed as one of ASCII each, that looks alike or is '?'. What is for programs (JSON, CSV, dumps) is UTF-8
 * everywhere. */
void output_screen(void);

/* The character of ASCII for the one that begins at `s`, of `length` bytes. */
char output_ascii(const char *s, int length);

/* "reading 2.0 M events ... 45 %" on stderr, if that is a terminal and reading takes longer than a second from the
 * start on; at most ten times a second. Fits model_query.on_progress. The end takes it away. */
void output_progress_start(bool quiet);
void output_progress(double done, uint64_t events);
/* "looking up", 300, "frames" */
void output_progress_of(const char *doing, uint64_t count, const char *what, double done);
void output_progress_end(void);

/* ---- numbers; all write into the caller's buffer and return it ---- */

struct number {
	char text[32];
};

#define BYTES(n)      (output_bytes(&(struct number){ "" }, n))
#define COUNT(n)      (output_count(&(struct number){ "" }, n))
#define EXACT(n)      (output_exact(&(struct number){ "" }, n))
#define PERCENT(a, b) (output_percent(&(struct number){ "" }, a, b))
#define DURATION(n)   (output_duration(&(struct number){ "" }, n))
#define WALL(n)       (output_wall(&(struct number){ "" }, n))

const char *output_bytes(struct number *, uint64_t bytes); /* 12.3 MiB */
const char *output_count(struct number *, uint64_t count); /* 1,234,567 or 123.4 M */
const char *output_exact(struct number *, uint64_t count); /* all digits, grouped */
const char *output_percent(struct number *, uint64_t part, uint64_t all);
const char *output_duration(struct number *, uint64_t ns); /* 0.123 s, 12.3 s, 00:41:12 */

const char *output_wall(struct number *, uint64_t real_ns); /* 2026-01-31T12:00:05Z */

/* Sizes of the model's bin i: "32-63", "1-2K". Allocated, NULL when there is no memory. */
char *output_size_class(unsigned bin);

/* ---- text; allocated, NULL when there is no memory ---- */

char *output_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Columns it takes once it is printed. */
int output_columns(const char *text);

/* The same text in at most `columns`: its middle becomes "..". */
char *output_fit(const char *text, int columns);

/* The same text in at most `columns`: its beginning becomes "..". What is last in the name of a function or file says
 * most. "< " before it is kept. */
char *output_tail(const char *text, int columns);

/* The same text in at most `columns`: its end becomes "..". */
char *output_cut(const char *text, int columns);

/* Prints it as one line that fits, and frees it. NULL = no memory: an empty one. */
void output_line(enum output_style style, char *text);

/* The same, shortened by output_fit(); NULL prints nothing. */
void output_fit_line(enum output_style style, char *text);

/* The same, in as many lines as it takes: further ones stand two columns behind its first word. */
void output_whole_line(enum output_style style, char *text);

/* The same with the first of the texts that fits, else the last; frees them. */
void output_first_line(enum output_style style, char **texts, int count);

/* Prints text in words from column `indent` on, in at most `most` lines. `first` is how much of the first line it may
 * have, where the caller has printed something already; `figures` (or NULL) stand behind that part. Returns the lines.
 * */
unsigned output_wrapped(const char *text, int indent, unsigned most, int first, const char *figures);

/* One character per value, `max` the highest bar. */
char *output_sparkline(const uint64_t *values, size_t count, uint64_t max);

/* ---- tables ---- */

enum align { LEFT, RIGHT };

struct column {
	const char *title;
	enum align align;
	/* what it does in a table that is too wide: false = it stays, true = it gets narrower, WORTH(n) = it
	 * is left out */
	int gives;
};

/* Of a column: those with the lowest number are left out first, and all of them before one gets narrower. */
#define WORTH(n) ((n) + 1)

struct table;

/* `columns` must outlive the table; `indent` spaces stand before each row. */
struct table *table_new(const struct column *columns, int count, int indent);

/* As many strings as columns; copied. NULL is an empty cell. */
void table_row(struct table *, const char *const *cells);

/* Leaves out columns that are worth less than that, also where there is room. */
void table_keep(struct table *, int worth);

/* Leaves out one column. */
void table_hide(struct table *, int column);

/* A line under the latest row, over all columns, faint, behind `indent` more spaces. */
void table_note(struct table *, int indent, const char *text);

/* Prints, without titles if all are NULL, and frees. */
void table_print(struct table *);

#endif
