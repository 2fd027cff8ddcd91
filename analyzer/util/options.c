#include "analyzer/util/options.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/suggest.h"
#include "format/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SECOND_NS            1000000000ll
#define OPTIONS_MOST_SECONDS 9000000000ll

/* ---- values ------------------------------------------------------------------------------------------------ */

int options_percent(const char *text, double *percent)
{
	size_t n = strspn(text, "0123456789.");
	char *end;
	*percent = strtod(text, &end);
	return n && end == text + n && (!*end || !strcmp(end, "%")) ? 0 : -MT_EUSAGE;
}

static int parse_rows(const char *text, uint64_t *rows)
{
	int e = strcmp(text, "all") ? mt_read_count(text, rows) : 0;
	if (!e && (!strcmp(text, "all") || *rows == 0))
		*rows = OPTIONS_ALL_ROWS;
	return e;
}

static int parse_seconds(const char *text, int64_t *ns)
{
	uint64_t value;
	if (mt_read_duration(text, &value) || value >= (uint64_t)(OPTIONS_MOST_SECONDS * SECOND_NS))
		return -MT_EUSAGE;
	*ns = (int64_t)value;
	return 0;
}

/* 2026-11-21T03:00:00.25Z, 2026-11-21 03:00, with Z as UTC and without as local time. */
static int parse_wall(const char *text, int64_t *ns)
{
	struct tm tm = { .tm_isdst = -1 };
	uint64_t seconds_ns = 0;
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M", &tm);
	if (!rest)
		rest = strptime(text, "%Y-%m-%d %H:%M", &tm);
	if (!rest)
		return -MT_EUSAGE;
	if (*rest == ':') {
		char seconds[32];
		size_t n = strspn(++rest, "0123456789.");
		snprintf(seconds, sizeof(seconds), "%.*s", (int)n, rest);
		rest += n;
		if (mt_read_duration(seconds, &seconds_ns) || seconds_ns >= 61ull * SECOND_NS)
			return -MT_EUSAGE;
	}
	if (*rest && strcmp(rest, "Z"))
		return -MT_EUSAGE;
	time_t minute = *rest == 'Z' ? timegm(&tm) : mktime(&tm);
	if (llabs(minute) > OPTIONS_MOST_SECONDS)
		return -MT_EUSAGE;
	*ns = (int64_t)minute * SECOND_NS + (int64_t)seconds_ns;
	return 0;
}

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* "12.5", "2026-11-21T03:00:00", "peak", "oom:2" ...; text must live as long as *w. */
static int parse_when(const char *text, struct when *w)
{
	*w = (struct when){ .text = text };
	if (!strcmp(text, "peak"))
		w->kind = WHEN_PEAK;
	else if (!strcmp(text, "end"))
		w->kind = WHEN_END;
	else if (!strcmp(text, "oom"))
		w->kind = WHEN_OOM;
	else if (has_prefix(text, "phase:"))
		w->kind = WHEN_PHASE;
	else if (has_prefix(text, "oom:") && !mt_read_count(text + 4, &w->number))
		w->kind = WHEN_OOM;
	else if (has_prefix(text, "step:") && !mt_read_count(text + 5, &w->number))
		w->kind = WHEN_STEP;
	else if (!parse_seconds(text, &w->ns))
		w->kind = WHEN_SECONDS;
	else if (!parse_wall(text, &w->ns))
		w->kind = WHEN_WALL;
	return w->kind == WHEN_UNSET ? -MT_EUSAGE : 0;
}

static const char *const by_names[] = {
	[BY_STACK] = "stack",     [BY_SITE] = "site",         [BY_FUNCTION] = "function", [BY_FILE] = "file",
	[BY_LIBRARY] = "library", [BY_CATEGORY] = "category", [BY_THREAD] = "thread",     [BY_PROCESS] = "process",
	[BY_SIZE] = "size",       [BY_PHASE] = "phase",       [BY_STEP] = "step",         [BY_HOLDER] = "holder",
};

