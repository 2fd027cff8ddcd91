/* See shim/arch/arch.h. */
#ifndef MT_ARCH_X86_64_ARCH_H
#define MT_ARCH_X86_64_ARCH_H

#define MT_ADDRESS_BITS 47
#define MT_FRAME        ((const struct mt_frame *)__builtin_frame_address(0))

#define MT_ARCH_CLOCK MT_CLOCK_TSC

/* The kernel's own choice tells whether the counter is synchronised and stable. */
bool mt_clock_kernel_uses(const char *name);
static inline bool mt_arch_clock_is_good(void)
{
	return mt_clock_kernel_uses("tsc");
}

static inline uint64_t mt_arch_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static inline uint64_t mt_arch_ticks_ordered(bool shared)
{
	unsigned cpu;

	return shared ? __builtin_ia32_rdtscp(&cpu) : __builtin_ia32_rdtsc();
}

/* The tick's length is not known yet and need not be: 2^31 cycles are 0.5 to 1 second. */
static inline uint64_t mt_arch_second(void)
{
	return 1ull << 31;
}

static inline long mt_arch_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* The instructions do nothing on a processor and are a call to valgrind's. */
static inline bool mt_arch_under_valgrind(void)
{
	volatile uint64_t request[6] = { 0x1001 /* RUNNING_ON_VALGRIND */ };
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(request)
			 : "cc", "memory");
	return answer != 0;
}

static inline bool mt_arch_is_address(uint32_t type)
{
	return type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT || type == R_X86_64_64;
}

#endif
