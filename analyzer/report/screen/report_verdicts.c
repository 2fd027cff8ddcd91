/* What the report says about causes: WHY, what was alive, phases, what to do, and what is not known. Each returns its
 * lines. */
#include "analyzer/report/screen/report.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORTH_A_NOTE   50 /* of a device: that part of it */
#define MOST_HELD      4
#define LINES_NAMED    3
#define LEAST_ALIVE    6 /* lines, without those by line of the program */
#define EVIDENCE_LINES 4
#define FEW_LINES      (output_width() < 100 ? 3 : 2)
#define ADVICE_LINES   (output_width() < 100 ? 4 : 3)
#define MOST_BRIEF     2 /* causes of which the summary says why; others are named */
#define MOST_PHASES    6
#define KIND_COLUMNS   21
#define FIGURE_COLUMNS 22

/* As output_wrapped(). Frees text; NULL is "". */
static unsigned print_wrapped(char *text, int indent, unsigned most, int first, const char *figures)
{
	unsigned lines = output_wrapped(text ? text : "", indent, most, first, figures);
	free(text);
	return lines;
}

static unsigned print_reasons(const struct reasons *why, int indent, unsigned most, int first, const char *figures)
{
	return print_wrapped(reasons_text(why), indent, most, first, figures);
}

static void print_heading(const char *text, const char *rest)
{
	print("\n%s%s%s%s\n", output_begin(STYLE_HEAD), text, output_end(STYLE_HEAD), rest);
}

/* ---- WHY ----------------------------------------------------------------------------------------------- */

const struct evidence_device *report_device(const struct report *r)
{
	const struct diagnosis *diagnosis = r->analysis.diagnosis;
	const struct evidence_device *failed = NULL;
	for (size_t i = 0; i < diagnosis->verdicts.held_count; i++)
		if (diagnosis->verdicts.held[i].device)
			return diagnosis->verdicts.held[i].device;
	for (size_t i = 0; i < diagnosis->evidence.devices.count; i++)
		if (diagnosis->evidence.devices.items[i].request.failed)
			failed = &diagnosis->evidence.devices.items[i];
	return failed;
}

char *report_evidence(const struct report *r, const struct verdict *v)
{
	const struct evidence_device *shown = report_device(r);
	char *text = reasons_text(&v->evidence);
	if (!text || !shown || !v->device || v->device == shown || strstr(text, v->device->name))
		return text;
	char *named = output_format("%s: %s", v->device->name, text);
	free(text);
	return named;
}

/* `number`: of a verdict; 0 = a fact. */
static unsigned print_held(const struct report *r, const struct verdict *v, unsigned number)
{
	char *figures = output_format("%10s   %s", BYTES(v->bytes), certainty_name(verdict_certainty(v->confidence)));
	char count[12] = " ";
	int first = output_width() - KIND_COLUMNS - FIGURE_COLUMNS;
	if (number)
		snprintf(count, sizeof(count), "%u", number);
	print("%s  %s %-*s%s", number ? output_begin(STYLE_BAD) : "", count, KIND_COLUMNS - 4, verdict_title(v->kind),
	      number ? output_end(STYLE_BAD) : "");
	unsigned lines = print_wrapped(report_evidence(r, v), KIND_COLUMNS, EVIDENCE_LINES, first, figures);
	free(figures);
	return lines;
}

bool report_is_trouble(const struct report *r)
{
	return r->analysis.diagnosis->verdicts.held_count > 0 || report_device(r) || report_kills(r) ||
	       verdicts_died(&r->analysis.diagnosis->evidence);
}

/* Kinds alone: all, or those about the device, or the host. How many. */
static unsigned write_kinds(FILE *f, const char *before, const struct verdict *list, size_t count,
			    const struct evidence_device *d, bool all, bool open)
{
	unsigned kinds = 0;
	for (size_t i = 0; i < count; i++)
		if ((all || list[i].device == d) && verdict_is_open(&list[i]) == open)
			fprintf(f, "%s%s", kinds++ ? ", " : before, verdict_title(list[i].kind));
	return kinds;
}

