/*
 * A preload that captures a stack at every allocation and compares it with libunwind's whole stack.
 *
 * UNWIND_MODE: verify (default: unw_backtrace), step (unw_step on a stack of its own: slow, right after dlclose and
 * on small stacks), capture (ours only), libunwind (theirs only), none. UNWIND_REPORT: file that
 * gets one line of key=value at exit, appended; else stderr. UNWIND_SHOW: how many differences to print.
 */
#pragma GCC visibility push(default)
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <errno.h>
#if defined(__x86_64__)
#include <libunwind.h>
#else
#include <link.h>
#include <unwind.h> /* libgcc's: a cross compiler brings it along */
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "shim/stack/unwind.h"
#include "tests/unwind/compare.h"
#include "tests/unwind/tree.h"

#define MOST 4096

enum mode { NONE, VERIFY, STEP, CAPTURE, LIBUNWIND };

struct thread {
	struct mt_unwind *unwind;
	int busy;
	uint64_t ours[MOST];
	void *theirs[MOST];
	int theirs_count;
#if defined(__x86_64__)
	unw_context_t context;
	unw_cursor_t cursor;
#endif
	char stack[1 << 18] __attribute__((aligned(MT_UNWIND_ALIGN)));
};

extern void *__libc_malloc(size_t), __libc_free(void *), *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);

static enum mode mode;
static int started;
static _Atomic uint64_t captures, truncated, joined, missed, fresh;
static __thread struct thread *self __attribute__((tls_model("initial-exec")));
static __thread int starting __attribute__((tls_model("initial-exec")));
static pthread_key_t key;

static void sum(struct thread *t)
{
	struct mt_unwind_stats s = mt_unwind_stats(t->unwind);

	joined += s.joined;
	missed += s.missed;
	fresh += s.frames;
	captures += s.captures;
}

static void thread_ends(void *t)
{
	sum(t);
	self = NULL;
	starting = 1;
	munmap(t, sizeof(struct thread) + mt_unwind_bytes(DEPTH));
}

static struct thread *thread_start(void)
{
	struct thread *t;

