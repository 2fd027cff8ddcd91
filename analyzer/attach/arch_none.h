/* A machine that attaching is not ported to: analyzer/attach/arch.h. */
#ifndef MT_ATTACH_ARCH_NONE_H
#define MT_ATTACH_ARCH_NONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARCH_ATTACHES       false
#define ARCH_SCANS          false
#define ARCH_RED_ZONE       0
#define ARCH_RESTORER       ""
#define ARCH_RESTORER_BYTES 0

struct arch_thread {
	uint64_t pc, sp, thread, mask;
	long call;
	const char *unsafe;
};

static inline void arch_look(pid_t tid, const struct arch_thread *t)
{
	(void)tid;
	(void)t;
}

static inline bool arch_save(pid_t tid, struct arch_thread *t)
{
	(void)tid;
	(void)t;
	return false;
}
static inline bool arch_goes_on(const struct arch_thread *t)
{
	(void)t;
	return false;
}
static inline size_t arch_words(const struct arch_thread *t, void *to)
{
	(void)t;
	(void)to;
	return 0;
}
static inline size_t arch_frame_room(const struct arch_thread *t)
{
	(void)t;
	return 0;
}
static inline bool arch_settle(pid_t tid, const struct arch_thread *t)
{
	(void)tid;
	(void)t;
	return false;
}
static inline bool arch_call(pid_t tid, int memory, const struct arch_thread *t, uint64_t top, uint64_t restorer,
			     uint64_t function, const uint64_t arguments[2])
{
	(void)tid, (void)memory, (void)t, (void)top, (void)restorer, (void)function, (void)arguments;
	return false;
}
static inline bool arch_has_returned(pid_t tid, uint64_t top)
{
	(void)tid, (void)top;
	return false;
}
static inline bool arch_go_back(pid_t tid, const struct arch_thread *t)
{
	(void)tid, (void)t;
	return false;
}
static inline void arch_let_go(pid_t tid, const struct arch_thread *t, int signal)
{
	(void)tid, (void)t, (void)signal;
}
#endif
