/* The report on one screen, the failure first: the summary, which a terminal of 80x24 holds, or --all, at most 50 lines
 * of 100 columns. */
#include "analyzer/diagnosis/own_allocator.h"
#include "analyzer/analysis/open.h"
#include "analyzer/model/selection/main_process.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SCREEN_LINES     50
#define NARROW_LINES     60 /* where there are fewer than REPORT_WIDE columns, so that more is wrapped */
#define BRIEF_COLUMNS    80
#define BRIEF_LINES      23 /* with the prompt below it the heading is still there */
#define MOST_BRIEF_LINES 39
#define MOST_ALLOCATORS  2 /* processes with one of their own that are named */
#define ENOUGH           7 /* lines that a part of the summary gets before others that are worth less */
#define FEW_GAPS         2 /* empty lines that come before what is worth less than ... */
#define SHORT_COMMAND    59

/* ---- title --------------------------------------------------------------------------------------------- */

unsigned report_process_count(const struct selection *sel)
{
	unsigned count = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		bool goes_on = p->creator && process_goes_on_as(p->creator, p) && selection_has(sel, p->creator);
		count += selection_has(sel, p) && !goes_on;
	}
	return count;
}

/* "./t", and how many more there are. */
static char *directory(const struct options *o)
{
	char *more = o->ndirs > 1 ? output_format(" and %d more", o->ndirs - 1) : strdup("");
	int room = output_width() - (int)sizeof("memtrace report ") - (more ? output_columns(more) : 0);
	char *dir = output_tail(o->ndirs ? options_shown(o, 0) : "?", room);
	char *text = output_format("%s%s", dir ? dir : "", more ? more : "");
	free(dir);
	free(more);
	return text;
}

enum facts { FACTS_ALL, FACTS_SHORT_HOST, FACTS_NO_HOST, FACTS_FORMS };

/* Behind the command, in less and less. */
static char *facts_text(const struct report *r, unsigned processes, enum facts form)
{
	const struct reader *reader = r->selection->reader;
	struct tm tm = { 0 };
	char start[32] = "";
	time_t seconds = (time_t)(reader_origin_real_ns(reader) / 1000000000u);
	unsigned hosts = reader_hosts(reader);
	const char *host = hosts ? reader_host(reader, 0)->name : "?";
	if (gmtime_r(&seconds, &tm))
		strftime(start, sizeof(start), "%Y-%m-%d %H:%M:%S UTC", &tm);
	char *on = form == FACTS_NO_HOST || *reader_process(reader, 0)->imported
			   ? strdup("")
			   : output_format(" on %.*s%s", form == FACTS_ALL ? INT_MAX : (int)strcspn(host, "."), host,
					   hosts > 1 ? " and others" : "");
	char *text = output_format("%u %s%s   %s   %s", processes, processes == 1 ? "process" : "processes",
				   on ? on : "", start, DURATION(reader_duration_ns(reader)));
	free(on);
	return text;
}

/* The command is cut where it must be, what stands behind it is not. */
static void print_facts(const struct report *r)
{
	enum { ROOM = 24 }; /* for a command that is as long */
	unsigned count = report_process_count(r->selection);
	const struct process *program = report_main_program(r);
	char *command = program ? report_command(program, output_width()) : strdup("?"), *facts = NULL, *fitted = NULL;
	int wanted = command && output_columns(command) < ROOM ? output_columns(command) : ROOM;
	for (enum facts form = FACTS_ALL; form < FACTS_FORMS; form++) {
		free(facts);
		facts = facts_text(r, count, form);
		if (facts && output_columns(facts) + 3 + wanted <= output_width())
			break;
	}
	int room = output_width() - 3 - (facts ? output_columns(facts) : 0);
	fitted = command ? output_cut(command, room > 12 ? room : 12) : NULL;
	output_fit_line(STYLE_HEAD, output_format("%s   %s", fitted ? fitted : "", facts ? facts : ""));
	free(fitted);
	free(command);
	free(facts);
}

static unsigned print_title(const struct report *r, unsigned room)
{
	(void)room;
	char *dir = directory(r->selection->options);
	output_fit_line(STYLE_HEAD, output_format("memtrace report %s", dir ? dir : ""));
	print_facts(r);
	free(dir);
	return 2;
}

/* ---- what is missing ----------------------------------------------------------------------------------- */

static unsigned print_notes(const struct selection *sel)
{
	unsigned printed = 0;
	for (unsigned i = 0; i < reader_notes(sel->reader) && printed < 2; i++) {
		const struct reader_note *n = reader_note(sel->reader, i);
		if (n->code == MT_OK)
			continue;
		output_fit_line(STYLE_BAD, output_format("  %s: %s", n->file, n->text));
		printed++;
	}
	return printed;
}

