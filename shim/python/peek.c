#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "shim/base/libc.h"
#include "shim/base/quiet.h"
#include "shim/base/sys.h"
#include "shim/python/peek.h"
#include "shim/stack/maps.h"

/* Where the call is forbidden (some containers): at least nothing unmapped is touched. */
static int is_mapped(uintptr_t at, size_t bytes)
{
	uintptr_t page = mt_libc()->getauxval(AT_PAGESZ), start = at & ~(page - 1);

	return !mt_sys_failed(MT_SYS3(SYS_msync, start, at + bytes - start, MS_ASYNC));
}

static int is_forbidden(long ret)
{
	return ret == -EPERM || ret == -ENOSYS || ret == -EACCES;
}

int mt_peek_copy(void *to, uintptr_t at, size_t bytes)
{
	struct iovec local = { to, bytes }, remote = { (void *)at, bytes };
	long n;

	if (bytes == 0)
		return 1;
	if (mt_sys_quiet()) {
		if (!mt_maps_has(at, bytes, false))
			return 0;
		memcpy(to, (const void *)at, bytes);
		return 1;
	}
	n = MT_SYS6(SYS_process_vm_readv, mt_quiet_pid(), &local, 1, &remote, 1, 0);
	if (is_forbidden(n) && is_mapped(at, bytes)) {
		memcpy(to, (const void *)at, bytes);
		return 1;
	}
	return n == (long)bytes;
}

/* The kernel's copy proves that the page can be written; it is repeated here because a copy need not be whole. */
int mt_peek_store(uintptr_t at, uintptr_t word)
{
	uintptr_t old;
	struct iovec local = { &old, sizeof(old) }, remote = { (void *)at, sizeof(old) };
	long n;

	if (!mt_peek_copy(&old, at, sizeof(old)))
		return 0;
	if (mt_sys_quiet() && !mt_maps_has(at, sizeof(old), true))
		return 0;
	n = MT_SYS6(SYS_process_vm_writev, mt_quiet_pid(), &local, 1, &remote, 1, 0);
	if (n != (long)sizeof(old) && !is_forbidden(n))
		return 0;
	__atomic_store_n((uintptr_t *)at, word, __ATOMIC_RELEASE);
	return 1;
}
