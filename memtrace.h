/*
 * memtrace from inside the program: tell the tracer what the program is doing, so that its reports can use your words.
 *
 *     #include "memtrace.h"
 *     ...
 *     memtrace_phase_begin("load");
 *     ...
 *     memtrace_phase_end("load");
 *     for (step = 0; ...; step++)
 *             memtrace_step(step);
 *
 * There is nothing to link: where libmemtrace.so is not loaded all of these are tests of a null pointer, and while
 * recording is paused or off they do nothing. They can be called in any thread and in signal handlers, never fail, keep
 * errno, and keep no pointer: texts are copied (1023 bytes of UTF-8 at most; 65,536 different ones in a process). A
 * mark costs about as much as the stack of an allocation, 50 to 300 ns. C99 and later, C++98 and later; ELF with gcc or
 * clang.
 */
#ifndef MEMTRACE_H
#define MEMTRACE_H

/* Where a symbol is, if anywhere. Through the global offset table, because a weak reference of a program that is not
 * position independent is otherwise zero for good once it is linked. */
#if defined(__x86_64__)
#define MEMTRACE_AT_(name, at) __asm__(".weak " name "\n\tmovq " name "@GOTPCREL(%%rip), %0" : "=r"(at))
#elif defined(__aarch64__)
#define MEMTRACE_AT_(name, at) \
	__asm__(".weak " name "\n\tadrp %0, :got:" name "\n\tldr %0, [%0, :got_lo12:" name "]" : "=r"(at))
#else
#define MEMTRACE_AT_(name, at) ((at) = 0) /* no tracer on this machine */
#endif

#define MEMTRACE_CALL_(name, params, args) \
	static __inline__ void name##_ params \
	{ \
		void(*at) params; \
		MEMTRACE_AT_(#name, at); \
		if (at) \
			at args; \
	}

#ifdef __cplusplus
extern "C" {
#endif

/* Something happened just now. */
MEMTRACE_CALL_(memtrace_mark, (const char *name), (name))
#define memtrace_mark memtrace_mark_

/* Step `number` of the training loop (an iteration, a request) begins; it lasts until the next one. */
MEMTRACE_CALL_(memtrace_step, (unsigned long number), (number))
#define memtrace_step memtrace_step_

/* A phase of the program begins and ends. Phases of one thread nest; an end with NULL ends the innermost, one with a
 * name the innermost of that name and whatever began in it. */
MEMTRACE_CALL_(memtrace_phase_begin, (const char *name), (name))
MEMTRACE_CALL_(memtrace_phase_end, (const char *name), (name))
#define memtrace_phase_begin memtrace_phase_begin_
#define memtrace_phase_end   memtrace_phase_end_

/* The block of memory (host or device) that `block` points to, or into, is called `text` in reports until it is freed.
 * "KIND:NAME" also says what it is: "parameters:lm_head.weight", "optimizer:exp_avg lm_head.weight". */
MEMTRACE_CALL_(memtrace_label, (const void *block, const char *text), (block, text))
#define memtrace_label memtrace_label_

/* Which object of Python keeps the memory just now, where MEMTRACE_HOLDERS=1: a snapshot is taken as soon as the main
 * thread runs Python code again, and is called `name`. It takes about 0.2 s for a million objects. */
MEMTRACE_CALL_(memtrace_holders, (const char *name), (name))
#define memtrace_holders memtrace_holders_

/* Recording goes on and pauses. With MEMTRACE_PAUSED=1 it begins with the first memtrace_start(). */
MEMTRACE_CALL_(memtrace_start, (void), ())
MEMTRACE_CALL_(memtrace_stop, (void), ())
#define memtrace_start memtrace_start_
#define memtrace_stop  memtrace_stop_

#ifdef __cplusplus
}
#endif

#undef MEMTRACE_CALL_

#endif