static const struct {
	uint32_t bit;
	const char *name, *events, *processes;
} reasons[] = {
	{ MT_LOSS_DISK, "disk", "the disk is full or the limit was reached",
	  "the disk is full or the limit was reached" },
	{ MT_LOSS_SECCOMP, "seccomp", "a system call filter leaves no way to get more space", "a system call filter" },
	{ MT_LOSS_RIGHTS, "rights", "the process gave up its rights to the trace directory",
	  "no rights to the trace directory any more" },
	{ MT_LOSS_DAMAGE, "damage", "raw files were cut off or overwritten", "raw files were cut off or overwritten" },
	{ MT_LOSS_FILES, "files", "no file could be opened", "no file could be opened" },
	{ MT_LOSS_MEMORY, "memory", "no memory or address space was left", "no memory was left" },
	{ MT_LOSS_STATIC, "static", "", "static or of 32 bits: it loads no library" },
	{ MT_LOSS_SECURE, "secure", "", "it gains rights, so LD_PRELOAD is dropped" },
	{ MT_LOSS_ENVIRONMENT, "environment", "", "started without LD_PRELOAD: pass it on" },
	{ MT_LOSS_BEHIND, "behind", "", "its malloc is first: put libmemtrace.so before it" },
	{ MT_LOSS_LATE, "late", "", "loaded by dlopen, nothing is hooked: use LD_PRELOAD or memtrace run" },
	{ MT_LOSS_SANITIZER, "sanitizer", "programs with a sanitizer are left alone",
	  "programs with a sanitizer are left alone" },
	{ MT_LOSS_SHARED, "shared", "of children that share a thread's storage", "a shared thread's storage" },
};
#define REASONS (sizeof(reasons) / sizeof(*reasons))

/* "(one; another)", or "" if nobody says why. */
static char *why_lost(uint32_t why, bool processes)
{
	char text[512];
	size_t n = 0;
	text[0] = 0;
	for (size_t i = 0; i < REASONS && n < sizeof(text); i++)
		if (why & reasons[i].bit)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "; " : " (",
					      processes ? reasons[i].processes : reasons[i].events);
	if (n && n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, ")");
	return strdup(text);
}

json_t *report_json_reasons(uint32_t why)
{
	json_t *list = json_array();
	for (size_t i = 0; i < REASONS; i++)
		if (why & reasons[i].bit)
			json_array_append_new(list, json_string(reasons[i].name));
	return list;
}

/* What only seems alive since its free was lost, or may be so. */
static unsigned print_doubts(const struct selection *sel)
{
	unsigned lines = 0;
	for (enum model_kind kind = 0; kind < MODEL_HOST_KINDS; kind++) {
		struct model_totals t = model_totals(sel->model, kind);
		if (!(sel->kinds & 1u << kind) || !t.doubt_bytes)
			continue;
		output_fit_line(STYLE_BAD, output_format("  %s alive at the end: %s to %s, as frees are among the lost",
							 kind_name(kind), BYTES(t.live_bytes - t.doubt_bytes),
							 BYTES(t.live_bytes)));
		lines++;
	}
	return lines;
}

/* Which processes these are, as far as they are known, each with the reason and what to do. */
static unsigned print_unseen(const struct reader *reader)
{
	struct mt_unseen u;
	unsigned n = 0;
	for (; reader_unseen(reader, n, &u); n++) {
		char *why = why_lost(u.why, true);
		output_fit_line(STYLE_BAD, output_format("    %u %s%s", u.pid, base_name(u.path), why ? why : ""));
		free(why);
	}
	return n;
}

static unsigned print_incomplete(const struct report *r)
{
	const struct losses *l = &r->analysis.losses;
	unsigned lines = 1;
	output_fit_line(STYLE_BAD,
			strdup(l->events ? "INCOMPLETE: figures are what is left; the truth may be more, and less alive"
					 : "INCOMPLETE: the figures below are what is left, the truth may be more"));
	if (l->events || l->skipped_slots) {
		char *from = l->events ? output_format(", from %s on", DURATION(l->events_ns)) : NULL;
		char *why = why_lost(l->events_why | (l->skipped_slots ? MT_LOSS_DAMAGE : 0), false);
		output_fit_line(STYLE_BAD,
				output_format("  %s events were lost while recording%s%s",
					      COUNT(l->events + l->skipped_slots), why ? why : "", from ? from : ""));
		free(from);
		free(why);
		lines += 1 + print_doubts(r->selection);
	}
	if (l->unrecorded) {
		struct mt_unseen known;
		bool named = reader_unseen(r->selection->reader, 0, &known);
		char *why = named ? NULL : why_lost(l->unrecorded_why, true);
		output_fit_line(STYLE_BAD,
				output_format("  %s process%s seen but could not be recorded%s", COUNT(l->unrecorded),
					      l->unrecorded == 1 ? " was" : "es were", why ? why : ""));
		free(why);
		lines += 1 + print_unseen(r->selection->reader);
	}
	if (l->turned_off) {
		output_fit_line(STYLE_BAD, output_format("  recording turned itself off in %u process%s", l->turned_off,
							 l->turned_off == 1 ? "" : "es"));
		lines++;
	}
	return lines + print_notes(r->selection);
}

static void print_gap(const char *what, unsigned count, const char *path)
{
	char *more = count > 1 ? output_format(" and %u more", count - 1) : strdup("");
	int room = output_width() - (int)strlen(what) - 2 - (more ? output_columns(more) : 0);
	char *tail = count ? output_tail(path, room) : NULL;
	if (tail)
		output_fit_line(STYLE_BAD, output_format("%s: %s%s", what, tail, more ? more : ""));
	free(tail);
	free(more);
}

