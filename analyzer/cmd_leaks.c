/* memtrace leaks: what was alive at the end, and what grows. */
#include "analyzer/benign.h"
#include "analyzer/error.h"
#include "analyzer/growth.h"
#include "analyzer/json.h"
#include "analyzer/output.h"
#include "analyzer/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ROWS 10
#define DEFAULT_JSON_ROWS 1000

struct leaks_options {
	struct options common;
	const char *fail_over;
};

static const struct option_row rows[] = {
	OPTIONS_READ,
	{ "fail-over", 0, "LIMITS", OPTION_STRING, offsetof(struct leaks_options, fail_over),
	  "exit 1 if more is alive at the end (100M) or one site grows faster (1M/s, 1M/step)" },
	OPTIONS_END
};

static const struct option_spec spec = {
	"memtrace leaks [--fail-over 100M,1M/step] [options] [DIR...]",
	"What was alive when processes ended, by the site that allocated it, and sites that grow. What libraries,\n"
	"interpreter and imported modules usually keep is folded into one line.",
	rows, 0,
};

/* An owner with what is known about it. */
struct leak {
	const struct owner *owner;
	enum model_kind kind;
	struct growth growth;
	const char *benign;    /* why it is no leak, or NULL */
	unsigned growing;      /* processes it grows in */
	uint32_t process;      /* where it grows most */
};

struct leaks {
	struct view *view;
	struct sites *sites[MODEL_KINDS];
	struct leak *list;     /* the worst first */
	size_t count;
	uint64_t bytes, blocks;               /* of the heap, without benign ones */
	uint64_t benign_bytes, benign_blocks;
	uint64_t in_use;       /* of the heap, in processes that did not exit by themselves: killed, or running */
};

/* ---- growth -------------------------------------------------------------------------------------------- */

/* Lowest live bytes per window of the owner's members in one process, from where the first begins. */
static uint64_t *add_members(const struct view *v, const struct owner *o, size_t from, size_t to, size_t *count)
{
	uint32_t first = UINT32_MAX, end = 0;
	for (size_t i = from; i < to; i++) {
		const struct model_series *s = o->members[i]->growth;
		if (!s || s->count == 0)
			continue;
		first = s->first < first ? s->first : first;
		end = s->first + s->count > end ? s->first + s->count : end;
	}
	*count = end > first ? end - first : 0;
	uint64_t *values = calloc(*count + 1, sizeof(*values));
	for (size_t i = from; values && i < to; i++) {
		const struct model_series *s = o->members[i]->growth;
		double weight = sites_weight(v->reader, o->members[i]);
		for (uint32_t k = 0; s && k < s->count; k++)
			values[s->first + k - first] += (uint64_t)((double)s->buckets[k].low * weight);
	}
	return values;
}

static void add_growth(struct leak *leak, const struct growth *g, uint32_t process)
{
	if (g->kind == GROWTH_NONE)
		return;
	leak->growing++;
	if (leak->growing == 1 || g->bytes > leak->growth.bytes) {
		leak->growth = *g;
		leak->process = process;
	}
}

static int by_process(const void *a, const void *b)
{
	const struct model_site *const *x = a, *const *y = b;
	return ((*x)->process > (*y)->process) - ((*x)->process < (*y)->process);
}

/* Per process: workers that come and go one after the other would look like growth in their sum. */
static void find_growth(const struct view *v, struct leak *leak)
{
	const struct owner *o = leak->owner;
	double window_s = (double)model_growth_width_ns(v->model) / 1e9;
	qsort(o->members, o->member_count, sizeof(*o->members), by_process);
	for (size_t from = 0, to; from < o->member_count; from = to) {
		for (to = from + 1; to < o->member_count && o->members[to]->process == o->members[from]->process; to++)
			;
		size_t count;
		uint64_t *values = add_members(v, o, from, to, &count);
		struct growth g = growth_of(values, values ? count : 0, window_s);
		free(values);
		add_growth(leak, &g, o->members[from]->process);
	}
}

/* ---- building ------------------------------------------------------------------------------------------ */

/* What a process held that was killed, or runs, is no leak. */
static uint64_t held_at_death(const struct view *v)
{
	uint64_t bytes = 0;
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct process *p = reader_process(v->reader, id);
		if (view_has(v, p) && p->exit_kind != MT_EXIT_CODE)
			bytes += model_process(v->model, id)->kind[MODEL_HEAP].live_bytes;
	}
	return bytes;
}

