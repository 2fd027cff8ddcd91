/*
 * The report as Markdown (GitHub's, with tables), to be pasted into an issue. It is made of the object that --json
 * prints, so that no figure of it is its own.
 *
 * Names mean nothing in it: what Markdown, HTML or a forge would obey has a backslash or is an entity.
 */
#include "analyzer/report/screen/report.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OWNERS = 5, NAME_COLUMNS = 80 };

static void print_name(const char *text)
{
	for (size_t n; *text; text += n) {
		n = strcspn(text, "\\`*_{}[]()<>#+-.!|~&@:");
		print("%.*s", (int)n, text);
		text += n;
		n = 0;
		if (!*text)
			break;
		if (*text == '@')
			print("&#64;");
		else if (*text == '&')
			print("&amp;");
		else if (strchr("+-.():", *text))
			print("%c", *text); /* means something at the start of a line alone, where none of these are */
		else
			print("\\%c", *text);
		text++;
	}
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	return text ? text : "";
}

static uint64_t bytes_of(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

static uint64_t nanoseconds(const json_t *seconds)
{
	return (uint64_t)(json_number_value(seconds) * 1e9);
}

/* ---- table ----------------------------------------------------------------------------------------------- */

static void print_heads(const char *const *heads, const char *alignment)
{
	print("|");
	for (size_t i = 0; heads[i]; i++)
		print(" %s |", heads[i]);
	print("\n|");
	for (size_t i = 0; heads[i]; i++)
		print(alignment[i] == 'r' ? "---:|" : "---|");
	print("\n");
}

static void print_cell(const char *text)
{
	print(" ");
	print_name(text);
	print(" |");
}

static void print_bytes(const json_t *n)
{
	if (json_is_integer(n))
		print(" %s |", BYTES((uint64_t)json_integer_value(n)));
	else
		print("  |");
}

static void print_title(const char *title)
{
	print("\n## %s\n\n", title);
}

/* ---- parts ----------------------------------------------------------------------------------------------- */

static void print_head(const json_t *root)
{
	json_t *command = json_object_get(root, "command");
	print("# memtrace: %s\n\n", text_of(root, "status"));
	for (size_t i = 0; i < json_array_size(command); i++) {
		print("%s", i ? " " : "");
		const char *word = json_string_value(json_array_get(command, i));
		print_name(word ? word : "?");
	}
	size_t processes = json_array_size(json_object_get(root, "processes"));
	print("  \n%zu %s on ", processes, processes == 1 ? "process" : "processes");
	print_name(text_of(root, "hostname"));
	print(", %s, %s%s\n", text_of(root, "start"), DURATION(nanoseconds(json_object_get(root, "duration_s"))),
	      json_is_true(json_object_get(root, "complete")) ? "" : ", **incomplete**");
}

/* The innermost frame of Python, else the innermost. */
static const json_t *telling_frame(const json_t *stack)
{
	for (size_t i = 0; i < json_array_size(stack); i++)
		if (!strcmp(text_of(json_array_get(stack, i), "language"), "python"))
			return json_array_get(stack, i);
	return json_array_get(stack, 0);
}

/* "train.py:12 forward" */
static void print_site(const json_t *stack)
{
	const json_t *f = telling_frame(stack);
	const json_t *line = json_object_get(f, "line");
	const char *file = text_of(f, "file"), *slash = strrchr(file, '/');
	print(" ");
	print_name(slash ? slash + 1 : file);
	if (*file && json_is_integer(line))
		print(":%" PRIu64, (uint64_t)json_integer_value(line));
	print("%s", *file ? " " : "");
	char *function = output_cut(f ? text_of(f, "function") : "(no stack)", NAME_COLUMNS);
	print_name(function ? function : "");
	free(function);
	print(" |");
}

static void print_failures(const json_t *devices)
{
	static const char *const heads[] = { "time", "device", "pid", "asked for", "free", "outcome", "where", NULL };
	bool any = false;
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *d = json_array_get(devices, i), *ooms = json_object_get(d, "ooms");
		for (size_t k = 0; k < json_array_size(ooms); k++) {
			const json_t *o = json_array_get(ooms, k);
			if (!any) {
				print_title("Out of memory");
				print_heads(heads, "rlrrrll");
			}
			any = true;
			print("| %s |", DURATION(nanoseconds(json_object_get(o, "time_s"))));
			print_cell(text_of(d, "name"));
			print(" %" PRIu64 " |", bytes_of(o, "pid"));
			print_bytes(json_object_get(o, "requested_bytes"));
			print_bytes(json_object_get(o, "free_bytes"));
			print_cell(text_of(o, "outcome"));
			print_site(json_object_get(o, "stack"));
			print("\n");
		}
	}
}

