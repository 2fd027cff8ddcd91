/*
 * Which object keeps the memory: snapshots of what refers to what, in PID-N.holders (docs/design/holders.md).
 *
 * Opt-in (MEMTRACE_HOLDERS). A snapshot is asked for at any moment, also inside an allocation, and taken later: at the
 * main thread's next safe point (a pending call of the interpreter), where it holds the GIL. There the process forks.
 * The child alone walks: it reads, calls tp_traverse, writes the file and exits. The program waits for it, for at most
 * MT_HOLDERS_SECONDS. So nothing of the program's memory changes, and a fault in somebody's tp_traverse is the
 * child's.
 */
#ifndef MT_BASE_HOLDERS_H
#define MT_BASE_HOLDERS_H

#include <stdint.h>

#include "format/holders.h"
#include "shim/base/elfsym.h"
#include "shim/base/set.h"

#define MT_HOLDERS_SECONDS 20

struct mt_pylayout; /* python/pyfind.h */

/* Who takes the snapshots: python/holders.c. Its functions are what those of the same name below say. */
struct mt_holders_taker {
	void (*meet)(const struct mt_symbols *s, uint32_t version, const struct mt_pylayout *layout);
	void (*forget)(void);
	void (*ask)(enum mt_hold_why why, const char *name);
	void (*note_main)(uintptr_t code);
	void (*leave)(void);
};
MT_SET(mt_holders_taker);

/* Called under the process lock when the interpreter is found. */
void mt_holders_meet(const struct mt_symbols *s, uint32_t version, const struct mt_pylayout *layout);
void mt_holders_forget(void);

/* Asks for a snapshot. Keeps errno; async-signal-safe but for the interpreter's own lock of pending calls, which is
 * held for some instructions at a time. Nothing where holders are off or no interpreter is there. `name`: of a mark,
 * or NULL. */
extern uint32_t mt_holders_on;
void mt_holders_ask(enum mt_hold_why why, const char *name);

/* Always 0 in a library that is built without holders. make bench compares with such a one. */
static inline int mt_holders_are_on(void)
{
#ifdef MT_WITHOUT_HOLDERS
	return 0;
#else
	return __builtin_expect(mt_holders_on, 0);
#endif
}

static inline void mt_holders_want(enum mt_hold_why why, const char *name)
{
	if (mt_holders_are_on())
		mt_holders_ask(why, name);
}

/* The outermost frame of the first thread is of this code. */
extern uint32_t mt_holders_ready;
void mt_holders_note_main(uintptr_t code);
static inline void mt_holders_runs(uintptr_t code)
{
	if (mt_holders_are_on() && !mt_holders_ready)
		mt_holders_note_main(code);
}

/* The first thread is in C. If it has no Python frame the program may be over. */
static inline void mt_holders_idle(void)
{
	mt_holders_want(MT_HOLD_END, (const char *)0);
}

/* The process is about to end without the interpreter's doing anything more: os._exit(), as workers of multiprocessing
 * do. If Python called, the snapshot is taken here. */
void mt_holders_leave(void);

#endif
