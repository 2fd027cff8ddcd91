/* memtrace html: the report as a page. */
#include "analyzer/commands/cmd_pack.h"
#include "analyzer/commands/commands.h"
#include "analyzer/analysis/open.h"
#include "analyzer/report/page/page.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/system/unnamed_file.h"

#include <inttypes.h>
#include <string.h>

struct html_options {
	struct options common;
	const char *output, *source;
	uint64_t detail;
	bool redact;
};

static const struct option_row rows[] = {
	{ "output", 'o', "FILE", OPTION_STRING, offsetof(struct html_options, output),
	  "write it there, not to memtrace.html", 0 },
	{ "source", 0, "WHICH", OPTION_STRING, offsetof(struct html_options, source),
	  "lines of code: here (below this directory), all, none", 0 },
	{ "detail", 0, "N", OPTION_NUMBER, offsetof(struct html_options, detail),
	  "N times the stacks and blocks, in a file of up to N times 5 MiB", 0 },
	{ "redact", 0, NULL, OPTION_FLAG, offsetof(struct html_options, redact),
	  "names, paths, arguments as hashes, as memtrace pack does it", 0 },
	{ "by", 0, "KEY", OPTION_BY, offsetof(struct html_options, common.by), "a flame graph for each",
	  1u << BY_THREAD },
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_RULES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_html_spec = {
	"memtrace html [-o FILE] [options] [DIR...]",
	"The report as one HTML file that needs nothing else: the verdict, memory over\n"
	"time, a flame graph of any moment or range, the map of segments and holes,\n"
	"owners, growth, processes. Prints the path of the file.",
	rows,
	OPTIONS_TEXT | OPTIONS_INDEX,
	"  memtrace html                           # of the newest trace here\n"
	"  memtrace html -o report.html --process worker\n"
	"  memtrace html --by thread               # which thread allocated what\n",
	"Read: docs/html.md",
};

static int source_of(const char *text, enum page_source *source)
{
	static const char *const names[] = {
		[PAGE_SOURCE_HERE] = "here", [PAGE_SOURCE_ALL] = "all", [PAGE_SOURCE_NONE] = "none"
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!text || !strcmp(text, names[i])) {
			*source = (enum page_source)i;
			return 0;
		}
	return error_set(MT_EUSAGE, "--source", ERROR_NO_OFFSET, "here, all or none, not %s", text);
}

static int html(struct selection *sel)
{
	const struct html_options *o = (const struct html_options *)(const void *)sel->options;
	const char *path = o->output ? o->output : "memtrace.html";
	struct report r = { .brief = true };
	struct page_content c = { .source = PAGE_SOURCE_HERE, .detail = o->detail };
	uint64_t bytes = 0;
	int e = source_of(o->source, &c.source);
	if (o->redact)
		c.source = PAGE_SOURCE_NONE;
	if (e == 0 && o->detail > PAGE_MOST_DETAIL)
		e = error_set(MT_EUSAGE, "--detail", ERROR_NO_OFFSET, "1 to %d, not %" PRIu64, PAGE_MOST_DETAIL,
			      o->detail);
	if (e == 0)
		e = report_make(&r, sel, ANALYSIS_WINDOWS);
	if (e == 0)
		e = page_write(&r, path, &c, &bytes);
	if (e == 0)
		print("%s\n", path);
	if (e == 0 && output_is_terminal())
		print_error("memtrace: %s, opens in any browser\n", BYTES(bytes));
	report_fini(&r);
	return e;
}

/* All that is told comes from a packed trace without a name, in which no name is left that says anything. */
static int html_redacted(struct html_options *o)
{
	char path[32];
	int e;
	FILE *packed = unnamed_stream(&e);
	if (packed) {
		e = pack_redacted(&o->common, packed);
		if (!e && fflush(packed))
			e = error_errno(MT_EOUTPUT, "TMPDIR", ERROR_NO_OFFSET);
	}
	if (e == 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(packed));
		o->common.dirs[0] = path;
		o->common.ndirs = 1;
		o->common.shown = "redacted.tar.zst";
		e = selection_answer(&cmd_html_spec, o, html);
	} else {
		options_free(&o->common);
	}
	if (packed)
		fclose(packed);
	return e;
}

int cmd_html(int argc, char **argv)
{
	struct html_options o = { 0 };
	int e = open_options(&cmd_html_spec, &o, argc, argv);
	if (e)
		return e > 0 ? 0 : e;
	return o.redact ? html_redacted(&o) : selection_answer(&cmd_html_spec, &o, html);
}
