/* See analyzer/attach/arch.h. Layouts: the kernel's asm/sigcontext.h, asm/ucontext.h, arch/x86/kernel/signal_64.c. */
#ifndef MT_ATTACH_ARCH_X86_64_H
#define MT_ATTACH_ARCH_X86_64_H

#include <cpuid.h>
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#define ARCH_ATTACHES true
#define ARCH_SCANS    true
#define ARCH_RED_ZONE 128
/* mov $__NR_rt_sigreturn, %rax; syscall: what a signal handler returns to, in every C library */
#define ARCH_RESTORER       "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"
#define ARCH_RESTORER_BYTES 9
#define ARCH_MOST_XSTATE    16384

#define ARCH_NT_SHSTK 0x204

struct arch_thread {
	struct user_regs_struct regs;
	uint64_t pc, sp, thread, mask;
	long call; /* that was interrupted or has just ended; -1 = none */
	const char *unsafe;
	size_t xstate_bytes;
	uint8_t xstate[ARCH_MOST_XSTATE];
};

struct arch_frame_x86 {
	uint64_t restorer;
	uint64_t uc_flags, uc_link, stack_sp, stack_flags, stack_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trap, old_mask, cr2, fpstate, reserved[8];
	uint64_t mask;
	uint8_t info[128];
};

enum { ERESTARTSYS_ = 512, ERESTARTNOINTR_ = 513, ERESTARTNOHAND_ = 514, ERESTART_RESTARTBLOCK_ = 516 };

/* epoll_wait and its like end with EINTR whenever a thread is stopped. Where that would be felt, and going on from the
 * beginning would not, it does. */
static inline bool arch_begins_anew(const struct user_regs_struct *r)
{
	const int64_t wait_ms = (int32_t)r->r10;

	if ((int64_t)r->rax != -4 /* EINTR */)
		return false;
	switch (r->orig_rax) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return wait_ms < 0 || wait_ms <= 1000;
	case SYS_semop:
		return true;
	case SYS_rt_sigtimedwait:
		return r->rdx == 0;
	}
	return false;
}

static inline void arch_look(pid_t tid, const struct arch_thread *t)
{
	(void)tid;
	(void)t;
}

static inline bool arch_save(pid_t tid, struct arch_thread *t)
{
	uint64_t shadow;
	struct iovec s = { &shadow, sizeof(shadow) };
	struct iovec regs = { &t->regs, sizeof(t->regs) }, x = { t->xstate, sizeof(t->xstate) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &regs) || ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &x) ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(t->mask), &t->mask) || t->regs.cs != 0x33 || x.iov_len < 576 ||
	    x.iov_len == sizeof(t->xstate))
		return false;
	t->xstate_bytes = x.iov_len;
	if (arch_begins_anew(&t->regs))
		t->regs.rax = (uint64_t)-ERESTARTNOHAND_;
	t->pc = t->regs.rip;
	t->sp = t->regs.rsp;
	t->thread = t->regs.fs_base;
	t->call = (long)t->regs.orig_rax;
	/* a return to where nobody has called from would be a fault */
	t->unsafe = ptrace(PTRACE_GETREGSET, tid, ARCH_NT_SHSTK, &s) ? NULL : "with a shadow stack";
	return true;
}

static inline bool arch_goes_on(const struct arch_thread *t)
{
	int64_t error = -(int64_t)t->regs.rax;

	return t->call >= 0 && error >= ERESTARTSYS_ && error <= ERESTART_RESTARTBLOCK_ && error != 515;
}

/* Where the thread goes on, without the kernel's help. `block`: it still knows how far a wait had come. */
static inline struct user_regs_struct arch_next(const struct arch_thread *t, bool block)
{
	struct user_regs_struct r = t->regs;

	r.orig_rax = (uint64_t)-1;
	if (!arch_goes_on(t))
		return r;
	r.rip -= 2;
	r.rax = -(int64_t)t->regs.rax == ERESTART_RESTARTBLOCK_ && block ? SYS_restart_syscall : (uint64_t)t->call;
	return r;
}

/* All that may be a pointer, to be seen as words: returns their bytes. In a system call nothing lives in the vector
 * registers. `to` NULL: nothing is written. */
static inline size_t arch_words(const struct arch_thread *t, void *to)
{
	const size_t more = t->call < 0 ? t->xstate_bytes & ~(size_t)7 : 0;

	if (to) {
		memcpy(to, &t->regs, sizeof(t->regs));
		memcpy((uint8_t *)to + sizeof(t->regs), t->xstate, more);
	}
	return sizeof(t->regs) + more;
}

static inline size_t arch_frame_room(const struct arch_thread *t)
{
	return ((t->xstate_bytes + 4 + 63) & ~(size_t)63) + 64 + sizeof(struct arch_frame_x86) + 64;
}