static unsigned count_own_allocators(const struct report *r)
{
	const struct selection *sel = r->selection;
	unsigned count = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++)
		count += selection_has(sel, reader_process(sel->reader, id)) &&
			 own_allocator_find(sel, timeline_samples(r->analysis.timeline), model_process(sel->model, id))
					 .bytes > 0;
	return count > MOST_ALLOCATORS ? MOST_ALLOCATORS : count;
}

/* Whose memory the hooks can't look into. */
static void print_own_allocators(const struct report *r)
{
	const struct selection *sel = r->selection;
	unsigned printed = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader) && printed < MOST_ALLOCATORS; id++) {
		const struct process *p = reader_process(sel->reader, id);
		struct own_allocator own = { 0 };
		if (selection_has(sel, p))
			own = own_allocator_find(sel, timeline_samples(r->analysis.timeline),
						 model_process(sel->model, id));
		if (!own.bytes)
			continue;
		const char *of = own.frame && own.frame->library ? base_name(own.library) : p->name;
		char *text = own.frame ? frame_text(own.frame) : NULL,
		     *where = own.frame && own.frame->file ? frame_where(own.frame) : NULL;
		char *function =
			text ? output_format(" (%s%s%s)", text, where ? "  " : "", where ? where : "") : strdup("");
		char *whose = strcmp(of, p->program) ? output_format("%u %s: %s", p->pid, p->name, of)
						     : output_format("%u %s", p->pid, p->name);
		char *with = own.setting ? output_format("; with %s it is", own.setting) : strdup("");
		char *all = output_format(": what is in its %s is not seen%s", BYTES(own.resident), with ? with : "");
		output_first_line(STYLE_FAINT,
				  (char *[]){ output_format("%s has its own allocator%s%s", whose ? whose : of,
							    function ? function : "", all ? all : ""),
					      output_format("%s has its own allocator%s", whose ? whose : of,
							    all ? all : ""),
					      own.setting ? output_format("%u: %s shows %s of %s", p->pid, own.setting,
									  BYTES(own.resident), of)
							  : output_format("%u: %s has an allocator with %s not seen",
									  p->pid, of, BYTES(own.resident)) },
				  3);
		free(with);
		free(all);
		free(whose);
		free(function);
		free(text);
		free(where);
		printed++;
	}
}

/* The process whose recorder was behind first; NULL = none's was. */
static const struct process *first_behind(const struct report *r)
{
	const struct process *first = NULL;
	for (unsigned id = 0; id < reader_processes(r->selection->reader); id++) {
		const struct process *p = reader_process(r->selection->reader, id);
		if (p->mode_count &&
		    (!first || process_ns(p, p->modes->ticks) < process_ns(first, first->modes->ticks)))
			first = p;
	}
	return first;
}

static void print_young(const struct report *r, const struct model_fold *fold)
{
	const struct process *p = first_behind(r);
	output_fit_line(STYLE_FAINT,
			output_format("%s small blocks as totals%s%s%s; peaks lack up to %s", COUNT(fold->young_blocks),
				      p ? " from " : "", p ? DURATION(process_ns(p, p->modes->ticks)) : "",
				      p ? " on" : "", BYTES(fold->young_most_bytes)));
}

/* What makes a report less telling, though no figure is wrong. */
/* Why the call tree had no room: the limit of the trace, but where the program met that of its address space. */
static const char *why_unplaced(const struct reader *reader)
{
	for (unsigned id = 0; id < reader_processes(reader); id++) {
		const struct process *p = reader_process(reader, id);
		if (p->unplaced_stacks && p->address_used && p->address_limit != MT_NO_LIMIT)
			return "no address space was left for the call tree";
	}
	return "no room for the call tree; record with a larger --limit";
}

static void print_gaps(const struct report *r)
{
	const uint64_t unplaced = r->analysis.losses.unplaced_stacks;
	struct stack_gaps g = stacks_gaps(r->selection->stacks);
	print_gap("rebuilt or replaced since, so without names", g.replaced, g.replaced_path);
	print_gap("not on this machine, so without names", g.missing, g.missing_path);
	if (g.given_up) {
		char *what = output_format("%s, so without names", g.given_up_why);
		if (what)
			print_gap(what, g.given_up, g.given_up_path);
		free(what);
	}
	if (unplaced)
		output_fit_line(STYLE_BAD,
				output_format("%s stack%s cut: %s", COUNT(unplaced), unplaced == 1 ? " was" : "s were",
					      why_unplaced(r->selection->reader)));
	if (r->analysis.losses.truncated_stacks > unplaced)
		output_fit_line(STYLE_FAINT,
				output_format("%s stacks lack their outer frames (MEMTRACE_DEPTH, or not unwindable)",
					      COUNT(r->analysis.losses.truncated_stacks - unplaced)));
	print_own_allocators(r);
	const struct model_fold fold = model_fold(r->selection->model);
	if (fold.until_ns)
		output_fit_line(
			STYLE_FAINT,
			output_format(
				"first %s folded (disk limit): %s short-lived blocks as totals; moments lack up to %s%s%s",
				DURATION(fold.until_ns), COUNT(fold.blocks), BYTES(fold.most_bytes),
				fold.most_other_bytes ? " of the heap, elsewhere " : "",
				fold.most_other_bytes ? BYTES(fold.most_other_bytes) : ""));
	if (fold.young_blocks)
		print_young(r, &fold);
}

