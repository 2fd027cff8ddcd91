/* What attaching writes into a thread of aarch64, against the kernel's headers and sigreturn itself: tests/cases/attach_arm64.py. */
#include "analyzer/attach/arch.h"

#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <stdlib.h>
#include <ucontext.h>

_Static_assert(sizeof(struct arch_regs) == sizeof(struct user_pt_regs), "registers");
_Static_assert(offsetof(struct arch_regs, state) == offsetof(struct user_pt_regs, pstate), "state");
_Static_assert(sizeof(struct arch_vectors) == sizeof(struct user_fpsimd_state), "vectors");
_Static_assert(offsetof(struct arch_vectors, fpcr) == offsetof(struct user_fpsimd_state, fpcr), "control");
_Static_assert(sizeof(struct arch_scalable) == sizeof(struct user_sve_header), "head of SVE");
_Static_assert(sizeof(struct arch_scalable) == sizeof(struct user_za_header), "head of ZA");
_Static_assert(SVE_PT_SVE_OFFSET == 16, "SVE's registers, by ptrace");
_Static_assert(SVE_SIG_REGS_OFFSET == 16, "SVE's registers, in a frame");
_Static_assert(sizeof(siginfo_t) == offsetof(struct arch_frame_aarch64, uc_flags), "siginfo");
_Static_assert(offsetof(ucontext_t, uc_sigmask) == offsetof(struct arch_frame_aarch64, mask) - 128, "mask");
_Static_assert(offsetof(ucontext_t, uc_mcontext) == offsetof(struct arch_frame_aarch64, fault) - 128, "context");
_Static_assert(offsetof(struct sigcontext, sp) == offsetof(struct arch_frame_aarch64, sp) - offsetof(struct arch_frame_aarch64, fault), "sp");
_Static_assert(offsetof(struct sigcontext, __reserved) == offsetof(struct arch_frame_aarch64, reserved) - offsetof(struct arch_frame_aarch64, fault), "records");
_Static_assert(SVE_PT_SIZE(16, SVE_PT_REGS_SVE) <= ARCH_SVE_MOST, "room for SVE");

extern const char restorer[], landed[], calls[];
uint64_t got[32];
uint8_t got_vectors[32][16];
uint64_t got_fpcr;
_Noreturn void has_landed(void);

__asm__(".text\n\t.globl restorer, calls, landed\n"
	"restorer: mov x8, #139\n\tsvc #0\n"
	"calls: svc #0\n"
	/* x29 has been given the address of `got` */
	"landed: str x0, [x29]\n\tstp x1, x2, [x29, #8]\n\tstp x3, x4, [x29, #24]\n\tstp x5, x6, [x29, #40]\n\tstp x7, x8, [x29, #56]\n\t"
	"stp x9, x10, [x29, #72]\n\tstp x11, x12, [x29, #88]\n\tstp x13, x14, [x29, #104]\n\tstp x15, x16, [x29, #120]\n\t"
	"stp x17, x18, [x29, #136]\n\tstp x19, x20, [x29, #152]\n\tstp x21, x22, [x29, #168]\n\tstp x23, x24, [x29, #184]\n\t"
	"stp x25, x26, [x29, #200]\n\tstp x27, x28, [x29, #216]\n\tstp x29, x30, [x29, #232]\n\tmov x0, sp\n\tstr x0, [x29, #248]\n\t"
	"mrs x1, fpcr\n\tadrp x0, got_fpcr\n\tadd x0, x0, :lo12:got_fpcr\n\tstr x1, [x0]\n\t"
	"adrp x0, got_vectors\n\tadd x0, x0, :lo12:got_vectors\n\t"
	"st1 {v0.16b-v3.16b}, [x0], #64\n\tst1 {v4.16b-v7.16b}, [x0], #64\n\tst1 {v8.16b-v11.16b}, [x0], #64\n\t"
	"st1 {v12.16b-v15.16b}, [x0], #64\n\tst1 {v16.16b-v19.16b}, [x0], #64\n\tst1 {v20.16b-v23.16b}, [x0], #64\n\t"
	"st1 {v24.16b-v27.16b}, [x0], #64\n\tst1 {v28.16b-v31.16b}, [x0], #64\n\tb has_landed\n");

static struct arch_thread t;

static void check(bool ok, const char *what)
{
	if (!ok) {
		printf("not as it was: %s\n", what);
		exit(1);
	}
}

void has_landed(void)
{
	sigset_t mask;

	check(!memcmp(got, t.regs.x, sizeof(t.regs.x)), "registers");
	check(got[31] == t.regs.sp, "stack pointer");
	check(!memcmp(got_vectors, t.vectors.v, sizeof(got_vectors)), "vectors");
	check(got_fpcr == t.vectors.fpcr, "control of floating point");
	sigprocmask(SIG_BLOCK, NULL, &mask);
	check(sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGUSR2) == 0, "mask");
	puts("as it was");
	exit(0);
}

static void check_records(void)
{
	struct arch_scalable h = { .vl = 64, .flags = 1, .size = SVE_PT_SIZE(4, SVE_PT_REGS_SVE) };
	static uint8_t records[ARCH_RESERVED];
	struct sve_context sve;
	struct _aarch64_ctx end;

	t.sve_bytes = h.size;
	for (size_t i = 0; i < h.size; i++)
		t.sve[i] = (uint8_t)(i * 7);
	memcpy(t.sve, &h, sizeof(h));
	arch_put_records(records, &t);
	memcpy(&sve, records + sizeof(struct fpsimd_context), sizeof(sve));
	check(sve.head.magic == SVE_MAGIC && sve.head.size == (SVE_SIG_CONTEXT_SIZE(4) + 15) / 16 * 16 && sve.vl == 64, "record of SVE");
	check(!memcmp(records + sizeof(struct fpsimd_context) + SVE_SIG_REGS_OFFSET, t.sve + SVE_PT_SVE_OFFSET, SVE_SIG_REGS_SIZE(4)), "registers of SVE");
	memcpy(&end, records + sizeof(struct fpsimd_context) + sve.head.size, sizeof(end));
	check(!end.magic && !end.size, "end of the records");
	t.sve_bytes = 0;
}

int main(void)
{
	static _Alignas(16) uint8_t stack[65536];
	static _Alignas(16) struct arch_frame_aarch64 f;

	check(!memcmp(restorer, ARCH_RESTORER, ARCH_RESTORER_BYTES), "code that calls sigreturn");
	check(*(const uint32_t *)(const void *)calls == ARCH_SVC, "code of a system call");
	for (uint64_t i = 0; i < 31; i++)
		t.regs.x[i] = 0x1111111111111111 * (i % 15 + 1) + i;
	t.regs.x[29] = (uint64_t)(uintptr_t)got;
	t.regs.sp = (uint64_t)(uintptr_t)(stack + sizeof(stack));
	t.regs.pc = (uint64_t)(uintptr_t)landed;
	t.regs.state = 0x60000000;
	t.mask = 1ull << (SIGUSR1 - 1);
	t.vectors.fpcr = 1 << 22;
	for (size_t i = 0; i < sizeof(t.vectors.v); i++)
		t.vectors.v[i / 16][i % 16] = (uint8_t)(i * 13 + 1);
	check_records();
	arch_fill_frame(&f, &t);
	__asm__ volatile("mov sp, %0\n\tbr %1" : : "r"(&f), "r"(restorer) : "memory");
	return 1;
}
