/* The accounts of a program that is being watched, kept behind the shim's back: preloaded after it, so that whatever the shim forwards
 * passes here. They begin with books_begin(), which a scenario calls where its recording is to begin, and lie in a file that
 * outlives the program (tests/lib/books.py reads it). A block is charged to the line of the program's own Python files that its main
 * thread is in, which CPython is asked for: files in the folder that MEMTRACE_BOOKS_FILES names. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BINS = 49, LINES = 4096, PROCESSES = 16, RANGES = 8192, FRAMES = 64, TABLE = 1 << 20, THREADS = 256, NAME = 32, BUCKETS = 3000 };
#define BUCKET_NS 20000000u

struct sums { uint64_t allocations, frees, temporary, failed, live_bytes, live_blocks, peak_bytes, peak_ns, peak_until_ns; };

struct line {
	uint32_t pid, number;
	char file[NAME];           /* empty: another thread's, or no line of the program's */
	uint64_t temporary, allocations;
	struct had {
		uint64_t bytes, blocks;
		uint64_t low_bytes, low_blocks, high_bytes, high_blocks; /* when all processes together had most, or nearly */
	} had[2]; /* on the heap, mapped */
};

struct process {
	uint64_t pid, begin_ns;
	struct sums sums[2];
	uint64_t bins[BINS];
	struct { uint64_t low, high; } live[BUCKETS]; /* heap and private anonymous mappings, in the times since it began */
	uint64_t anon, now, bucket;
};

static struct books {
	_Atomic uint32_t lock;
	uint32_t processes, lines, unused;
	struct sums all[2];        /* over all processes */
	uint64_t lowest_peak[2];   /* of the moments that `had` is about */
	struct process process[PROCESSES];
	struct line line[LINES];
} *books;

static struct process *me;
static int ended;             /* what is freed from now on was taken from the sums over processes already */
#define INHERITED UINT32_MAX  /* the line of a block that a forked child has of its parent: its free counts, its bytes do not */

static struct block { uint64_t addr, size; uint32_t line, thread; } *blocks;
static struct range { uint64_t start, end; uint32_t line, thread; int anon; } *ranges; /* anon: private, of no file */
static unsigned range_count, threads;
static uint64_t last_of[2][THREADS];     /* the thread's latest block, mapping */
static __thread unsigned thread_slot;    /* plus 1 */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void take(void)
{
	while (atomic_exchange_explicit(&books->lock, 1, memory_order_acquire))
		sched_yield();
}

static void drop(void) { atomic_store_explicit(&books->lock, 0, memory_order_release); }

/* ---- the program's line ---------------------------------------------------------------------------------- */

static struct {
	int (*line)(void *frame);
	void *(*code)(void *frame), *(*attribute)(void *object, const char *name);
	const char *(*text)(void *object);
	void (*release)(void *object);
} py;

static struct frame { void *frame; char file[NAME]; } frames[FRAMES]; /* of the main thread, outermost first */
static unsigned frame_count;
static __thread int is_main;

static struct code { void *code; int own; char name[NAME]; } codes[1 << 12]; /* the latest ones looked at; references are kept */

static int file_of(void *frame, char *name)
{
	static const char *folder;
	void *code = py.code(frame);
	struct code *c = &codes[(uintptr_t)code >> 5 & 4095];
	if (c->code != code) {
		void *file = py.attribute(code, "co_filename");
		const char *path = py.text(file), *slash = strrchr(path, '/');
		folder = folder ? folder : getenv("MEMTRACE_BOOKS_FILES");
		if (c->code)
			py.release(c->code);
		*c = (struct code){ code, folder && !strncmp(path, folder, strlen(folder)), "" };
		strncpy(c->name, slash ? slash + 1 : path, NAME - 1);
		py.release(file);
	} else {
		py.release(code);
	}
	memcpy(name, c->name, NAME);
	return c->own;
}

/* What CPython calls at each call and return. */
static int profile(void *unused, void *frame, int what, void *arg)
{
	struct frame f = { .frame = frame };
	(void)unused;
	(void)arg;
	if (what == 0 && file_of(frame, f.file) && frame_count < FRAMES)
		frames[frame_count++] = f;
	else if (what == 3 && frame_count && frames[frame_count - 1].frame == frame)
		frame_count--;
	return 0;
}

