/*
 * Loaded modules, as records in the log: what was mapped where, with its build id, and between which nodes.
 *
 * dlopen is not wrapped (its result depends on the caller's address). A module is met when a stack first shows
 * a pc that no known module covers; dlclose is wrapped, since it doesn't depend on the caller.
 */
#ifndef MT_MODULES_H
#define MT_MODULES_H

#include <stdint.h>

/* Everything loaded now; at the start of an image or of a forked child. */
void mt_modules_start(void);

/* Called before a node with this pc is made: looks for new modules if it belongs to none that is known. */
void mt_modules_meet(uint64_t pc);

/* After a dlclose: records what went away and makes its stacks be forgotten. */
void mt_modules_check(void);

/* Our own text, whose frames are left out of stacks. */
int mt_modules_is_own(uint64_t pc);

#endif
