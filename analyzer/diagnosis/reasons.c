#include "analyzer/diagnosis/reasons.h"

#include "analyzer/util/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whole numbers, then others. */
enum unit {
	UNIT_BYTES,
	UNIT_COUNT,
	UNIT_NUMBER,
	UNIT_DURATION,
	UNIT_SECOND,
	UNIT_LENGTH,
	UNIT_TIMES,
	UNIT_PERCENT,
	UNIT_FORECAST,
	UNIT_SHAPE,
	UNIT_HOW,
	UNIT_NAME,
};

static const struct figure_row {
	const char *name;
	enum unit unit;
	size_t offset;
} rows[] = {
#define FIGURE(name, unit) { #name, UNIT_##unit, offsetof(struct figures, name) },
#include "analyzer/diagnosis/reasons.def"
};

static const char *const words_of[] = {
#define REASON(name, words) [REASON_##name] = words,
#include "analyzer/diagnosis/reasons.def"
};

void reasons_add(struct reasons *list, enum reason_kind kind, const struct figures *figures)
{
	struct reason *grown = realloc(list->items, (list->count + 1) * sizeof(*grown));
	if (!grown)
		return;
	list->items = grown;
	grown[list->count++] = (struct reason){ kind, figures ? *figures : (struct figures){ 0 } };
}

void reasons_fini(struct reasons *list)
{
	free(list->items);
	*list = (struct reasons){ 0 };
}

const struct figures *reasons_find(const struct reasons *list, enum reason_kind kind)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == kind)
			return &list->items[i].figures;
	return NULL;
}

/* ---- words --------------------------------------------------------------------------------------------- */

static const struct figure_row *row_of(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!strncmp(rows[i].name, name, length) && !rows[i].name[length])
			return &rows[i];
	return NULL;
}

static void write_freed(FILE *f, char *text)
{
	fputs(text ? text : "", f);
	free(text);
}

static void write_figure(FILE *f, const struct figure_row *row, const struct figures *figures, const char *otherwise,
			 int length)
{
	const void *at = (const char *)figures + row->offset;
	const uint64_t whole = row->unit <= UNIT_DURATION ? *(const uint64_t *)at : 0;
	const double real = row->unit > UNIT_DURATION && row->unit <= UNIT_PERCENT ? *(const double *)at : 0;
	const struct forecast *ends = at;
	const char *name;
	switch (row->unit) {
	case UNIT_BYTES:
		fputs(BYTES(whole), f);
		break;
	case UNIT_COUNT:
		fputs(COUNT(whole), f);
		break;
	case UNIT_NUMBER:
		fprintf(f, "%" PRIu64, whole);
		break;
	case UNIT_DURATION:
		fputs(DURATION(whole), f);
		break;
	case UNIT_SECOND:
	case UNIT_PERCENT:
		fprintf(f, "%.1f", real);
		break;
	case UNIT_LENGTH:
		fprintf(f, "%.2g", real);
		break;
	case UNIT_TIMES:
		fprintf(f, "%.2f", real);
		break;
	case UNIT_FORECAST:
		write_freed(f, forecast_text(ends->x, ends->low, ends->high));
		break;
	case UNIT_SHAPE:
		fputs(growth_name(*(const enum growth_kind *)at), f);
		break;
	case UNIT_HOW:
		write_freed(f, outlook_why_no_leak(*(const enum outlook *)at));
		break;
	case UNIT_NAME:
		name = *(const char *const *)at;
		name ? (void)fputs(name, f) : (void)fprintf(f, "%.*s", length, otherwise);
		break;
	}
}

/* "{site|one site} keeps {bytes}" */
static void write_reason(FILE *f, const char *words, const struct figures *figures)
{
	for (const char *open; (open = strchr(words, '{')); words = strchr(open, '}') + 1) {
		const size_t name = strcspn(open + 1, "|}");
		const char *otherwise = open + 1 + name + (open[1 + name] == '|');
		fwrite(words, 1, (size_t)(open - words), f);
		write_figure(f, row_of(open + 1, name), figures, otherwise, (int)strcspn(otherwise, "}"));
	}
	fputs(words, f);
}

char *reasons_text(const struct reasons *list)
{
	char *text = NULL;
	size_t size;
	FILE *f = list->count ? open_memstream(&text, &size) : NULL;
	for (size_t i = 0; f && i < list->count; i++)
		write_reason(f, words_of[list->items[i].kind], &list->items[i].figures);
	if (f)
		fclose(f);
	return text;
}
