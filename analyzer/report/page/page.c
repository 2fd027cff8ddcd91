#include "analyzer/report/page/page.h"

#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_bundle.h"
#include "analyzer/report/page/page_internal.h"
#include "analyzer/util/base64.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/system/new_file.h"
#include "analyzer/util/vec.h"
#include "format/version.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MOST_STACKS = 1000, MOST_RECTANGLES = 200000, MOST_LISTED = 2000, MOST_LIVES = 6000, LEVEL = 6 };
enum { LINE = 3 * 1024 }; /* bytes that are encoded at once */

/* ---- data ---------------------------------------------------------------------------------------------------- */

/* What must stand behind each command, so that it is about this trace. */
static json_t *json_dirs(const struct options *o)
{
	json_t *list = json_array();
	for (int i = 0; i < o->ndirs; i++)
		json_array_append_new(list, json_text(options_shown(o, i)));
	return list;
}

/* Of them it is not known who allocated. */
static unsigned without_stacks(const struct selection *sel)
{
	unsigned count = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		count += selection_has(sel, p) && p->stacks == MT_STACKS_NONE;
	}
	return count;
}

static size_t detail_of(const struct page_content *c)
{
	return c->detail ? c->detail : 1;
}

/* As report --json has it, but for what there is too much of. */
static int add_report(json_t *o, const struct report *r, const bool *devices, size_t most)
{
	size_t left_out;
	bool *listed = page_processes(r, most, &left_out);
	struct report some = *r;
	some.listed = listed;
	json_t *report = listed ? report_json(&some) : NULL;
	if (report)
		page_lists_cut(o, report, r->selection, devices, most);
	json_object_set_new(o, "report", report);
	json_object_set_new(o, "processes_left_out", json_bytes(left_out));
	free(listed);
	return report ? 0 : error_memory();
}

/* With 1/part of the detail that was asked for. */
static json_t *page_data(const struct report *r, const struct page_content *c, json_t *holders, size_t part, int *error)
{
	json_t *o = json_object();
	struct page_tree *t = page_tree_new(r->selection);
	bool *devices = page_devices(r->selection);
	const size_t detail = detail_of(c);
	*error = t && devices ? 0 : error_memory();
	json_object_set_new(o, "version", json_integer(1));
	json_object_set_new(o, "memtrace", json_string(MEMTRACE_VERSION));
	json_object_set_new(o, "dirs", json_dirs(r->selection->options));
	json_object_set_new(o, "without_stacks", json_integer(without_stacks(r->selection)));
	if (*error == 0)
		*error = add_report(o, r, devices, MOST_LISTED * detail / part);
	json_object_set(o, "holders", holders);
	if (*error == 0)
		*error = page_stacks_json(o, r, t, devices, MOST_STACKS * detail / part);
	if (*error == 0) {
		page_maps_json(o, r, t, MOST_RECTANGLES * detail / part);
		page_blocks_json(o, r, t, devices, MOST_LIVES / part);
		page_series_json(o, r->selection, devices);
		page_resident_json(o, r);
		page_device_samples_json(o, r, devices);
		page_opens_json(o, r);
		page_moments_json(o, r, devices);
		page_growth_json(o, r, t, devices);
		page_tree_json(o, t);
		page_source_json(o, t, c->source);
		if (c->changes) {
			json_t *before = json_object();
			bool *then = page_devices(c->changes->before);
			if (then)
				page_series_json(before, c->changes->before, then);
			free(then);
			json_object_set_new(o, "before", before);
			json_object_set(o, "changes", c->changes->changes);
		}
	}
	page_tree_free(t);
	free(devices);
	return o;
}

struct packing {
	z_stream stream;
	unsigned char *out;
	size_t count, room;
	int error;
};

static void deflate_all(struct packing *p, int flush)
{
	int e = Z_OK;
	while (!p->error && e == Z_OK) {
		if ((p->error = vec_reserve_raw(p->out, p->room, p->count + (1 << 16))) < 0)
			return;
		p->stream.next_out = p->out + p->count;
		p->stream.avail_out = (unsigned)(p->room - p->count);
		e = deflate(&p->stream, flush);
		p->count = p->room - p->stream.avail_out;
		if (p->stream.avail_out && flush == Z_NO_FLUSH)
			return;
	}
}

