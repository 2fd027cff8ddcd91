/* Processes that ended badly, perhaps for want of memory that they were refused: by the kernel, or by a runtime of
 * their own. */
#include "analyzer/diagnosis/evidence_growth.h"
#include "analyzer/diagnosis/ledger/managed_heaps.h"
#include "analyzer/util/output.h"

#include <stdlib.h>
#include <string.h>

#define SOON_NS   2000000000ull /* it ended so soon after the refusal, or ... */
#define SOON_PART 10            /* ... within this part of its time */

static bool ended_badly(const struct process *p)
{
	return (p->exit_kind == MT_EXIT_CODE && p->exit_code != 0) ||
	       (p->exit_kind == MT_EXIT_SIGNAL && p->exit_code != 9 && p->exit_code != 15);
}

static const char *how(struct diagnosis *diagnosis, const struct process *p)
{
	char text[32];
	return diagnosis_own_text(diagnosis, output_format("%s", exit_text(p, text, sizeof(text))));
}

/* ---- refused by the kernel ----------------------------------------------------------------------------------- */

static bool died_of(const struct process *p, const struct model_failure *f)
{
	uint64_t left = less(p->end_ns, f->last_ns);
	return ended_badly(p) && (left <= SOON_NS || left <= less(p->end_ns, p->start_ns) / SOON_PART);
}

static uint64_t limit_or_none(uint64_t recorded)
{
	return recorded && recorded != MT_NO_LIMIT ? recorded : EVIDENCE_UNKNOWN;
}

static uint64_t used_or_none(uint64_t recorded)
{
	return recorded ? recorded : EVIDENCE_UNKNOWN;
}

/* The largest that a process died of. */
static void set_refusal(struct diagnosis *diagnosis)
{
	struct evidence_refusal *r = &diagnosis->evidence.host.refusal;
	for (unsigned i = 0; i < model_failures(diagnosis->selection->model); i++) {
		const struct model_failure *f = model_failure(diagnosis->selection->model, i);
		const struct process *p = reader_process(diagnosis->selection->reader, f->process);
		if (!selection_has(diagnosis->selection, p) || !died_of(p, f) || f->last_bytes <= r->bytes)
			continue;
		*r = (struct evidence_refusal){
			.pid = p->pid,
			.name = p->name,
			.ended = how(diagnosis, p),
			.bytes = f->last_bytes,
			.site = diagnosis_site(diagnosis,
					       stacks_of(diagnosis->selection->stacks, p, f->node, f->node2)),
			.address_limit = limit_or_none(p->address_limit),
			.data_limit = limit_or_none(p->data_limit),
			.address_used = used_or_none(p->address_used),
			.data_used = used_or_none(p->data_used),
		};
	}
}

/* ---- by a runtime ---------------------------------------------------------------------------------------------- */

/* Of a command line: the limit of its runtime's heap, and in which unit where none is said. */
static const struct {
	const char *prefix;
	uint64_t unit;
} options[] = {
	{ "-Xmx", 1 },
	{ "-XX:MaxHeapSize=", 1 },
	{ "--max-old-space-size=", 1u << 20 },
	{ "--max_old_space_size=", 1u << 20 },
	{ "memory_limit=", 1 },
	{ "-dmemory_limit=", 1 },
};

static uint64_t size_of(const char *text, uint64_t unit)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);
	const char *letter = strchr("kKmMgGtT", *end);
	if (end == text || n > 1u << 30)
		return 0;
	return *end && letter ? n << 10 * (1 + (letter - "kKmMgGtT") / 2) : n * unit;
}

static void set_option(struct evidence_runtime *t, const struct process *p)
{
	for (unsigned i = 1; i < p->argc; i++)
		for (size_t k = 0; k < sizeof(options) / sizeof(*options); k++) {
			size_t n = strlen(options[k].prefix);
			uint64_t limit = strncmp(p->argv[i], options[k].prefix, n)
						 ? 0
						 : size_of(p->argv[i] + n, options[k].unit);
			t->option = limit ? p->argv[i] : t->option;
			t->limit = limit ? limit : t->limit;
		}
}

/* What its runtime had mapped, each call at its peak. */
static uint64_t runtime_bytes(const struct diagnosis *diagnosis, const struct model_process *m)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < m->site_count; i++) {
		const struct model_site *s = &m->sites[i];
		if (s->kind == MODEL_MAP && s->peak_bytes &&
		    managed_heaps_stack(diagnosis->selection, stacks_of_site(diagnosis->selection->stacks, m->process,
									     s->number, s->node, s->node2)))
			bytes += s->peak_bytes;
	}
	return bytes;
}

static void set_runtime(struct diagnosis *diagnosis)
{
	struct evidence_runtime *t = &diagnosis->evidence.host.runtime;
	for (unsigned id = 0; id < reader_processes(diagnosis->selection->reader); id++) {
		const struct model_process *m = model_process(diagnosis->selection->model, id);
		const struct process *p = m->process;
		uint64_t bytes =
			selection_has(diagnosis->selection, p) && ended_badly(p) ? runtime_bytes(diagnosis, m) : 0;
		if (bytes <= t->bytes)
			continue;
		*t = (struct evidence_runtime){
			.pid = p->pid, .name = p->name, .ended = how(diagnosis, p), .bytes = bytes
		};
		set_option(t, p);
	}
}

void evidence_ends(struct diagnosis *diagnosis)
{
	set_refusal(diagnosis);
	set_runtime(diagnosis);
}