static int worse(const void *a, const void *b)
{
	const struct leak *x = a, *y = b;
	if (!x->benign != !y->benign)
		return x->benign ? 1 : -1;
	if (x->owner->bytes != y->owner->bytes)
		return x->owner->bytes > y->owner->bytes ? -1 : 1;
	return (x->owner > y->owner) - (x->owner < y->owner);
}

static bool is_steady(const struct leak *leak)
{
	return leak->growth.kind == GROWTH_LINEAR || leak->growth.kind == GROWTH_ACCELERATING;
}

static void add_leak(struct leaks *l, const struct owner *o, enum model_kind kind)
{
	struct leak *leak = &l->list[l->count++];
	*leak = (struct leak){ .owner = o, .kind = kind };
	find_growth(l->view, leak);
	if (!is_steady(leak)) /* a cache that grows on is worth a look */
		leak->benign = l->view->by == BY_STACK ? benign_stack(l->view->stacks, o->stacks->stack)
						       : o->folded ? o->label : NULL;
	if (kind != MODEL_HEAP || !leak->benign)
		return;
	l->benign_bytes += o->bytes;
	l->benign_blocks += o->blocks;
}

/* What is not benign, of a total that is exact even if its parts are estimates. */
static void count_rest(struct leaks *l)
{
	const struct sites *heap = l->sites[MODEL_HEAP];
	if (!heap)
		return;
	l->bytes = heap->bytes > l->benign_bytes ? heap->bytes - l->benign_bytes : 0;
	l->blocks = heap->blocks > l->benign_blocks ? heap->blocks - l->benign_blocks : 0;
}

static int leaks_init(struct leaks *l, struct view *v)
{
	*l = (struct leaks){ .view = v, .in_use = held_at_death(v) };
	size_t count = 0;
	int e = 0;
	for (int kind = 0; e == 0 && kind < MODEL_KINDS; kind++) {
		if (!(v->kinds & 1u << kind))
			continue;
		e = view_owners(v, SITES_LIVE, kind, benign_stack, &l->sites[kind]);
		count += e == 0 ? l->sites[kind]->count : 0;
	}
	if (e < 0)
		return e;
	l->list = calloc(count + 1, sizeof(*l->list));
	if (!l->list)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (int kind = 0; kind < MODEL_KINDS; kind++)
		for (size_t i = 0; l->sites[kind] && i < l->sites[kind]->count; i++)
			add_leak(l, &l->sites[kind]->owners[i], kind);
	count_rest(l);
	qsort(l->list, l->count, sizeof(*l->list), worse);
	return 0;
}

static void leaks_fini(struct leaks *l)
{
	for (int kind = 0; kind < MODEL_KINDS; kind++)
		sites_free(l->sites[kind]);
	free(l->list);
}

/* ---- screen -------------------------------------------------------------------------------------------- */

static void leak_caller(struct table *t, const struct owner *o)
{
	if (!o->caller || o->folded)
		return;
	char *text = frame_text(o->caller), *where = frame_where(o->caller);
	char *line = output_format("< %s", text ? text : "");
	table_row(t, (const char *[]){ NULL, NULL, NULL, NULL, line, where });
	free(text);
	free(where);
	free(line);
}

static char *growth_text(const struct leak *leak)
{
	enum growth_kind kind = leak->growth.kind;
	if (kind == GROWTH_NONE)
		return NULL;
	if (!is_steady(leak))
		return output_format("%s", growth_name(kind));
	return output_format("%s %s/s", growth_name(kind), BYTES((uint64_t)fabs(leak->growth.bytes_per_s)));
}

static void leak_row(struct table *t, const struct leak *leak, uint64_t all)
{
	const struct owner *o = leak->owner;
	char *text = owner_text(o);
	char *where = !o->label && o->frame ? frame_where(o->frame) : NULL;
	char *share = output_format("%s %%", PERCENT(o->bytes, all)), *growth = growth_text(leak);
	char *range = owner_range(o);
	table_row(t, (const char *[]){ BYTES(o->bytes), leak->kind == MODEL_MAP ? "map" : share, range ? range : COUNT(o->blocks),
				       growth, text, where });
	leak_caller(t, o);
	free(range);
	free(text);
	free(where);
	free(share);
	free(growth);
}

