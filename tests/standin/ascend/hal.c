/* The lowest layer: libascend_hal.so, and the state of all of them. */
#include "standin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../cuda/shared.h"

enum { BLOCKS = 1 << 17, FAILURES = 16 };

static const char *const kind_names[] = { "device", "managed", "async", "pinned", "registered", "reserved", "physical", "alias",
	                                  "mapping" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static int count;
static uint64_t charged[SD_DEVICES];
static __thread int depth, current = -1;
static __thread const char *outermost;

/* ---- calls ---- */

/* Counts the call of NAME down; the status it shall fail with, or 0. */
static int injected(const char *name)
{
	static struct { char name[64]; int left, status; } failures[FAILURES];
	static int known = -1;
	int status = 0;

	pthread_mutex_lock(&lock);
	if (known < 0) {
		const char *at = getenv("MEMTRACE_STANDIN_FAIL");
		for (known = 0; at && *at && known < FAILURES; at = strchr(at, ',') ? strchr(at, ',') + 1 : "") {
			size_t n = strcspn(at, ":,");
			char *end;
			if (n >= sizeof failures[0].name || at[n] != ':')
				continue;
			memcpy(failures[known].name, at, n);
			failures[known].left = (int)strtol(at + n + 1, &end, 10);
			failures[known++].status = *end == ':' ? (int)strtol(end + 1, NULL, 10) : ACL_OUT_OF_MEMORY;
		}
	}
	for (int i = 0; i < known; i++)
		if (!strcmp(failures[i].name, name) && --failures[i].left == 0)
			status = failures[i].status;
	pthread_mutex_unlock(&lock);
	return status;
}

EXPORT int standin_begin(const char *name)
{
	if (depth++ == 0)
		outermost = name;
	return injected(name);
}

EXPORT int standin_end(const char *op, struct block what, int status)
{
	static const char *const failed[] = { "fail", "keep" };
	bool frees = !strcmp(op, "free") || !strcmp(op, "unmap");

	if (--depth == 0)
		sd_log(&(struct sd_event){ .op = status ? failed[frees] : op, .function = outermost,
		                           .kind = kind_names[what.kind], .device = what.device, .status = status,
		                           .address = what.key, .bytes = what.bytes, .handle = what.handle });
	return status;
}

EXPORT int standin_device(void)
{
	return current;
}

EXPORT void standin_set_device(int device)
{
	current = device;
}

/* ---- blocks ---- */

EXPORT bool standin_add(struct block block)
{
	bool good;

	pthread_mutex_lock(&lock);
	if (!blocks)
		blocks = sd_map(NULL, BLOCKS * sizeof *blocks, MAP_NORESERVE);
	good = blocks != MAP_FAILED && count < BLOCKS;
	if (good)
		blocks[count++] = block;
	pthread_mutex_unlock(&lock);
	return good;
}

static int position(int kinds, uint64_t key)
{
	for (int i = count; i-- > 0;)
		if (blocks[i].key == key && kinds >> blocks[i].kind & 1)
			return i;
	return -1;
}

static bool look_up(int kinds, uint64_t key, struct block *out, bool take)
{
	pthread_mutex_lock(&lock);
	int i = position(kinds, key);
	if (i >= 0) {
		*out = blocks[i];
		if (take)
			blocks[i] = blocks[--count];
	}
	pthread_mutex_unlock(&lock);
	return i >= 0;
}

EXPORT bool standin_find(int kinds, uint64_t key, struct block *out)
{
	return look_up(kinds, key, out, false);
}

EXPORT bool standin_take(int kinds, uint64_t key, struct block *out)
{
	return look_up(kinds, key, out, true);
}

EXPORT int standin_refer(uint64_t handle, int change)
{
	int references = -1;

	pthread_mutex_lock(&lock);
	int i = position(1 << PHYSICAL | 1 << ALIAS, handle);
	if (i >= 0)
		references = blocks[i].references += change;
	pthread_mutex_unlock(&lock);
	return references;
}

static bool next_of(int device, struct block *out)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < count && !found; i++)
		if (blocks[i].device == device) {
			*out = blocks[i];
			blocks[i] = blocks[--count];
			found = true;
		}
	pthread_mutex_unlock(&lock);
	return found;
}

EXPORT void standin_drop_device(int device)
{
	struct block b;

	while (next_of(device, &b))
		if (b.kind == PHYSICAL || b.kind == ALIAS)
			standin_charge(device, b.kind == PHYSICAL ? -(int64_t)b.bytes : 0);
		else if (b.kind != MAPPING && b.kind != RESERVED)
			standin_release((void *)b.key, b.bytes, device);
}

/* ---- memory ---- */

EXPORT bool standin_charge(int device, int64_t change)
{
	uint64_t grain = sd_granularity(), size = (uint64_t)(change < 0 ? -change : change);
	bool good = true;

	size = (size + grain - 1) / grain * grain;
	if (device < 0 || device >= sd_count())
		return true;
	pthread_mutex_lock(&lock);
	uint64_t total = change < 0 ? charged[device] - size : charged[device] + size;
	good = sd_charge(device, total);
	if (good)
		charged[device] = total;
	pthread_mutex_unlock(&lock);
	return good;
}

EXPORT void *standin_memory(int device, uint64_t bytes)
{
	void *p;

	if (!standin_charge(device, (int64_t)bytes))
		return NULL;
	p = sd_map(NULL, bytes, MAP_NORESERVE);
	if (p != MAP_FAILED)
		return p;
	standin_charge(device, -(int64_t)bytes);
	return NULL;
}

EXPORT void standin_release(void *p, uint64_t bytes, int device)
{
	sd_unmap(p, bytes);
	standin_charge(device, -(int64_t)bytes);
}

/* Huge pages may be used up while memory is left. */
static bool huge_fails(void)
{
	static int left = -1;
	const char *text = getenv("MEMTRACE_STANDIN_HUGE");

	if (left < 0)
		left = text ? atoi(text) : 0;
	return left > 0 && left--;
}

EXPORT int halMemAlloc(void **out, unsigned long long bytes, unsigned long long flag)
{
	int host = (flag >> HAL_SPACE_SHIFT & 15) == HAL_HOST;
	struct block b = { .bytes = bytes, .kind = host ? PINNED : DEVICE, .device = host ? -1 : (int)(flag & 1023) };
	int status = standin_begin("halMemAlloc");
	void *p = status || ((flag & HAL_HUGE) && huge_fails()) ? NULL : standin_memory(b.device, bytes);

	if (!p)
		return standin_end("alloc", b, status ? status : HAL_OUT_OF_MEMORY);
	b.key = (uint64_t)p;
	standin_add(b);
	*out = p;
	return standin_end("alloc", b, 0);
}

EXPORT int halMemFree(void *p)
{
	struct block b = { .key = (uint64_t)p, .device = -1 };
	int status = standin_begin("halMemFree");

	if (!status && !standin_take(ANY_DEVICE | 1 << PINNED | 1 << ASYNC, b.key, &b))
		status = 8; /* invalid handle */
	if (!status)
		standin_release(p, b.bytes, b.device);
	return standin_end("free", b, status);
}
