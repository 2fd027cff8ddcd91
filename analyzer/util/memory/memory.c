#include "analyzer/util/memory/memory.h"

#include "analyzer/util/memory/names.h"
#include "analyzer/util/memory/whole.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#undef malloc
#undef calloc
#undef realloc
#undef free
#undef strdup
#undef strndup
#undef asprintf

/* 64 to 192 GiB: below what the smallest address space of 64-bit kernels (39 bits) has its mappings in, and above a
 * program at fixed addresses with its heap. */
#define BASE        0x1000000000ul
#define SMALL_BYTES (64ul << 30)
#define ALL_BYTES   (128ul << 30)
#define SPAN        (256ul << 10)
#define LEAST_LARGE (1ul << 20) /* larger ones are mappings */
#define LARGE_ALIGN (2ul << 20) /* of a large page */
#define STEP        (8ul << 20) /* so much is made usable at a time */
#define MOST_LARGE  65536u
#define ALIGN       16ul
#define FINE        256ul /* up to here a size for each 16 bytes, then four for each power of two */
#define SIZES       (FINE / ALIGN + 4 * 12)
#define PIECE       (512ul << 10) /* bytes that are compressed at a time */
#define ZSTD_LEVEL  1

struct cell {
	struct cell *next;
};

/* Addresses in order. */
struct large {
	char *at;
	size_t room; /* addresses up to the next one */
	size_t used; /* of these; 0 = it is free */
};

/* Its tables, in front of it. */
struct range {
	char *top, *usable; /* of spans: handed out, and readable, up to here */
	char *large_top;
	struct {
		struct cell *free;
		char *at, *end; /* what is left of its latest span */
	} size[SIZES];
	struct large large[MOST_LARGE];
	unsigned larges;
	bool overflowed; /* something did not fit, and came from the C library */
	void *root;
	uint8_t size_of[SMALL_BYTES / SPAN]; /* by span: index of its size */
};

static struct range *const range = (void *)BASE;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool reserved, in_use;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER true
#else
#define HAS_SANITIZER false
#endif

extern const ElfW(Ehdr) __ehdr_start __attribute__((weak, visibility("hidden")));

bool mem_is_fixed(void)
{
	return !HAS_SANITIZER && sizeof(void *) == 8 && &__ehdr_start && __ehdr_start.e_type == ET_EXEC;
}

bool mem_has(const void *p)
{
	return (uintptr_t)p - BASE < ALL_BYTES;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* ---- the range ------------------------------------------------------------------------------------------- */

/* Nothing can be read or written there, which takes no memory. */
static bool reserve(void *at, size_t bytes, int how)
{
	return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0) == at;
}

static bool make_usable(char *from, size_t bytes)
{
	return mprotect(from, bytes, PROT_READ | PROT_WRITE) == 0;
}

static char *first_span(void)
{
	return (char *)BASE + round_up(sizeof(struct range), SPAN);
}

static bool begin(void)
{
	char *first = first_span();
	if (!make_usable((char *)BASE, (size_t)(first - (char *)BASE)))
		return false;
	range->top = range->usable = first;
	range->large_top = (char *)BASE + SMALL_BYTES;
	return true;
}

bool mem_use(bool on)
{
	const bool before = in_use;
	if (on && !reserved && mem_is_fixed()) {
		reserved = reserve((void *)BASE, ALL_BYTES, MAP_FIXED_NOREPLACE);
		reserved = reserved && begin();
	}
	in_use = on && reserved;
	return before;
}

/* ---- small blocks ---------------------------------------------------------------------------------------- */

static unsigned size_index(size_t bytes)
{
	if (bytes <= FINE)
		return bytes ? (unsigned)((bytes - 1) / ALIGN) : 0;
	const unsigned power = 63 - (unsigned)__builtin_clzl(bytes - 1); /* 2^power < bytes <= 2^(power + 1) */
	const unsigned quarter = (unsigned)((bytes - 1) >> (power - 2) & 3);
	return (unsigned)(FINE / ALIGN) + (power - 8) * 4 + quarter;
}

