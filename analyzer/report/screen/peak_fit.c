/*
 * What was needed at the most is what was alive then and, where a request failed, that request. If it is more than
 * fits, what could go is listed in this order: all but one of what is there several times, what grew, what the pool
 * held unused, and then the largest owners, until it fits.
 */
#include "analyzer/report/screen/peak_fit.h"

#include "analyzer/diagnosis/diagnosis.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/vec.h"

#include <stdio.h>

struct saving {
	const char *what;
	char *of;
	uint64_t bytes;
};

struct fitting {
	struct diagnosis *diagnosis;
	const struct diagnosis_space *space;
	const struct evidence_device *device; /* NULL: the host */
	uint64_t size, needed;
	struct saving *savings;
	size_t count, room;
};

static uint64_t saved(const struct fitting *f)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < f->count; i++)
		sum += f->savings[i].bytes;
	return sum;
}

static bool fits(const struct fitting *f)
{
	return f->needed <= f->size + saved(f);
}

static int save(struct fitting *f, const char *what, char *of, uint64_t bytes)
{
	int e = bytes && !fits(f) ? vec_reserve(f->savings, f->room, f->count + 1) : 1;
	if (e) {
		free(of);
		return e < 0 ? e : 0;
	}
	f->savings[f->count++] = (struct saving){ what, of, bytes };
	return 0;
}

static int save_copies(struct fitting *f)
{
	const struct evidence_host *h = &f->diagnosis->evidence.host;
	const struct evidence_copies *list = f->device ? f->device->copies.items : h->copies.items;
	size_t count = f->device ? f->device->copies.count : h->copies.count;
	int e = 0;
	for (size_t i = 0; e == 0 && i < count; i++)
		e = save(f, "copies",
			 output_format("all but one of %u sets of %u blocks: %s", list[i].count, list[i].blocks,
				       list[i].owners[0] ? list[i].owners[0] : "?"),
			 list[i].extra_bytes);
	return e;
}

static int save_growth(struct fitting *f)
{
	const struct evidence_host *h = &f->diagnosis->evidence.host;
	const struct evidence_growth *list = f->device ? f->device->growth.items : h->growth.items;
	size_t count = f->device ? f->device->growth.count : h->growth.count;
	int e = 0;
	for (size_t i = 0; e == 0 && i < count; i++)
		if (list[i].works && !list[i].file_backed &&
		    (list[i].fit.kind == GROWTH_LINEAR || list[i].fit.kind == GROWTH_ACCELERATING))
			e = save(f, "growth", output_format("what %s keeps", list[i].site ? list[i].site : "?"),
				 list[i].bytes);
	return e;
}

/* The largest owners at the moment, by site. */
static int save_owners(struct fitting *f)
{
	struct owners *s = NULL;
	struct owners_query q = { .measure = OWNERS_HOST_PEAK,
				  .kind = MODEL_HEAP,
				  .by = BY_SITE,
				  .processes = f->diagnosis->selection->processes };
	if (f->device) {
		q.device = model_device(f->diagnosis->selection->model, f->space->device);
		q.kind = f->device->pool.known ? MODEL_POOL : MODEL_DEVICE;
	}
	int e = owners_build(&s, f->diagnosis->selection->model, f->diagnosis->selection->reader,
			     f->diagnosis->selection->stacks, &q);
	for (size_t i = 0; e == 0 && i < s->count && !fits(f); i++) {
		const struct owner *o = &s->owners[i];
		e = save(f, "owner",
			 output_format("%s", o->stack_count ? diagnosis_site(f->diagnosis, o->stacks->stack) : "?"),
			 o->bytes);
	}
	owners_free(s);
	return e;
}

static int find_savings(struct fitting *f)
{
	uint64_t unused = f->device && f->device->pool.known && f->device->pool.reserved > f->device->pool.allocated
				  ? f->device->pool.reserved - f->device->pool.allocated
				  : 0;
	uint64_t graphs = f->device ? f->device->pool.graphs.unused : 0;
	int e = save_copies(f);
	if (e == 0)
		e = save_growth(f);
	if (e == 0 && f->device && !f->device->pool.partly_seen)
		e = save(f, "unused", output_format("what the pool holds unused"),
			 unused > graphs ? unused - graphs : 0);
	if (e == 0)
		e = save(f, "unused", output_format("what private pools of CUDA graphs hold unused"), graphs);
	return e < 0 ? e : save_owners(f);
}

