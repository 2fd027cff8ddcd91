/* What happened, as HTML that reads without scripts: in a mail, or where a server forbids them. */
#include "analyzer/analysis/open.h"
#include "analyzer/report/json/json_devices.h"
#include "analyzer/report/page/page_internal.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CAUSES = 3 };

/* ---- text ---------------------------------------------------------------------------------------------------- */

void page_print_text(FILE *f, const char *text)
{
	for (; text && *text; text++)
		switch (*text) {
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '&':
			fputs("&amp;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc(*text, f);
		}
}

void page_print_name(FILE *f, char *text)
{
	char *clean = NULL;
	size_t size;
	FILE *into = open_memstream(&clean, &size);
	if (into) {
		FILE *before = print_into(into);
		print_text(text ? text : "");
		print_into(before);
		fclose(into);
	}
	page_print_text(f, clean);
	free(clean);
	free(text);
}

static void paragraph(FILE *f, const char *class, char *text)
{
	if (text && *text) {
		fprintf(f, "<p class=\"%s\">", class);
		page_print_name(f, text);
		fputs("</p>\n", f);
	} else {
		free(text);
	}
}

/* Colours are a terminal's. */
static void drop_escapes(char *text)
{
	char *to = text;
	while (*text) {
		if (*text == '\033' && text[1] == '[') {
			text += 2 + strspn(text + 2, "0123456789;");
			text += *text != '\0';
			continue;
		}
		*to++ = *text++;
	}
	*to = '\0';
}

static char *captured(void (*print_it)(const struct report *), const struct report *r)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	FILE *before = print_into(f);
	print_it(r);
	print_into(before);
	fclose(f);
	if (text)
		drop_escapes(text);
	return text;
}

char *page_report_text(const struct report *r)
{
	struct report all = *r;
	all.brief = false;
	return captured(report_print, &all);
}

/* ---- what failed --------------------------------------------------------------------------------------------- */

static const struct model_device *device_of(const struct report *r)
{
	const struct evidence_device *d = report_device(r);
	return d ? model_device(r->selection->model, (uint32_t)(d - r->analysis.diagnosis->evidence.devices.items))
		 : NULL;
}

static char *step_text(const struct report *r, const struct model_oom *o)
{
	uint64_t number;
	return json_devices_step(r->analysis.timeline, o, &number)
		       ? output_format(", step %llu", (unsigned long long)number)
		       : strdup("");
}

static const char *first_cause(const struct report *r)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	return v->held_count ? verdict_title(v->held[0].kind) : NULL;
}

static void print_oom(FILE *f, const struct report *r, const struct model_device *d, const struct model_oom *o)
{
	const struct process *p = reader_process(r->selection->reader, o->process);
	const char *cause = first_cause(r);
	char *title = report_device_title(r->selection, d, p), *step = step_text(r, o), exit[32];
	fputs("<h1><span class=\"tag\">", f);
	page_print_name(f, output_format("%s ran out of memory", title ? title : ""));
	fputs("</span> ", f);
	page_print_name(f, output_format("at %s%s%s%s", DURATION(o->at.ns), step ? step : "", cause ? ": " : "",
					 cause ? cause : ""));
	fputs("</h1>\n", f);
	char *all = o->at.total_bytes == MODEL_UNKNOWN ? strdup("") : output_format(" of %s", BYTES(o->at.total_bytes));
	char *left = o->at.free_bytes == MODEL_UNKNOWN
			     ? strdup("")
			     : output_format("; %s%s was free", BYTES(o->at.free_bytes), all ? all : "");
	char *block = o->block_bytes && o->block_bytes != o->requested_bytes
			      ? output_format(" (from the driver %s)", BYTES(o->block_bytes))
			      : strdup("");
	char *ended = o->outcome == OUTCOME_FATAL
			      ? output_format(", and the process ended with %s.", exit_text(p, exit, sizeof(exit)))
			      : strdup("");
	paragraph(f, "asked",
		  output_format("Process %u %s asked for %s%s%s. %s%s", p->pid, p->name,
				o->requested_bytes ? BYTES(o->requested_bytes) : "an unknown number of bytes",
				block ? block : "", left ? left : "",
				o->outcome == OUTCOME_CAUGHT  ? "It was caught, and the run went on."
				: o->outcome == OUTCOME_FATAL ? "It was not caught"
				: p->state == PROCESS_RUNNING ? "It still runs."
							      : "How it ended is not known.",
				ended ? ended : ""));
	free(ended);
	free(all);
	free(left);
	free(block);
	free(title);
	free(step);
}

static void print_kills(const struct report *r)
{
	report_print_kills(r);
}

