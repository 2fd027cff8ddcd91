/*
 * Loaded modules, as records in the log: what was mapped where, with its build id, and between which nodes.
 *
 * dlopen is not wrapped (its result depends on the caller's address). A module is met when a stack first shows
 * a pc that no known module covers; dlclose is wrapped, since it doesn't depend on the caller.
 */
#ifndef MT_STACK_MODULES_H
#define MT_STACK_MODULES_H

#include <link.h>
#include <stdint.h>

#include "shim/base/set.h"

/* What others do about modules; each may be NULL. The first two are called under the process lock: for a module that is
 * new, and for one that was at [start, end). The last one after such, without the lock. */
struct mt_modules_watch {
	void (*met)(const struct dl_phdr_info *info);
	void (*gone)(uint64_t start, uint64_t end);
	void (*have_gone)(void);
};
MT_SET(mt_modules_watch);

/* Records all modules that are loaded; at the start of an image. */
void mt_modules_start(void);

/* In a forked child: the first copies what the parent has recorded, while the parent's log is still mapped; the second
 * records that in the child's own log. */
void mt_modules_keep(void);
void mt_modules_inherit(void);

/* Called before a node with this pc is made: looks for new modules if it belongs to none that is known. */
void mt_modules_meet(uint64_t pc);

/* After a dlclose: records which modules have gone, and makes their stacks be forgotten. Before a fork: records new
 * ones. */
void mt_modules_check(void);

struct mt_tables;
void mt_modules_tables(struct mt_tables *t);

#endif
