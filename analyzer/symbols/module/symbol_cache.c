#include "analyzer/symbols/module/symbol_cache.h"

#include "analyzer/symbols/module/symbol_answer.h"
#include "analyzer/util/memory/whole.h"
#include "analyzer/util/output.h"
#include "analyzer/util/search.h"
#include "format/fnv.h"
#include "format/format.h"
#include "format/version.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define MOST_BYTES    (64u << 20) /* of a module */
#define MOST_BUILD_ID 64u
#define ZSTD_LEVEL    1
#define MAGIC         "MTSYMC1\n" /* another one when the layout changes */

/* Followed by zstd's frame of both. */
struct head {
	char magic[8];
	uint32_t crc; /* CRC-32 of the header with crc = 0 and what follows it */
	uint32_t stored_bytes;
	uint32_t opened_bytes, places_bytes;
};

struct bytes {
	uint8_t *base;
	size_t count;
};

struct known {
	uint64_t address;
	size_t at; /* of the places */
};

struct symbol_cache {
	char *dir, *path;
	struct bytes opened, places;
	struct known *known; /* by address: of the places that were in the file */
	size_t known_count;
	bool added, off;
};

static struct varint_in reading(const struct bytes *b, size_t at)
{
	return b->base ? (struct varint_in){ b->base + at, b->base + b->count, 0 } : (struct varint_in){ 0 };
}

/* ---- reading -------------------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct known *x = a, *y = b;
	return (x->address > y->address) - (x->address < y->address);
}

/* Walks through all places once; false: they make no sense. */
static bool index_places(struct symbol_cache *c)
{
	struct frame frames[MT_SYMBOLS_MAX_FRAMES];
	struct varint_in in = reading(&c->places, 0);
	size_t room = c->places.count / 6 + 1, count; /* a place has 6 bytes at least */
	c->known = malloc(room * sizeof(*c->known));
	while (c->known && in.at < in.end) {
		struct known *k = &c->known[c->known_count++];
		k->at = (size_t)(in.at - c->places.base);
		if (!symbol_answer_get_place(&in, &k->address, frames, &count))
			return false;
	}
	if (c->known_count)
		qsort(c->known, c->known_count, sizeof(*c->known), by_address);
	return c->known;
}

/* The module's own file is the first. */
static bool files_are_as_they_were(const struct symbol_cache *c, const char *path)
{
	struct symbol_opened o;
	bool own = false;
	for (struct varint_in in = reading(&c->opened, 0); in.at < in.end; own = true)
		if (!symbol_answer_get_opened(&in, &o) || (!own && strcmp(o.path, path) != 0) ||
		    !symbol_opened_is_unchanged(&o))
			return false;
	return own;
}

bool symbol_cache_is_unchanged(const struct symbol_cache *c, const char *path)
{
	return !c->opened.count || files_are_as_they_were(c, path);
}

static uint32_t checksum(struct head h, const void *stored)
{
	h.crc = 0;
	uLong crc = crc32_z(0, (const Bytef *)&h, sizeof(h));
	return (uint32_t)crc32_z(crc, stored, h.stored_bytes);
}

/* All of a file within bounds, to be freed; NULL: there is none. */
static void *read_whole(const char *path, size_t *count)
{
	struct stat st;
	char *bytes = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= MOST_BYTES)
		bytes = malloc((size_t)st.st_size + 1);
	*count = 0;
	for (ssize_t n = 1; bytes && n > 0 && *count < (size_t)st.st_size; *count += n > 0 ? (size_t)n : 0)
		n = read(fd, bytes + *count, (size_t)st.st_size - *count);
	close(fd);
	return bytes;
}

static bool unpack(struct symbol_cache *c, const uint8_t *file, size_t count)
{
	struct head h;
	if (count < sizeof(h))
		return false;
	memcpy(&h, file, sizeof(h));
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0 || h.stored_bytes != count - sizeof(h) ||
	    h.opened_bytes > MOST_BYTES || h.places_bytes > MOST_BYTES || checksum(h, file + sizeof(h)) != h.crc)
		return false;
	const size_t all = (size_t)h.opened_bytes + h.places_bytes;
	uint8_t *both = malloc(all + 1), *places = malloc(h.places_bytes + 1ul);
	bool whole = both && places && ZSTD_decompress(both, all, file + sizeof(h), h.stored_bytes) == all;
	if (whole)
		memcpy(places, both + h.opened_bytes, h.places_bytes);
	c->opened = (struct bytes){ both, h.opened_bytes };
	c->places = (struct bytes){ places, h.places_bytes };
	return whole;
}

static void forget(struct symbol_cache *c)
{
	free(c->opened.base);
	free(c->places.base);
	free(c->known);
	c->opened = c->places = (struct bytes){ 0 };
	c->known = NULL;
	c->known_count = 0;
}

static void load(struct symbol_cache *c, const char *path)
{
	size_t count;
	void *file = read_whole(c->path, &count);
	if (!file || !unpack(c, file, count) || !files_are_as_they_were(c, path) || !index_places(c))
		forget(c);
	free(file);
}

