/* SARIF 2.1.0, which code scanning of GitHub, GitLab and Azure DevOps reads: one run, a rule for each kind of finding.
 * */
#include "analyzer/report/ci/ci.h"
#include "analyzer/report/json/json.h"
#include "format/version.h"

#include <ctype.h>
#include <string.h>

static json_t *text_object(const char *text)
{
	json_t *o = json_object();
	json_object_set_new(o, "text", json_text(text));
	return o;
}

/* A URI has no blanks and the like in it: what is no letter, digit or -._~/ is %XX. */
static json_t *uri_of(const char *file)
{
	static const char digits[] = "0123456789ABCDEF";
	char text[3 * 4096 + 8] = "", *out = text;
	if (*file == '/') {
		memcpy(out, "file://", 7);
		out += 7;
	}
	for (const unsigned char *c = (const unsigned char *)file; *c && out < text + sizeof(text) - 4; c++) {
		if (isalnum(*c) || strchr("-._~/", *c)) {
			*out++ = (char)*c;
		} else {
			*out++ = '%';
			*out++ = digits[*c >> 4];
			*out++ = digits[*c & 15];
		}
	}
	*out = '\0';
	return json_string(text);
}

static json_t *location(const struct ci_finding *f)
{
	json_t *artifact = json_object(), *region = json_object(), *physical = json_object(), *o = json_object();
	json_object_set_new(artifact, "uri", uri_of(f->file));
	json_object_set_new(region, "startLine", json_integer(f->line));
	json_object_set_new(physical, "artifactLocation", artifact);
	json_object_set_new(physical, "region", region);
	json_object_set_new(o, "physicalLocation", physical);
	return o;
}

static json_t *result(const struct ci *ci, const struct ci_finding *f)
{
	json_t *o = json_object(), *locations = json_array();
	if (f->file)
		json_array_append_new(locations, location(f));
	json_object_set_new(o, "ruleId", json_sprintf("memtrace/%s/%s", ci->command, f->rule));
	json_object_set_new(o, "level", json_string(f->fails ? "error" : "warning"));
	json_object_set_new(o, "message", text_object(f->text));
	json_object_set_new(o, "locations", locations);
	return o;
}

/* Each kind once. */
static json_t *rules(const struct ci *ci)
{
	json_t *list = json_array();
	for (size_t i = 0; i < ci->count; i++) {
		size_t first = 0;
		while (strcmp(ci->findings[first].rule, ci->findings[i].rule) != 0)
			first++;
		if (first < i)
			continue;
		json_t *rule = json_object();
		json_object_set_new(rule, "id", json_sprintf("memtrace/%s/%s", ci->command, ci->findings[i].rule));
		json_array_append_new(list, rule);
	}
	return list;
}

static void print_sarif(const struct ci *ci)
{
	json_t *driver = json_object(), *tool = json_object(), *run = json_object(), *root = json_object(),
	       *runs = json_array(), *results = json_array();
	for (size_t i = 0; i < ci->count; i++)
		json_array_append_new(results, result(ci, &ci->findings[i]));
	json_object_set_new(driver, "name", json_string("memtrace"));
	json_object_set_new(driver, "version", json_string(MEMTRACE_VERSION));
	json_object_set_new(driver, "rules", rules(ci));
	json_object_set_new(tool, "driver", driver);
	json_object_set_new(run, "tool", tool);
	json_object_set_new(run, "results", results);
	json_array_append_new(runs, run);
	json_object_set_new(root, "$schema", json_string("https://json.schemastore.org/sarif-2.1.0.json"));
	json_object_set_new(root, "version", json_string("2.1.0"));
	json_object_set_new(root, "runs", runs);
	json_print(root);
}

const struct ci_format ci_sarif = { "sarif", print_sarif };
