#include "analyzer/report/json/json.h"
#include "analyzer/report/diff/diff.h"

#include <math.h>
#include <stdio.h>

#define DEFAULT_JSON_ROWS 1000

static const char *const keys[] = {
#define X(section, key, title) key,
	DIFF_SECTIONS(X)
#undef X
};

static json_t *json_item(const struct diff *d, const struct item *i)
{
	json_t *o = json_object();
	const char *unit = i->seconds ? "s" : "bytes";
	for (int side = 0; side < 2; side++) {
		char key[24];
		snprintf(key, sizeof(key), "%s_%s", side ? "after" : "before", unit);
		json_object_set_new(o, key,
				    !i->has[side] ? json_null()
				    : i->seconds  ? json_real(i->value[side])
						  : json_integer(llround(i->value[side])));
	}
	json_object_set_new(o, i->section == SITES ? "site" : "name", json_text(i->name));
	json_object_set_new(o, i->section == SITES ? "kind" : "figure", json_text(i->figure));
	json_object_set_new(o, i->seconds ? "change_s" : "change_bytes",
			    i->seconds ? json_real(diff_change(i)) : json_integer(llround(diff_change(i))));
	for (int side = 0; side < 2 && diff_is_end(i); side++)
		json_object_set_new(o, side ? "after_min_bytes" : "before_min_bytes",
				    i->has[side] ? json_integer(llround(i->value[side] - i->doubt[side]))
						 : json_null());
	json_object_set_new(o, "change_percent",
			    i->has[0] && i->has[1] && i->value[0] > 0 ? json_real(100 * diff_change(i) / i->value[0])
								      : json_null());
	if (i->section == SITES) {
		const struct selection *sel = &d->side[i->stack_side].selection;
		json_object_set_new(o, "stack", json_stack(sel->stacks, i->stack, selection_flags(sel->options)));
	}
	return o;
}

json_t *diff_json(const struct diff *d)
{
	json_t *root = json_object();
	size_t most = selection_rows(&d->side[0].selection, DEFAULT_JSON_ROWS), sites = 0, left_out = 0;
	double rest = 0;
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "before", json_text(d->side[0].dir));
	json_object_set_new(root, "after", json_text(d->side[1].dir));
	json_object_set_new(root, "complete",
			    json_boolean(reader_complete(d->side[0].selection.reader) &&
					 reader_complete(d->side[1].selection.reader)));
	for (int section = 0; section < SECTIONS; section++) {
		json_t *list = json_array();
		for (size_t k = 0; k < d->count; k++) {
			if (d->sorted[k]->section != (enum section)section)
				continue;
			sites += section == SITES;
			if (section != SITES || json_array_size(list) < most) {
				json_array_append_new(list, json_item(d, d->sorted[k]));
				continue;
			}
			left_out++;
			rest += diff_change(d->sorted[k]);
		}
		json_object_set_new(root, keys[section], list);
	}
	json_t *left = json_object();
	json_object_set_new(left, "count", json_bytes(left_out));
	json_object_set_new(left, "change_bytes", json_integer((json_int_t)rest));
	json_object_set_new(root, "by", json_string(selection_by_name(&d->side[0].selection)));
	json_object_set_new(root, "sites_total", json_bytes(sites));
	json_object_set_new(root, "sites_left_out", left);
	json_t *unread = json_unread(d->side[0].selection.stacks), *after = json_unread(d->side[1].selection.stacks);
	json_array_extend(unread, after);
	json_decref(after);
	json_object_set_new(root, "unread_files", unread);
	return root;
}
