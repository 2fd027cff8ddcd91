#include <errno.h>

#include "shim/range.h"
#include "shim/sys.h"

#define PAGE 4096ull             /* larger pages are tried more often than needed, which is harmless */
#define MAX_STEP (64ull << 20)   /* no frame is larger; what lies further out isn't this stack */
#define MAX_DOWN (1ull << 20)    /* further in, another range is begun */

static uint32_t generation;
static bool probing;

bool mt_range_probe(uint64_t addr)
{
	/* an impossible "how": the kernel reads the set first (EFAULT), then refuses (EINVAL), and changes nothing */
	return __atomic_load_n(&probing, __ATOMIC_RELAXED) &&
	       MT_SYS4(SYS_rt_sigprocmask, -1, addr & ~7ull, 0, 8) == -EINVAL;
}

void mt_range_boot(void)
{
	probing = MT_SYS4(SYS_rt_sigprocmask, -1, 8, 0, 8) == -EFAULT;
}

void mt_range_forbid(void)
{
	__atomic_store_n(&probing, false, __ATOMIC_RELAXED);
}

void mt_range_unmapped(void)
{
	/* relaxed: only a thread that runs on stale ground cares, and it learns of it no later than the unmapping
	 * thread could have told it */
	if (__atomic_load_n(&probing, __ATOMIC_RELAXED))
		__atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
}

/* Deeper than before on the same stack, if every page in between can be read. */
static bool extend_down(struct mt_range *r, uint64_t page)
{
	if (r->lo - page > MAX_DOWN)
		return false;
	for (uint64_t at = page + PAGE; at < r->lo; at += PAGE)
		if (!mt_range_probe(at))
			return false;
	r->lo = page;
	return true;
}

bool mt_range_enter(struct mt_range *r, uint64_t sp)
{
	uint64_t page = sp & -PAGE;
	uint32_t now = __atomic_load_n(&generation, __ATOMIC_RELAXED);

	if (r->generation == now && sp >= r->lo && sp < r->hi)
		return true;
	if (r->generation == now && r->hi && sp < r->lo && extend_down(r, page))
		return true;
	*r = (struct mt_range){ page, page + PAGE, now };
	return false;
}

bool mt_range_reach(struct mt_range *r, uint64_t addr)
{
	if (addr < r->lo || addr - r->lo > r->hi - r->lo + MAX_STEP || addr + 8 < addr)
		return false;
	while (addr + 8 > r->hi) {
		if (!mt_range_probe(r->hi))
			return false;
		r->hi += PAGE;
	}
	return true;
}
