#include "analyzer/report/json/json.h"
#include "analyzer/report/json/json_held.h"
#include "analyzer/report/json/json_host.h"
#include "analyzer/report/screen/leaks_screen.h"

#define DEFAULT_JSON_ROWS 1000

static json_t *json_pile(const struct leaks *l)
{
	const struct pile *p = &l->pile;
	if (!p->count)
		return json_null();
	json_t *o = json_object();
	uint32_t stack = p->node ? stacks_of(l->selection->stacks, p->forked, p->node, p->node2) : 0;
	json_object_set_new(o, "processes", json_integer(p->count));
	json_object_set_new(o, "batches", json_integer(p->batches));
	json_object_set_new(o, "bytes", json_bytes(p->bytes));
	json_object_set_new(o, "bytes_per_s", json_real(p->per_second));
	json_object_set_new(o, "started_by", json_integer(p->starter->pid));
	json_object_set_new(o, "name", json_text(p->one->name));
	json_object_set_new(o, "stack",
			    stack ? json_stack(l->selection->stacks, stack, selection_flags(l->selection->options))
				  : json_null());
	return o;
}

static json_t *json_shm(const struct leaks *l)
{
	const struct shm_maker *m = &l->shm;
	if (!m->growing)
		return json_null();
	json_t *o = json_shm_maker(m);
	json_object_set_new(o, "bytes_per_s", json_real(m->per_second));
	return o;
}

static void set_growth(json_t *site, const struct owner_growth *t)
{
	const struct owner_growth none = { .forecast = forecast_never };
	static const char *const hows[] = { "unclear", "more blocks", "bigger blocks" };
	bool grows = t != NULL, steady = grows && growth_is_steady(&t->growth), stepped = grows && t->growth.stepped;
	t = t ? t : &none;
	const struct forecast *f = &t->forecast;
	const bool second = !grows || growth_saw_a_second(&t->growth);
	double per_s = stepped ? t->period_s : 1;
	json_object_set_new(site, "grew_for_s", json_real_or_null(grows, t->growth.lasted_s));
	json_object_set_new(site, "slope_bytes_per_s", json_real_or_null(second, owner_growth_per_second(t)));
	json_object_set_new(site, "slope_bytes_per_step", json_real_or_null(stepped, t->growth.rate));
	json_object_set_new(site, "slope_error_per_step", json_real_or_null(stepped, t->growth.rate_error));
	json_object_set_new(site, "acceleration", json_real_or_null(second, owner_growth_acceleration_per_s2(t)));
	json_object_set_new(site, "acceleration_per_step", json_real_or_null(stepped, t->growth.acceleration));
	json_object_set_new(site, "kind", json_string(growth_name(t->growth.kind)));
	json_object_set_new(site, "certainty", json_string(certainty_name(t->growth.certainty)));
	json_object_set_new(site, "outlook", json_string(outlook_name(t->outlook)));
	json_object_set_new(site, "growing_processes", json_integer(t->growing));
	json_object_set_new(site, "grown_bytes_all", json_real_or_null(grows, t->all_bytes));
	json_object_set_new(site, "grown_bytes", json_real_or_null(grows, t->growth.bytes));
	json_object_set_new(site, "grown_min_bytes", json_real_or_null(grows, t->growth.bytes - t->growth.doubt));
	json_object_set_new(site, "runs_out_at_s", json_real_or_null(f->ever && !stepped, f->x));
	json_object_set_new(site, "runs_out_at_step", json_real_or_null(f->ever && stepped, f->x));
	json_object_set_new(site, "blocks_per_step", json_real_or_null(steady && stepped, t->blocks_per_x));
	json_object_set_new(site, "blocks_per_s",
			    json_real_or_null(steady && second && per_s > 0,
					      t->blocks_per_x / (per_s > 0 ? per_s : 1)));
	json_object_set_new(site, "how", steady ? json_string(hows[t->how]) : json_null());
	json_object_set_new(site, "group", steady ? json_integer(t->group) : json_null());
}

