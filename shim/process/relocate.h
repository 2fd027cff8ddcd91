/*
 * Hooks in a program that was not preloaded: its modules are bound already, to the C library's functions. Their
 * relocations are done again, as the loader would have done them with this library behind the program and before all
 * others, as LD_PRELOAD puts it: words that hold the address of a function that we have a hook for get the hook's.
 *
 * What the loader binds from then on (lazily, for libraries that come later, for dlsym) finds the hooks by itself: this
 * library is moved to the second place of the loader's list of global modules. That list is the loader's own, and only
 * touched where it is recognized beyond doubt. Otherwise libraries that come later are met by dlsym and dlclose.
 *
 * A word that holds anything else is left alone: what the program has set itself, and weak references that are NULL.
 */
#ifndef MT_PROCESS_RELOCATE_H
#define MT_PROCESS_RELOCATE_H

#include <stdint.h>

/* Nonzero while words of the program lead to the hooks because of mt_relocate(). */
extern uint8_t mt_relocated;

/* Rewrites what is not rewritten yet, and returns how many words lead to hooks now. A module that the loader is still
 * at work on is left out. One thread at a time; 0 where another one is at it. */
uint32_t mt_relocate(void);

/* The words get back what they had. A function that was not bound yet when its word was rewritten is bound now. */
void mt_relocate_undo(void);

/* Called by dlsym and dlclose: rewrites in modules that were loaded since the last look, where that is needed. */
void mt_relocate_later(void);

#endif
