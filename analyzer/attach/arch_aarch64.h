/*
 * See analyzer/attach/arch.h. Layouts: the kernel's asm/ptrace.h, asm/sigcontext.h, asm/sve_context.h, asm/ucontext.h,
 * and struct rt_sigframe of arch/arm64/kernel/signal.c. Calls: the procedure call standard of Arm (AAPCS64).
 *
 * What is otherwise than on x86-64 (arch/arm64/kernel/signal.c, ptrace.c, syscall.c):
 *  - A call that an interrupt ended is wound back before the tracer sees the thread: it is at its `svc`, with the
 *    first argument and the number as before. A thread that has not entered it yet looks the same.
 *  - How it ended is known to the kernel alone, until the thread is let go. So a thread that nothing was changed of is
 *    just let go. One that was made to call something enters its call once more, where a signal finds it as before.
 *  - Of a call that ended with EINTR the first argument is gone. /proc/TID/syscall has it, before the interrupt.
 *  - In a stop before or after a system call x7 says which of both it is, and what is written to it is lost.
 *  - The number of a system call and registers can't be changed in one step.
 */
#ifndef MT_ATTACH_ARCH_AARCH64_H
#define MT_ATTACH_ARCH_AARCH64_H

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARCH_ATTACHES true
#define ARCH_SCANS    false
#define ARCH_RED_ZONE 0
/* mov x8, #__NR_rt_sigreturn; svc #0: what a signal handler returns to, in the kernel's vdso */
#define ARCH_RESTORER       "\x68\x11\x80\xd2\x01\x00\x00\xd4"
#define ARCH_RESTORER_BYTES 8
#define ARCH_SVC            0xd4000001u

/* Of the headers in use some are older than what they name. */
#define ARCH_NT_SYSTEM_CALL 0x404
#define ARCH_NT_TLS         0x401
#define ARCH_NT_SVE         0x405
#define ARCH_NT_SSVE        0x40b
#define ARCH_NT_ZA          0x40c
#define ARCH_NT_GCS         0x410

enum {
	ARCH_VL_IN_FRAME = 64, /* a longer vector is not in the part of a signal frame that is always there */
	ARCH_SVE_MOST = 16 + 32 * 256 + 17 * 32 + 32,
	ARCH_RESERVED = 4096,
	ARCH_CALL_NONE = -1,
};

struct arch_regs {
	uint64_t x[31], sp, pc, state;
};

struct arch_vectors {
	uint8_t v[32][16];
	uint32_t fpsr, fpcr, reserved[2];
};

/* Of NT_ARM_SVE, NT_ARM_SSVE and NT_ARM_ZA. */
struct arch_scalable {
	uint32_t size, most;
	uint16_t vl, most_vl, flags, reserved;
};

/* What /proc says of a thread that waits. */
struct arch_waiting {
	long call;
	uint64_t arguments[6], sp, pc;
};

struct arch_thread {
	struct arch_regs regs; /* wound back, where a call goes on */
	uint64_t pc, sp, thread, mask;
	long call;          /* that goes on or has just ended; -1 = none */
	const char *unsafe; /* why nothing may be called in it; NULL = it may */
	struct arch_waiting waiting;
	bool at_call;    /* it is before the call's instruction */
	bool from_eintr; /* the call had ended, and is begun anew */
	bool has_block;  /* the kernel knows how far the wait had come */
	bool called;
	uint64_t frame, restorer;
	size_t sve_bytes; /* 0 = no more than `vectors` */
	struct arch_vectors vectors;
	uint8_t sve[ARCH_SVE_MOST];
};

struct arch_frame_aarch64 {
	uint8_t info[128];
	uint64_t uc_flags, uc_link, stack_sp, stack_flags, stack_size, mask;
	uint8_t unused[1024 / 8];
	uint64_t fault, x[31], sp, pc, state, pad;
	uint8_t reserved[ARCH_RESERVED];
};
_Static_assert(offsetof(struct arch_frame_aarch64, fault) == 128 + 176, "ucontext.uc_mcontext");
_Static_assert(offsetof(struct arch_frame_aarch64, reserved) % 16 == 0, "sigcontext.__reserved");

static inline bool arch_get(pid_t tid, long set, void *to, size_t *bytes)
{
	struct iovec io = { to, *bytes };

	if (ptrace(PTRACE_GETREGSET, tid, set, &io))
		return false;
	*bytes = io.iov_len;
	return true;
}

