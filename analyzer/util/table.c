/* Tables of output.h: cells are kept until all widths are known, then the flexible columns give way. */
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP         2 /* between columns */
#define MAX_COLUMNS 16
#define NARROWEST   12   /* of a flexible column */
#define LEFT_OUT    (-1) /* width of a column that is not printed */

struct row {
	char *note; /* then it has no cells */
	int indent;
	char *cells[MAX_COLUMNS];
};

struct table {
	const struct column *columns;
	int count, indent, least_worth, hidden; /* hidden: the column, or -1 */
	struct row *rows;
	size_t used, room;
};

struct table *table_new(const struct column *columns, int count, int indent)
{
	struct table *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->columns = columns;
	t->count = count < MAX_COLUMNS ? count : MAX_COLUMNS;
	t->indent = indent;
	t->hidden = -1;
	return t;
}

static struct row *add_row(struct table *t)
{
	if (!t)
		return NULL;
	if (t->used == t->room) {
		size_t room = t->room ? t->room * 2 : 32;
		struct row *rows = realloc(t->rows, room * sizeof(*rows));
		if (!rows)
			return NULL;
		t->rows = rows;
		t->room = room;
	}
	t->rows[t->used] = (struct row){ 0 };
	return &t->rows[t->used++];
}

void table_row(struct table *t, const char *const *cells)
{
	struct row *row = add_row(t);
	for (int i = 0; row && i < t->count; i++)
		row->cells[i] = cells[i] ? strdup(cells[i]) : NULL;
}

void table_note(struct table *t, int indent, const char *text)
{
	struct row *row = add_row(t);
	if (row) {
		row->note = strdup(text);
		row->indent = indent;
	}
}

void table_keep(struct table *t, int worth)
{
	if (t)
		t->least_worth = worth;
}

void table_hide(struct table *t, int column)
{
	if (t)
		t->hidden = column;
}

static int sum(const struct table *t, const int *widths)
{
	int all = t->indent - GAP;
	for (int i = 0; i < t->count; i++)
		all += widths[i] == LEFT_OUT ? 0 : GAP + widths[i];
	return all;
}

static bool has_worth(const struct column *c)
{
	return c->gives > true;
}

/* The column that is worth least, of such the last. */
static bool leave_out(const struct table *t, int *widths)
{
	int least = -1;
	for (int i = 0; i < t->count; i++)
		if (has_worth(&t->columns[i]) && widths[i] != LEFT_OUT &&
		    (least < 0 || t->columns[i].gives <= t->columns[least].gives))
			least = i;
	if (least >= 0)
		widths[least] = LEFT_OUT;
	return least >= 0;
}

static int narrowest(const struct column *c)
{
	int title = c->title ? output_columns(c->title) : 0;
	return title > NARROWEST ? title : NARROWEST;
}

/* The widest flexible column gives way first. */
static bool narrow(const struct table *t, int *widths)
{
	int widest = -1;
	for (int i = 0; i < t->count; i++)
		if (t->columns[i].gives == true && widths[i] > narrowest(&t->columns[i]) &&
		    (widest < 0 || widths[i] > widths[widest]))
			widest = i;
	if (widest >= 0)
		widths[widest]--;
	return widest >= 0;
}

/* Names as wide as they are, as far as leaving out columns helps that. */
static void fit(const struct table *t, int *widths)
{
	for (int i = 0; i < t->count; i++)
		if (i == t->hidden || (has_worth(&t->columns[i]) && t->columns[i].gives < WORTH(t->least_worth)))
			widths[i] = LEFT_OUT;
	while (sum(t, widths) > output_width() && (leave_out(t, widths) || narrow(t, widths)))
		;
}

static void measure(const struct table *t, int *widths)
{
	for (int i = 0; i < t->count; i++) {
		widths[i] = t->columns[i].title ? output_columns(t->columns[i].title) : 0;
		for (size_t r = 0; r < t->used; r++) {
			const char *cell = t->rows[r].cells[i];
			int width = cell ? output_columns(cell) : 0;
			widths[i] = width > widths[i] ? width : widths[i];
		}
	}
	fit(t, widths);
}

static void print_cells(const struct table *t, const int *widths, char *const *cells, enum output_style style)
{
	int last = t->count - 1, pending = t->indent;
	while (last >= 0 && (widths[last] == LEFT_OUT || !cells[last] || !*cells[last]))
		last--; /* no blanks at the end of a line */
	print("%s", output_begin(style));
	for (int i = 0; i <= last; i++) {
		if (widths[i] == LEFT_OUT)
			continue;
		char *text = output_tail(cells[i] ? cells[i] : "", widths[i]);
		int pad = widths[i] - (text ? output_columns(text) : 0);
		if (t->columns[i].align == RIGHT)
			pending += pad;
		print("%*s%s", pending, "", text ? text : "");
		pending = GAP + (t->columns[i].align == LEFT ? pad : 0);
		free(text);
	}
	print("%s\n", output_end(style));
}

static void print_note(const struct table *t, const struct row *row)
{
	int indent = t->indent + row->indent;
	char *text = output_cut(row->note, output_width() - indent);
	print("%s%*s%s%s\n", output_begin(STYLE_FAINT), indent, "", text ? text : "", output_end(STYLE_FAINT));
	free(text);
}

static void print_titles(const struct table *t, const int *widths)
{
	char *titles[MAX_COLUMNS];
	bool any = false;
	for (int i = 0; i < t->count; i++) {
		titles[i] = (char *)t->columns[i].title;
		any |= titles[i] != NULL;
	}
	if (any)
		print_cells(t, widths, titles, STYLE_HEAD);
}

static void table_free(struct table *t)
{
	for (size_t r = 0; r < t->used; r++) {
		free(t->rows[r].note);
		for (int i = 0; i < t->count; i++)
			free(t->rows[r].cells[i]);
	}
	free(t->rows);
	free(t);
}

void table_print(struct table *t)
{
	int widths[MAX_COLUMNS];
	if (!t)
		return;
	measure(t, widths);
	print_titles(t, widths);
	for (size_t r = 0; r < t->used; r++) {
		if (t->rows[r].note)
			print_note(t, &t->rows[r]);
		else
			print_cells(t, widths, t->rows[r].cells, STYLE_NONE);
	}
	table_free(t);
}