static json_t *json_leak(const struct leaks *l, const struct leak *leak, const struct held_question *held)
{
	const struct owner *o = leak->owner;
	json_t *site = json_owner(l->selection->stacks, o, leak->kind, selection_flags(l->selection->options));
	double mean = leak->owner_growth && leak->owner_growth->mean_block_bytes ? leak->owner_growth->mean_block_bytes
		      : leak->blocks ? (double)leak->bytes / (double)leak->blocks
				     : 0;
	json_object_set_new(site, "bytes", json_bytes(leak->bytes));
	json_object_set_new(site, "blocks", json_bytes(leak->blocks));
	json_object_set_new(site, "bytes_min", json_bytes(leak->bytes_min));
	json_object_set_new(site, "blocks_min", json_bytes(leak->blocks_min));
	json_object_set_new(site, "unproven_growth_bytes", json_bytes(leak->unproven));
	set_growth(site, leak->owner_growth);
	json_object_set_new(site, "growing_devices",
			    json_integer(leak->owner_growth ? findings_devices(l->findings, leak->finding) : 0));
	json_object_set_new(site, "mean_block_bytes", json_bytes((uint64_t)mean));
	json_object_set_new(site, "oldest_s",
			    leak->oldest_ns == UINT64_MAX ? json_null() : json_seconds(leak->oldest_ns));
	json_object_set_new(site, "benign", json_text(leak->benign));
	json_object_set_new(site, "suppressed", json_text(leak->suppressed));
	json_object_set_new(site, "holder", json_held(held));
	return site;
}

/* What leaks at one pace, as GROWTH on the screen says it. */
static json_t *json_groups(const struct leaks *l)
{
	size_t count;
	struct leak_group *list = leaks_groups(l, &count);
	json_t *all = json_array();
	for (size_t i = 0; i < count; i++) {
		const struct leak_group *g = &list[i];
		const struct owner_growth *t = g->most->owner_growth;
		json_t *o = json_object();
		json_object_set_new(o, "group", json_integer(t->group));
		json_object_set_new(o, "memory", json_string(kind_name(g->most->kind)));
		json_object_set_new(o, "sites", json_bytes(g->sites));
		json_object_set_new(o, "grown_bytes_all", json_real(g->bytes));
		json_object_set_new(o, "grew_for_s", json_real(t->growth.lasted_s));
		json_object_set_new(o, "slope_bytes_per_s",
				    json_real_or_null(growth_saw_a_second(&t->growth), g->per_second));
		json_object_set_new(o, "slope_bytes_per_step", json_real_or_null(t->growth.stepped, g->rate));
		json_object_set_new(o, "slope_error_per_step", json_real_or_null(t->growth.stepped, g->error));
		json_object_set_new(o, "kind", json_string(growth_name(t->growth.kind)));
		json_object_set_new(o, "certainty", json_string(certainty_name(g->certainty)));
		json_object_set_new(o, "runs_out_at_s",
				    json_real_or_null(g->forecast.ever && !t->growth.stepped, g->forecast.x));
		json_object_set_new(o, "runs_out_at_step",
				    json_real_or_null(g->forecast.ever && t->growth.stepped, g->forecast.x));
		json_object_set_new(o, "little", json_boolean(g->little));
		json_array_append_new(all, o);
	}
	free(list);
	return all;
}

int leaks_print_json(const struct leaks *l, const struct held_question *held)
{
	size_t most = selection_rows(l->selection, DEFAULT_JSON_ROWS);
	uint64_t rest = 0;
	for (size_t i = most; i < l->count; i++)
		rest += l->list[i].bytes;
	json_t *root = json_object(), *sites = json_array();
	for (size_t i = 0; i < l->count && i < most; i++)
		json_array_append_new(sites, json_leak(l, &l->list[i], &held[i]));
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(reader_complete(l->selection->reader)));
	json_object_set_new(root, "in_use_bytes", json_bytes(l->in_use));
	json_object_set_new(root, "bytes", json_bytes(l->bytes));
	json_object_set_new(root, "blocks", json_bytes(l->blocks));
	json_object_set_new(root, "bytes_min", json_bytes(l->bytes_min));
	json_object_set_new(root, "blocks_min", json_bytes(l->blocks_min));
	json_object_set_new(root, "unproven_growth_bytes", json_bytes(l->unproven));
	json_object_set_new(root, "benign_bytes", json_bytes(l->benign_bytes));
	json_object_set_new(root, "benign_blocks", json_bytes(l->benign_blocks));
	json_object_set_new(root, "suppressed_bytes", json_bytes(l->suppressed_bytes));
	json_object_set_new(root, "suppressed_blocks", json_bytes(l->suppressed_blocks));
	json_object_set_new(root, "pile", json_pile(l));
	json_object_set_new(root, "shm", json_shm(l));
	json_object_set_new(root, "by", json_string(selection_by_name(l->selection)));
	json_object_set_new(root, "groups", json_groups(l));
	json_object_set_new(root, "sites", sites);
	json_set_left_out(root, "sites", l->count, l->count > most ? l->count - most : 0, rest);
	json_object_set_new(root, "unread_files", json_unread(l->selection->stacks));
	return json_print(root);
}