static void watch_python(void)
{
	void *(*top)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_GetFrame");
	void *(*back)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "PyFrame_GetBack");
	void (*set)(void *, void *) = (void (*)(void *, void *))dlsym(RTLD_DEFAULT, "PyEval_SetProfile");
	struct frame found[FRAMES];
	unsigned count = 0;
	py.line = (int (*)(void *))dlsym(RTLD_DEFAULT, "PyFrame_GetLineNumber");
	py.code = (void *(*)(void *))dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
	py.attribute = (void *(*)(void *, const char *))dlsym(RTLD_DEFAULT, "PyObject_GetAttrString");
	py.text = (const char *(*)(void *))dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8");
	py.release = (void (*)(void *))dlsym(RTLD_DEFAULT, "Py_DecRef");
	for (void *f = top(), *next; f && count < FRAMES; f = next) {
		found[count] = (struct frame){ .frame = f };
		count += file_of(f, found[count].file);
		next = back(f);
		if (next)
			py.release(next); /* it runs: a reference of ours would keep what it refers to beyond its end */
	}
	while (count)
		frames[frame_count++] = found[--count];
	is_main = 1;
	set((void *)profile, NULL);
}

static int is_line(const struct line *a, const struct line *b)
{
	return a->pid == b->pid && a->number == b->number && !memcmp(a->file, b->file, NAME);
}

/* Under the lock. */
static uint32_t line_now(void)
{
	const struct frame *f = is_main && frame_count ? &frames[frame_count - 1] : NULL;
	struct line key = { .pid = (uint32_t)me->pid, .number = f ? (uint32_t)py.line(f->frame) : 0 };
	static uint32_t recent[64];
	uint32_t *guess = &recent[key.number % 64];
	if (f)
		memcpy(key.file, f->file, NAME);
	if (*guess < books->lines && is_line(&books->line[*guess], &key))
		return *guess;
	for (uint32_t i = books->lines; i-- > 0;)
		if (is_line(&books->line[i], &key))
			return *guess = i;
	if (books->lines == LINES)
		abort();
	books->line[books->lines] = key;
	return *guess = books->lines++;
}

/* ---- sums -------------------------------------------------------------------------------------------------- */

static const uint64_t near[2] = { 4096, 4 << 20 }; /* what two threads, or processes that hand mappings on, do at once is in either order */

/* It is about as much as there ever was: of all such moments. */
static void keep_lines(int kind)
{
	uint64_t peak = books->all[kind].peak_bytes;
	int anew = peak > books->lowest_peak[kind] + near[kind];
	for (uint32_t i = 0; i < books->lines; i++) {
		struct had *h = &books->line[i].had[kind];
		h->low_bytes = anew || h->bytes < h->low_bytes ? h->bytes : h->low_bytes;
		h->low_blocks = anew || h->blocks < h->low_blocks ? h->blocks : h->low_blocks;
		h->high_bytes = anew || h->bytes > h->high_bytes ? h->bytes : h->high_bytes;
		h->high_blocks = anew || h->blocks > h->high_blocks ? h->blocks : h->high_blocks;
	}
	if (anew)
		books->lowest_peak[kind] = peak;
}

/* Before each change: the first after a peak ends it. */
static void before(struct sums *s, uint64_t ns)
{
	if (!s->peak_until_ns && s->peak_ns)
		s->peak_until_ns = ns;
}

static void change(struct sums *s, int64_t bytes, int64_t count, uint64_t ns)
{
	s->live_bytes += (uint64_t)bytes;
	s->live_blocks += (uint64_t)count;
	if (s->live_bytes > s->peak_bytes) {
		s->peak_bytes = s->live_bytes;
		s->peak_ns = ns;
		s->peak_until_ns = 0;
	}
}

/* Of the heap (0) or of mappings (1); the line's figures are in between. */
static void begin_change(int kind, uint64_t ns)
{
	before(&me->sums[kind], ns);
	before(&books->all[kind], ns);
	if (books->all[kind].live_bytes + near[kind] >= books->all[kind].peak_bytes)
		keep_lines(kind);
}

static void end_change(int kind, int64_t bytes, int64_t count, uint64_t ns)
{
	change(&me->sums[kind], bytes, count, ns);
	if (!ended)
		change(&books->all[kind], bytes, count, ns);
	uint64_t live = me->sums[0].live_bytes + me->anon, i = (ns - me->begin_ns) / BUCKET_NS;
	i = i < BUCKETS ? i : BUCKETS - 1;
	for (; me->bucket < i; me->bucket++)
		me->live[me->bucket + 1].low = me->live[me->bucket + 1].high = me->now;
	me->now = live;
	if (live < me->live[i].low)
		me->live[i].low = live;
	if (live > me->live[i].high)
		me->live[i].high = live;
}

static unsigned slot_of_thread(void)
{
	if (!thread_slot)
		thread_slot = ++threads < THREADS ? threads : THREADS - 1;
	return thread_slot;
}

