#include "analyzer/report/json/json.h"
#include "analyzer/report/screen/peak_screen.h"

#define DEFAULT_JSON_OWNERS 1000

static json_t *json_moment(const struct moment *at)
{
	json_t *o = json_object();
	json_object_set_new(o, "at_s", json_seconds(at->ns));
	json_object_set_new(o, "bytes", json_bytes(at->sites->bytes));
	json_object_set_new(o, "blocks", json_bytes(at->sites->blocks));
	return o;
}

/* "devices": [{"name", "uuid", "device": {moment}, "pool": {moment}}]. */
static void add_device_moment(json_t *devices, const struct moment *at)
{
	size_t last = json_array_size(devices);
	json_t *o = last ? json_array_get(devices, last - 1) : NULL;
	if (!o || json_integer_value(json_object_get(o, "index")) != at->device->index) {
		o = json_object();
		json_object_set_new(o, "index", json_integer(at->device->index));
		json_object_set_new(o, "name", json_text(at->device->name));
		json_object_set_new(o, "uuid", json_text(at->device->uuid));
		json_array_append_new(devices, o);
	}
	json_object_set_new(o, kind_name(at->kind), json_moment(at));
}

/* What is left out of the list of sites. */
struct left_out {
	size_t total, count;
	uint64_t bytes;
};

static void add_moment(struct selection *sel, json_t *root, json_t *devices, json_t *sites, const struct moment *at,
		       struct left_out *left)
{
	size_t most = selection_rows(sel, DEFAULT_JSON_OWNERS);
	if (at->device)
		add_device_moment(devices, at);
	else
		json_object_set_new(root, at->kind == MODEL_HEAP ? "host" : kind_name(at->kind), json_moment(at));
	for (size_t k = 0; k < at->sites->count && k < most; k++) {
		json_t *site = json_owner(sel->stacks, &at->sites->owners[k], at->kind, selection_flags(sel->options));
		json_object_set_new(site, "device", json_text(at->device ? at->device->name : NULL));
		json_object_set_new(site, "uuid", json_text(at->device ? at->device->uuid : NULL));
		json_array_append_new(sites, site);
	}
	left->total += at->sites->count;
	for (size_t k = most; k < at->sites->count; k++) {
		left->count++;
		left->bytes += at->sites->owners[k].bytes;
	}
}

static json_t *json_seen(const struct held_seens *seen)
{
	json_t *list = json_array();
	for (size_t i = 0; i < seen->count; i++) {
		const struct held_seen *s = &seen->list[i];
		const struct mt_hold_head head = { .why = s->why };
		json_t *o = json_object();
		json_object_set_new(o, "pid", json_integer(s->process->pid));
		json_object_set_new(o, "snapshot", json_integer(s->number + 1));
		json_object_set_new(o, "at_s", json_seconds(s->ns));
		json_object_set_new(o, "why", json_text(held_why(&head)));
		json_array_append_new(list, o);
	}
	return list;
}

int peak_print_json(struct selection *sel, const struct moments *m, const struct held_seens *seen)
{
	json_t *root = json_object(), *sites = json_array(), *devices = json_array();
	struct left_out left = { 0 };
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(reader_complete(sel->reader)));
	json_object_set_new(root, "at_s", json_seconds(m->count ? m->moments[0].ns : 0));
	if (moment_is_time(&sel->options->at))
		json_object_set_new(root, "uncertain_bytes", json_bytes(model_fold(sel->model).now_bytes));
	if (moment_is_time(&sel->options->at))
		json_object_set_new(root, "uncertain_elsewhere_bytes",
				    json_bytes(model_fold(sel->model).now_other_bytes));
	for (size_t i = 0; i < m->count; i++)
		add_moment(sel, root, devices, sites, &m->moments[i], &left);
	if (sel->by == BY_HOLDER)
		json_object_set_new(root, "seen", json_seen(seen));
	json_object_set_new(root, "devices", devices);
	json_object_set_new(root, "by", json_string(selection_by_name(sel)));
	json_object_set_new(root, "sites", sites);
	json_set_left_out(root, "sites", left.total, left.count, left.bytes);
	json_object_set_new(root, "unread_files", json_unread(sel->stacks));
	return json_print(root);
}
