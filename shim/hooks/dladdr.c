/*
 * dladdr and dladdr1. Programs ask where a function lives: MindSpore looks for CANN in the path of the library of
 * aclrtMalloc. Of a wrapper the answer is the real function's, with the wrapper's address where that is what was asked
 * for; everything else is the real dladdr's business.
 */
#include <dlfcn.h>

#include "shim/hooks/dlsym.h"
#include "shim/hooks/hooks.h"

/* Who compares dli_saddr with what it asked about, to tell a function from what lies behind it, is to find them equal.
 * */
static int answer_for(const void *asked, const void *real, int found, Dl_info *info)
{
	if (found && info->dli_saddr == real)
		info->dli_saddr = (void *)(uintptr_t)asked;
	return found;
}

MT_EXPORT int dladdr(const void *p, Dl_info *info)
{
	const void *real = mt_wrap_real(p);

	if (!MT_READY(dladdr))
		return 0;
	return real ? answer_for(p, real, mt_real.dladdr(real, info), info) : mt_real.dladdr(p, info);
}

MT_EXPORT int dladdr1(const void *p, Dl_info *info, void **extra, int flags)
{
	const void *real = mt_wrap_real(p);

	if (!MT_READY(dladdr1))
		return 0;
	return real ? answer_for(p, real, mt_real.dladdr1(real, info, extra, flags), info)
		    : mt_real.dladdr1(p, info, extra, flags);
}
