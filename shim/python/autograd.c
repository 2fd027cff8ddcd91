#include <stddef.h>

#include "shim/base/elfsym.h"
#include "shim/base/libc.h"
#include "shim/python/autograd.h"
#include "shim/stack/tree.h"

#define ENGINE(name) "_ZN5torch8autograd6Engine" name

/* Code of one function; empty while unknown. */
struct code {
	const char *name;
	uint64_t start, end;
};

enum { EXECUTE, THREAD_MAIN, THREAD_INIT, REENTRANT_INIT, CODES };

static struct code code[CODES] = {
	[EXECUTE] = { ENGINE("7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_"), 0, 0 },
	[THREAD_MAIN] = { ENGINE("11thread_mainERKSt10shared_ptrINS0_9GraphTaskEE"), 0, 0 },
	[THREAD_INIT] = { ENGINE("11thread_initEiRKSt10shared_ptrINS0_10ReadyQueueEEb"), 0, 0 },
	[REENTRANT_INIT] = { ENGINE("21reentrant_thread_initEv"), 0, 0 },
};
static uint32_t caller;

uint32_t mt_autograd_caller(void)
{
	return __atomic_load_n(&caller, __ATOMIC_ACQUIRE);
}

/* Whether the stack passes through one of code[from .. to]. */
static int passes(uint32_t node, unsigned from, unsigned to)
{
	uint64_t pc;

	for (; node && (pc = mt_tree_pc(node, &node)) != 0;)
		for (unsigned i = from; i <= to; i++)
			if (pc - code[i].start < code[i].end - code[i].start)
				return 1;
	return 0;
}

int mt_autograd_is_worker(uint32_t node)
{
	/* acquire pairs with the release in find_engine */
	return __atomic_load_n(&code[EXECUTE].start, __ATOMIC_ACQUIRE) && passes(node, THREAD_INIT, REENTRANT_INIT);
}

static int find_in(struct dl_phdr_info *info, size_t size, void *found)
{
	struct mt_symbols symbols;

	(void)size;
	if (mt_symbols_segment(info, (const void *)(uintptr_t)find_in) || !mt_symbols_of(info, &symbols) ||
	    !mt_symbols_find(&symbols, code[EXECUTE].name))
		return 0;
	for (unsigned i = THREAD_MAIN; i < CODES; i++)
		code[i].end = mt_symbols_extent(&symbols, code[i].name, &code[i].start);
	*(void **)found = mt_symbols_find(&symbols, code[EXECUTE].name);
	return 1;
}

/* Several threads may do so at once: they write the same. */
static void *find_engine(void)
{
	void *engine = NULL;

	mt_libc()->dl_iterate_phdr(find_in, &engine);
	if (!engine)
		__builtin_trap(); /* it was called, so its library has to define it; there is nothing to return */
	__atomic_store_n(&code[EXECUTE].start, (uintptr_t)engine, __ATOMIC_RELEASE);
	return engine;
}

void *mt_autograd_engine(void)
{
	void *engine = (void *)(uintptr_t)__atomic_load_n(&code[EXECUTE].start, __ATOMIC_ACQUIRE);

	return engine ? engine : find_engine();
}

void mt_autograd_begins(uint32_t native, uint32_t python)
{
	if (python && !passes(native, THREAD_MAIN, THREAD_MAIN))
		__atomic_store_n(&caller, python, __ATOMIC_RELEASE);
}