enum { BYS = sizeof(by_names) / sizeof(*by_names), LONGEST_HELP = 512 };

const char *options_by_name(enum by by)
{
	return by_names[by];
}

static bool has_key(const struct option_row *row, unsigned by)
{
	return row->type == OPTION_BY && by < BYS && row->keys & 1u << by;
}

/* "stack, site, function" */
static const char *list_keys(const struct option_row *row, char *out, size_t size)
{
	size_t n = 0;
	*out = '\0';
	for (unsigned i = 1; i < BYS && n < size; i++)
		if (has_key(row, i))
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", by_names[i]);
	return out;
}

static int parse_by(const struct option_row *row, const char *text, enum by *by)
{
	for (unsigned i = 1; i < BYS; i++)
		if (has_key(row, i) && !strcmp(text, by_names[i])) {
			*by = (enum by)i;
			return 0;
		}
	return -MT_EUSAGE;
}

/* text is NULL where the option came without a value. */
static int set_value(const struct option_row *row, void *values, const char *text)
{
	void *at = (char *)values + row->offset;
	switch (row->type) {
	case OPTION_FLAG:
		*(bool *)at = true;
		return 0;
	case OPTION_STRING:
		*(const char **)at = text;
		return 0;
	case OPTION_NUMBER:
		return mt_read_count(text, at);
	case OPTION_ROWS:
		return parse_rows(text, at);
	case OPTION_BYTES:
		return mt_read_bytes(text, at);
	case OPTION_SWITCH:
		if (text && strcmp(text, "0") && strcmp(text, "1"))
			return -MT_EUSAGE;
		*(int *)at = !text || *text == '1';
		return 0;
	case OPTION_DURATION:
		return mt_read_duration(text, at);
	case OPTION_WHEN:
		return parse_when(text, at);
	case OPTION_BY:
		return parse_by(row, text, at);
	}
	return -MT_EUSAGE;
}

/* ---- the command line -------------------------------------------------------------------------------------- */

static const struct option_command *commands;

void options_set_commands(const struct option_command *list)
{
	commands = list;
}

enum { HELP_WIDTH = 80, HELP_LEFT = 26 };

/* Goes on behind what is printed already; further lines are indented. */
static void print_wrapped(const char *text, int left)
{
	int room = HELP_WIDTH - left;
	while ((int)strlen(text) > room) {
		int n = room;
		while (n > 0 && text[n] != ' ')
			n--;
		n = n ? n : room;
		print("%.*s\n%*s", n, text, left, "");
		text += n + (text[n] == ' ');
	}
	print("%s\n", text);
}

const char *options_row_help(const struct option_row *row, char *help, size_t size)
{
	char keys[LONGEST_HELP];
	if (row->type == OPTION_BY)
		snprintf(help, size, "%s: %s", row->help, list_keys(row, keys, sizeof(keys)));
	else
		snprintf(help, size, "%s", row->help);
	return help;
}

static void print_row(const struct option_row *row)
{
	char left[64], help[2 * LONGEST_HELP];
	int n = row->letter ? snprintf(left, sizeof(left), "-%c, ", row->letter) : snprintf(left, sizeof(left), "    ");
	const char *join = row->argument ? (row->type == OPTION_SWITCH ? "=" : " ") : "";
	snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", row->name, join, row->argument ? row->argument : "");
	print("  %-*s ", HELP_LEFT - 3, left);
	print_wrapped(options_row_help(row, help, sizeof(help)), HELP_LEFT);
}

static void put_own(const char *lines)
{
	print_as_is(lines, strlen(lines));
}

void options_help(const struct option_spec *spec)
{
	print("usage: %s\n\n", spec->usage);
	put_own(spec->what);
	print("\n");
	if (spec->examples) {
		print("\n");
		put_own(spec->examples);
	}
	print("\n");
	for (const struct option_row *row = spec->rows; row->name; row++)
		print_row(row);
	print("  -h, --help              this text\n");
	if (spec->more) {
		put_own(spec->more);
		print("\n");
	}
}

