#include <errno.h>
#include <sys/auxv.h>
#include <sys/uio.h>

#include "shim/arch/arch.h"
#include "shim/arch/registers.h"
#include "shim/base/libc.h"
#include "shim/base/sys.h"
#include "shim/stack/maps.h"
#include "shim/stack/range.h"

#define PAGE     4096ull       /* larger pages are tried more often than needed, which is harmless */
#define MAX_STEP (64ull << 20) /* no frame is larger; what lies further out isn't this stack */
#define MAX_DOWN (1ull << 20)  /* further in, another range is begun */
#define MAX_OWN  (32ull << 20) /* of a stack that is looked at as a whole; the first one has 128 MiB to itself */
#define MISSES   8u            /* then a thread's stack is left as far as it is known */

static bool probing, under_valgrind;
static uint64_t first_stack; /* an address beyond all frames of the first thread */

/* Valgrind reports what a system call is given that can't be read, or was never written. Of this one it looks at our
 * side only. */
static bool copies(void *to, uint64_t addr, size_t bytes)
{
	struct iovec here = { to, bytes }, there = { (void *)addr, bytes };

	return MT_SYS6(SYS_process_vm_readv, MT_SYS0(SYS_getpid), &here, 1, &there, 1, 0) == (long)bytes;
}

static bool can_copy(uint64_t addr)
{
	uint64_t word;

	return copies(&word, addr, sizeof(word));
}

bool mt_range_probe(uint64_t addr)
{
	if (__builtin_expect(under_valgrind, 0))
		return __atomic_load_n(&probing, __ATOMIC_RELAXED) && can_copy(addr & ~7ull);
	/* an impossible "how": the kernel reads the set first (EFAULT), then refuses (EINVAL), and changes nothing */
	if (__builtin_expect(mt_sys_quiet() != MT_QUIET_NOT, 0))
		return mt_maps_has(addr & ~7ull, 8, false);
	return __atomic_load_n(&probing, __ATOMIC_RELAXED) &&
	       MT_SYS4(SYS_rt_sigprocmask, -1, addr & ~7ull, 0, 8) == -EINVAL;
}

void mt_range_boot(void)
{
	under_valgrind = mt_arch_under_valgrind();
	first_stack = mt_libc()->getauxval(AT_RANDOM) & ~7ull;
	probing = under_valgrind || mt_sys_quiet() == MT_QUIET_USUAL ||
		  MT_SYS4(SYS_rt_sigprocmask, -1, 8, 0, 8) == -EFAULT;
}

void mt_range_forbid(void)
{
	mt_maps_look();
	__atomic_store_n(&probing, false, __ATOMIC_RELAXED);
}

void mt_range_unmapped(void)
{
	/* relaxed: only a thread that runs on stale ground cares, and it learns of it no later than the unmapping
	 * thread could have told it */
	if (__atomic_load_n(&probing, __ATOMIC_RELAXED))
		__atomic_fetch_add(&mt_maps_generation, 1, __ATOMIC_RELAXED);
}

/* The page at `at`, of a stack that is known to be at `from`. */
static bool can_read(uint64_t from, uint64_t at)
{
	return mt_maps_in_first_stack(from, at + PAGE) || mt_range_probe(at);
}

/* Deeper than before on the same stack, if every page in between can be read. */
static bool extend_down(struct mt_range *r, uint64_t page)
{
	if (r->lo - page > MAX_DOWN)
		return false;
	for (uint64_t at = page + PAGE; at < r->lo; at += PAGE)
		if (!can_read(page, at))
			return false;
	r->lo = page;
	return true;
}

bool mt_range_enter(struct mt_range *r, uint64_t sp)
{
	uint64_t page = sp & -PAGE;
	uint32_t now = __atomic_load_n(&mt_maps_generation, __ATOMIC_RELAXED);

	if (r->generation == now && sp >= r->lo && sp < r->hi)
		return true;
	if (r->generation == now && r->hi && sp < r->lo && extend_down(r, page))
		return true;
	*r = (struct mt_range){ .lo = page, .hi = page + PAGE, .generation = now };
	return false;
}

void mt_range_copied(struct mt_range *r, uint8_t *copy)
{
	*r = (struct mt_range){ .lo = UINT64_MAX, .copy = copy };
}

/* A byte of each page from `at` on, up to `end`; what was copied before is overwritten. */
static bool can_copy_all(struct mt_range *r, uint64_t at, uint64_t end)
{
	enum { EACH = sizeof(struct iovec) + 1, MOST = MT_RANGE_COPY / EACH };
	struct iovec *there = (struct iovec *)(void *)r->copy, here = { there + MOST, 0 };

	r->lo = UINT64_MAX;
	while (at < end) {
		unsigned long n = 0;

		for (; n < MOST && at < end; n++, at += PAGE)
			there[n] = (struct iovec){ (void *)(uintptr_t)at, 1 };
		here.iov_len = n;
		if (MT_SYS6(SYS_process_vm_readv, MT_SYS0(SYS_getpid), &here, 1, there, n, 0) != (long)n)
			return false;
	}
	return true;
}

void mt_range_own(struct mt_range *r, uint64_t sp)
{
	uint64_t page = sp & -PAGE, end = r->own_lo;

	if ((sp >= r->own_lo && sp < r->own_hi) || r->misses == MISSES || mt_sys_quiet() != MT_QUIET_NOT)
		return;
	if (!r->own_hi)
		end = MT_SYS0(SYS_gettid) == MT_SYS0(SYS_getpid) ? first_stack : mt_arch_thread() & ~7ull;
	if (page >= end || end - page > MAX_OWN)
		return;
	if (!can_copy_all(r, page, end)) {
		r->misses++;
		return;
	}
	r->own_lo = page;
	r->own_hi = r->own_hi ? r->own_hi : end;
}

/* Where the call may not be made nothing is read: a probe says nothing of the moment after it. */
static bool copy_from(struct mt_range *r, uint64_t addr)
{
	uint64_t end = (addr | (MT_RANGE_COPY - 1)) + 1;

	if (r->own_hi && addr >= r->own_lo && addr <= r->own_hi - 8) {
		r->lo = r->own_lo;
		r->hi = r->own_hi;
		r->shift = 0;
		return true;
	}
	r->lo = UINT64_MAX;
	if (end - addr < 8 || mt_sys_quiet() != MT_QUIET_NOT || !copies(r->copy, addr, end - addr))
		return false;
	r->lo = addr;
	r->hi = end;
	r->shift = (uintptr_t)r->copy - addr;
	return true;
}

bool mt_range_reach(struct mt_range *r, uint64_t addr)
{
	if (r->copy)
		return copy_from(r, addr);
	if (addr < r->lo || addr - r->lo > r->hi - r->lo + MAX_STEP || addr + 8 < addr)
		return false;
	while (addr + 8 > r->hi) {
		if (!can_read(r->lo, r->hi))
			return false;
		r->hi += PAGE;
	}
	return true;
}
