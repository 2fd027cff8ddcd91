/*
 * The library in a program that it was not preloaded into: by `memtrace start PID`, which makes the program load it
 * (format/attach.h), or because the program opens it itself. Calls come to the hooks by relocate.h. Recording is held
 * until they all do, so what is recorded is exact from then on; blocks from before are known as such by their free.
 */
#ifndef MT_PROCESS_ATTACH_H
#define MT_PROCESS_ATTACH_H

/* Nonzero in the constructor of a library that the program has loaded after its start: libc is before us. */
int mt_attach_is_late(void);

/* The rest of such a constructor. `how` does what a process needs once it has entered, `forks` registers
 * handlers of forks; now, or when memtrace_attach() is called. */
void mt_attach_boot(void (*how)(void), void (*forks)(void));

#endif