static inline bool arch_get_all(pid_t tid, long set, void *to, size_t bytes)
{
	size_t got = bytes;

	return arch_get(tid, set, to, &got) && got == bytes;
}

static inline bool arch_set(pid_t tid, long set, const void *from, size_t bytes)
{
	struct iovec io = { (void *)(uintptr_t)from, bytes };

	return !ptrace(PTRACE_SETREGSET, tid, set, &io);
}

static inline bool arch_is_svc(pid_t tid, uint64_t at)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, tid, at & ~7ull, NULL);
	return !errno && (uint32_t)((uint64_t)word >> 8 * (at & 4)) == ARCH_SVC;
}

/* ---- reading ---- */

static inline void arch_look(pid_t tid, struct arch_thread *t)
{
	char path[48], text[256];
	struct arch_waiting *w = &t->waiting;
	unsigned long long v[8];

	w->call = ARCH_CALL_NONE;
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)tid);
	FILE *f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f) &&
	    sscanf(text, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &w->call, &v[0], &v[1], &v[2], &v[3], &v[4],
		   &v[5], &v[6], &v[7]) == 9) {
		for (int i = 0; i < 6; i++)
			w->arguments[i] = v[i];
		w->sp = v[6];
		w->pc = v[7];
	} else {
		w->call = ARCH_CALL_NONE;
	}
	if (f)
		fclose(f);
}

/* epoll_wait and its like end with EINTR whenever a thread is stopped. Where that would be felt, and going on from the
 * beginning would not, it does. Only where it was seen to wait just before: elsewhere a signal was the reason. */
static inline bool arch_begins_anew(const struct arch_thread *t)
{
	const struct arch_waiting *w = &t->waiting;
	const struct arch_regs *r = &t->regs;

	if ((int64_t)r->x[0] != -4 /* EINTR */ || w->call != (long)r->x[8] || w->pc != r->pc || w->sp != r->sp ||
	    memcmp(w->arguments + 1, r->x + 1, 5 * sizeof(*r->x)) != 0)
		return false;
	switch (w->call) {
	case SYS_epoll_pwait:
		return (int32_t)r->x[3] <= 1000;
	case 441: /* epoll_pwait2 */
	case SYS_semtimedop:
		return r->x[3] == 0;
	case SYS_semop:
		return true;
	case SYS_rt_sigtimedwait:
		return r->x[2] == 0;
	}
	return false;
}

/* State that a signal frame of ours would not hold. */
static inline const char *arch_holds_more(pid_t tid, struct arch_thread *t)
{
	struct arch_scalable h;
	uint64_t gcs[3];
	size_t bytes = sizeof(t->sve);

	t->sve_bytes = 0;
	if (arch_get_all(tid, ARCH_NT_GCS, gcs, sizeof(gcs)) && gcs[0] & 1)
		return "with a guarded control stack";
	bytes = sizeof(h);
	if (arch_get(tid, ARCH_NT_SSVE, &h, &bytes) && bytes == sizeof(h) && h.flags & 1)
		return "in streaming mode";
	bytes = sizeof(h);
	if (arch_get(tid, ARCH_NT_ZA, &h, &bytes) && bytes == sizeof(h) && h.size > sizeof(h))
		return "with an array of SME's in use";
	bytes = sizeof(t->sve);
	if (!arch_get(tid, ARCH_NT_SVE, t->sve, &bytes))
		return NULL;
	memcpy(&h, t->sve, sizeof(h));
	if (!(h.flags & 1))
		return NULL;
	t->sve_bytes = bytes;
	return h.vl > ARCH_VL_IN_FRAME ? "with longer vectors than a signal frame has" : NULL;
}

static inline bool arch_save(pid_t tid, struct arch_thread *t)
{
	struct arch_regs *r = &t->regs;

	t->called = t->has_block = t->from_eintr = false;
	if (!arch_get_all(tid, NT_PRSTATUS, r, sizeof(*r)) ||
	    !arch_get_all(tid, NT_PRFPREG, &t->vectors, sizeof(t->vectors)) ||
	    !arch_get_all(tid, ARCH_NT_TLS, &t->thread, sizeof(t->thread)) ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(t->mask), &t->mask) || r->state & 0x10 /* 32 bits */)
		return false;
	t->unsafe = arch_holds_more(tid, t);
	t->at_call = arch_is_svc(tid, r->pc);
	t->call = t->at_call || arch_is_svc(tid, r->pc - 4) ? (long)(int32_t)r->x[8] : ARCH_CALL_NONE;
	if (!t->at_call && t->call >= 0 && arch_begins_anew(t)) {
		t->at_call = t->from_eintr = true;
		r->pc -= 4;
		r->x[0] = t->waiting.arguments[0];
	}
	t->pc = r->pc;
	t->sp = r->sp;
	return true;
}