	if (starting)
		return NULL;
	starting = 1;
	t = mmap(NULL, sizeof(*t) + mt_unwind_bytes(DEPTH), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	t->unwind = (struct mt_unwind *)(t + 1);
	mt_unwind_init(t->unwind, DEPTH);
	pthread_setspecific(key, t);
	self = t;
	starting = 0;
	return t;
}

static int is_ours(uint64_t pc)
{
	extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

	return pc >= (uintptr_t)__ehdr_start && pc < (uintptr_t)_end;
}

#if defined(__x86_64__)
static void step_all(struct thread *t)
{
	unw_word_t pc;

	t->theirs_count = 0;
	unw_init_local(&t->cursor, &t->context);
	do {
		unw_get_reg(&t->cursor, UNW_REG_IP, &pc);
		if (pc)
			t->theirs[t->theirs_count++] = (void *)pc;
	} while (t->theirs_count < MOST && unw_step(&t->cursor) > 0);
}
#else
/* The loader's code that binds a function at its first call, behind which libgcc is lost: what the PLT has pushed is not in its
 * table. */
static uint64_t resolver;
#define RESOLVER_BYTES 0x74

/* The program's first PLT entry goes there: the third word of its global offset table. */
static void find_resolver(void)
{
	for (const ElfW(Dyn) *d = _r_debug.r_map->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_PLTGOT)
			resolver = ((const uint64_t *)d->d_un.d_ptr)[2];
}

/* Every function that calls one has a frame record (its caller's, return address), and x29 points to the innermost. */
static void follow_records(struct thread *t, const uint64_t *record)
{
	for (; record && record[1] && t->theirs_count < MOST; record = (const uint64_t *)record[0])
		t->theirs[t->theirs_count++] = (void *)record[1];
}

static _Unwind_Reason_Code take(struct _Unwind_Context *context, void *arg)
{
	struct thread *t = arg;
	uint64_t last = t->theirs_count ? (uint64_t)t->theirs[t->theirs_count - 1] : 0;
	void *pc = (void *)_Unwind_GetIP(context);

	if (pc)
		t->theirs[t->theirs_count++] = pc;
	if (resolver && last - resolver < RESOLVER_BYTES) {
		follow_records(t, (const uint64_t *)_Unwind_GetGR(context, 29));
		return _URC_END_OF_STACK;
	}
	return t->theirs_count < MOST ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static int unw_backtrace(void **buffer, int most)
{
	(void)buffer, (void)most;
	self->theirs_count = 0;
	_Unwind_Backtrace(take, self);
	return self->theirs_count;
}
#endif

static void compare_all(struct thread *t, uint32_t node, bool cut)
{
	int ours = (int)test_tree_path(node, t->ours, MOST), skip = 0;
	uint64_t *pc = (uint64_t *)t->theirs;

	while (skip < t->theirs_count && is_ours(pc[skip]))
		skip++;
	compare(t->ours, ours, cut, pc + skip, t->theirs_count - skip);
}

struct job {
	struct thread *t;
	uint32_t node;
	bool cut;
};

#if defined(__x86_64__)
static void verify_there(struct job *job)
{
	step_all(job->t);
	compare_all(job->t, job->node, job->cut);
}
#endif

static __attribute__((noinline)) void verify(struct thread *t, uint32_t node, bool cut)
{
#if defined(__x86_64__)
	struct job job = { t, node, cut };

	if (mode == STEP) {
		unw_getcontext(&t->context);
		__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tcall *%1\n\tmovq %%rbx, %%rsp"
		                 :
		                 : "r"(t->stack + sizeof(t->stack)), "r"(verify_there), "D"(&job)
		                 : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
		return;
	}
#endif
	t->theirs_count = unw_backtrace(t->theirs, MOST);
	compare_all(t, node, cut);
}

static inline __attribute__((always_inline)) void record(void)
{
	struct thread *t = self;
	struct mt_regs regs;
	bool cut = false;
	uint32_t node;
	int kept;

	if (!started || mode == NONE || (!t && !(t = thread_start())) || t->busy)
		return;
	t->busy = 1;
	kept = errno;
	if (mode == LIBUNWIND) {
		unw_backtrace(t->theirs, DEPTH);
	} else {
		MT_REGS_HERE(regs);
		mt_unwind_walk(t->unwind, &regs);
		node = mt_unwind_node(t->unwind, &cut);
		truncated += cut;
		if (mode == VERIFY || mode == STEP)
			verify(t, node, cut);
	}
	errno = kept;
	t->busy = 0;
}

__attribute__((constructor)) static void start(void)
{
	const char *m = getenv("UNWIND_MODE"), *s = getenv("UNWIND_SHOW");
	void *warm[4];

	mode = !m || !strcmp(m, "verify") ? VERIFY : !strcmp(m, "step") ? STEP : !strcmp(m, "capture") ? CAPTURE : !strcmp(m, "libunwind") ? LIBUNWIND : NONE;
	show = s ? atoi(s) : show;
	pthread_key_create(&key, thread_ends);
	test_tree_start();
	mt_unwind_boot();
	if (mode == LIBUNWIND || mode == VERIFY || mode == STEP) {
#if defined(__x86_64__)
		unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
		unw_backtrace(warm, 4);
#else
		starting = 0;
		find_resolver();
		thread_start();
		unw_backtrace(warm, 4);
#endif
	}
	started = 1;
}

__attribute__((destructor)) static void stop(void)
{
	const char *path = getenv("UNWIND_REPORT");
	FILE *out;

	if (self)
		self->busy = 1;
	if (self && self->unwind)
		sum(self);
	started = 0;
	out = path ? fopen(path, "a") : stderr;
	fprintf(out, "captures=%lu differ=%lu longer=%lu shorter=%lu beyond_init=%lu truncated=%lu joined=%lu fresh=%lu missed=%lu nodes=%u\n", captures,
	        differ, longer, shorter, beyond_init, truncated, joined, fresh, missed, test_tree_count());
	if (path)
		fclose(out);
}

void *malloc(size_t n)
{
	void *p = __libc_malloc(n);

	record();
	return p;
}

void *calloc(size_t k, size_t n)
{
	void *p = __libc_calloc(k, n);

	record();
	return p;
}

void *realloc(void *old, size_t n)
{
	void *p = __libc_realloc(old, n);

	record();
	return p;
}

void *memalign(size_t a, size_t n)
{
	void *p = __libc_memalign(a, n);

	record();
	return p;
}

void *aligned_alloc(size_t a, size_t n)
{
	void *p = __libc_memalign(a, n);

	record();
	return p;
}

int posix_memalign(void **out, size_t a, size_t n)
{
	void *p = __libc_memalign(a, n);

	record();
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

int dlclose(void *handle)
{
	static int (*real)(void *);
	int ret;

	if (!real)
		real = (int (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "dlclose");
	ret = real(handle);
	mt_unwind_flush();
#if defined(__x86_64__)
	if (mode == VERIFY || mode == STEP)
		unw_flush_cache(unw_local_addr_space, 0, 0);
#endif
	return ret;
}

int munmap(void *p, size_t n)
{
	static int (*real)(void *, size_t);

	if (!real)
		real = (int (*)(void *, size_t))(uintptr_t)dlsym(RTLD_NEXT, "munmap");
	mt_unwind_unmapped();
	return real(p, n);
}
