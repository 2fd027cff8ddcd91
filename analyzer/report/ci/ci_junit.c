/* JUnit's XML, which about every CI system reads: a test case for each finding, and one that passes where there is
 * none. Remarks are what a passing case has printed. */
#include "analyzer/report/ci/ci.h"

#include "analyzer/util/print.h"

#include <string.h>

static void print_escaped(const char *text)
{
	for (size_t n; *text; text += n) {
		n = strcspn(text, "&<>\"");
		print("%.*s", (int)n, text);
		if (text[n]) {
			print("&%s;", text[n] == '&' ? "amp" : text[n] == '<' ? "lt" : text[n] == '>' ? "gt" : "quot");
			n++;
		}
	}
}

static void print_case(const struct ci *ci, const struct ci_finding *f)
{
	print("  <testcase classname=\"memtrace.%s\" name=\"", ci->command);
	print_escaped(f->rule);
	if (f->file) {
		print("\" file=\"");
		print_escaped(f->file);
		print("\" line=\"%u", f->line);
	}
	print("\">\n    <%s", f->fails ? "failure message=\"" : "system-out>");
	print_escaped(f->text);
	print(f->fails ? "\"/>\n  </testcase>\n" : "</system-out>\n  </testcase>\n");
}

static void print_junit(const struct ci *ci)
{
	size_t failures = 0, cases = ci->count ? ci->count : 1;
	for (size_t i = 0; i < ci->count; i++)
		failures += ci->findings[i].fails;
	print("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n",
	      cases, failures);
	print(" <testsuite name=\"memtrace %s\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"0\">\n",
	      ci->command, cases, failures);
	for (size_t i = 0; i < ci->count; i++)
		print_case(ci, &ci->findings[i]);
	if (!ci->count)
		print("  <testcase classname=\"memtrace.%s\" name=\"nothing found\"/>\n", ci->command);
	print(" </testsuite>\n</testsuites>\n");
}

const struct ci_format ci_junit = { "junit", print_junit };