static const struct column leak_columns[] = {
	{ "bytes", RIGHT, false }, { "%", RIGHT, false }, { "blocks", RIGHT, false }, { "growth", LEFT, false },
	{ "allocated by", LEFT, true }, { "", LEFT, true },
};

static void print_kind(const struct leaks *l, enum model_kind kind, const char *heading)
{
	size_t most = l->view->options->rows ? l->view->options->rows : DEFAULT_ROWS, shown = 0, more = 0;
	uint64_t rest = 0;
	struct table *t = NULL;
	for (size_t i = 0; i < l->count; i++) {
		const struct leak *leak = &l->list[i];
		if (leak->kind != kind || leak->benign)
			continue;
		if (shown == most) {
			more++;
			rest += leak->owner->bytes;
			continue;
		}
		if (!t)
			t = table_new(leak_columns, 6, 2);
		leak_row(t, leak, l->bytes);
		shown++;
	}
	if (!t)
		return;
	char *text = more ? output_format("%s by %s other sites: -n ROWS", BYTES(rest), COUNT(more)) : NULL;
	if (text)
		table_note(t, 0, text);
	free(text);
	printf("%s%s%s\n", output_begin(STYLE_HEAD), heading, output_end(STYLE_HEAD));
	table_print(t);
}

static void print_growing(const struct leaks *l)
{
	size_t growing = 0;
	const struct leak *most = NULL;
	for (size_t i = 0; i < l->count; i++) {
		if (!is_steady(&l->list[i]))
			continue;
		growing++;
		if (!most || l->list[i].growth.bytes > most->growth.bytes)
			most = &l->list[i];
	}
	if (!most) {
		printf("GROWTH  no site grew steadily\n");
		return;
	}
	const struct process *p = reader_process(l->view->reader, most->process);
	char *text = owner_text(most->owner);
	printf("%sGROWTH  %zu site%s steadily; most: %s by %s/s in %u %s, %s, certainty %s%s\n", output_begin(STYLE_BAD), growing,
	       growing == 1 ? " grows" : "s grow", text ? text : "", BYTES((uint64_t)fabs(most->growth.bytes_per_s)), p->pid, p->name,
	       growth_name(most->growth.kind), certainty_name(most->growth.certainty), output_end(STYLE_BAD));
	free(text);
}

static void print_benign(const struct leaks *l)
{
	if (!l->benign_bytes)
		return;
	printf("  not counted: %s in %s blocks", BYTES(l->benign_bytes), COUNT(l->benign_blocks));
	for (size_t i = 0, shown = 0; i < l->count && shown < 3; i++)
		if (l->list[i].benign && l->list[i].kind == MODEL_HEAP)
			printf("%s%s %s", shown++ ? ", " : ": ", l->list[i].benign, BYTES(l->list[i].owner->bytes));
	printf("\n");
}

static void print_screen(const struct leaks *l)
{
	printf("%sALIVE AT THE END  %s in %s blocks%s\n", output_begin(STYLE_HEAD), BYTES(l->bytes), COUNT(l->blocks),
	       output_end(STYLE_HEAD));
	if (l->in_use)
		printf("  of all that, %s in processes that were killed or still run: in use, not leaked\n", BYTES(l->in_use));
	print_benign(l);
	if (l->sites[MODEL_HEAP] && l->sites[MODEL_HEAP]->estimated)
		printf("  %s\n", SAMPLED_NOTE);
	print_growing(l);
	print_kind(l, MODEL_HEAP, "\nHEAP");
	print_kind(l, MODEL_MAP, "\nMAPPED");
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static json_t *json_leak(const struct leaks *l, const struct leak *leak)
{
	const struct owner *o = leak->owner;
	const struct growth *g = &leak->growth;
	json_t *site = json_owner(l->view->stacks, o, leak->kind, view_flags(l->view->options));
	json_object_set_new(site, "slope_bytes_per_s", json_real(g->bytes_per_s));
	json_object_set_new(site, "slope_bytes_per_step", json_null());
	json_object_set_new(site, "acceleration", json_real(g->acceleration));
	json_object_set_new(site, "kind", json_string(growth_name(g->kind)));
	json_object_set_new(site, "certainty", json_string(certainty_name(g->certainty)));
	json_object_set_new(site, "runs_out_at_s", json_null());
	json_object_set_new(site, "runs_out_at_step", json_null());
	json_object_set_new(site, "blocks_per_step", json_null());
	json_object_set_new(site, "mean_block_bytes", json_bytes(o->blocks ? o->bytes / o->blocks : 0));
	json_object_set_new(site, "benign", json_text(leak->benign));
	return site;
}

static int print_json(const struct leaks *l)
{
	size_t most = l->view->options->rows ? l->view->options->rows : DEFAULT_JSON_ROWS;
	json_t *root = json_object(), *sites = json_array();
	for (size_t i = 0; i < l->count && i < most; i++)
		json_array_append_new(sites, json_leak(l, &l->list[i]));
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(reader_complete(l->view->reader)));
	json_object_set_new(root, "in_use_bytes", json_bytes(l->in_use));
	json_object_set_new(root, "bytes", json_bytes(l->bytes));
	json_object_set_new(root, "blocks", json_bytes(l->blocks));
	json_object_set_new(root, "benign_bytes", json_bytes(l->benign_bytes));
	json_object_set_new(root, "benign_blocks", json_bytes(l->benign_blocks));
	json_object_set_new(root, "sites", sites);
	return json_print(root);
}

