/* The shim's rings and young blocks, included as tsan_stubs.h says, and what they ask of the rest of it: stacks of a
 * fixed size, no recorder, a log that keeps nothing. STUB_RECORD is MEMTRACE_RECORD. */
#ifndef RING_STUBS_H
#define RING_STUBS_H

#include "tests/unit/tsan_stubs.h"

#include "shim/trace/ring.c"
#include "shim/trace/sample.c"
#include "shim/trace/young.c"

#ifndef STUB_RECORD
#define STUB_RECORD MT_RECORD_ALL
#endif
struct mt_config mt_config = { .record = STUB_RECORD };
uint64_t mt_stack_bytes(void)
{
	return 64;
}
uint64_t mt_python_bytes(void)
{
	return 64;
}
void mt_recorder_want(void)
{
}
void mt_stack_reset(struct mt_stack *stack)
{
	(void)stack;
}
void mt_python_reset(struct mt_python *python)
{
	(void)python;
}
void mt_log_replace(uint64_t at, const struct mt_part *parts, int n)
{
	(void)at;
	(void)parts;
	(void)n;
}
uint64_t mt_log_add(uint16_t type, const struct mt_part *parts, int n)
{
	(void)type;
	(void)parts;
	(void)n;
	return 0;
}

#endif