static void print_headline(const struct report *r)
{
	report_print_headline(r, 10);
}

/* Capitals stand where a terminal has no larger type: of two words or more only the first one stays. */
static void lower_capitals(char *text)
{
	const size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ ");
	const char *blank = memchr(text, ' ', n);
	const bool words = blank && isupper((unsigned char)blank[1]);
	for (size_t i = 1; words && i < n; i++)
		text[i] = (char)tolower((unsigned char)text[i]);
}

/* Columns of a screen are parts of one sentence: "Out of memory: host (cgroup, 640.0 MiB), pid 7 python". */
static void join_columns(char *text)
{
	const char *mark = ": ";
	char *to = text;
	for (size_t n; *text; text += n) {
		n = strspn(text, " ");
		if (n > 1 && text[n]) {
			memcpy(to, mark, 2);
			mark = ", ";
			to += 2;
		} else {
			n += !n;
			memmove(to, text, n);
			to += n;
		}
	}
	*to = '\0';
}

/* The screen's own words, a paragraph for each sentence: what is indented goes on with the one before. */
static void print_captured(FILE *f, const struct report *r, void (*print_it)(const struct report *))
{
	char *text = captured(print_it, r), *rest = text, *line;
	const char *end = "";
	while (text && (line = strsep(&rest, "\n"))) {
		const size_t indent = strspn(line, " ");
		line += indent;
		if (!*line)
			continue;
		if (indent && *end) {
			fputc(' ', f);
		} else {
			if (!*end) {
				lower_capitals(line);
				join_columns(line);
			}
			fputs(*end ? end : "<h1>", f);
			if (*end)
				fputs("<p class=\"asked\">", f);
			end = *end ? "</p>\n" : "</h1>\n";
		}
		page_print_text(f, line);
	}
	fputs(end, f);
	free(text);
}

static void print_head(FILE *f, const struct report *r)
{
	const struct model_device *d = device_of(r);
	const struct model_oom *o = d ? diagnosis_failure(d) : NULL;
	if (o)
		print_oom(f, r, d, o);
	else if (report_kills(r))
		print_captured(f, r, print_kills);
	else
		print_captured(f, r, print_headline);
}

/* ---- causes -------------------------------------------------------------------------------------------------- */

static void print_cause(FILE *f, const struct report *r, const struct verdict *v)
{
	fputs("<li><b>", f);
	page_print_name(f, output_format("%s", verdict_title(v->kind)));
	fputs("</b> ", f);
	page_print_name(f, report_evidence(r, v));
	fputs(" <span class=\"figures\">", f);
	page_print_name(f, output_format("%s, certainty %s", BYTES(v->bytes),
					 certainty_name(verdict_certainty(v->confidence))));
	fputs("</span></li>\n", f);
}

static void print_causes(FILE *f, const struct report *r)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	if (!v->held_count)
		return;
	fputs("<ol class=\"why\">\n", f);
	for (size_t i = 0; i < v->held_count && i < MOST_CAUSES; i++)
		print_cause(f, r, &v->held[i]);
	fputs("</ol>\n", f);
	for (size_t i = 0; i < v->held_count && i < MOST_CAUSES; i++)
		if (v->held[i].advice.count) {
			fputs("<p class=\"do\"><b>Do</b> ", f);
			page_print_name(f, reasons_text(&v->held[i].advice));
			fputs("</p>\n", f);
			break;
		}
}

static void row(FILE *f, char *head, const struct reasons *why)
{
	fputs("<div><dt>", f);
	page_print_name(f, head);
	fputs("</dt><dd>", f);
	page_print_name(f, reasons_text(why));
	fputs("</dd></div>\n", f);
}

/* Beside the causes: what it is not, and what nobody measured. */
static void print_others(FILE *f, const struct report *r)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	const struct evidence_device *d = report_device(r);
	unsigned shown = 0;
	if (!report_is_trouble(r) || (!v->ruled_out_count && !v->unknown_count))
		return;
	fputs("<dl class=\"not\">\n", f);
	for (size_t i = 0; i < v->ruled_out_count && shown < REPORT_MOST_RULED_OUT; i++)
		if (v->ruled_out[i].device == d) {
			row(f, verdict_denial(&v->ruled_out[i]), &v->ruled_out[i].evidence);
			shown++;
		}
	for (size_t i = 0; i < v->fact_count; i++)
		row(f, output_format("%s", verdict_title(v->facts[i].kind)), &v->facts[i].evidence);
	for (size_t i = 0; i < v->unknown_count; i++)
		row(f, strdup("not known"), &v->unknown[i].evidence);
	fputs("</dl>\n", f);
}

