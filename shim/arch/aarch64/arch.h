/* See shim/arch/arch.h. */
#ifndef MT_ARCH_AARCH64_ARCH_H
#define MT_ARCH_AARCH64_ARCH_H

#define MT_ADDRESS_BITS 52
#define MT_FRAME        ((const struct mt_frame *)0)

#define MT_ARCH_CLOCK MT_CLOCK_CNTVCT

/* Architected: synchronised over all cores. */
static inline bool mt_arch_clock_is_good(void)
{
	return true;
}

static inline uint64_t mt_arch_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

static inline uint64_t mt_arch_ticks_ordered(bool shared)
{
	(void)shared;
	__asm__ volatile("isb" ::: "memory");
	return mt_arch_ticks();
}

static inline uint64_t mt_arch_second(void)
{
	uint64_t ticks;

	__asm__("mrs %0, cntfrq_el0" : "=r"(ticks));
	return ticks;
}

static inline long mt_arch_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}

/* The instructions do nothing on a processor and are a call to valgrind's. */
static inline bool mt_arch_under_valgrind(void)
{
	volatile uint64_t request[6] = { 0x1001 /* RUNNING_ON_VALGRIND */ };
	register uint64_t answer __asm__("x3") = 0;
	register volatile uint64_t *arguments __asm__("x4") = request;

	__asm__ volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61; orr x10, x10, x10"
			 : "+r"(answer)
			 : "r"(arguments)
			 : "cc", "memory");
	return answer != 0;
}

static inline bool mt_arch_is_address(uint32_t type)
{
	return type == R_AARCH64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_ABS64;
}

#endif