static unsigned count_gaps(const struct report *r)
{
	struct stack_gaps g = stacks_gaps(r->selection->stacks);
	return (g.replaced > 0) + (g.missing > 0) + (g.given_up > 0) + count_own_allocators(r) +
	       (r->analysis.losses.unplaced_stacks > 0) +
	       (r->analysis.losses.truncated_stacks > r->analysis.losses.unplaced_stacks) +
	       (model_fold(r->selection->model).until_ns > 0) + (model_fold(r->selection->model).young_blocks > 0);
}

/* ---- totals -------------------------------------------------------------------------------------------- */

static char *about(const struct model_totals *m, const char *figure)
{
	return output_format("%s%s", m->estimated ? "~" : "", figure);
}

static void totals_row(struct table *t, const char *name, const struct model_totals *m)
{
	char *peak = about(m, BYTES(m->peak_bytes)), *live = about(m, BYTES(m->live_bytes)),
	     *blocks = about(m, COUNT(m->live_blocks));
	table_row(t, (const char *[]){ name, peak ? peak : "", DURATION(m->peak_ns), live ? live : "",
				       blocks ? blocks : "", COUNT(m->allocations), COUNT(m->frees),
				       m->estimated ? "-" : COUNT(m->temporary), m->failed ? COUNT(m->failed) : "-" });
	free(peak);
	free(live);
	free(blocks);
}

static char *map_classes(const struct selection *sel)
{
	static const char *const names[MAP_CLASSES] = {
		"anonymous", "files", "memfd and shm", "shared", "arenas of allocators", "address space only",
	};
	char *text = NULL;
	size_t size;
	unsigned classes = 0;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	for (int class = 0; class < MAP_CLASSES; class ++) {
		struct model_map_sum sum = model_map_sum(sel->model, class);
		if (sum.peak_bytes)
			fprintf(f, "%s%s %s", classes++ ? ", " : "mapped at most: ", names[class],
				BYTES(sum.peak_bytes));
	}
	fclose(f);
	if (classes > 1)
		return text;
	free(text);
	return NULL;
}

/* Of the process whose pool on the heap was largest; NULL = there was none. What it keeps unused is in no row. */
static char *host_pool(const struct selection *sel)
{
	const struct model_process *most = NULL;
	for (unsigned i = 0; i < reader_processes(sel->reader); i++) {
		const struct model_process *m = model_process(sel->model, i);
		uint64_t least = most ? most->pool.reserved_peak_bytes : 0;
		if (selection_has(sel, m->process) && m->pool.reserved_peak_bytes > least)
			most = m;
	}
	return most ? output_format("TensorFlow's pool: at most %s reserved, %s in use",
				    BYTES(most->pool.reserved_peak_bytes), BYTES(most->pool.in_use_peak_bytes))
		    : NULL;
}

/* Where only picked blocks have events. */
static char *picked_note(const struct model_totals *t)
{
	return output_format("of samples, 95 %%: peak %s to %s, end %s to %s", BYTES(t->peak_low), BYTES(t->peak_high),
			     BYTES(t->live_low), BYTES(t->live_high));
}

#define BRIEF_WORTH  5
#define LEAST_COPIED (32u << 20) /* after a fork, and this part of what is resident */
#define COPIED       0.1
#define NEAR         0.05 /* of a process's peak, as the kernel counts it: samples that missed more say too little */

static bool is_peak_seen(const struct report *r)
{
	for (unsigned i = 0; i < reader_processes(r->selection->reader); i++) {
		const struct host_process *p = host_process(r->analysis.host, i);
		if (p->rss_peak != HOST_KILL_UNKNOWN && (double)p->rss_seen < (1 - NEAR) * (double)p->rss_peak)
			return false;
	}
	return true;
}

/* Memory that no allocation explains: pages of their parent that forked workers wrote to. */
static unsigned copied_row(struct table *t, const struct report *r, uint64_t resident)
{
	const struct host_ledger *l = host_ledger(r->analysis.host);
	if (l->copied < LEAST_COPIED || (double)l->copied < COPIED * (double)resident)
		return 0;
	table_row(t,
		  (const char *[]){ "  copied after fork", BYTES(l->copied), DURATION(l->ns), "", "", "", "", "", "" });
	return 1;
}

/* Of the summary: what the processes had in memory, all together, which --all has by parts. 0 lines where nobody looked
 * in time, or only some of it is shown. */
static unsigned resident_row(struct table *t, const struct report *r)
{
	const struct selection *sel = r->selection;
	const struct host_facts *f = r->analysis.host ? host_facts(r->analysis.host) : NULL;
	if (!r->brief || !f || !report_knows_end(r) || !f->traced_peak || sel->processes || sel->from_ns ||
	    sel->until_ns != UINT64_MAX || !is_peak_seen(r))
		return 0;
	table_row(t, (const char *[]){ "  sampled RSS", BYTES(f->traced_peak), DURATION(f->traced_peak_ns),
				       BYTES(f->traced_end), "", "", "", "", "" });
	return 1 + copied_row(t, r, f->traced_peak);
}

