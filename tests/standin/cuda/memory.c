#include "memory.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCKS = 1 << 19 };
static const uint64_t BASE = 0x300000000000, LARGEST = 8ull << 40, SMALLEST = 64ull << 30;

static struct block *blocks; /* by address */
static size_t count;
static uint64_t space, space_size;
static struct account { uint64_t large, small, context; } accounts[SD_DEVICES];

const char *const kind_names[] = {"linear", "managed", "async", "pinned", "registered", "reservation", "alias", "graph"};

/* ---- blocks ---- */

static bool set_up(void)
{
	if (blocks)
		return true;
	void *start = MAP_FAILED;
	for (space_size = LARGEST * 2; start == MAP_FAILED && space_size > SMALLEST;)
		start = sd_map((void *)BASE, space_size /= 2, MAP_NORESERVE);
	if (start == MAP_FAILED)
		return false;
	syscall(SYS_madvise, start, space_size, MADV_DONTDUMP);
	space = round_up((uint64_t)start, 2 << 20);
	space_size -= space - (uint64_t)start;
	start = sd_map(NULL, BLOCKS * sizeof *blocks, MAP_NORESERVE);
	blocks = start == MAP_FAILED ? NULL : start;
	return blocks != NULL;
}

/* How many blocks begin at or before an address. */
static size_t position(uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (blocks[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct block *block_add(uint64_t base, uint64_t size, uint64_t bytes, int device, enum kind kind)
{
	if (!set_up() || count == BLOCKS)
		return NULL;
	size_t i = position(base);
	memmove(blocks + i + 1, blocks + i, (count - i) * sizeof *blocks);
	count++;
	blocks[i] = (struct block){.base = base, .size = size, .bytes = bytes, .device = device, .kind = kind, .context = current()};
	return blocks + i;
}

struct block *read_block_header(uint64_t base, int kinds)
{
	for (size_t i = position(base); i-- > 0 && blocks[i].base == base;)
		if (kinds >> blocks[i].kind & 1)
			return blocks + i;
	return NULL;
}

struct block *block_around(uint64_t address)
{
	size_t i = position(address);
	return i && address - blocks[i - 1].base < blocks[i - 1].size ? blocks + i - 1 : NULL;
}

void block_remove(struct block *block)
{
	count--;
	memmove(block, block + 1, (size_t)(blocks + count - block) * sizeof *block);
}

struct block *block_first(void)
{
	return blocks;
}

struct block *block_end(void)
{
	return blocks + count;
}

/* ---- addresses ---- */

uint64_t space_find(uint64_t size, uint64_t alignment)
{
	if (!set_up())
		return 0;
	uint64_t at = round_up(space, alignment);
	for (size_t i = position(space - 1); i < count && blocks[i].base < space + space_size; i++) {
		if (blocks[i].base >= at && blocks[i].base - at >= size)
			break;
		at = round_up(blocks[i].base + blocks[i].size, alignment);
	}
	return at + size <= space + space_size ? at : 0;
}

void space_clear(uint64_t start, uint64_t size)
{
	uint64_t page = 4096, first = round_up(start, page), end = (start + size) / page * page;
	if (end > first && syscall(SYS_madvise, first, end - first, MADV_DONTNEED) == 0)
		return;
}

/* ---- charges ---- */

static uint64_t total(const struct account *a)
{
	return a->large + round_up(a->small, sd_granularity()) + a->context;
}

static struct account with(int device, uint64_t bytes, int sign)
{
	struct account a = accounts[device];
	if (bytes >= sd_granularity())
		a.large += (uint64_t)sign * round_up(bytes, sd_granularity());
	else
		a.small += (uint64_t)sign * round_up(bytes, 512);
	return a;
}

static bool commit(int device, struct account a)
{
	if (!sd_charge(device, total(&a)))
		return false;
	accounts[device] = a;
	return true;
}

bool charge_at_once(int device, uint64_t bytes)
{
	return commit(device, with(device, bytes, 1));
}

bool charge(int device, uint64_t bytes)
{
	return charge_at_once(device, bytes) || (pools_trim(device) && charge_at_once(device, bytes));
}

void refund(int device, uint64_t bytes)
{
	commit(device, with(device, bytes, -1));
}

bool charge_context(int device, int64_t bytes)
{
	struct account a = accounts[device];
	a.context += (uint64_t)bytes;
	return commit(device, a);
}