static size_t size_at(unsigned index)
{
	if (index < FINE / ALIGN)
		return (index + 1) * ALIGN;
	index -= (unsigned)(FINE / ALIGN);
	return (5ul + index % 4) << (index / 4 + 6);
}

/* Spans for blocks of a size: those that are larger than a span lie at the begin of one. */
static bool add_span(unsigned index)
{
	const size_t size = size_at(index), bytes = round_up(size, SPAN);
	if (range->top + bytes > (char *)BASE + SMALL_BYTES)
		return false;
	if (range->top + bytes > range->usable) {
		const size_t more = round_up((size_t)(range->top + bytes - range->usable), STEP);
		if (!make_usable(range->usable, more))
			return false;
		range->usable += more;
	}
	range->size_of[((uintptr_t)range->top - BASE) / SPAN] = (uint8_t)index;
	range->size[index].at = range->top;
	range->size[index].end = range->top + bytes;
	range->top += bytes;
	return true;
}

static void *take_small(size_t bytes)
{
	const unsigned index = size_index(bytes);
	const size_t size = size_at(index);
	struct cell *c = range->size[index].free;
	if (c) {
		range->size[index].free = c->next;
		return c;
	}
	if ((size_t)(range->size[index].end - range->size[index].at) < size && !add_span(index))
		return NULL;
	char *p = range->size[index].at;
	range->size[index].at += size;
	return p;
}

static unsigned index_of(const void *p)
{
	return range->size_of[((uintptr_t)p - BASE) / SPAN];
}

static void give_small(void *p)
{
	struct cell *c = p;
	const unsigned index = index_of(p);
	c->next = range->size[index].free;
	range->size[index].free = c;
}

/* ---- large blocks ---------------------------------------------------------------------------------------- */

static bool is_large(const void *p)
{
	return (uintptr_t)p - BASE >= SMALL_BYTES;
}

static struct large *large_of(const void *p)
{
	unsigned low = 0, high = range->larges;
	while (high - low > 1) {
		const unsigned mid = (low + high) / 2;
		if (range->large[mid].at <= (const char *)p)
			low = mid;
		else
			high = mid;
	}
	return &range->large[low];
}

/* The least of the free ones with that room; else a new one. */
static struct large *find_large(size_t bytes)
{
	struct large *best = NULL;
	for (struct large *l = range->large; l < range->large + range->larges; l++)
		if (!l->used && l->room >= bytes && l->room / 2 <= bytes && (!best || l->room < best->room))
			best = l;
	if (best)
		return best;
	const size_t room = round_up(bytes, LARGE_ALIGN);
	if (range->larges == MOST_LARGE || room > (size_t)((char *)BASE + ALL_BYTES - range->large_top))
		return NULL;
	best = &range->large[range->larges++];
	*best = (struct large){ range->large_top, room, 0 };
	range->large_top += room;
	return best;
}

static void *take_large(size_t bytes)
{
	const size_t used = round_up(bytes, SPAN);
	struct large *l = used < bytes ? NULL : find_large(used);
	if (!l || !make_usable(l->at, used))
		return NULL;
	l->used = used;
	return l->at;
}

/* Its addresses can be had again, as zeros; where the kernel refuses, they can't. */
static void leave_large(struct large *l)
{
	if (reserve(l->at, l->used, MAP_FIXED))
		l->used = 0;
}

static void give_large(void *p)
{
	leave_large(large_of(p));
}

/* In its place, or its pages elsewhere. */
static void *resize_large(void *p, size_t bytes)
{
	struct large *l = large_of(p), *to;
	const size_t used = round_up(bytes, SPAN);
	if (used < bytes)
		return NULL;
	if (used <= l->room) {
		if (used > l->used ? !make_usable(l->at + l->used, used - l->used)
				   : used < l->used && !reserve(l->at + used, l->used - used, MAP_FIXED))
			return NULL;
		l->used = used;
		return p;
	}
	if (!(to = find_large(used)) || !make_usable(to->at + l->used, used - l->used))
		return NULL;
	if (mremap(l->at, l->used, l->used, MREMAP_MAYMOVE | MREMAP_FIXED, to->at) != to->at)
		return NULL;
	to->used = used;
	leave_large(l);
	return to->at;
}