static unsigned print_totals(const struct report *r, unsigned room)
{
	const struct selection *sel = r->selection;
	const bool failed = model_failures(sel->model) > 0;
	(void)room;
	if (!(sel->kinds & ((1u << MODEL_HOST_KINDS) - 1))) /* it is not known */
		return 0;
	const struct column columns[] = {
		{ "HOST MEMORY", LEFT, false },
		{ "peak", RIGHT, false },
		{ "at", RIGHT, false },
		{ selection_end_title(sel), RIGHT, false },
		{ "blocks", RIGHT, WORTH(3) },
		{ "allocations", RIGHT, WORTH(8) },
		{ "frees", RIGHT, WORTH(2) },
		{ "freed at once", RIGHT, WORTH(1) },
		{ "failed", RIGHT, failed ? WORTH(9) : WORTH(4) },
	};
	static const char *const names[MODEL_HOST_KINDS] = { "  heap (malloc)", "  mapped (mmap)", "  pinned" };
	struct table *t = table_new(columns, 9, 0);
	table_keep(t, r->brief ? BRIEF_WORTH : 0);
	unsigned lines = 2;
	char *pool = sel->kinds & 1u << MODEL_HEAP ? host_pool(sel) : NULL;
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++) {
		struct model_totals totals = model_totals(sel->model, kind);
		if (sel->kinds & 1u << kind && (totals.allocations || kind == MODEL_HEAP || !r->brief)) {
			totals_row(t, names[kind], &totals);
			lines++;
		}
		if (kind == MODEL_HEAP && totals.estimated) {
			char *note = picked_note(&totals);
			table_note(t, 2, note ? note : "");
			free(note);
			lines++;
		}
		if (kind == MODEL_HEAP && pool)
			table_note(t, 2, pool);
	}
	lines += resident_row(t, r);
	char *classes = sel->kinds & 1u << MODEL_MAP && !r->brief ? map_classes(sel) : NULL;
	if (classes)
		table_note(t, 2, classes);
	print("\n");
	table_print(t);
	lines += (classes != NULL) + (pool != NULL);
	free(classes);
	free(pool);
	return lines;
}

static const struct model_failure *worst_failure(const struct selection *sel, uint64_t *count)
{
	const struct model_failure *worst = NULL;
	*count = 0;
	for (unsigned i = 0; i < model_failures(sel->model); i++) {
		const struct model_failure *f = model_failure(sel->model, i);
		if (!selection_has(sel, reader_process(sel->reader, f->process)))
			continue;
		*count += f->count;
		if (!worst || f->largest_bytes > worst->largest_bytes)
			worst = f;
	}
	return worst;
}

static void print_site(enum output_style style, const char *before, const struct stack_site *site)
{
	char *text = site->frame ? frame_text(site->frame) : strdup("(no stack)");
	char *where = site->frame ? frame_where(site->frame) : NULL;
	char *caller = site->caller ? frame_text(site->caller) : NULL;
	char *caller_where = site->caller ? frame_where(site->caller) : NULL;
	output_fit_line(style, output_format("%s%s  %s%s%s%s%s", before, text ? text : "", where ? where : "",
					     caller ? "  < " : "", caller ? caller : "", caller ? "  " : "",
					     caller_where ? caller_where : ""));
	free(text);
	free(where);
	free(caller);
	free(caller_where);
}

static unsigned print_failures(const struct selection *sel)
{
	uint64_t count;
	const struct model_failure *worst = worst_failure(sel, &count);
	if (!worst)
		return 0;
	const struct process *p = reader_process(sel->reader, worst->process);
	char *others = count > 1 ? output_format("; %s more failed", COUNT(count - 1)) : NULL;
	const char *hook = process_hook(p, worst->hook), *behind = others ? others : "";
	char *forms[] = {
		output_format("FAILED  %s of %s bytes (%s) at %s in %u %s%s", hook, EXACT(worst->largest_bytes),
			      BYTES(worst->largest_bytes), DURATION(worst->last_ns), p->pid, p->name, behind),
		output_format("FAILED  %s of %s at %s in %u %s%s", hook, BYTES(worst->largest_bytes),
			      DURATION(worst->last_ns), p->pid, p->name, behind),
	};
	output_first_line(STYLE_BAD, forms, 2);
	free(others);
	struct stack_site site = stacks_site(sel->stacks, stacks_of(sel->stacks, p, worst->node, worst->node2),
					     selection_flags(sel->options));
	print_site(STYLE_BAD, "        ", &site);
	return 2;
}

/* ---- sizes, temporaries, survivors --------------------------------------------------------------------- */

static uint64_t sum_bins(const struct model_bin *bins, unsigned from, unsigned to)
{
	uint64_t sum = 0;
	for (unsigned i = from; i <= to; i++)
		sum += bins[i].allocations;
	return sum;
}

#define SIZES_COLUMNS 29 /* of the heading */