/* In the stop after a call, which comes before it is wound back, as well. */
static inline bool arch_goes_on(const struct arch_thread *t)
{
	int64_t error = -(int64_t)t->regs.x[0];

	return t->call >= 0 && (t->at_call || (error >= 512 && error <= 516 && error != 515));
}

/* All that may be a pointer, to be seen as words: returns their bytes. In a system call nothing lives in the vector
 * registers. `to` NULL: nothing is written. */
static inline size_t arch_words(const struct arch_thread *t, void *to)
{
	const size_t more = t->call < 0 ? sizeof(t->vectors.v) : 0;

	if (to) {
		memcpy(to, &t->regs, sizeof(t->regs));
		memcpy((uint8_t *)to + sizeof(t->regs), t->vectors.v, more);
	}
	return sizeof(t->regs) + more;
}

/* ---- stops on the way ---- */

static inline bool arch_next_stop(pid_t tid, int *status)
{
	pid_t got;

	do
		got = waitpid(tid, status, __WALL);
	while (got < 0 && errno == EINTR);
	return got == tid && WIFSTOPPED(*status);
}

/* Of the stop's signal, which the thread is to get; 0 = it is a stop of another kind. */
static inline int arch_signal(int status)
{
	return status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
}

/* A thread that is before its call enters it, and may be let go from there: a signal that has come meanwhile ends the
 * wait, as it would have done. Such a signal is put back for that moment: a blocked one is queued again. */
static inline bool arch_enter(pid_t tid, const struct arch_thread *t)
{
	const uint64_t all = ~0ull;
	int status = 0, signal = 0;
	bool blocked = false, entered = false;

	for (int stops = 0; stops < 100 && !entered; stops++) {
		if (ptrace(PTRACE_SYSCALL, tid, NULL, signal) || !arch_next_stop(tid, &status))
			return false;
		entered = WSTOPSIG(status) == (SIGTRAP | 0x80);
		signal = arch_signal(status);
		if (signal)
			blocked = !ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all);
		if (status >> 16 && WSTOPSIG(status) != SIGTRAP)
			break; /* stopped by a signal: it stays so */
	}
	if (blocked)
		ptrace(PTRACE_SETSIGMASK, tid, sizeof(t->mask), &t->mask);
	return entered;
}

/* A wait of which the kernel may know how far it had come; whether it does can't be seen. It does when the call is
 * entered and interrupted. */
static inline bool arch_may_have_block(const struct arch_thread *t)
{
	const uint64_t *x = t->regs.x;

	return t->at_call && (t->call == SYS_nanosleep || t->call == SYS_restart_syscall ||
			      (t->call == SYS_clock_nanosleep && !(x[1] & 1)) || (t->call == SYS_futex && x[3]));
}

static inline bool arch_settle(pid_t tid, struct arch_thread *t)
{
	const uint64_t number = t->regs.x[8];
	int status = 0;

	if (t->unsafe)
		return false;
	if (!arch_may_have_block(t))
		return true;
	if (ptrace(PTRACE_SYSCALL, tid, NULL, 0) || !arch_next_stop(tid, &status))
		return false;
	if (WSTOPSIG(status) == (SIGTRAP | 0x80) && !ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) &&
	    !ptrace(PTRACE_CONT, tid, NULL, 0) && arch_next_stop(tid, &status) && status >> 16 &&
	    WSTOPSIG(status) == SIGTRAP && arch_save(tid, t) && !t->unsafe) {
		t->has_block = arch_may_have_block(t);
		if (t->at_call) {
			t->regs.x[8] = number;
			t->call = (long)(int32_t)number;
		}
		return true;
	}
	ptrace(PTRACE_DETACH, tid, NULL, arch_signal(status));
	return false;
}

/* ---- the call ---- */

static inline size_t arch_frame_room(const struct arch_thread *t)
{
	(void)t;
	return sizeof(struct arch_frame_aarch64) + 16;
}

static inline void arch_put_record(uint8_t *at, uint32_t magic, size_t bytes)
{
	const uint32_t head[2] = { magic, (uint32_t)bytes };

	memcpy(at, head, sizeof(head));
}