/* In one sentence, those that are open at its end. */
static unsigned print_kinds(const char *before, const struct verdict *list, size_t count,
			    const struct evidence_device *d, bool all)
{
	char *text = NULL;
	size_t size;
	unsigned lines = 0;
	FILE *f = open_memstream(&text, &size);
	if (f) {
		const unsigned kinds = write_kinds(f, before, list, count, d, all, false);
		write_kinds(f, kinds ? "; can't tell: " : "can't tell: ", list, count, d, all, true);
		fclose(f);
	}
	if (text && *text) {
		print("  ");
		lines = output_wrapped(text, 4, 2, output_width() - 2, NULL);
	}
	free(text);
	return lines;
}

static unsigned print_all_ruled_out(const struct verdicts *v, const struct evidence_device *d)
{
	unsigned lines = 0, shown = 0;
	for (size_t i = 0; i < v->ruled_out_count && shown < REPORT_MOST_RULED_OUT; i++)
		if (v->ruled_out[i].device == d || verdict_has(v->ruled_out[i].kind, VERDICT_BESIDE_DEVICES)) {
			char *title = verdict_denial(&v->ruled_out[i]);
			print("  %-*s", KIND_COLUMNS - 2, title ? title : "");
			free(title);
			lines += print_reasons(&v->ruled_out[i].evidence, KIND_COLUMNS, 2,
					       output_width() - KIND_COLUMNS, NULL);
			shown++;
		}
	return lines;
}

static unsigned print_titles(const char *heading)
{
	char *titles = output_format("%*s   certainty", output_width() - (int)strlen(heading) - 12, "bytes");
	print_heading(heading, titles ? titles : "");
	free(titles);
	return 2;
}

unsigned report_print_facts(const struct report *r, unsigned room)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	unsigned lines = 0;
	(void)room;
	for (size_t i = 0; i < v->fact_count; i++)
		lines += (i ? 0 : print_titles("GROWS")) + print_held(r, &v->facts[i], 0);
	return lines;
}

unsigned report_print_causes(const struct report *r, unsigned room)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	const struct evidence_device *d = report_device(r);
	const size_t most = r->brief ? MOST_BRIEF : MOST_HELD;
	(void)room;
	if (!report_is_trouble(r))
		return 0;
	unsigned lines = print_titles("WHY");
	if (!v->held_count) {
		print("  unclear: no rule explains it\n");
		lines++;
	}
	for (size_t i = 0; i < v->held_count && i < most; i++)
		lines += print_held(r, &v->held[i], (unsigned)i + 1);
	if (v->held_count > most)
		lines += print_kinds("and ", v->held + most, v->held_count - most, d, true);
	if (!r->brief)
		return lines + print_all_ruled_out(v, d);
	char before[48] = "ruled out: ";
	for (size_t i = 0; i < v->held_count; i++)
		if (d && v->held[i].device && v->held[i].device != d)
			snprintf(before, sizeof(before), "ruled out for %.24s: ", d->name);
	return lines + print_kinds(before, v->ruled_out, v->ruled_out_count, d, false);
}

/* ---- what was alive ------------------------------------------------------------------------------------ */

const struct diagnosis_space *report_main_space(const struct report *r)
{
	const struct diagnosis *diagnosis = r->analysis.diagnosis;
	const struct evidence_device *d = report_device(r);
	const struct diagnosis_space *best = &diagnosis->spaces[0];
	if (d || report_is_trouble(r))
		return d ? &diagnosis->spaces[1 + (d - diagnosis->evidence.devices.items)] : best;
	for (unsigned i = 1; i < diagnosis->space_count; i++)
		best = diagnosis->spaces[i].bytes > best->bytes || best->device == MODEL_NO_DEVICE
			       ? &diagnosis->spaces[i]
			       : best;
	return best->bytes || !diagnosis->space_count ? best : &diagnosis->spaces[0];
}

static const struct diagnosis_space *sorted; /* qsort() has no argument of its own */

static int larger_category(const void *a, const void *b)
{
	const int *x = a, *y = b;
	uint64_t i = sorted->category[*x], k = sorted->category[*y];
	return i != k ? (i < k ? 1 : -1) : *x - *y;
}