static void print_sizes(const struct selection *sel)
{
	static const struct {
		const char *name;
		unsigned from, to;
	} groups[] = {
		{ "<64 B", 0, 6 },    { "256 B", 7, 8 },   { "1 KiB", 9, 10 },   { "4 KiB", 11, 12 },
		{ "64 KiB", 13, 16 }, { "1 MiB", 17, 20 }, { "16 MiB", 21, 24 }, { "larger", 25, MODEL_BINS - 1 },
	};
	struct model_bin bins[MODEL_BINS];
	model_bins(sel->model, bins);
	uint64_t all = sum_bins(bins, 0, MODEL_BINS - 1);
	print("\n");
	if (all == 0)
		return;
	print("%s%-12s%sallocations in %%:", output_begin(STYLE_HEAD), "SIZES", output_end(STYLE_HEAD));
	int column = SIZES_COLUMNS;
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		uint64_t part = sum_bins(bins, groups[i].from, groups[i].to);
		char *text = part > all / 500 ? output_format("%s %s", groups[i].name, PERCENT(part, all)) : NULL;
		if (!text)
			continue;
		bool wraps = column + 2 + output_columns(text) >= output_width(); /* a comma may follow */
		print(wraps ? "%s\n%12s%s" : "%s %.0s%s", column != SIZES_COLUMNS ? "," : "", "", text);
		column = (wraps ? 12 : column + 2) + output_columns(text);
		free(text);
	}
	print("\n");
}

/* One line: heading, facts, and the owner they are about. */
static void print_best(const char *heading, const char *facts, const struct owner *o)
{
	char *name = owner_text(o), *where = o->frame && o->frame->file ? frame_where(o->frame) : NULL;
	char *line = output_format("%s%s%s", name ? name : "", where ? "  " : "", where ? where : "");
	char *fitted = line ? output_tail(line, output_width() - 14 - output_columns(facts)) : NULL;
	print("%s%-12s%s%s  %s\n", output_begin(STYLE_HEAD), heading, output_end(STYLE_HEAD), facts,
	      fitted ? fitted : "");
	free(fitted);
	free(line);
	free(name);
	free(where);
}

static const struct owner *most_blocks(const struct owners *s)
{
	const struct owner *best = NULL;
	for (size_t i = 0; s && i < s->count; i++)
		if (!best || s->owners[i].blocks > best->blocks)
			best = &s->owners[i];
	return best;
}

static void print_temporary(const struct report *r)
{
	const struct owner *o = most_blocks(r->temporary);
	struct model_totals heap = model_totals(r->selection->model, MODEL_HEAP);
	if (!o)
		return;
	char *facts = output_format("%s %% %sfreed at once, most (%s) in", PERCENT(heap.temporary, heap.allocations),
				    output_width() < REPORT_WIDE ? "" : "of allocations were ", COUNT(o->blocks));
	print_best("TEMPORARY", facts ? facts : "", o);
	free(facts);
}

/* Without what libraries and interpreter keep, so that what is left may be a leak. */
static void print_survivors(const struct report *r)
{
	const struct owners *s = r->survivors;
	const struct owner *most = NULL;
	uint64_t bytes = 0, blocks = 0;
	bool folded = false;
	for (size_t i = 0; s && i < s->count; i++) {
		const struct owner *o = &s->owners[i];
		if (!most && !o->folded)
			most = o;
		bytes += o->folded ? 0 : o->bytes;
		blocks += o->folded ? 0 : o->blocks;
		folded = folded || o->folded;
	}
	if (!most)
		return;
	char *facts =
		output_format("%s in %s block%s%s, most (%s) of", BYTES(bytes), COUNT(blocks), blocks == 1 ? "" : "s",
			      folded && output_width() >= REPORT_WIDE ? " (not libraries')" : "", BYTES(most->bytes));
	print_best("LEFT ALIVE", facts ? facts : "", most);
	free(facts);
}

static unsigned print_tail(const struct report *r, unsigned room)
{
	(void)room;
	print_sizes(r->selection);
	return 2;
}

/* ---- the parts, and which of them fit ------------------------------------------------------------------- */

static unsigned recorded(const struct report *r, unsigned room)
{
	(void)room;
	char *text = selection_parts(r->selection, r->brief);
	unsigned lines = text ? output_wrapped(text, 0, 3, output_width(), NULL) : 0;
	free(text);
	return lines;
}

static unsigned incomplete(const struct report *r, unsigned room)
{
	(void)room;
	return r->analysis.losses.complete ? 0 : print_incomplete(r);
}
static unsigned failures(const struct report *r, unsigned room)
{
	(void)room;
	return print_failures(r->selection);
}
static unsigned kills(const struct report *r, unsigned room)
{
	(void)room;
	return report_print_kills(r);
}
static unsigned full(const struct report *r, unsigned room)
{
	(void)room;
	return report_print_full(r);
}
/* Of one alone the ledger says enough. */
static unsigned devices(const struct report *r, unsigned room)
{
	(void)room;
	return model_devices(r->selection->model) > 1 || !(r->brief || report_is_trouble(r)) ? report_print_devices(r)
											     : 0;
}

static unsigned times(const struct report *r, unsigned room)
{
	(void)room;
	return report_print_device_times(r);
}
static unsigned growth(const struct report *r, unsigned room)
{
	(void)room;
	return report_print_growth(r);
}
static unsigned processes(const struct report *r, unsigned room)
{
	(void)room;
	return report_print_processes(r);
}
static unsigned temporary(const struct report *r, unsigned room)
{
	(void)room;
	print_temporary(r);
	return r->temporary && r->temporary->count;
}
static unsigned survivors(const struct report *r, unsigned room)
{
	(void)room;
	print_survivors(r);
	return 1;
}
static unsigned gaps(const struct report *r, unsigned room)
{
	(void)room;
	print_gaps(r);
	return count_gaps(r);
}