static size_t home(uint64_t addr) { return (addr >> 4) * 0x9E3779B97F4A7C15ull >> 44; }

static struct block *find(uint64_t addr)
{
	size_t i = home(addr);
	while (blocks[i].addr && blocks[i].addr != addr)
		i = (i + 1) % TABLE;
	return &blocks[i];
}

static void forget(struct block *b)
{
	size_t hole = (size_t)(b - blocks);
	for (size_t i = (hole + 1) % TABLE; blocks[i].addr; i = (i + 1) % TABLE)
		if ((i - home(blocks[i].addr)) % TABLE >= (i - hole) % TABLE) {
			blocks[hole] = blocks[i];
			hole = i;
		}
	blocks[hole].addr = 0;
}

static void note_alloc(void *p, size_t size)
{
	int error = errno;
	if (!me)
		return;
	take();
	uint64_t ns = now();
	if (!p) {
		me->sums[0].failed++;
		books->all[0].failed++;
	} else {
		begin_change(0, ns);
		struct block *b = find((uint64_t)p);
		*b = (struct block){ (uint64_t)p, size, line_now(), slot_of_thread() };
		struct line *l = &books->line[b->line];
		l->had[0].bytes += size;
		l->had[0].blocks++;
		l->allocations++;
		me->sums[0].allocations++;
		books->all[0].allocations++;
		me->bins[size ? 64 - __builtin_clzll(size) : 0]++;
		last_of[0][b->thread] = b->addr;
		end_change(0, (int64_t)size, 1, ns);
	}
	drop();
	errno = error;
}

static void note_free(void *p)
{
	if (!me || !p)
		return;
	take();
	struct block *b = find((uint64_t)p);
	if (b->addr && b->line == INHERITED) {
		me->sums[0].frees++;
		books->all[0].frees++;
		forget(b);
	} else if (b->addr) {
		uint64_t ns = now();
		begin_change(0, ns);
		struct line *l = &books->line[b->line];
		int temporary = last_of[0][b->thread] == b->addr;
		l->had[0].bytes -= b->size;
		l->had[0].blocks--;
		l->temporary += temporary;
		me->sums[0].temporary += temporary;
		books->all[0].temporary += temporary;
		me->sums[0].frees++;
		books->all[0].frees++;
		end_change(0, -(int64_t)b->size, -1, ns);
		forget(b);
	}
	drop();
}

/* ---- the heap ---------------------------------------------------------------------------------------------- */

void *malloc(size_t n)
{
	void *p = __libc_malloc(n);
	note_alloc(p, n);
	return p;
}

void *calloc(size_t k, size_t n)
{
	void *p = __libc_calloc(k, n);
	note_alloc(p, k * n);
	return p;
}

void *memalign(size_t align, size_t n)
{
	void *p = __libc_memalign(align, n);
	note_alloc(p, n);
	return p;
}

void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }

int posix_memalign(void **out, size_t align, size_t n)
{
	void *p = memalign(align, n);
	if (p)
		*out = p;
	return p ? 0 : ENOMEM;
}

void *realloc(void *old, size_t n)
{
	note_free(old);
	void *p = __libc_realloc(old, n);
	if (p || n)
		note_alloc(p, n);
	return p;
}

void free(void *p)
{
	note_free(p);
	__libc_free(p);
}

/* ---- mappings ---------------------------------------------------------------------------------------------- */

/* Under the lock: what is mapped in there no longer is. */
static uint64_t cut(uint64_t start, uint64_t end)
{
	uint64_t gone = 0;
	for (unsigned i = range_count; i-- > 0;) {
		struct range r = ranges[i];
		struct line *l = &books->line[r.line];
		if (r.end <= start || r.start >= end)
			continue;
		ranges[i] = ranges[--range_count];
		uint64_t part = (r.end < end ? r.end : end) - (r.start > start ? r.start : start);
		gone += part;
		me->anon -= r.anon ? part : 0;
		l->had[1].bytes -= part;
		l->had[1].blocks--;
		if (r.start < start)
			ranges[range_count++] = (struct range){ r.start, start, r.line, r.thread, r.anon };
		if (r.end > end)
			ranges[range_count++] = (struct range){ end, r.end, r.line, r.thread, r.anon };
		l->had[1].blocks += (r.start < start) + (r.end > end);
	}
	return gone;
}

static int is_anon(const void *at)
{
	int anon = 0;
	if (!me)
		return 0;
	take();
	for (unsigned i = 0; i < range_count; i++)
		anon |= ranges[i].anon && ranges[i].start <= (uint64_t)at && (uint64_t)at < ranges[i].end;
	drop();
	return anon;
}