static char *categories_text(const struct diagnosis_space *s)
{
	int order[CATEGORIES];
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	for (int c = 0; c < CATEGORIES; c++)
		order[c] = c;
	sorted = s;
	qsort(order, CATEGORIES, sizeof(*order), larger_category);
	for (int i = 0; i < CATEGORIES && s->category[order[i]] && s->category[order[i]] * 1000 >= s->bytes; i++)
		fprintf(f, "%s%s %s", i ? ", " : "", category_name(order[i]), BYTES(s->category[order[i]]));
	fclose(f);
	for (char *c = text; c && *c; c++)
		*c = *c == '_' ? ' ' : *c;
	return text;
}

static const char *largest_name(const struct report *r, const struct snapshot_block *b)
{
	return b->label ? b->label : diagnosis_site(r->analysis.diagnosis, diagnosis_stack(r->analysis.diagnosis, b));
}

static char *largest_text(const struct report *r, const struct diagnosis_space *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	for (unsigned i = 0, same; f && i < s->largest_count; i += same) {
		const char *name = largest_name(r, &s->largest[i]);
		for (same = 1; i + same < s->largest_count && s->largest[i + same].size == s->largest[i].size &&
			       !strcmp(largest_name(r, &s->largest[i + same]), name);)
			same++;
		fprintf(f, "%s%s %s", i ? ", " : "", BYTES(s->largest[i].size), name);
		if (same > 1)
			fprintf(f, " (x%u)", same);
	}
	if (f)
		fclose(f);
	return text;
}

/* Whose line holds most of it. */
static char *top_lines_text(const struct report *r, const struct diagnosis_space *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	for (unsigned i = 0; f && i < s->holder_count && i < LINES_NAMED; i++) {
		const struct top_line *h = &s->top[i];
		fprintf(f, "%s%s %s", i ? ", " : "", BYTES(h->bytes), diagnosis_site(r->analysis.diagnosis, h->stack));
		if (h->blocks > 1)
			fprintf(f, " (%s blocks)", COUNT(h->blocks));
	}
	if (f)
		fclose(f);
	return text;
}

unsigned report_print_alive(const struct report *r, unsigned room)
{
	const struct diagnosis_space *s = report_main_space(r);
	bool failed = report_is_trouble(r);
	char *text = categories_text(s);
	unsigned lines = 0;
	if (text && *text && failed && !r->brief) {
		char *rest = output_format(" (%s: %s at %s)", s->name, BYTES(s->bytes), DURATION(s->ns));
		print_heading("ALIVE THEN", rest ? rest : "");
		free(rest);
		char *largest = largest_text(r, s), *top = top_lines_text(r, s);
		print("  ");
		lines = 2 + output_wrapped(text, 2, FEW_LINES, output_width() - 2, NULL);
		if (s->holder_count && room >= LEAST_ALIVE + 2) {
			print("  by line   ");
			lines += output_wrapped(top, 12, FEW_LINES, output_width() - 12, NULL);
		}
		free(top);
		print(s->largest_count == DIAGNOSIS_LARGEST ? "  5 largest " : "  largest   ");
		lines += output_wrapped(largest, 12, FEW_LINES, output_width() - 12, NULL);
		free(largest);
	} else if (text && *text) {
		print("\n%s%-12s%s", output_begin(STYLE_HEAD), "FOR WHAT", output_end(STYLE_HEAD));
		lines = 1 + output_wrapped(text, 12, r->brief ? 1 : FEW_LINES, output_width() - 12, NULL);
	}
	free(text);
	return lines;
}

/* ---- phases -------------------------------------------------------------------------------------------- */

static bool holds_any(const struct report *r, enum verdict_trait trait)
{
	for (size_t i = 0; i < r->analysis.diagnosis->verdicts.held_count; i++)
		if (verdict_has(r->analysis.diagnosis->verdicts.held[i].kind, trait))
			return true;
	return false;
}

static bool worth_showing(const struct report *r, const struct evidence_device *d)
{
	if (holds_any(r, VERDICT_SHOWS_PHASES))
		return true;
	for (size_t i = 0; i < d->phases.count; i++)
		if (!d->phases.items[i].line)
			return true;
	return false;
}

/* What a phase freed is of no use to others while the pool has it. */
static char *phase_note(const struct evidence_device *d, const struct evidence_phase *p)
{
	if (p->failing)
		return output_format("   failed here, asking for %s more", BYTES(d->request.bytes));
	if (p->in_pool == 0 || p->in_pool < d->total / WORTH_A_NOTE)
		return NULL;
	return output_format("   freed %s, pool kept %s", BYTES(p->freed), BYTES(p->in_pool));
}

