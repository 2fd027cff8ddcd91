/*
 * The library in a program that it was not preloaded into: by `memtrace start PID`, which makes the program load it
 * (format/attach.h), or because the program opens it itself. Calls come to the hooks by relocate.h. Recording is held
 * until they all do, so what is recorded is exact from then on; blocks from before are known as such by their free.
 */
#ifndef MT_SHIM_ATTACH_H
#define MT_SHIM_ATTACH_H

#include <stdint.h>

/* Nonzero in the constructor of a library that the program has loaded after its start: libc is before us. */
int mt_attach_is_late(void);

/* The rest of such a constructor. */
void mt_attach_boot(void);

/* enum mt_attached of this process, for its info. */
uint32_t mt_attach_state(void);

/* Recording is about to begin or go on: hooks are put in place if they were taken away. And the other way round. Of a
 * preloaded program neither does anything. */
void mt_attach_hook(void);
void mt_attach_unhook(void);

/* Defined in init.c: what a process needs once it has entered; `late` is what mt_attach_is_late() says. */
void mt_init_set_up(int late);

#endif
