/*
 * A program that links a sanitizer's library (gcc's -fsanitize=address, thread, leak) is not recorded: reports would
 * show our hooks between the program and the interceptors. enter_image() says so, and from then on each hook that could
 * be in a report ends with a jump.
 *
 * AddressSanitizer also refuses to run if its library isn't the first one after the program. It asks dl_iterate_phdr,
 * so there we come last, which is no lie: a preloaded library has no place in the program's own order.
 */
#include <stddef.h>

#include "shim/base/elfsym.h"
#include "shim/base/libc.h"
#include "shim/hooks/hooks.h"

struct visitor {
	int (*visit)(struct dl_phdr_info *, size_t, void *);
	void *data;
	struct dl_phdr_info own;
	size_t own_bytes; /* 0 = not met */
};

static int leave_out_own(struct dl_phdr_info *info, size_t size, void *data)
{
	struct visitor *v = data;

	if (!mt_symbols_segment(info, (const void *)(uintptr_t)leave_out_own))
		return v->visit(info, size, v->data);
	v->own_bytes = size < sizeof(v->own) ? size : sizeof(v->own);
	__builtin_memcpy(&v->own, info, v->own_bytes);
	return 0;
}

static int come_last(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	struct visitor v = { .visit = visit, .data = data };
	int ret = mt_real.dl_iterate_phdr(leave_out_own, &v);

	return ret || !v.own_bytes ? ret : visit(&v.own, v.own_bytes, data);
}

MT_EXPORT int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	if (!mt_real.dl_iterate_phdr && !(mt_boot() && mt_real.dl_iterate_phdr))
		return mt_libc()->dl_iterate_phdr(visit, data);
	return mt_libc_is_sanitized() ? come_last(visit, data) : mt_real.dl_iterate_phdr(visit, data);
}