/* Records of the frame: vectors, then SVE's where they are in use. */
static inline void arch_put_records(uint8_t *to, const struct arch_thread *t)
{
	struct arch_scalable h;

	arch_put_record(to, 0x46508001, 16 + sizeof(t->vectors.v));
	memcpy(to + 8, &t->vectors.fpsr, 8);
	memcpy(to + 16, t->vectors.v, sizeof(t->vectors.v));
	if (!t->sve_bytes)
		return;
	to += 16 + sizeof(t->vectors.v);
	memcpy(&h, t->sve, sizeof(h));
	const size_t bytes = 32u * h.vl + 17u * h.vl / 8;
	arch_put_record(to, 0x53564501, (16 + bytes + 15) & ~(size_t)15);
	memcpy(to + 8, &h.vl, sizeof(h.vl));
	memcpy(to + 16, t->sve + 16, bytes);
}

/* As the kernel makes it for a handler. */
static inline void arch_fill_frame(struct arch_frame_aarch64 *f, const struct arch_thread *t)
{
	memset(f, 0, sizeof(*f));
	f->stack_flags = 2; /* SS_DISABLE; read and found unchanged */
	f->mask = t->mask;
	memcpy(f->x, t->regs.x, sizeof(f->x));
	f->sp = t->regs.sp;
	f->pc = t->regs.pc;
	f->state = t->regs.state;
	arch_put_records(f->reserved, t);
}

static inline bool arch_call(pid_t tid, int memory, struct arch_thread *t, uint64_t top, uint64_t restorer,
			     uint64_t function, const uint64_t arguments[2])
{
	static struct arch_frame_aarch64 f;
	struct arch_vectors fresh = t->vectors;
	struct arch_regs call = t->regs;
	const uint64_t at = (top - sizeof(f)) & ~15ull;

	arch_fill_frame(&f, t);
	if (pwrite(memory, &f, sizeof(f), (off_t)at) != (ssize_t)sizeof(f))
		return false;
	t->frame = at;
	t->restorer = restorer;
	call.sp = at;
	call.pc = function;
	call.x[0] = arguments[0];
	call.x[1] = arguments[1];
	call.x[30] = restorer;
	call.state &= ~(3ull << 10 | 1ull << 21 | 1ull << 25); /* kind of branch, single step, unchecked tags */
	if (!arch_set(tid, NT_PRSTATUS, &call, sizeof(call)))
		return false;
	/* from here on the thread is in the call, and comes back by itself */
	t->called = true;
	fresh.fpsr = fresh.fpcr = 0;
	arch_set(tid, NT_PRFPREG, &fresh, sizeof(fresh));
	arch_block_signals(tid, t->mask);
	return true;
}

static inline bool arch_has_returned(pid_t tid, uint64_t top)
{
	struct arch_regs r;

	return arch_get_all(tid, NT_PRSTATUS, &r, sizeof(r)) && r.x[8] == SYS_rt_sigreturn && r.x[7] == 0 &&
	       r.sp == ((top - sizeof(struct arch_frame_aarch64)) & ~15ull);
}

/* To before sigreturn, out of whatever call it is in. Each step leaves a thread that comes back by itself. */
static inline bool arch_go_back(pid_t tid, const struct arch_thread *t)
{
	const int none = -1;
	struct arch_regs r;

	if (!arch_get_all(tid, NT_PRSTATUS, &r, sizeof(r)))
		return false;
	r.sp = t->frame;
	r.pc = t->restorer;
	return arch_set(tid, NT_PRSTATUS, &r, sizeof(r)) && arch_set(tid, ARCH_NT_SYSTEM_CALL, &none, sizeof(none));
}

static inline void arch_let_go(pid_t tid, const struct arch_thread *t, int signal)
{
	struct arch_regs r = t->regs;

	if (t->called) {
		if (t->sve_bytes)
			arch_set(tid, ARCH_NT_SVE, t->sve, t->sve_bytes);
		else
			arch_set(tid, NT_PRFPREG, &t->vectors, sizeof(t->vectors));
		ptrace(PTRACE_SETSIGMASK, tid, sizeof(t->mask), &t->mask);
	}
	if (t->has_block)
		r.x[8] = SYS_restart_syscall;
	if (t->called || (t->from_eintr && !signal)) {
		arch_set(tid, NT_PRSTATUS, &r, sizeof(r));
		if (t->at_call && !signal)
			arch_enter(tid, t);
	}
	ptrace(PTRACE_DETACH, tid, NULL, signal);
}

#endif
