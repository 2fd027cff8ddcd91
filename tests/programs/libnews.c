/* An allocator with operators of its own, which call the public malloc, as aligned_alloc calls memalign: by a jump at its end. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_memalign(size_t align, size_t n);
extern void __libc_free(void *p);

#define JUMPS __attribute__((optimize("optimize-sibling-calls")))

void *malloc(size_t n) { return __libc_malloc(n); }
void *memalign(size_t align, size_t n) { return __libc_memalign(align, n); }
void free(void *p) { __libc_free(p); }

JUMPS void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }

int posix_memalign(void **out, size_t align, size_t n)
{
	void *p = align % sizeof(void *) || align & (align - 1) ? NULL : memalign(align, n);
	if (p)
		*out = p;
	return p ? 0 : align % sizeof(void *) || align & (align - 1) ? EINVAL : ENOMEM;
}

void *_Znwm(size_t n);
void *_Znam(size_t n);
void *_ZnwmRKSt9nothrow_t(size_t n, const void *tag);
void *_ZnwmSt11align_val_t(size_t n, size_t align);
void *_ZnamSt11align_val_t(size_t n, size_t align);
void _ZdlPv(void *p);
void _ZdaPv(void *p);
void _ZdlPvm(void *p, size_t n);
void _ZdlPvSt11align_val_t(void *p, size_t align);

JUMPS void *_Znwm(size_t n) { return malloc(n); }
void *_Znam(size_t n) { return _Znwm(n); }
void *_ZnwmRKSt9nothrow_t(size_t n, const void *tag) { (void)tag; return malloc(n); }
JUMPS void *_ZnwmSt11align_val_t(size_t n, size_t align) { return aligned_alloc(align, n); }
void *_ZnamSt11align_val_t(size_t n, size_t align) { return memalign(align, n); }
JUMPS void _ZdlPv(void *p) { free(p); }
void _ZdaPv(void *p) { _ZdlPv(p); }
void _ZdlPvm(void *p, size_t n) { (void)n; free(p); }
void _ZdlPvSt11align_val_t(void *p, size_t align) { (void)align; free(p); }