static int pack_some(const char *text, size_t bytes, void *arg)
{
	struct packing *p = arg;
	p->stream.next_in = (unsigned char *)(uintptr_t)text;
	p->stream.avail_in = (unsigned)bytes;
	deflate_all(p, Z_NO_FLUSH);
	return p->error ? -1 : 0;
}

/* gzip of the JSON. Takes it. */
static int pack(struct packing *p, json_t *data)
{
	if (deflateInit2(&p->stream, LEVEL, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		p->error = error_memory();
	if (!p->error && json_dump_callback(data, pack_some, p, JSON_COMPACT | JSON_REAL_PRECISION(12)) < 0)
		p->error = error_memory();
	json_decref(data);
	p->stream.avail_in = 0;
	deflate_all(p, Z_FINISH);
	deflateEnd(&p->stream);
	return p->error;
}

/* As much as there is room for: less and less of what is small. */
static int pack_within(struct packing *p, const struct report *r, const struct page_content *c, size_t most)
{
	json_t *holders = json_array();
	int e = page_holders(holders, r->selection); /* once, as each process takes a pass over the events */
	for (size_t part = 1; part <= 64 && e == 0; part *= 2) {
		*p = (struct packing){ .out = p->out, .room = p->room };
		json_t *data = page_data(r, c, holders, part, &e);
		if (e < 0)
			json_decref(data);
		else
			e = pack(p, data);
		if (e == 0 && p->count / 3 * 4 <= most)
			break;
	}
	json_decref(holders);
	return e;
}

static void print_base64(FILE *f, const unsigned char *from, size_t count)
{
	char out[LINE / 3 * 4];
	for (size_t at = 0, n; at < count; at += n) {
		n = count - at < LINE ? count - at : LINE;
		base64_encode(from + at, n, out);
		fwrite(out, 1, BASE64_BYTES(n), f);
	}
}

/* ---- the file ------------------------------------------------------------------------------------------------ */

static void print_start(FILE *f, const struct report *r)
{
	const struct process *p = report_main_program(r);
	char *command = p ? report_command(p, 60) : NULL;
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", f);
	fprintf(f,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-%s'; "
		"style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n",
		page_script_hash, page_style_hash);
	fputs("<meta name=\"viewport\" content=\"width=device-width\">\n<title>memtrace: ", f);
	page_print_name(f, command);
	fprintf(f, "</title>\n<style>%s</style>\n</head>\n<body>\n", page_style);
}

static void print_rest(FILE *f, const struct report *r, const struct packing *data)
{
	char *text = page_report_text(r);
	fputs("<main id=\"app\"></main>\n<section id=\"text\">\n<h2>The report as text</h2>\n<pre>", f);
	page_print_text(f, text);
	fputs("</pre>\n</section>\n", f);
	free(text);
	if (*page_script) {
		fputs("<script type=\"application/gzip\" id=\"data\">", f);
		print_base64(f, data->out, data->count);
		fprintf(f, "</script>\n<script>%s</script>\n", page_script);
	} else {
		fputs("<p>This memtrace was built without the scripts of its page, for npm's packages were missing: make "
		      "setup-page.</p>\n",
		      f);
	}
	fputs("</body>\n</html>\n", f);
}

static int write_to(FILE *f, const struct report *r, const struct packing *data, const struct page_changes *changes,
		    const char *path, uint64_t *bytes)
{
	print_start(f, r);
	page_verdict_print(f, r, changes);
	print_rest(f, r, data);
	long size = ftell(f);
	*bytes = size > 0 ? (uint64_t)size : 0;
	return ferror(f) ? error_errno(MT_EOUTPUT, path, ERROR_NO_OFFSET) : 0;
}

static int write_file(const struct report *r, const struct packing *data, const struct page_changes *changes,
		      const char *path, uint64_t *bytes)
{
	struct new_file to;
	int e = new_file_open(&to, path);
	if (e < 0)
		return e;
	e = write_to(to.file, r, data, changes, path, bytes);
	const int closed = new_file_close(&to, e == 0);
	return e < 0 ? e : closed;
}

int page_write(const struct report *r, const char *path, const struct page_content *c, uint64_t *bytes)
{
	struct packing p = { 0 };
	const size_t own = strlen(page_script) + strlen(page_style) + (256 << 10);
	const size_t most = detail_of(c) * PAGE_MOST;
	int e = *page_script ? pack_within(&p, r, c, most - own) : 0;
	if (e == 0)
		e = write_file(r, &p, c->changes, path, bytes);
	free(p.out);
	return e;
}
