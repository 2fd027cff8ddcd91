#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "shim/base/config.h"
#include "shim/base/environ.h"
#include "shim/base/libc.h"
#include "shim/base/sys.h"
#include "shim/stack/tree.h"
#include "shim/stack/verify.h"

mt_verify_fn *mt_verify;

void mt_verify_boot(void)
{
	const char *wanted = mt_environ_get("MEMTRACE_VERIFY");
	char path[PATH_MAX], *at, *end = path + sizeof(path);
	Dl_info own;
	void *library;

	if (!wanted || *wanted != '1' || !mt_libc()->dladdr((void *)(uintptr_t)mt_verify_boot, &own) || !own.dli_fname)
		return;
	at = mt_put(path, end, own.dli_fname);
	while (at > path && at[-1] != '/')
		at--;
	mt_put(at, end, "libmemtrace-verify.so");
	library = mt_libc()->dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library)
		mt_verify = (mt_verify_fn *)(uintptr_t)mt_libc()->dlsym(library, "memtrace_verify");
	mt_say(mt_verify ? "stacks are verified by " : "stacks can't be verified by ", path);
}