/* DIR/BUILD_ID-HASH: the same module may lie in several places, and debug files are looked for where a setting says. */
static char *path_of(const char *dir, const struct module_id *id)
{
	char hex[2 * MOST_BUILD_ID + 1] = "";
	const unsigned char *build_id = id->build_id;
	uint64_t hash = mt_fnv_text(mt_fnv_text(MT_FNV_START, MEMTRACE_VERSION), id->path);
	const char *debug_path = getenv("MEMTRACE_DEBUG_PATH");
	hash = mt_fnv_text(mt_fnv(hash, "", 1), debug_path ? debug_path : "-");
	for (size_t i = 0; i < id->build_id_bytes && i < MOST_BUILD_ID; i++)
		snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
	return output_format("%s/%s-%016" PRIx64, dir, hex, hash);
}

struct symbol_cache *symbol_cache_open(const char *dir, const struct module_id *id)
{
	if (!id->build_id_bytes || *id->path != '/')
		return NULL;
	struct symbol_cache *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->dir = strdup(dir);
	c->path = path_of(dir, id);
	if (c->dir && c->path)
		load(c, id->path);
	else
		c->off = true;
	return c;
}

bool symbol_cache_find(const struct symbol_cache *c, uint64_t address, struct frame *frames, size_t *count)
{
	const size_t i = SEARCH_FIRST(k, c->known_count, c->known[k].address >= address);
	if (i == c->known_count || c->known[i].address != address)
		return false;
	struct varint_in in = reading(&c->places, c->known[i].at);
	return symbol_answer_get_place(&in, &address, frames, count);
}

/* ---- writing -------------------------------------------------------------------------------------------- */

static bool append(struct bytes *b, const void *from, size_t n)
{
	uint8_t *base = b->count + n <= MOST_BYTES ? realloc(b->base, b->count + n + 1) : NULL;
	if (!base)
		return false;
	if (n)
		memcpy(base + b->count, from, n);
	*b = (struct bytes){ base, b->count + n };
	return true;
}

/* Those that are not there yet: they come again with each question that the module's file is opened for. A path that is
 * not absolute means another file elsewhere, so what it leads to is not kept. */
static bool append_opened(struct symbol_cache *c, struct varint_in in)
{
	struct symbol_opened o;
	while (in.at < in.end) {
		const uint8_t *from = in.at;
		if (!symbol_answer_get_opened(&in, &o) || *o.path != '/')
			return false;
		const size_t n = (size_t)(in.at - from);
		if (!(c->opened.base && memmem(c->opened.base, c->opened.count, from, n)) &&
		    !append(&c->opened, from, n))
			return false;
	}
	return true;
}

void symbol_cache_add(struct symbol_cache *c, const void *opened, size_t opened_bytes, const void *places,
		      size_t places_bytes)
{
	const uint8_t *at = opened;
	c->off = c->off || !append_opened(c, (struct varint_in){ at, at + opened_bytes, 0 }) ||
		 !append(&c->places, places, places_bytes);
	c->added = true;
}

/* No two processes have the same name for what they write: those of another machine may have the same PID. */
static void replace(const struct symbol_cache *c, const struct bytes *whole)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	char *temporary = output_format("%s.%ld.%ld.new", c->path, (long)getpid(), t.tv_nsec);
	mkdir(c->dir, 0777);
	int fd = temporary ? open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
	if (fd >= 0) {
		bool written = whole_write(fd, whole->base, whole->count);
		if (close(fd) || !written || rename(temporary, c->path))
			unlink(temporary);
	}
	free(temporary);
}

static void save(const struct symbol_cache *c)
{
	struct bytes both = { 0 };
	struct head h = { .magic = MAGIC,
			  .opened_bytes = (uint32_t)c->opened.count,
			  .places_bytes = (uint32_t)c->places.count };
	const size_t bound = ZSTD_compressBound(c->opened.count + c->places.count);
	struct bytes whole = { malloc(sizeof(h) + bound), 0 };
	if (whole.base && append(&both, c->opened.base, c->opened.count) &&
	    append(&both, c->places.base, c->places.count)) {
		const size_t n = ZSTD_compress(whole.base + sizeof(h), bound, both.base, both.count, ZSTD_LEVEL);
		if (!ZSTD_isError(n) && n <= MOST_BYTES - sizeof(h)) {
			h.stored_bytes = (uint32_t)n;
			h.crc = checksum(h, whole.base + sizeof(h));
			memcpy(whole.base, &h, sizeof(h));
			whole.count = sizeof(h) + n;
			replace(c, &whole);
		}
	}
	free(both.base);
	free(whole.base);
}

void symbol_cache_close(struct symbol_cache *c)
{
	if (!c)
		return;
	if (c->added && !c->off)
		save(c);
	forget(c);
	free(c->dir);
	free(c->path);
	free(c);
}