/* ---- the interface --------------------------------------------------------------------------------------- */

static void *take(size_t bytes)
{
	pthread_mutex_lock(&lock);
	void *p = bytes < LEAST_LARGE ? take_small(bytes) : take_large(bytes);
	range->overflowed |= !p;
	pthread_mutex_unlock(&lock);
	return p;
}

void *mem_malloc(size_t bytes)
{
	void *p = in_use ? take(bytes) : NULL;
	return p ? p : malloc(bytes);
}

void *mem_calloc(size_t count, size_t size)
{
	size_t bytes;
	if (!in_use || __builtin_mul_overflow(count, size, &bytes))
		return calloc(count, size);
	void *p = take(bytes);
	if (!p)
		return calloc(count, size);
	return is_large(p) ? p : memset(p, 0, bytes); /* a mapping is zero */
}

void mem_free(void *p)
{
	if (!mem_has(p)) {
		free(p);
		return;
	}
	pthread_mutex_lock(&lock);
	if (is_large(p))
		give_large(p);
	else
		give_small(p);
	pthread_mutex_unlock(&lock);
}

static size_t room_of(const void *p)
{
	pthread_mutex_lock(&lock);
	const size_t n = is_large(p) ? large_of(p)->used : size_at(index_of(p));
	pthread_mutex_unlock(&lock);
	return n;
}

void *mem_realloc(void *p, size_t bytes)
{
	if (!p)
		return mem_malloc(bytes);
	if (!mem_has(p))
		return realloc(p, bytes);
	const size_t room = room_of(p);
	if (is_large(p) && bytes >= LEAST_LARGE) {
		pthread_mutex_lock(&lock);
		void *moved = resize_large(p, bytes);
		pthread_mutex_unlock(&lock);
		if (moved)
			return moved;
	} else if (bytes <= room && bytes > room / 2) {
		return p;
	}
	void *to = take(bytes);
	if (!to && !(to = malloc(bytes)))
		return NULL;
	memcpy(to, p, room < bytes ? room : bytes);
	mem_free(p);
	return to;
}

char *mem_strndup(const char *s, size_t most)
{
	const size_t n = strnlen(s, most);
	char *copy = mem_malloc(n + 1);
	if (!copy)
		return NULL;
	memcpy(copy, s, n);
	copy[n] = 0;
	return copy;
}

char *mem_strdup(const char *s)
{
	return mem_strndup(s, SIZE_MAX - 1);
}

void *mem_adopt(void *p, size_t bytes)
{
	if (!in_use || !p)
		return p;
	void *ours = mem_malloc(bytes);
	if (ours)
		memcpy(ours, p, bytes);
	free(p);
	return ours;
}

int mem_asprintf(char **out, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vasprintf(out, format, args);
	va_end(args);
	if (n >= 0)
		*out = mem_adopt(*out, (size_t)n + 1);
	return n >= 0 && *out ? n : -1;
}

/* ---- the file -------------------------------------------------------------------------------------------- */

/* Followed by the parts, then by the pieces of each, in order: uint32_t compressed bytes, and these; 0 = nothing but
 * zeros. */
struct head {
	uint64_t base, parts, table_bytes;
	uint64_t crc; /* CRC-32 of the parts; pieces have their own */
};
struct part {
	uint64_t at, bytes;
};

static uint64_t crc_of(const struct part *parts, size_t count)
{
	return crc32_z(0, (const Bytef *)parts, count * sizeof(*parts));
}

/* The tables and the small blocks, then each large one. To be freed. */
static struct part *parts_of(size_t *count)
{
	struct part *parts = malloc((range->larges + 1) * sizeof(*parts));
	*count = 0;
	if (!parts)
		return NULL;
	parts[(*count)++] = (struct part){ BASE, (uintptr_t)range->top - BASE };
	for (unsigned i = 0; i < range->larges; i++)
		if (range->large[i].used)
			parts[(*count)++] = (struct part){ (uintptr_t)range->large[i].at, range->large[i].used };
	return parts;
}

static bool is_zero(const char *at, size_t n)
{
	return !*at && !memcmp(at, at + 1, n - 1);
}