static void print_verdicts(const char *title, const char *first, const json_t *verdicts)
{
	const char *const heads[] = { first, "of", "bytes", "certainty", "evidence", NULL };
	if (json_array_size(verdicts)) {
		print_title(title);
		print_heads(heads, "llrll");
	}
	for (size_t i = 0; i < json_array_size(verdicts); i++) {
		const json_t *v = json_array_get(verdicts, i);
		print("|");
		print_cell(text_of(v, "kind"));
		print_cell(text_of(v, "device"));
		print_bytes(json_object_get(v, "bytes"));
		print_cell(text_of(v, "certainty"));
		print_cell(text_of(v, "evidence"));
		print("\n");
	}
}

/* Somewhere: on the host, or on a device. */
static bool is_open(const json_t *list, const char *kind)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);
		if (!strcmp(text_of(v, "kind"), kind) && json_is_true(json_object_get(v, "open")))
			return true;
	}
	return false;
}

static void print_kinds(const char *before, const json_t *list, bool open)
{
	const char *last = NULL;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *kind = text_of(json_array_get(list, i), "kind");
		if (is_open(list, kind) != open || (last && !strcmp(kind, last))) /* of another device */
			continue;
		print(last ? ", " : before);
		print_name(kind);
		last = kind;
	}
	print(last ? "\n" : "");
}

static void print_why(const json_t *root)
{
	const json_t *out = json_object_get(root, "ruled_out");
	print_verdicts("Why", "cause", json_object_get(root, "verdicts"));
	print_verdicts("Grows", "how", json_object_get(root, "facts"));
	print_kinds("\nRuled out: ", out, false);
	print_kinds("\nCan't tell: ", out, true);
}

static void print_advice(const json_t *verdicts)
{
	unsigned number = 0;
	for (size_t i = 0; i < json_array_size(verdicts); i++) {
		const char *advice = text_of(json_array_get(verdicts, i), "advice");
		if (!*advice)
			continue;
		if (!number)
			print_title("What to do");
		print("%u. ", ++number);
		print_name(advice);
		print("\n");
	}
}

static void print_devices(const json_t *devices)
{
	static const char *const heads[] = { "device", "has", "peak", "pool at its peak", "pool reserved", NULL };
	if (!json_array_size(devices))
		return;
	print_title("Devices");
	print_heads(heads, "lrrrr");
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *d = json_array_get(devices, i), *pool = json_object_get(d, "pool");
		print("|");
		print_cell(text_of(d, "name"));
		print_bytes(json_object_get(d, "total_bytes"));
		print_bytes(json_object_get(d, "peak_bytes"));
		print_bytes(json_object_get(pool, "peak_allocated_bytes"));
		print_bytes(json_object_get(pool, "peak_reserved_bytes"));
		print("\n");
	}
}

static void print_host(const json_t *root)
{
	static const char *const heads[] = { "host", "peak", "at the end", "allocations", NULL };
	static const char *const kinds[][2] = { { "host", "heap" }, { "map", "mappings" }, { "pinned", "pinned" } };
	print_title("Host");
	print_heads(heads, "lrrr");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const json_t *o = json_object_get(root, kinds[i][0]);
		if (!bytes_of(o, "allocations"))
			continue;
		print("| %s |", kinds[i][1]);
		print_bytes(json_object_get(o, "peak_bytes"));
		print_bytes(json_object_get(o, "live_bytes"));
		print(" %s |\n", EXACT(bytes_of(o, "allocations")));
	}
}

static void print_owners(const json_t *sites)
{
	static const char *const heads[] = { "memory", "bytes", "blocks", "category", "where", NULL };
	if (!json_array_size(sites))
		return;
	print_title("Largest owners");
	print_heads(heads, "lrrll");
	unsigned shown = 0;
	for (size_t i = 0; i < json_array_size(sites); i++) {
		const json_t *s = json_array_get(sites, i);
		if (i && strcmp(text_of(s, "memory"), text_of(json_array_get(sites, i - 1), "memory")) != 0)
			shown = 0;
		if (shown++ >= OWNERS)
			continue;
		print("|");
		print_cell(text_of(s, "memory"));
		print_bytes(json_object_get(s, "bytes"));
		print(" %s |", EXACT(bytes_of(s, "blocks")));
		print_cell(text_of(s, "category"));
		print_site(json_object_get(s, "stack"));
		print("\n");
	}
}

static void print_unknown(const json_t *unknown)
{
	if (json_array_size(unknown))
		print_title("Not known");
	for (size_t i = 0; i < json_array_size(unknown); i++) {
		const char *text = json_string_value(json_array_get(unknown, i));
		print("- ");
		print_name(text ? text : "");
		print("\n");
	}
}

int report_print_markdown(const struct report *r)
{
	json_t *root = report_json(r);
	if (!root)
		return error_memory();
	print_head(root);
	print_failures(json_object_get(root, "devices"));
	print_why(root);
	print_advice(json_object_get(root, "verdicts"));
	print_devices(json_object_get(root, "devices"));
	print_host(root);
	print_owners(json_object_get(root, "sites"));
	print_unknown(json_object_get(root, "unknown"));
	json_decref(root);
	return 0;
}
