/* Workflow commands of GitHub Actions: a line each, which becomes an annotation of the file. '%' and what parts
 * properties are %XX in them. */
#include "analyzer/report/ci/ci.h"

#include "analyzer/util/print.h"

#include <inttypes.h>
#include <string.h>

static void print_escaped(const char *text, const char *special)
{
	for (size_t n; *text; text += n) {
		n = strcspn(text, special);
		print("%.*s", (int)n, text);
		if (text[n])
			print("%%%02X", (unsigned)text[n++]);
	}
}

static void print_github(const struct ci *ci)
{
	for (size_t i = 0; i < ci->count; i++) {
		const struct ci_finding *f = &ci->findings[i];
		print("::%s ", f->fails ? "error" : "warning");
		if (f->file) {
			print("file=");
			print_escaped(f->file, "%:,");
			print(",line=%" PRIu32 ",", f->line);
		}
		print("title=memtrace %s ", ci->command);
		print_escaped(f->rule, "%:,");
		print("::");
		print_escaped(f->text, "%");
		print("\n");
	}
}

const struct ci_format ci_github = { "github", print_github };
