/*
 * Who is not recorded, or only in part: counted in the session, and the first few noted by name.
 *
 * What a process is about to start can be told beforehand from the file and the environment. An image that begins
 * nevertheless withdraws the note about itself. Everything here may be called in a vfork child and in a forked child
 * that has not entered yet: it makes system calls and touches the session alone.
 */
#ifndef MT_TRACE_UNSEEN_H
#define MT_TRACE_UNSEEN_H

#include <stdint.h>

/* Counts a process for enum mt_loss `why` (0 = MT_LOSS_FILES). With a path (may be NULL) it is noted, too, while there
 * is room: the program, or the library whose malloc comes first. Returns what mt_unseen_withdraw() takes; 0 = it is
 * only counted. */
unsigned mt_unseen_count(uint32_t pid, uint32_t why, const char *path);
void mt_unseen_withdraw(unsigned note, uint32_t why);

/* Why what this file becomes with that environment won't be recorded (enum mt_loss); 0 = it will be, or nobody can
 * tell. `searched`: a name without a slash is looked for in PATH. Keeps errno. */
uint32_t mt_unseen_next(const char *file, int searched, char *const envp[]);

/* An image begins: takes back what was noted about this pid, and looks how it was loaded. */
void mt_unseen_begins(void);

/* The constructor, once the real functions are known: counts this process if its calls don't come to our hooks. */
void mt_unseen_boot(void);

#endif