static void print_fit(const struct fitting *f)
{
	print("%s%s%s  needs %s at %s, which %s into %s\n", output_begin(STYLE_HEAD), f->space->name,
	      output_end(STYLE_HEAD), BYTES(f->needed), DURATION(f->space->ns),
	      f->needed <= f->size ? "fits" : "does not fit", BYTES(f->size));
	if (f->needed <= f->size)
		return;
	print("  %12s must go\n", BYTES(f->needed - f->size));
	for (size_t i = 0; i < f->count; i++)
		output_line(STYLE_NONE, output_format("  %12s %s", BYTES(f->savings[i].bytes),
						      f->savings[i].of ? f->savings[i].of : ""));
	print("  %12s then%s\n", BYTES(f->needed > saved(f) ? f->needed - saved(f) : 0), fits(f) ? ": it fits" : "");
}

static json_t *json_fit(const struct fitting *f)
{
	json_t *o = json_object(), *list = json_array();
	json_object_set_new(o, "device", json_text(f->space->name));
	json_object_set_new(o, "size_bytes", json_bytes(f->size));
	json_object_set_new(o, "needed_bytes", json_bytes(f->needed));
	json_object_set_new(o, "fits", json_boolean(f->needed <= f->size));
	for (size_t i = 0; i < f->count; i++) {
		json_t *s = json_object();
		json_object_set_new(s, "what", json_string(f->savings[i].what));
		json_object_set_new(s, "of", json_text(f->savings[i].of));
		json_object_set_new(s, "bytes", json_bytes(f->savings[i].bytes));
		json_array_append_new(list, s);
	}
	json_object_set_new(o, "must_go", list);
	return o;
}

/* Other processes and contexts take their part of a device of any size. */
static uint64_t needed(const struct evidence_device *d, const struct diagnosis_space *s)
{
	if (!d)
		return s->bytes;
	uint64_t pool = d->pool.known ? d->pool.reserved : s->bytes, request = d->request.failed ? d->request.bytes : 0;
	return pool + evidence_or(d->own_other, 0) + request;
}

static int fit_space(struct diagnosis *diagnosis, unsigned i, uint64_t size, json_t *list)
{
	struct fitting f = { .diagnosis = diagnosis,
			     .space = &diagnosis->spaces[i],
			     .size = size,
			     .device = i ? &diagnosis->evidence.devices.items[i - 1] : NULL };
	f.needed = needed(f.device, f.space);
	int e = find_savings(&f);
	if (e == 0 && list)
		json_array_append_new(list, json_fit(&f));
	else if (e == 0)
		print_fit(&f);
	for (size_t k = 0; k < f.count; k++)
		free(f.savings[k].of);
	free(f.savings);
	return e;
}

/* Devices; the host where there are none, or --device says so. */
static bool is_wanted(const struct selection *sel, const struct diagnosis *diagnosis, unsigned i)
{
	return i ? selection_has_device(sel, i - 1)
		 : diagnosis->space_count == 1 || (sel->options->device && !selection_wants_device(sel->options));
}

static int show(struct selection *sel, struct diagnosis *diagnosis, uint64_t size)
{
	json_t *root = sel->options->json ? json_object() : NULL, *list = root ? json_array() : NULL;
	int e = 0;
	for (unsigned i = 0; e == 0 && i < diagnosis->space_count; i++)
		if (is_wanted(sel, diagnosis, i))
			e = fit_space(diagnosis, i, size, list);
	if (!root)
		return e;
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "fit", list);
	return e < 0 ? (json_decref(root), e) : json_print(root);
}

int peak_fit(struct selection *sel, uint64_t size)
{
	struct analysis a;
	int e = analysis_run(&a, sel, ANALYSIS_TIMELINE | ANALYSIS_DIAGNOSIS, NULL, NULL);
	if (e == 0)
		e = show(sel, a.diagnosis, size);
	analysis_free(&a);
	return e;
}