static const char *verdict_class(const struct report *r)
{
	const enum verdict_status status = r->analysis.diagnosis->verdicts.status;
	return status == STATUS_OK ? "ok" : status == STATUS_PROBLEM ? "bad" : "unsure";
}

static void print_facts(FILE *f, const struct report *r)
{
	const struct reader *reader = r->selection->reader;
	const struct process *p = report_main_program(r);
	const unsigned count = report_process_count(r->selection), hosts = reader_hosts(reader);
	const uint64_t origin = reader_origin_real_ns(reader);
	char *command = p ? report_command(p, 70) : NULL;
	fputs("<header><b class=\"name\">memtrace</b> <code>", f);
	page_print_name(f, strdup(command ? command : "no program"));
	fputs("</code> <span>", f);
	page_print_name(f, output_format("%u process%s on %s", count, count == 1 ? "" : "es",
					 hosts == 1 ? reader_host(reader, 0)->name : "several hosts"));
	fputs("</span> <span>", f);
	page_print_name(f, output_format("%.10s %.8s UTC", WALL(origin), WALL(origin) + strlen("2026-11-21T")));
	fputs("</span> <span>", f);
	page_print_name(f, output_format("%s", DURATION(reader_duration_ns(reader))));
	fputs("</span><span class=\"tools\" id=\"tools\"></span></header>\n", f);
	free(command);
}

static void print_running(FILE *f, const struct report *r)
{
	unsigned running = 0;
	for (unsigned id = 0; id < reader_processes(r->selection->reader); id++)
		running += reader_process(r->selection->reader, id)->state == PROCESS_RUNNING;
	if (running)
		paragraph(
			f, "lost",
			output_format("%u process%s still ran when this was written: the end is what was seen so far.",
				      running, running == 1 ? "" : "es"));
}

static json_int_t change_of(const json_t *o)
{
	return json_integer_value(json_object_get(o, "change_bytes"));
}

/* One row of memtrace diff --json. */
static void print_change(FILE *f, const json_t *o)
{
	const json_int_t by = change_of(o);
	const char *name = json_string_value(json_object_get(o, "name"));
	const char *site = json_string_value(json_object_get(o, "site"));
	const char *figure = json_string_value(json_object_get(o, site ? "kind" : "figure"));
	fputs("<li><b>", f);
	page_print_name(f, output_format("%s%s", by < 0 ? "-" : "+", BYTES((uint64_t)(by < 0 ? -by : by))));
	fputs("</b> ", f);
	page_print_name(f, output_format("%s, %s", site ? site : name ? name : "", figure ? figure : ""));
	fputs("</li>\n", f);
}

/* Those that changed most, up or down: as many as are shown of each list. */
static void print_largest(FILE *f, const json_t *list)
{
	const json_t *shown[3] = { NULL }, *o;
	size_t i;
	for (size_t n = 0; n < sizeof(shown) / sizeof(*shown); n++) {
		json_array_foreach(list, i, o)
		{
			const bool before = o == shown[0] || o == shown[1];
			if (!before && change_of(o) && (!shown[n] || llabs(change_of(o)) > llabs(change_of(shown[n]))))
				shown[n] = o;
		}
		if (!shown[n] || llabs(change_of(shown[n])) < llabs(change_of(shown[0])) / 100)
			return;
		print_change(f, shown[n]);
	}
}

/* Of devices and totals what changed, and the sites that made most of it. */
static void print_changes(FILE *f, const struct page_changes *c)
{
	static const char *const sections[] = { "devices", "totals", "sites" };
	fputs("<section class=\"verdict changes\"><div>\n<h1>After, compared with before</h1>\n<ul>\n", f);
	for (size_t k = 0; k < sizeof(sections) / sizeof(*sections); k++)
		print_largest(f, json_object_get(c->changes, sections[k]));
	fputs("</ul>\n</div></section>\n", f);
}

void page_verdict_print(FILE *f, const struct report *r, const struct page_changes *changes)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	print_facts(f, r);
	if (changes)
		print_changes(f, changes);
	fprintf(f, "<section class=\"verdict %s\" id=\"verdict\">\n<div>\n", verdict_class(r));
	print_head(f, r);
	if (report_is_trouble(r) && !v->held_count)
		paragraph(f, "asked", strdup("The cause is unclear: no rule explains it."));
	print_causes(f, r);
	if (!r->analysis.losses.complete)
		paragraph(f, "lost",
			  strdup("The trace is incomplete: figures are of what was recorded. See what was lost."));
	print_running(f, r);
	paragraph(f, "asked", selection_parts(r->selection, r->brief));
	fputs("</div>\n", f);
	print_others(f, r);
	fputs("</section>\n", f);
}
