#include "analyzer/report/json/json_diagnosis.h"

#include "analyzer/report/json/json.h"
#include "analyzer/report/json/json_held.h"

json_t *json_categories(const struct diagnosis *diagnosis)
{
	json_t *all = json_object();
	for (unsigned i = 0; i < diagnosis->space_count; i++) {
		json_t *o = json_object();
		for (int c = 0; c < CATEGORIES; c++)
			json_object_set_new(o, category_name(c), json_bytes(diagnosis->spaces[i].category[c]));
		json_object_set_new(all, diagnosis->spaces[i].name, o);
	}
	return all;
}

static json_t *json_owner_of_copy(struct diagnosis *diagnosis, const struct copy_owner *owner,
				  const struct held_question *held)
{
	json_t *o = json_object();
	json_object_set_new(o, "bytes", json_bytes(owner->bytes));
	json_object_set_new(o, "blocks", json_integer(owner->blocks));
	json_object_set_new(o, "call", json_text(diagnosis_call(diagnosis, owner->stack)));
	json_object_set_new(o, "stack",
			    json_stack(diagnosis->selection->stacks, owner->largest,
				       selection_flags(diagnosis->selection->options)));
	json_object_set_new(o, "holder", json_text(held && held->known ? held->name : NULL));
	return o;
}

json_t *json_copies(struct diagnosis *diagnosis, const struct copy_set *set, const struct held_question *held)
{
	json_t *list = json_array();
	for (size_t i = 0; i < diagnosis->copies.count; i++) {
		const struct copy_set *s = &diagnosis->copies.sets[i];
		json_t *o = json_object(), *owners = json_array();
		json_object_set_new(o, "device", json_text(diagnosis_space_name(diagnosis, s->space)));
		json_object_set_new(o, "process", json_integer(s->space >> 8));
		json_object_set_new(o, "bytes", json_bytes(s->bytes));
		json_object_set_new(o, "extra_bytes", json_bytes(s->extra_bytes));
		json_object_set_new(o, "missing_bytes", json_bytes(s->missing_bytes));
		json_object_set_new(o, "count", json_integer(s->count));
		for (unsigned k = 0; k < s->count; k++)
			json_array_append_new(owners,
					      json_owner_of_copy(diagnosis, &s->owners[k], s == set ? &held[k] : NULL));
		json_object_set_new(o, "owners", owners);
		json_array_append_new(list, o);
	}
	return list;
}

json_t *json_copies_left_out(struct diagnosis *diagnosis)
{
	json_t *o = json_object();
	json_object_set_new(o, "below_bytes", json_integer(DIAGNOSIS_LEAST_COPIED));
	json_object_set_new(o, "host_below_bytes", json_integer(MOMENT_LEAST_HEAP));
	json_object_set_new(o, "blocks", json_bytes(diagnosis->copies.left_blocks));
	json_object_set_new(o, "bytes", json_bytes(diagnosis->copies.left_bytes));
	return o;
}

static json_t *json_reasons(const struct reasons *why)
{
	char *text = reasons_text(why);
	json_t *out = json_text(text);
	free(text);
	return out;
}

static json_t *json_verdict(const struct verdict *v, bool holds, const struct held_question *held)
{
	json_t *o = json_object(), *sites = json_array();
	json_object_set_new(o, "kind", json_string(verdict_name(v->kind)));
	json_object_set_new(o, "device", json_text(v->device ? v->device->name : "host"));
	json_object_set_new(o, "evidence", json_reasons(&v->evidence));
	if (holds) {
		json_object_set_new(o, "bytes", json_bytes(v->bytes));
		json_object_set_new(o, "confidence", json_real(v->confidence));
		json_object_set_new(o, "certainty", json_string(certainty_name(verdict_certainty(v->confidence))));
		json_object_set_new(o, "advice", json_reasons(&v->advice));
		for (int i = 0; i < VERDICT_SITES && v->sites[i]; i++)
			json_array_append_new(sites, json_text(v->sites[i]));
		json_object_set_new(o, "sites", json_incref(sites));
		json_object_set_new(o, "holder", held ? json_held(held) : json_null());
	}
	json_decref(sites);
	return o;
}

json_t *json_verdicts(const struct diagnosis *diagnosis, const struct held_question *held)
{
	json_t *list = json_array();
	for (size_t i = 0; i < diagnosis->verdicts.held_count; i++)
		json_array_append_new(list, json_verdict(&diagnosis->verdicts.held[i], true, held ? &held[i] : NULL));
	return list;
}

json_t *json_facts(const struct diagnosis *diagnosis, const struct held_question *held)
{
	json_t *list = json_array();
	for (size_t i = 0; i < diagnosis->verdicts.fact_count; i++)
		json_array_append_new(list, json_verdict(&diagnosis->verdicts.facts[i], true, held ? &held[i] : NULL));
	return list;
}

json_t *json_ruled_out(const struct diagnosis *diagnosis)
{
	json_t *list = json_array();
	for (size_t i = 0; i < diagnosis->verdicts.ruled_out_count; i++) {
		const struct verdict *v = &diagnosis->verdicts.ruled_out[i];
		json_t *o = json_verdict(v, false, NULL);
		json_object_set_new(o, "open", json_boolean(verdict_is_open(v)));
		json_array_append_new(list, o);
	}
	return list;
}

json_t *json_unknowns(const struct diagnosis *diagnosis)
{
	json_t *list = json_array();
	for (size_t i = 0; i < diagnosis->verdicts.unknown_count; i++)
		json_array_append_new(list, json_reasons(&diagnosis->verdicts.unknown[i].evidence));
	return list;
}