static const struct option_row *find_long(const struct option_spec *spec, const char *name, size_t length)
{
	for (const struct option_row *row = spec->rows; row->name; row++)
		if (strlen(row->name) == length && !strncmp(row->name, name, length))
			return row;
	return NULL;
}

static const struct option_row *find_letter(const struct option_spec *spec, char letter)
{
	for (const struct option_row *row = spec->rows; row->name; row++)
		if (row->letter && row->letter == letter)
			return row;
	return NULL;
}

static int usage_error(const char *word, const char *what)
{
	return error_set(MT_EUSAGE, word, ERROR_NO_OFFSET, "%s", what);
}

struct parser {
	const struct option_spec *spec;
	void *values;
	int argc, i;
	char **argv;
};

/* The commands that have such an option, but for this one: "peak, frag". Empty if none has. */
static const char *list_commands(const struct parser *p, const char *name, size_t length, char letter, char *out,
				 size_t size)
{
	size_t n = 0;
	*out = '\0';
	for (const struct option_command *c = commands; c && c->name && n < size; c++) {
		bool has = c->spec != p->spec &&
			   (letter ? find_letter(c->spec, letter) : find_long(c->spec, name, length));
		if (has && *c->help)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", c->name);
	}
	return out;
}

static const char *name_of(const struct option_spec *spec)
{
	const struct option_command *c = commands;
	while (c && c->name && c->spec != spec)
		c++;
	return c && c->name ? c->name : "this command";
}

static int no_option(const struct parser *p, const char *name, size_t length, char letter)
{
	char others[256], typed[64];
	struct suggestion s = { .text = typed };
	snprintf(typed, sizeof(typed), "%.*s", (int)length, name);
	if (letter)
		snprintf(typed, sizeof(typed), "%c", letter);
	if (*list_commands(p, name, length, letter, others, sizeof(others)))
		return error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET, "%s%s is no option of %s, but of %s",
				 letter ? "-" : "--", typed, name_of(p->spec), others);
	for (const struct option_row *row = p->spec->rows; !letter && row->name; row++)
		suggest(&s, row->name);
	if (s.best)
		return error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET, "unknown option '--%s'; did you mean '--%s'?", typed,
				 s.best);
	return error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET, "unknown option '%s%s'", letter ? "-" : "--", typed);
}

static const char *const wanted[] = {
	[OPTION_NUMBER] = "number",
	[OPTION_ROWS] = "number of rows (50, 0 or all)",
	[OPTION_BYTES] = "number of bytes (512K, 1.5G)",
	[OPTION_DURATION] = "time (0.5, 500ms, 2m)",
	[OPTION_SWITCH] = "0 or 1",
	[OPTION_WHEN] = "time (seconds from 0 on, 2026-01-31T12:00, peak, end, oom[:N], step:N, phase:NAME)",
};

static const char *const snapshots[] = { "peak", "end", "oom" };

static int no_value(const struct option_row *row, const char *word, const char *text)
{
	char keys[LONGEST_HELP];
	struct suggestion s = { .text = text };
	for (unsigned i = 1; i < BYS; i++)
		if (has_key(row, i))
			suggest(&s, by_names[i]);
	for (size_t i = 0; row->type == OPTION_WHEN && i < sizeof(snapshots) / sizeof(*snapshots); i++)
		suggest(&s, snapshots[i]);
	if (s.best)
		return error_set(MT_EUSAGE, word, ERROR_NO_OFFSET, "unknown value '%s'; did you mean '%s'?", text,
				 s.best);
	if (row->type == OPTION_BY)
		return error_set(MT_EUSAGE, word, ERROR_NO_OFFSET, "'%s' is none of its keys here, which are %s", text,
				 list_keys(row, keys, sizeof(keys)));
	return error_set(MT_EUSAGE, word, ERROR_NO_OFFSET, "'%s' is no %s", text, wanted[row->type]);
}