static uint64_t height(const struct evidence_phase *p, bool added)
{
	return added && evidence_known(p->begin_bytes) ? less(p->peak_bytes, p->begin_bytes) : p->peak_bytes;
}

/* As many others need more. */
static bool is_among_highest(const struct evidence_device *d, const struct evidence_phase *p, bool added)
{
	uint64_t own = height(p, added);
	size_t higher = 0;
	for (size_t i = 0; i < d->phases.count; i++) {
		const struct evidence_phase *other = &d->phases.items[i];
		uint64_t its = height(other, added);
		higher += other->failing || its > own || (its == own && other > p);
	}
	return p->failing || higher < MOST_PHASES;
}

unsigned report_print_phases(const struct report *r, unsigned room)
{
	const struct evidence_device *d = report_device(r);
	unsigned shown = 0;
	(void)room;
	if (!d || d->phases.count < 2 || !worth_showing(r, d))
		return 0;
	char *rest = output_format(" on %s", d->name);
	print_heading("PEAK BY PHASE", rest ? rest : "");
	free(rest);
	for (size_t i = 0; i < d->phases.count && shown < MOST_PHASES; i++) {
		const struct evidence_phase *p = &d->phases.items[i];
		if (!is_among_highest(d, p, holds_any(r, VERDICT_OF_ADDED)))
			continue;
		char *note = phase_note(d, p);
		char *name = output_fit(p->name, 40);
		int pad = 40 - output_columns(name ? name : "");
		char *line = output_format("  %s%*s %12s%s", name ? name : "", pad, "", BYTES(p->peak_bytes),
					   note ? note : "");
		free(note);
		free(name);
		print("%s\n", line);
		free(line);
		shown++;
	}
	return 2 + shown;
}

/* ---- what to do, what is not known --------------------------------------------------------------------- */

/* The same site's leak of the heap is gone with that of the device: a tensor is an object, too. */
static bool is_advised(const struct verdicts *v, size_t i)
{
	const char *site = v->held[i].sites[0];
	for (size_t k = 0; k < i && site && verdict_has(v->held[i].kind, VERDICT_TELLS_GROWTH); k++)
		if (v->held[k].kind == v->held[i].kind && v->held[k].sites[0] && !strcmp(v->held[k].sites[0], site))
			return true;
	return false;
}

unsigned report_print_advice(const struct report *r, unsigned room)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	unsigned lines = 0, number = 0;
	(void)room;
	for (size_t i = 0; i < v->held_count && i < (r->brief ? MOST_BRIEF : MOST_HELD); i++) {
		if (!v->held[i].advice.count || is_advised(v, i))
			continue;
		if (!number++) {
			print_heading("WHAT TO DO", "");
			lines += 2;
		}
		print("  %u ", number);
		lines += print_reasons(&v->held[i].advice, 4, ADVICE_LINES, output_width() - 4, NULL);
	}
	return lines;
}

/* Does one of that kind hold, of which nobody knows who holds its blocks? */
static bool holds(const struct report *r, enum verdict_kind kind)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	for (size_t i = 0; i < v->held_count; i++)
		if (v->held[i].kind == kind && !(r->held && r->held[i].known))
			return true;
	return false;
}

unsigned report_print_unknown(const struct report *r, unsigned room)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	char *text = NULL;
	size_t size;
	FILE *f = report_is_trouble(r) ? open_memstream(&text, &size) : NULL;
	unsigned parts = 0, lines = 0;
	(void)room;
	if (!f)
		return 0;
	for (size_t i = 0; i < v->unknown_count; i++) {
		char *unknown = reasons_text(&v->unknown[i].evidence);
		fprintf(f, "%s%s", parts++ ? "; " : "", unknown ? unknown : "");
		free(unknown);
	}
	for (int kind = 0; kind < VERDICT_KINDS; kind++)
		if (verdict_unknown(kind) && holds(r, kind))
			fprintf(f, "%s%s", parts++ ? "; " : "", verdict_unknown(kind));
	fclose(f);
	if (parts) {
		print("%sNOT KNOWN%s  ", output_begin(STYLE_HEAD), output_end(STYLE_HEAD));
		lines = output_wrapped(text, 11, 2, output_width() - 11, NULL);
	}
	free(text);
	return lines;
}
