/*
 * What a report has to complain of: memory that was refused or that the kernel killed for, and the causes. It is made
 * of the object that --json prints, as Markdown is.
 */
#include "analyzer/report/screen/report.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	return text ? text : "";
}

static uint64_t number_of(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

/* The innermost frame of Python with a line, else the innermost that has one. */
static const json_t *telling_frame(const json_t *stack)
{
	const json_t *any = NULL;
	for (size_t i = 0; i < json_array_size(stack); i++) {
		const json_t *f = json_array_get(stack, i);
		bool known = number_of(f, "line") && *text_of(f, "file") && *text_of(f, "file") != '<';
		if (known && !strcmp(text_of(f, "language"), "python"))
			return f;
		any = any || !known ? any : f;
	}
	return any;
}

/* Is this the frame that a screen calls "train.py:12 main"? */
static bool is_place(const json_t *f, const char *place)
{
	const char *file = text_of(f, "file"), *slash = strrchr(file, '/');
	char text[512];
	int n = snprintf(text, sizeof(text), "%s:%u", slash ? slash + 1 : file, (unsigned)number_of(f, "line"));
	return *file && n > 0 && (size_t)n < sizeof(text) && !strncmp(place, text, (size_t)n) &&
	       !(place[n] >= '0' && place[n] <= '9');
}

static const json_t *frame_at(const json_t *stack, const char *place)
{
	for (size_t i = 0; i < json_array_size(stack); i++)
		if (is_place(json_array_get(stack, i), place))
			return json_array_get(stack, i);
	return NULL;
}

/* Where the file of a verdict's place lies: a stack of an owner or of a failure has that line. */
static const json_t *find_place(const json_t *root, const char *place)
{
	const json_t *sites = json_object_get(root, "sites"), *devices = json_object_get(root, "devices"), *f = NULL;
	for (size_t i = 0; !f && i < json_array_size(sites); i++)
		f = frame_at(json_object_get(json_array_get(sites, i), "stack"), place);
	for (size_t i = 0; !f && i < json_array_size(devices); i++) {
		const json_t *ooms = json_object_get(json_array_get(devices, i), "ooms");
		for (size_t k = 0; !f && k < json_array_size(ooms); k++)
			f = frame_at(json_object_get(json_array_get(ooms, k), "stack"), place);
	}
	return f;
}

static void add_at(struct ci *ci, bool fails, const char *rule, char *text, const json_t *frame)
{
	ci_add(ci, fails, rule, text, frame ? text_of(frame, "file") : NULL,
	       frame ? (uint32_t)number_of(frame, "line") : 0);
}

static void add_failures(struct ci *ci, const json_t *devices)
{
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *d = json_array_get(devices, i), *ooms = json_object_get(d, "ooms");
		for (size_t k = 0; k < json_array_size(ooms); k++) {
			const json_t *o = json_array_get(ooms, k);
			add_at(ci, strcmp(text_of(o, "outcome"), "caught") != 0, "out of memory",
			       output_format("%s refused %s to process %u (%s)", text_of(d, "name"),
					     BYTES(number_of(o, "requested_bytes")), (unsigned)number_of(o, "pid"),
					     text_of(o, "outcome")),
			       telling_frame(json_object_get(o, "stack")));
		}
	}
}

static void add_kills(struct ci *ci, const json_t *processes)
{
	for (size_t i = 0; i < json_array_size(processes); i++) {
		const json_t *p = json_array_get(processes, i);
		const char *killed = text_of(json_object_get(p, "exit"), "oom_killed");
		if (*killed && strcmp(killed, "no") != 0)
			ci_add(ci, true, "killed",
			       output_format("the kernel killed process %u %s for want of memory%s",
					     (unsigned)number_of(p, "pid"), text_of(p, "name"),
					     strcmp(killed, "yes") ? " (likely)" : ""),
			       NULL, 0);
	}
}

static void add_verdicts(struct ci *ci, bool failed, const json_t *root, const char *key)
{
	const json_t *verdicts = json_object_get(root, key);
	for (size_t i = 0; i < json_array_size(verdicts); i++) {
		const json_t *v = json_array_get(verdicts, i);
		const char *place = json_string_value(json_array_get(json_object_get(v, "sites"), 0)),
			   *advice = text_of(v, "advice");
		add_at(ci, failed, text_of(v, "kind"),
		       output_format("%s: %s, %s: %s%s%s", text_of(v, "device"), BYTES(number_of(v, "bytes")),
				     text_of(v, "certainty"), text_of(v, "evidence"), *advice ? ". To do: " : "",
				     advice),
		       place ? find_place(root, place) : NULL);
	}
}

static void add_full(struct ci *ci, const json_t *full)
{
	for (size_t i = 0; i < json_array_size(full); i++) {
		const json_t *f = json_array_get(full, i);
		ci_add(ci, false, "nearly full",
		       output_format("%s: %s of %s were in use", text_of(f, "name"), BYTES(number_of(f, "used_bytes")),
				     BYTES(number_of(f, "total_bytes"))),
		       NULL, 0);
	}
}

int report_add_findings(const struct report *r, struct ci *ci)
{
	json_t *root = report_json(r);
	if (!root)
		return error_memory();
	add_failures(ci, json_object_get(root, "devices"));
	add_kills(ci, json_object_get(root, "processes"));
	add_verdicts(ci, strcmp(text_of(root, "status"), "ok") != 0, root, "verdicts");
	add_verdicts(ci, false, root, "facts");
	add_full(ci, json_object_get(root, "nearly_full"));
	json_decref(root);
	return 0;
}
