#include "analyzer/diagnosis/own_allocator.h"

#include "analyzer/diagnosis/ledger/managed_heaps.h"
#include "analyzer/symbols/python_arenas.h"
#include "analyzer/symbols/shown_by.h"
#include "analyzer/util/minmax.h"

#include <fnmatch.h>
#include <string.h>

#define OWN_ALLOCATOR_LEAST_BYTES (16ull << 20)
#define TIMES_HEAP                2
#define INNERMOST                 4 /* frames that an allocator needs to map more */
#define MANY                      8 /* mappings of code without names: fewer may be its data */

/* Short names. */
static const char *const names[] = {
	"*malloc*", "*calloc*",    "*realloc*", "*memalign*", "*aligned_alloc*", "operator new*", "mi_*",
	"je_*",     "tcmalloc::*", "tlsf_*",    "*_alloc",    "*_alloc_*",       "*Allocat*",
};

static bool is_named_so(const struct frame *f)
{
	for (size_t i = 0; f->name && i < sizeof(names) / sizeof(*names); i++)
		if (fnmatch(names[i], f->name, 0) == 0)
			return true;
	return false;
}

/* Of those that are no interpreter's and no runtime's. */
struct found {
	const struct frame *frame;
	bool nameless, arena;
};

static bool find_mapper(const struct selection *sel, const struct process *p, const struct model_site *s,
			struct found *out)
{
	uint32_t stack = stacks_of_site(sel->stacks, p, s->number, s->node, s->node2);
	unsigned native = 0;
	*out = (struct found){ 0 };
	out->arena = python_arenas_is(sel->stacks, stack, s->peak_bytes, s->peak_blocks);
	if (out->arena || managed_heaps_stack(sel, stack))
		return false;
	for (struct stack_walk w = { .next = stack }; native < INNERMOST && !out->frame && stack_step(sel->stacks, &w);
	     native++) {
		const struct frame *f = w.frame;
		if (f->language && !strcmp(f->language, "python"))
			break; /* what it calls maps data */
		bool of_program = f->library && p->exe && !strcmp(f->library, p->exe);
		out->frame = is_named_so(f) ? f : NULL;
		out->nameless |= native == 0 && of_program && !f->name;
	}
	return out->frame || out->nameless;
}

/* Resident anonymous memory without the heap, in the sample with most, and what was mapped later and can be no files.
 * UINT64_MAX = no sample. */
static uint64_t resident_beside_heap(const struct selection *sel, const struct samples *samples,
				     const struct model_process *m)
{
	const struct sample_subject *s = samples ? samples_of_process(samples, m->process) : NULL;
	if (!s || !(s->known >> MT_PROCESS_rss_anon & 1))
		return UINT64_MAX;
	const struct sample_extreme *most = &s->most[MT_PROCESS_rss_anon];
	const uint64_t later =
		less(m->kind[MODEL_MAP].peak_bytes, model_at(sel->model, &m->timeline[MODEL_MAP], most->ns).last);
	return less(most->value, model_at(sel->model, &m->timeline[MODEL_HEAP], most->ns).last) +
	       less(later, m->map[MAP_FILE].peak_bytes);
}

struct own_allocator own_allocator_find(const struct selection *sel, const struct samples *samples,
					const struct model_process *m)
{
	struct own_allocator own = { 0 };
	uint64_t most = 0, nameless = 0, nameless_blocks = 0, arenas = 0;
	if (m->map[MAP_ANON].peak_bytes < OWN_ALLOCATOR_LEAST_BYTES ||
	    m->map[MAP_ANON].peak_bytes / TIMES_HEAP < m->kind[MODEL_HEAP].peak_bytes)
		return own;
	for (uint32_t i = 0; i < m->site_count; i++) {
		const struct model_site *s = &m->sites[i];
		struct found f;
		if (s->kind != MODEL_MAP || !s->peak_bytes)
			continue;
		if (!find_mapper(sel, m->process, s, &f)) {
			arenas += f.arena ? s->peak_bytes : 0;
			continue;
		}
		own.bytes += f.frame ? s->peak_bytes : 0;
		nameless += f.frame ? 0 : s->peak_bytes;
		nameless_blocks += f.frame ? 0 : s->peak_blocks;
		own.frame = f.frame && s->peak_bytes > most ? f.frame : own.frame;
		most = f.frame && s->peak_bytes > most ? s->peak_bytes : most;
	}
	if (nameless_blocks >= MANY)
		own.bytes += nameless;
	const uint64_t resident = resident_beside_heap(sel, samples, m);
	own.library = own.frame && own.frame->library ? own.frame->library : m->process->exe;
	own.setting = allocator_setting(own.library);
	own.resident = resident == UINT64_MAX ? own.bytes : lower(own.bytes, less(resident, arenas));
	bool enough = own.resident >= OWN_ALLOCATOR_LEAST_BYTES &&
		      own.resident / TIMES_HEAP >= m->kind[MODEL_HEAP].peak_bytes;
	return enough ? own : (struct own_allocator){ 0 };
}