static uint64_t pages(size_t n) { return (n + 4095) & ~4095ull; }

static void note_map(void *at, size_t n, int anon)
{
	uint64_t start = (uint64_t)at, size = pages(n);
	if (!me || at == MAP_FAILED)
		return;
	take();
	uint64_t ns = now();
	begin_change(1, ns);
	uint64_t gone = cut(start, start + size);
	if (range_count > RANGES - 4)
		abort();
	uint32_t line = line_now();
	ranges[range_count++] = (struct range){ start, start + size, line, slot_of_thread(), anon };
	me->anon += anon ? size : 0;
	books->line[line].had[1].bytes += size;
	books->line[line].had[1].blocks++;
	last_of[1][slot_of_thread()] = start;
	me->sums[1].allocations++;
	books->all[1].allocations++;
	end_change(1, (int64_t)(size - gone), gone ? 0 : 1, ns);
	drop();
}

/* How many go whole that are the latest of their threads. */
static unsigned temporary_maps(uint64_t start, uint64_t end)
{
	unsigned n = 0;
	for (unsigned i = 0; i < range_count; i++)
		n += ranges[i].start >= start && ranges[i].end <= end && last_of[1][ranges[i].thread] == ranges[i].start;
	return n;
}

static void note_unmap(void *at, size_t n)
{
	uint64_t start = (uint64_t)at;
	if (!me)
		return;
	take();
	uint64_t ns = now();
	begin_change(1, ns);
	unsigned temporary = temporary_maps(start, start + pages(n));
	uint64_t gone = cut(start, start + pages(n));
	if (gone) {
		me->sums[1].frees++;
		books->all[1].frees++;
		me->sums[1].temporary += temporary;
		books->all[1].temporary += temporary;
		end_change(1, -(int64_t)gone, -1, ns);
	}
	drop();
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	void *p = (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
	note_map(p, n, prot != PROT_NONE && (flags & MAP_PRIVATE) && (flags & MAP_ANONYMOUS));
	return p;
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset) { return mmap(at, n, prot, flags, fd, offset); }

int munmap(void *at, size_t n)
{
	int status = (int)syscall(SYS_munmap, at, n);
	if (!status)
		note_unmap(at, n);
	return status;
}

void *mremap(void *old, size_t old_n, size_t n, int flags, ...)
{
	va_list rest;
	va_start(rest, flags);
	void *p = (void *)syscall(SYS_mremap, old, old_n, n, flags, flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL);
	va_end(rest);
	if (p != MAP_FAILED) {
		int anon = is_anon(old);
		note_unmap(old, old_n);
		note_map(p, n, anon);
	}
	return p;
}

/* ---- begin and end ----------------------------------------------------------------------------------------- */

static void *raw_map(size_t n, int flags, int fd)
{
	void *p = (void *)syscall(SYS_mmap, NULL, n, PROT_READ | PROT_WRITE, flags, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

static struct process *new_process(void)
{
	take();
	struct process *p = books->processes < PROCESSES ? &books->process[books->processes++] : NULL;
	drop();
	if (!p)
		abort();
	p->pid = (uint64_t)getpid();
	p->begin_ns = now();
	return p;
}

/* What the parent had is not the child's. */
static void in_child(void)
{
	for (size_t i = 0; i < TABLE; i++)
		blocks[i].line = INHERITED;
	range_count = 0;
	me = me ? new_process() : NULL;
}

/* Called with the interpreter's lock: recording and books begin with the same call. */
void books_begin(void (*start)(void))
{
	const char *path = getenv("MEMTRACE_BOOKS");
	int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
	if (fd < 0 || ftruncate(fd, sizeof(*books)) || !(books = raw_map(sizeof(*books), MAP_SHARED, fd)))
		abort();
	close(fd);
	blocks = raw_map(TABLE * sizeof(*blocks), MAP_PRIVATE | MAP_ANONYMOUS, -1);
	ranges = raw_map(RANGES * sizeof(*ranges), MAP_PRIVATE | MAP_ANONYMOUS, -1);
	pthread_atfork(NULL, NULL, in_child);
	watch_python();
	struct process *p = new_process();
	if (start)
		start();
	me = p;
}

/* What is left goes with the process. */
__attribute__((destructor)) static void end(void)
{
	if (!me)
		return;
	take();
	uint64_t ns = now();
	begin_change(0, ns);
	begin_change(1, ns);
	for (int kind = 0; kind < 2; kind++)
		change(&books->all[kind], -(int64_t)me->sums[kind].live_bytes, -(int64_t)me->sums[kind].live_blocks, ns);
	ended = 1;
	drop();
}
