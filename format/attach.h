/*
 * What `memtrace start PID` and the library say to each other in a program that was not preloaded. The program is made
 * to load the library and then to call memtrace_attach() with this structure, in a thread of its own that is at a safe
 * place. In between it runs.
 *
 *	dlopen            the library is there, and does nothing yet: its path has MT_ATTACH_WAITS before its name
 *	MT_ATTACH_FORKS   handlers of forks are registered. Before glibc 2.36 this waits for a fork that is under way,
 *	                  whose handlers may wait for what the thread has. Nothing else is done, so it can be undone
 *	MT_ATTACH_HOOK    session and files are made, relocations rewritten; nothing is recorded yet
 *	MT_ATTACH_BEGIN   what a thread has bound meanwhile is rewritten as well, and recording begins
 *
 * Whoever opens the library by another path attaches it at once.
 */
#ifndef MT_ATTACH_H
#define MT_ATTACH_H

#include <stdint.h>

#define MT_ATTACH_WAITS    "/.//"
#define MT_ATTACH_FUNCTION "memtrace_attach"

enum mt_attach_step { MT_ATTACH_HOOK = 1, MT_ATTACH_BEGIN = 2, MT_ATTACH_FORKS = 3 };

enum mt_attach_result {
	MT_ATTACH_NONE = 0,     /* it did not come so far */
	MT_ATTACH_DONE = 1,     /* `trace` is set */
	MT_ATTACH_NO_TRACE = 2, /* the trace directory can't be made or joined */
	MT_ATTACH_OFF = 3,      /* not to be recorded: excluded, or a sanitizer's program, or recording was given up */
	MT_ATTACH_NOTHING = 4,  /* no module calls what there are hooks for */
	MT_ATTACH_READY = 5,    /* handlers of forks are registered */
};

struct mt_attach {
	uint32_t bytes;  /* sizeof(struct mt_attach) */
	uint32_t step;   /* enum mt_attach_step */
	uint32_t result; /* enum mt_attach_result; written by the library, as is all below but `settings` */
	uint32_t words;  /* of all modules that lead to hooks */
	char trace[4096];
	char settings[8192]; /* NAME=VALUE\0 of each, then \0; they come before the program's environment */
};

#endif