#define ALWAYS 100

/* What it is about: nothing is wrong, a device, or the host alone. */
enum trouble { NO_TROUBLE, TROUBLE_DEVICE, TROUBLE_HOST, TROUBLES };

enum form { FORM_BRIEF, FORM_ALL, FORMS };

/* In order of their place, which for one of them is not the same in both forms. Where not all fit those with the lowest
 * worth are left out; worth 0 says nothing in that case. */
static const struct part {
	unsigned (*print)(const struct report *r, unsigned room);
	int worth[FORMS][TROUBLES];
	unsigned least[FORMS]; /* lines for less than which it is not printed; it is given all that is left */
} parts[] = {
	{ print_title, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ recorded, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ incomplete, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ report_print_ooms, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ kills, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ failures, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ report_print_headline, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ report_print_causes, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ report_print_facts, { { 0, 0, 0 }, { 84, 5, 5 } }, { 0, 0 } },
	{ report_print_advice, { { ALWAYS, ALWAYS, ALWAYS }, { 0, 0, 0 } }, { 0, 0 } },
	{ full, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ report_print_ledger, { { 88, 90, 20 }, { 88, 90, 20 } }, { 4, 0 } },
	{ devices, { { 80, 30, 15 }, { 80, 30, 15 } }, { 0, 0 } },
	{ times, { { 65, 60, 18 }, { 70, 60, 18 } }, { 0, 0 } },
	{ growth, { { 85, 85, 85 }, { 85, 85, 85 } }, { 0, 0 } },
	{ report_print_phases, { { 0, 65, 0 }, { 0, 65, 0 } }, { 0, 0 } },
	{ print_totals, { { 95, 40, 75 }, { 95, 40, 86 } }, { 0, 0 } },
	{ processes, { { 90, 45, 76 }, { 90, 45, 87 } }, { 0, 0 } },
	{ report_print_alive, { { 45, 50, 10 }, { 88, 80, 80 } }, { 1, 6 } },
	{ report_print_host, { { 40, 20, 84 }, { 60, 50, 84 } }, { 7, 8 } },
	{ report_print_device_owners, { { 87, 88, 0 }, { 87, 0, 0 } }, { 4, 9 } },
	{ report_print_heap_owners, { { 86, 0, 80 }, { 86, 0, 60 } }, { 4, 9 } },
	{ report_print_other_owners, { { 55, 0, 10 }, { 55, 0, 10 } }, { 3, 0 } },
	{ print_tail, { { 0, 0, 0 }, { 50, 0, 0 } }, { 0, 0 } },
	{ temporary, { { 0, 0, 0 }, { 58, 0, 0 } }, { 0, 0 } },
	{ survivors, { { 0, 0, 0 }, { 58, 0, 8 } }, { 0, 0 } },
	{ gaps, { { ALWAYS, ALWAYS, ALWAYS }, { 92, 70, 70 } }, { 0, 0 } },
	{ report_print_advice, { { 0, 0, 0 }, { ALWAYS, ALWAYS, ALWAYS } }, { 0, 0 } },
	{ report_print_unknown, { { 70, 70, 70 }, { 95, 95, 95 } }, { 0, 0 } },
	{ report_print_more, { { ALWAYS, ALWAYS, ALWAYS }, { ALWAYS, ALWAYS, ALWAYS } }, { 2, 0 } },
};

enum { PARTS = sizeof(parts) / sizeof(*parts) };

#define NAMED_PROCESSES 86 /* what the table of processes is worth where WHY names one by its number */

struct rendered {
	char *text;
	unsigned lines;
	bool shown, wants_gap, gap;
}; /* gap: an empty line before it */

/* A page that is being filled. */
struct page {
	const struct report *report;
	enum form form;
	enum trouble trouble;
	bool names_process; /* WHY names one of several by its number */
	unsigned lines;     /* it has */
	struct rendered list[PARTS];
};

static unsigned count_lines(const char *text)
{
	unsigned lines = 0;
	for (; text && *text; text++)
		lines += *text == '\n';
	return lines;
}

static bool is_shown_process(const struct selection *sel, uint64_t pid)
{
	for (unsigned id = 0; id < reader_processes(sel->reader); id++)
		if (reader_process(sel->reader, id)->pid == pid && selection_has(sel, reader_process(sel->reader, id)))
			return true;
	return false;
}

/* Of the host's verdicts: those on a device have its own table. */
static bool names_process(const struct report *r)
{
	const struct verdicts *v = &r->analysis.diagnosis->verdicts;
	if (report_process_count(r->selection) < 2)
		return false;
	for (size_t i = 0; i < v->held_count; i++) {
		const struct reasons *why = &v->held[i].evidence;
		if (v->held[i].device)
			continue;
		for (size_t k = 0; k < why->count; k++)
			if (is_shown_process(r->selection, why->items[k].figures.pid))
				return true;
	}
	return false;
}

