#include "analyzer/diagnosis/ledger/managed_heaps.h"

#include "analyzer/util/minmax.h"

#include <fnmatch.h>
#include <string.h>

/* Functions by their short names, libraries by their paths. */
static const struct {
	const char *function, *library;
} runtimes[] = {
	{ "v8::*", NULL },
	{ NULL, "*/libjvm.so*" },
	{ NULL, "*/libj9gc*" },
	{ NULL, "*/libcoreclr.so" },
	{ NULL, "*/libclrgc*.so" },
	{ NULL, "*/libmono*.so*" },
	{ "sgen_*", NULL },
	{ "mono_*", NULL },
	{ "runtime.*", NULL },
	{ NULL, "*/libgo.so*" },
	{ "GC_*", NULL },
	{ "caml_*", NULL },
	{ "zend_mm_*", NULL },
	{ "lj_alloc_*", NULL },
	{ "heap_page_*", NULL },
	{ "erts_*", NULL },
	{ "JSC::*", NULL },
	{ "js::gc::*", NULL },
	/* Usually stripped of the names of their allocators. */
	{ "_zend_mm_*", NULL },
	{ NULL, "*/php" },
	{ NULL, "*/php[0-9].[0-9]" },
	{ NULL, "*/php-fpm*" },
	{ NULL, "*/libphp*.so*" },
	{ NULL, "*/libruby*.so*" },
	{ NULL, "*/luajit" },
	{ NULL, "*/luajit-[0-9]*" },
	{ NULL, "*/libluajit-*" },
};

static bool is_function(size_t row, const struct frame *f)
{
	return runtimes[row].function && f->name && fnmatch(runtimes[row].function, f->name, 0) == 0;
}

static const void *ask_runtime(void *arg, const struct frame *f)
{
	(void)arg;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++)
		if (is_function(i, f) ||
		    (runtimes[i].library && f->library && fnmatch(runtimes[i].library, f->library, 0) == 0))
			return &runtimes[i];
	return NULL;
}

bool managed_heaps_malloc(const struct selection *sel, uint32_t stack)
{
	struct stack_walk w = { .next = stack };
	bool known;
	do
		known = stack_step(sel->stacks, &w);
	while (known && w.class == FRAME_ALLOCATOR);
	for (size_t i = 0; known && i < sizeof(runtimes) / sizeof(*runtimes); i++)
		if (is_function(i, w.frame))
			return true;
	return false;
}

bool managed_heaps_stack(const struct selection *sel, uint32_t stack)
{
	return stacks_ask(sel->stacks, stack, MEMO_RUNTIME, PART_NATIVE, ask_runtime, NULL) ||
	       stacks_ask(sel->stacks, stack, MEMO_RUNTIME_PYTHON, PART_PYTHON, ask_runtime, NULL);
}

/* As far as it is resident: what was never touched is taken for a part of mappings before it is one of the heap. */
static uint64_t of_process(const struct selection *sel, const struct host_process *p)
{
	const struct model_level *l = &model_process(sel->model, p->process->id)->level;
	uint64_t bytes = 0, resident = less(p->live_heap + p->live_map, p->untouched);
	for (size_t i = 0; i < l->stack_count; i++)
		bytes += managed_heaps_stack(sel, stacks_of(sel->stacks, p->process, l->by_stack[i].node,
							    l->by_stack[i].node2))
				 ? l->by_stack[i].bytes
				 : 0;
	return lower(bytes, less(resident, p->live_heap));
}

struct managed_heaps managed_heaps_find(const struct selection *sel, const struct host_memory *s)
{
	struct managed_heaps all = { 0 };
	uint64_t most = 0;
	for (unsigned id = 0; s && host_ledger(s)->known && id < reader_processes(sel->reader); id++) {
		const struct host_process *p = host_process(s, id);
		uint64_t bytes = p->rss == HOST_KILL_UNKNOWN ? 0 : of_process(sel, p);
		if (!bytes)
			continue;
		all.several |= all.name && strcmp(all.name, p->process->name) != 0;
		all.name = bytes > most ? p->process->name : all.name;
		most = higher(most, bytes);
		all.bytes += bytes;
	}
	all.bytes = s ? lower(all.bytes, host_ledger(s)->live) : 0;
	return all;
}