static bool save_part(int fd, ZSTD_CCtx *zstd, void *buffer, size_t room, const struct part *p, uint64_t *left)
{
	for (uint64_t done = 0; done < p->bytes; done += PIECE) {
		const size_t n = p->bytes - done < PIECE ? p->bytes - done : PIECE;
		const char *from = (const char *)p->at + done;
		const size_t got = is_zero(from, n) ? 0 : ZSTD_compress2(zstd, buffer, room, from, n);
		const uint32_t bytes = (uint32_t)got;
		if (ZSTD_isError(got) || got + sizeof(bytes) > *left || !whole_write(fd, &bytes, sizeof(bytes)) ||
		    !whole_write(fd, buffer, got))
			return false;
		*left -= got + sizeof(bytes);
	}
	return true;
}

int mem_save(int fd, void *root, uint64_t most)
{
	const size_t room = ZSTD_compressBound(PIECE);
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	void *buffer = malloc(room);
	size_t count = 0;
	range->root = root;
	struct part *parts = reserved && mem_has(root) && !range->overflowed ? parts_of(&count) : NULL;
	const struct head h = { BASE, count, sizeof(struct range), crc_of(parts, count) };
	bool saved = zstd && buffer && parts;
	if (saved) {
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
		saved = whole_write(fd, &h, sizeof(h)) && whole_write(fd, parts, count * sizeof(*parts));
	}
	for (size_t i = 0; saved && i < count; i++)
		saved = save_part(fd, zstd, buffer, room, &parts[i], &most);
	free(parts);
	free(buffer);
	ZSTD_freeCCtx(zstd);
	return saved ? 0 : -1;
}

static bool load_part(int fd, ZSTD_DCtx *zstd, void *buffer, size_t room, const struct part *p)
{
	if (!make_usable((char *)p->at, p->bytes))
		return false;
	for (uint64_t done = 0; done < p->bytes; done += PIECE) {
		const size_t n = p->bytes - done < PIECE ? p->bytes - done : PIECE;
		char *to = (char *)p->at + done;
		uint32_t bytes;
		if (!whole_read(fd, &bytes, sizeof(bytes)) || bytes > room || !whole_read(fd, buffer, bytes))
			return false;
		if (!bytes)
			continue;
		madvise(to, n, MADV_POPULATE_WRITE);
		if (ZSTD_decompressDCtx(zstd, to, n, buffer, bytes) != n)
			return false;
	}
	return true;
}

/* To be freed; NULL: they are damaged, or of another range. */
static struct part *read_parts(int fd, size_t *count)
{
	struct head h;
	if (!whole_read(fd, &h, sizeof(h)) || h.base != BASE || h.table_bytes != sizeof(struct range) || !h.parts ||
	    h.parts > MOST_LARGE + 1)
		return NULL;
	struct part *parts = malloc(h.parts * sizeof(*parts));
	*count = h.parts;
	if (parts && whole_read(fd, parts, h.parts * sizeof(*parts)) && crc_of(parts, h.parts) == h.crc)
		return parts;
	free(parts);
	return NULL;
}

static bool load_all(int fd, ZSTD_DCtx *zstd, void *buffer, size_t room)
{
	size_t count;
	char more;
	struct part *parts = read_parts(fd, &count);
	bool loaded = parts;
	for (size_t i = 0; loaded && i < count; i++)
		loaded = load_part(fd, zstd, buffer, room, &parts[i]);
	if (loaded)
		range->usable = range->top; /* no more was kept */
	free(parts);
	return loaded && read(fd, &more, 1) == 0;
}

void mem_clear(void)
{
	if (reserved)
		reserved = reserve((void *)BASE, ALL_BYTES, MAP_FIXED) && begin();
}

void *mem_load(int fd)
{
	const size_t room = ZSTD_compressBound(PIECE);
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	void *buffer = malloc(room);
	const bool loaded = zstd && buffer && reserved && reserve((void *)BASE, ALL_BYTES, MAP_FIXED) &&
			    load_all(fd, zstd, buffer, room);
	free(buffer);
	ZSTD_freeDCtx(zstd);
	if (!loaded)
		mem_clear();
	return loaded ? range->root : NULL;
}