static int worth_of(const struct page *page, int i)
{
	const int worth = parts[i].worth[page->form][page->trouble];
	return page->names_process && parts[i].print == processes && worth < NAMED_PROCESSES ? NAMED_PROCESSES : worth;
}

/* A part prints into memory: the page decides whether it is shown, and about the empty line before it. */
static void render(struct page *page, int i, unsigned room)
{
	struct rendered *out = &page->list[i];
	size_t size;
	free(out->text);
	*out = (struct rendered){ .shown = out->shown };
	FILE *f = open_memstream(&out->text, &size);
	if (f) {
		FILE *before = print_into(f);
		parts[i].print(page->report, room);
		print_into(before);
		fclose(f);
	}
	out->wants_gap = out->text && *out->text == '\n';
	if (out->wants_gap)
		memmove(out->text, out->text + 1, strlen(out->text));
	out->gap = out->wants_gap && page->form == FORM_ALL;
	out->lines = count_lines(out->text) + out->gap;
}

static unsigned lines_left(const struct page *page)
{
	unsigned used = 0;
	for (int i = 0; i < PARTS; i++)
		used += page->list[i].shown ? page->list[i].lines : 0;
	return used < page->lines ? page->lines - used : 0;
}

/* Its rows are as many as -n says, however many lines that takes. */
static bool is_asked_for(const struct report *r, const struct part *p)
{
	return r->selection->options->rows &&
	       (p->print == report_print_heap_owners || p->print == report_print_device_owners);
}

/* Of the summary: empty lines where there is room for them, the upper ones first. */
static void space(struct page *page, unsigned most)
{
	for (int i = 0; page->form == FORM_BRIEF && i < PARTS; i++) {
		struct rendered *r = &page->list[i];
		if (!r->wants_gap || r->gap || !r->shown || !r->lines || !most || !lines_left(page))
			continue;
		r->gap = true;
		r->lines++;
		most--;
	}
}

/* By falling worth, as long as they fit. */
static void choose(struct page *page)
{
	for (int worth = ALWAYS; worth > 0; worth--) {
		if (worth == SHORT_COMMAND)
			space(page, FEW_GAPS);
		for (int i = 0; i < PARTS; i++) {
			const unsigned left = lines_left(page), least = parts[i].least[page->form];
			const bool asked = is_asked_for(page->report, &parts[i]);
			if (worth_of(page, i) != worth || (least > left && !asked))
				continue;
			const unsigned enough = page->form == FORM_ALL || worth == ALWAYS ? least
						: left < ENOUGH                           ? left
											  : ENOUGH;
			render(page, i, !least ? left : enough > least ? enough : least);
			page->list[i].shown = worth == ALWAYS || asked || page->list[i].lines <= left;
		}
	}
}

/* What can use more room has the rest, by falling worth; what is always there comes last. */
static void widen(struct page *page)
{
	for (int n = 1; n <= ALWAYS; n++)
		for (int i = 0; i < PARTS; i++) {
			struct rendered *r = &page->list[i];
			const bool gap = r->gap;
			if (worth_of(page, i) != (ALWAYS - n ? ALWAYS - n : ALWAYS) || !parts[i].least[page->form] ||
			    !r->shown || !lines_left(page))
				continue;
			render(page, i, r->lines - (gap && page->form == FORM_BRIEF) + lines_left(page));
			r->lines += gap && page->form == FORM_BRIEF;
			r->gap = gap;
		}
}

/* Colours take no columns, so lines with them are left to their parts; so are commands, which are to be copied. */
static void show_line(const char *line, bool cut)
{
	char *fitted = !cut || strchr(line, '\033') ? NULL : output_cut(line, output_width());
	print_as_is(fitted ? fitted : line, strlen(fitted ? fitted : line));
	print("\n");
	free(fitted);
}

static void show(struct page *page)
{
	for (int i = 0; i < PARTS; i++) {
		const struct rendered *r = &page->list[i];
		if (r->shown && r->gap)
			print("\n");
		for (char *line = r->shown ? r->text : NULL, *end; line && *line; line = end + 1) {
			end = strchr(line, '\n');
			if (!end)
				break;
			*end = 0;
			show_line(line, parts[i].print != report_print_more);
		}
	}
}

static unsigned brief_lines(void)
{
	int rows = output_rows() - 1;
	return rows < BRIEF_LINES ? BRIEF_LINES : rows > MOST_BRIEF_LINES ? MOST_BRIEF_LINES : (unsigned)rows;
}

void report_print(const struct report *r)
{
	struct page page = { .report = r, .form = r->brief ? FORM_BRIEF : FORM_ALL };
	if (r->brief)
		output_assume_width(BRIEF_COLUMNS);
	page.lines = r->brief ? brief_lines() : output_width() < REPORT_WIDE ? NARROW_LINES : SCREEN_LINES;
	page.names_process = names_process(r);
	page.trouble = !report_is_trouble(r) ? NO_TROUBLE : report_device(r) ? TROUBLE_DEVICE : TROUBLE_HOST;
	choose(&page);
	widen(&page);
	space(&page, PARTS);
	show(&page);
	for (int i = 0; i < PARTS; i++)
		free(page.list[i].text);
}
