/* See shim/arch/registers.h. */
#ifndef MT_ARCH_X86_64_CODE_H
#define MT_ARCH_X86_64_CODE_H

/* mov $__NR_rt_sigreturn, %rax (or %eax); syscall */
static inline bool mt_arch_is_sigreturn(const uint8_t *p)
{
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	return !__builtin_memcmp(p, rax, sizeof(rax)) || !__builtin_memcmp(p, eax, sizeof(eax));
}

/* Bytes of a ModRM operand, for a call through a register or memory. */
static inline int mt_arch_operand_bytes(const uint8_t *modrm)
{
	int mod = modrm[0] >> 6, rm = modrm[0] & 7, sib = mod != 3 && rm == 4;

	if (mod == 0)
		return 1 + sib + (rm == 5 || (sib && (modrm[1] & 7) == 5) ? 4 : 0);
	return 1 + sib + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* Does a call instruction end at p? So many bytes before p can be read. */
static inline bool mt_arch_is_after_call(const uint8_t *p, int readable)
{
	if (readable >= 5 && p[-5] == 0xe8)
		return true;
	for (int n = 2; n <= 7 && n <= readable; n++)
		if (p[-n] == 0xff && (p[1 - n] >> 3 & 7) == 2 && mt_arch_operand_bytes(p - n + 1) == n - 1)
			return true;
	return false;
}

/* A module's _init and _fini are put together from pieces of every object file's .init, and have no unwind tables.
 * Behind each of their calls there are only others, and then crtn.o's end: add $8, %rsp; ret. (CUDA's libraries run
 * their constructors so.) */
#define MT_ARCH_INIT_BYTES 48
static inline bool mt_arch_in_init(const uint8_t *p)
{
	static const uint8_t end[] = { 0x48, 0x83, 0xc4, 0x08, 0xc3 };

	for (const uint8_t *last = p + MT_ARCH_INIT_BYTES - sizeof(end); p < last && *p == 0xe8; p += 5)
		;
	return !__builtin_memcmp(p, end, sizeof(end));
}

#define MT_ARCH_INIT_RULE { .kind = MT_RULE_SP, .cfa = 16, .ra = -8 }

#endif
