#include "analyzer/diagnosis/verdicts.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"

static const struct verdict_row {
	const char *name;
	verdict_rule *device, *host;
	unsigned traits;
	const char *unknown;
} rows[] = {
#define RULE(function)                                     function
#define NO_RULE                                            NULL
#define VERDICT(kind, name, device, host, traits, unknown) [VERDICT_##kind] = { name, device, host, traits, unknown },
#include "analyzer/diagnosis/verdicts.def"
#undef VERDICT
#undef NO_RULE
#undef RULE
};

const char *verdict_name(enum verdict_kind kind)
{
	return rows[kind].name;
}

const char *verdict_title(enum verdict_kind kind)
{
	static char titles[VERDICT_KINDS][24];
	char *out = titles[kind];
	for (size_t i = 0; i < sizeof(titles[kind]) - 1 && rows[kind].name[i]; i++)
		out[i] = rows[kind].name[i] == '_' ? ' ' : rows[kind].name[i];
	return out;
}

bool verdict_is_open(const struct verdict *v)
{
	const struct figures *grew = reasons_find(&v->evidence, REASON_grew_so);
	return grew && outlook_is_open(grew->how);
}

char *verdict_denial(const struct verdict *v)
{
	const bool open = verdict_is_open(v);
	return output_format("%s%s%s", open ? "" : "no ", verdict_title(v->kind), open ? "?" : "");
}

bool verdict_has(enum verdict_kind kind, enum verdict_trait trait)
{
	return rows[kind].traits & trait;
}

const char *verdict_unknown(enum verdict_kind kind)
{
	return rows[kind].unknown;
}

const char *status_name(enum verdict_status status)
{
	static const char *const names[] = { "ok", "problem", "inconclusive" };
	return names[status];
}

/* ---- asking the rules ------------------------------------------------------------------------------------ */

static void verdict_fini(struct verdict *v)
{
	reasons_fini(&v->evidence);
	reasons_fini(&v->advice);
}

static int keep(struct verdict **list, size_t *count, const struct verdict *v)
{
	struct verdict *grown = realloc(*list, (*count + 1) * sizeof(*grown));
	if (!grown)
		return error_memory();
	*list = grown;
	grown[(*count)++] = *v;
	return 0;
}

/* No more is said than what is left if all that may be due to lost events is. */
static void doubt(struct verdict *v, uint64_t bytes)
{
	if (v->bytes > bytes || !verdict_has(v->kind, VERDICT_ADDS_UP))
		return;
	SAY(&v->evidence, lost_may_have_made);
	const double most = confidence_value(CONFIDENCE_lossy);
	v->confidence = v->confidence < most ? v->confidence : most;
}

/* Nothing is said without evidence. */
static int ask(struct verdicts *v, const struct evidence *e, const struct evidence_device *d, enum verdict_kind kind)
{
	struct verdict out = { .kind = kind, .device = d };
	verdict_rule *rule = d ? rows[kind].device : rows[kind].host;
	enum finding finding = rule ? rule(e, d, &out) : FINDING_NONE;
	int error = 0;
	if (finding == FINDING_NONE || !out.evidence.count) {
		verdict_fini(&out);
		return 0;
	}
	if (finding == FINDING_HOLDS && (d ? d->doubt : e->host.doubt))
		doubt(&out, d ? d->doubt : e->host.doubt);
	if (finding == FINDING_HOLDS && verdict_has(kind, VERDICT_IS_FACT))
		error = keep(&v->facts, &v->fact_count, &out);
	else if (finding == FINDING_HOLDS)
		error = keep(&v->held, &v->held_count, &out);
	else if (finding == FINDING_RULED_OUT)
		error = keep(&v->ruled_out, &v->ruled_out_count, &out);
	else
		error = keep(&v->unknown, &v->unknown_count, &out);
	if (error)
		verdict_fini(&out);
	return error;
}

/* A request of a device's was refused and not caught, and nothing was refused or killed on the host. */
static bool died_of_device(const struct evidence *e)
{
	bool died = false;
	for (size_t i = 0; i < e->devices.count; i++)
		died |= e->devices.items[i].request.failed && e->devices.items[i].request.outcome == FAILURE_FATAL;
	return died && !e->host.killed && !verdicts_died(e);
}

static bool is_doubtful(const struct verdict *v)
{
	return verdict_certainty(v->confidence) == CERTAINTY_LOW;
}

/* A device's failure is not explained by the host, nor by a device that refused nothing. What is doubtful comes last,
 * and first that whose advice was replayed as enough; then bytes count. */
static int by_rank(const void *a, const void *b)
{
	const struct verdict *x = a, *y = b;
	if (x->beside != y->beside)
		return x->beside ? 1 : -1;
	if (is_doubtful(x) != is_doubtful(y))
		return is_doubtful(x) ? 1 : -1;
	if (x->shown != y->shown)
		return x->shown ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

static bool was_caught(const struct verdict *v)
{
	return v->device && v->device->request.failed && v->device->request.outcome == FAILURE_CAUGHT;
}

bool verdicts_died(const struct evidence *e)
{
	return e->host.refusal.bytes || e->host.runtime.pid;
}

static enum verdict_status status_of(const struct verdicts *v, const struct evidence *e)
{
	bool failed = (e->host.killed && e->host.oom_kills) || verdicts_died(e);
	for (size_t i = 0; i < v->held_count; i++)
		if (!was_caught(&v->held[i]) && verdict_certainty(v->held[i].confidence) > CERTAINTY_LOW)
			return STATUS_PROBLEM;
	for (size_t i = 0; i < e->devices.count; i++)
		failed |= e->devices.items[i].request.failed && e->devices.items[i].request.outcome != FAILURE_CAUGHT;
	return failed || !e->complete ? STATUS_INCONCLUSIVE : STATUS_OK;
}

int verdicts_find(struct verdicts *v, const struct evidence *e)
{
	int error = 0;
	*v = (struct verdicts){ 0 };
	for (int kind = 0; error == 0 && kind < VERDICT_KINDS; kind++) {
		for (size_t i = 0; error == 0 && i < e->devices.count; i++)
			error = ask(v, e, &e->devices.items[i], kind);
		if (error == 0)
			error = ask(v, e, NULL, kind);
	}
	if (error < 0) {
		verdicts_fini(v);
		return error;
	}
	for (size_t i = 0; i < v->held_count; i++)
		v->held[i].beside = died_of_device(e) && !(v->held[i].device && v->held[i].device->request.failed);
	if (v->held_count)
		qsort(v->held, v->held_count, sizeof(*v->held), by_rank);
	v->status = status_of(v, e);
	return 0;
}

static void list_fini(struct verdict *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		verdict_fini(&list[i]);
	free(list);
}

void verdicts_fini(struct verdicts *v)
{
	list_fini(v->held, v->held_count);
	list_fini(v->facts, v->fact_count);
	list_fini(v->ruled_out, v->ruled_out_count);
	list_fini(v->unknown, v->unknown_count);
	*v = (struct verdicts){ 0 };
}
