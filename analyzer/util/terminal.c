/* What the terminal is and shows: of output.h what print() needs, too. */
#include "analyzer/util/output.h"

#include "format/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_ROWS 24
#define LEAST_WIDTH  60
#define MOST_WIDTH   1000

bool output_is_terminal(void)
{
	static int known = -1;
	if (known < 0)
		known = isatty(STDOUT_FILENO);
	return known;
}

static int assumed_width = 100;

void output_assume_width(int columns)
{
	assumed_width = columns;
}

/* What the terminal has of it, or who started us says, as `watch` and `less` do. */
static int extent(bool rows, int otherwise)
{
	struct winsize size = { 0 };
	const char *said = getenv(rows ? "LINES" : "COLUMNS");
	if (output_is_terminal() && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row)
		return rows ? size.ws_row : size.ws_col;
	int number = said ? atoi(said) : 0;
	return number > 0 && number <= MOST_WIDTH ? number : otherwise;
}

int output_width(void)
{
	int columns = extent(false, assumed_width);
	return columns < LEAST_WIDTH ? LEAST_WIDTH : columns;
}

int output_rows(void)
{
	return extent(true, DEFAULT_ROWS);
}

static bool has_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return output_is_terminal() && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

static const char *const codes[] = {
	[STYLE_NONE] = "",
	[STYLE_HEAD] = "\033[1m",
	[STYLE_BAD] = "\033[1;31m",
	[STYLE_FAINT] = "\033[2m",
};
static const char code_end[] = "\033[0m";

const char *output_begin(enum output_style style)
{
	return has_colours() ? codes[style] : "";
}

const char *output_end(enum output_style style)
{
	return style != STYLE_NONE && has_colours() ? code_end : "";
}

bool output_is_escape(const char *text)
{
	for (size_t i = STYLE_NONE + 1; i < sizeof(codes) / sizeof(*codes); i++)
		if (text == codes[i])
			return true;
	return text == code_end;
}

int output_columns(const char *text)
{
	int columns = 0;
	while (*text) {
		struct mt_character c = mt_text_character(text);
		columns += mt_text_columns(c.code);
		text += c.bytes;
	}
	return columns;
}