/* ---- limits -------------------------------------------------------------------------------------------- */

struct limits {
	uint64_t bytes, bytes_per_s; /* UINT64_MAX = none */
	bool per_step;
};

static int parse_limit(struct limits *limits, char *text)
{
	char *slash = strchr(text, '/');
	uint64_t bytes;
	if (slash)
		*slash++ = '\0';
	if (options_bytes(text, &bytes) < 0 || (slash && strcmp(slash, "s") && strcmp(slash, "step")))
		return error_set(MT_EUSAGE, "--fail-over", ERROR_NO_OFFSET, "%s%s%s: a limit is like 100M, 1M/s or 1M/step", text,
				 slash ? "/" : "", slash ? slash : "");
	if (!slash)
		limits->bytes = bytes;
	else if (strcmp(slash, "s") == 0)
		limits->bytes_per_s = bytes;
	else
		limits->per_step = true;
	return 0;
}

static int parse_limits(struct limits *limits, const char *text)
{
	*limits = (struct limits){ UINT64_MAX, UINT64_MAX, false };
	char *copy = strdup(text ? text : ""), *rest = copy;
	int e = copy ? 0 : error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (char *word; e == 0 && text && (word = strsep(&rest, ",")); )
		e = parse_limit(limits, word);
	free(copy);
	return e;
}

static double fastest(const struct leaks *l)
{
	double most = 0;
	for (size_t i = 0; i < l->count; i++) {
		if (is_steady(&l->list[i]) && l->list[i].growth.bytes_per_s > most)
			most = l->list[i].growth.bytes_per_s;
	}
	return most;
}

/* 1 when a limit is exceeded, or can't be checked: a check that could not look must not pass. */
static int check_limits(const struct leaks *l, const struct limits *limits)
{
	int failed = 0;
	double rate = fastest(l);
	if (l->bytes > limits->bytes) {
		fprintf(stderr, "memtrace: leaks: %s are alive at the end, more than %s\n", BYTES(l->bytes), BYTES(limits->bytes));
		failed = 1;
	}
	if (limits->bytes_per_s != UINT64_MAX && rate > (double)limits->bytes_per_s) {
		fprintf(stderr, "memtrace: leaks: a site grows by %s/s, more than %s/s\n", BYTES((uint64_t)rate),
			BYTES(limits->bytes_per_s));
		failed = 1;
	}
	if (limits->per_step) {
		fprintf(stderr, "memtrace: leaks: this trace has no steps, so a limit per step can't be checked\n");
		failed = 1;
	}
	return failed;
}

/* ---- command ------------------------------------------------------------------------------------------- */

static int leaks(struct view *v)
{
	const struct leaks_options *o = (const struct leaks_options *)v->options;
	struct model_query q = MODEL_QUERY_ALL;
	struct limits limits;
	struct leaks l;
	q.growth = true;
	int e = parse_limits(&limits, o->fail_over);
	if (e == 0)
		e = view_run(v, &q);
	if (e < 0)
		return e;
	e = leaks_init(&l, v);
	if (e == 0 && v->options->json)
		e = print_json(&l);
	else if (e == 0)
		print_screen(&l);
	if (e == 0)
		e = check_limits(&l, &limits);
	leaks_fini(&l);
	return e;
}

int cmd_leaks(int argc, char **argv)
{
	struct leaks_options o = { 0 };
	return view_command(&spec, &o, argc, argv, leaks);
}
