/* See shim/arch/registers.h. */
#ifndef MT_ARCH_AARCH64_CODE_H
#define MT_ARCH_AARCH64_CODE_H

/* There crti.o's prologue makes a frame record. */
#define MT_ARCH_INIT_BYTES 0
static inline bool mt_arch_in_init(const uint8_t *p)
{
	(void)p;
	return false;
}

#define MT_ARCH_INIT_RULE { .kind = MT_RULE_NONE }

/* mov x8, #__NR_rt_sigreturn; svc #0 */
static inline bool mt_arch_is_sigreturn(const uint8_t *p)
{
	static const uint8_t code[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };

	return !__builtin_memcmp(p, code, sizeof(code));
}

/* bl, blr, or blr with authentication */
static inline bool mt_arch_is_after_call(const uint8_t *p, int readable)
{
	uint32_t op;

	if (readable < 4)
		return false;

	__builtin_memcpy(&op, p - 4, 4);
	return (op & 0xfc000000) == 0x94000000 || (op & 0xfffffc1f) == 0xd63f0000 || (op & 0xfefff800) == 0xd63f0800;
}

#endif