static int set_option(struct parser *p, const struct option_row *row, const char *word, const char *text)
{
	bool wants = row->argument && row->type != OPTION_SWITCH;
	if (text && !row->argument)
		return usage_error(word, "takes no value");
	if (wants && !text) {
		if (p->i + 1 >= p->argc)
			return usage_error(word, "needs a value");
		text = p->argv[++p->i];
	}
	return set_value(row, p->values, text) ? no_value(row, word, text ? text : "") : 0;
}

static int parse_long(struct parser *p, const char *word)
{
	const char *name = word + 2, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_row *row = find_long(p->spec, name, length);
	if (!row)
		return no_option(p, name, length, 0);
	return set_option(p, row, word, equals ? equals + 1 : NULL);
}

/* -v, -vx, -n5, -n 5 */
static int parse_letters(struct parser *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const struct option_row *row = find_letter(p->spec, *c);
		if (!row)
			return no_option(p, "", 0, *c);
		if (row->argument && row->type != OPTION_SWITCH)
			return set_option(p, row, word, c[1] ? c + 1 : NULL);
		int e = set_option(p, row, word, NULL);
		if (e)
			return e;
	}
	return 0;
}

/* Moves the words that are no options to the front of argv + 1 and returns how many there are. */
static int parse_words(struct parser *p, int *words)
{
	bool options = true;
	*words = 0;
	for (p->i = 1; p->i < p->argc; p->i++) {
		char *word = p->argv[p->i];
		if (options && !strcmp(word, "--")) {
			options = false;
		} else if (!options || word[0] != '-' || !word[1]) {
			p->argv[1 + (*words)++] = word;
		} else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			options_help(p->spec);
			return 1;
		} else {
			int e = word[1] == '-' ? parse_long(p, word) : parse_letters(p, word);
			if (e)
				return e;
		}
	}
	return 0;
}

int options_parse_rest(const struct option_spec *spec, void *values, int argc, char **argv, int *rest)
{
	struct parser p = { spec, values, argc, 1, argv };
	for (; p.i < argc; p.i++) {
		const char *word = argv[p.i];
		if (!strcmp(word, "--")) {
			p.i++;
			break;
		}
		if (word[0] != '-' || !word[1])
			break;
		if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			options_help(spec);
			return 1;
		}
		int e = word[1] == '-' ? parse_long(&p, word) : parse_letters(&p, word);
		if (e)
			return e;
	}
	*rest = p.i;
	return 0;
}

/* ---- directories ------------------------------------------------------------------------------------------- */

static int take_dirs(struct options *o, int words, char **argv)
{
	o->dirs = calloc((size_t)words + 1, sizeof(*o->dirs));
	if (!o->dirs)
		return error_memory();
	o->ndirs = words;
	for (int i = 0; i < words; i++)
		o->dirs[i] = argv[i];
	return 0;
}

int options_parse(const struct option_spec *spec, void *values, int argc, char **argv)
{
	struct parser p = { spec, values, argc, 1, argv };
	int words;
	int e = parse_words(&p, &words);
	if (e)
		return e;
	if (spec->flags & OPTIONS_NO_DIRS)
		return words ? usage_error(argv[1], "unexpected word") : 0;
	const struct options *o = values;
	if (o->json && o->csv)
		return usage_error("--csv", "not with --json");
	if (!(spec->flags & OPTIONS_TEXT) && !o->json && !o->csv)
		output_screen();
	output_progress_start(o->quiet);
	return take_dirs(values, words, argv + 1);
}

void options_free(struct options *o)
{
	free(o->dirs);
	free(o->newest);
	o->dirs = NULL;
	o->newest = NULL;
}
