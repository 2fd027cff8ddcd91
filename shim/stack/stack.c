/* The unwinder of unwind.c behind the few calls that the recorder needs. */
#include "shim/base/config.h"
#include "shim/base/tables.h"
#include "shim/stack/modules.h"
#include "shim/stack/rules.h"
#include "shim/stack/stack.h"
#include "shim/stack/tree.h"
#include "shim/stack/unwind.h"

/* A ring's memory is zeroed pages; it is set up by the first capture that uses it. */
struct mt_stack {
	uint64_t ready;
};

static struct mt_unwind *unwinder(struct mt_stack *s)
{
	uintptr_t line = ((uintptr_t)(s + 1) + MT_UNWIND_ALIGN - 1) & -(uintptr_t)MT_UNWIND_ALIGN;

	return (struct mt_unwind *)line;
}

void mt_stack_boot(void)
{
	mt_unwind_boot();
}

void mt_stack_load(void)
{
}

void mt_stack_tables(struct mt_tables *t)
{
	mt_rules_tables(t);
}

uint64_t mt_stack_bytes(void)
{
	return sizeof(struct mt_stack) + MT_UNWIND_ALIGN + mt_unwind_bytes(mt_config.depth);
}

/* Previous captures must not be joined any more. */
static void forget_modules(void)
{
	mt_unwind_flush();
}

static const struct mt_modules_watch watch = { .have_gone = forget_modules };
MT_SET_ADD(mt_modules_watch, watch);

void mt_stack_sandboxed(void)
{
	mt_unwind_sandboxed();
}

void mt_stack_unmapped(void)
{
	mt_unwind_unmapped();
}

static struct mt_unwind *ready(struct mt_stack *s)
{
	if (!s->ready) {
		mt_unwind_init(unwinder(s), mt_config.depth);
		s->ready = 1;
	}
	return unwinder(s);
}

void mt_stack_reset(struct mt_stack *s)
{
	if (s->ready)
		mt_unwind_reset(unwinder(s));
}

bool mt_stack_passes(struct mt_stack *s, uint64_t address)
{
	struct mt_regs here;

	MT_REGS_HERE(here);
	return mt_unwind_passes(ready(s), &here, address);
}

void mt_stack_walk(struct mt_stack *s, const struct mt_frame *frame)
{
	struct mt_regs here;

	if (frame) {
		here = (struct mt_regs){ frame->ra, (uintptr_t)(frame + 1), frame->fp, 0, true };
	} else {
		MT_REGS_HERE(here);
	}
	mt_unwind_walk(ready(s), &here);
}

uint32_t mt_stack_node(struct mt_stack *s, const void *caller, int *truncated)
{
	bool cut = false;
	uint32_t node = mt_unwind_node(unwinder(s), &cut);

	if (!node) {
		node = mt_tree_child(0, (uintptr_t)caller, 0);
		node = node == MT_NODE_FAILED ? 0 : node;
		cut = true;
	}
	*truncated |= cut;
	return node;
}