/* Bytes of the state that the kernel takes from a frame: without the parts that a process must ask for first. */
static inline size_t arch_standard_xstate(uint64_t features)
{
	size_t bytes = 576;
	unsigned a, b, c, d;

	for (unsigned i = 2; i < 63; i++)
		if (features >> i & 1 && __get_cpuid_count(0xd, i, &a, &b, &c, &d) && a && b + a > bytes)
			bytes = b + a;
	return bytes;
}

static inline bool arch_write(int memory, uint64_t at, const void *from, size_t bytes)
{
	return pwrite(memory, from, bytes, (off_t)at) == (ssize_t)bytes;
}

static inline bool arch_settle(pid_t tid, const struct arch_thread *t)
{
	(void)tid;
	(void)t;
	return true;
}

/* Whether the frame was taken is of no matter to a thread that has its tracer: that one restores by itself. */
static inline bool arch_call(pid_t tid, int memory, const struct arch_thread *t, uint64_t top, uint64_t restorer,
			     uint64_t function, const uint64_t arguments[2])
{
	static uint8_t state[ARCH_MOST_XSTATE];
	struct user_regs_struct r = arch_next(t, false), call = t->regs;
	struct iovec set = { &call, sizeof(call) }, fresh = { state, t->xstate_bytes };
	uint64_t features, fp, at;
	uint32_t magic2 = 0x46505845, words[4];
	size_t bytes;

	memcpy(state, t->xstate, t->xstate_bytes);
	memcpy(&features, state + 464, 8);
	features &= ~(3ull << 17); /* AMX */
	bytes = arch_standard_xstate(features);
	if (bytes > t->xstate_bytes)
		return false;
	words[0] = 0x46505853;
	words[1] = (uint32_t)bytes + 4;
	memset(state + 464, 0, 48);
	memcpy(state + 464, words, 8);
	memcpy(state + 472, &features, 8);
	words[0] = (uint32_t)bytes;
	memcpy(state + 480, words, 4);
	memcpy(state + bytes, &magic2, 4);
	fp = (top - bytes - 4) & ~63ull;
	at = ((fp - sizeof(struct arch_frame_x86)) & ~15ull) - 8;
	struct arch_frame_x86 f = { .restorer = restorer,
				    .uc_flags = 7,
				    .r8 = r.r8,
				    .r9 = r.r9,
				    .r10 = r.r10,
				    .r11 = r.r11,
				    .r12 = r.r12,
				    .r13 = r.r13,
				    .r14 = r.r14,
				    .r15 = r.r15,
				    .di = r.rdi,
				    .si = r.rsi,
				    .bp = r.rbp,
				    .bx = r.rbx,
				    .dx = r.rdx,
				    .ax = r.rax,
				    .cx = r.rcx,
				    .sp = r.rsp,
				    .ip = r.rip,
				    .flags = r.eflags,
				    .cs = (uint16_t)r.cs,
				    .ss = (uint16_t)r.ss,
				    .fpstate = fp,
				    .mask = t->mask };
	if (!arch_write(memory, fp, state, bytes + 4) || !arch_write(memory, at, &f, sizeof(f)))
		return false;
	call.rsp = at;
	call.rip = function;
	call.rdi = arguments[0];
	call.rsi = arguments[1];
	call.rax = 0;
	call.orig_rax = (uint64_t)-1;
	call.eflags &= ~0x40500ull; /* direction, trap, alignment */
	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &set))
		return false;
	/* from here on the thread is in the call, and comes back by itself */
	memset(state, 0, t->xstate_bytes);
	state[0] = 0x7f;
	state[1] = 0x03;
	state[24] = 0x80;
	state[25] = 0x1f;
	ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &fresh);
	arch_block_signals(tid, t->mask);
	return true;
}

static inline bool arch_has_returned(pid_t tid, uint64_t top)
{
	struct user_regs_struct r;
	struct iovec io = { &r, sizeof(r) };

	return !ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) && r.orig_rax == SYS_rt_sigreturn &&
	       (int64_t)r.rax == -38 && r.rsp < top && r.rsp > top - 2 * ARCH_MOST_XSTATE;
}

static inline bool arch_go_back(pid_t tid, const struct arch_thread *t)
{
	struct user_regs_struct r = arch_next(t, true);
	struct iovec set = { &r, sizeof(r) }, x = { (void *)(uintptr_t)t->xstate, t->xstate_bytes };

	return !ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &x) &&
	       !ptrace(PTRACE_SETSIGMASK, tid, sizeof(t->mask), &t->mask) &&
	       !ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &set);
}

static inline void arch_let_go(pid_t tid, const struct arch_thread *t, int signal)
{
	struct iovec set = { (void *)(uintptr_t)&t->regs, sizeof(t->regs) };

	ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &set);
	ptrace(PTRACE_DETACH, tid, NULL, signal);
}

#endif
