#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/lines.h"
#include "shim/base/sys.h"
#include "shim/base/tables.h"
#include "shim/stack/maps.h"

#define MAX_STRETCHES 8192u
#define FRESH         (1u << 21)    /* ticks: about a millisecond */
#define GAP           (64ull << 20) /* below the first thread's stack the kernel leaves 128 MiB */

struct stretch {
	uint64_t start, end;
	bool writable;
};

uint32_t mt_maps_generation;

/* Under `taken`. Sorted; neighbours that are alike are one. */
static struct stretch *stretches; /* MAX_STRETCHES; NULL: before recording begins */
static uint32_t count, generation, taken;
static uint64_t looked, first_stack_end;

void mt_maps_tables(struct mt_tables *t)
{
	stretches = mt_tables_take(t, MAX_STRETCHES * sizeof(*stretches));
}

/* Memory that does not behave as such. */
static bool is_odd(const char *name)
{
	return !strncmp(name, "[v", 2) ||
	       (!strncmp(name, "/dev/", 5) && strncmp(name, "/dev/shm/", 9) && strncmp(name, "/dev/zero", 9));
}

static void add(const char *line)
{
	const char *at;
	uint64_t start = mt_number(line, &at, 16), end = *at == '-' ? mt_number(at + 1, &at, 16) : 0;
	bool readable = at[0] == ' ' && at[1] == 'r', writable = readable && at[2] == 'w';
	struct stretch *last = count ? &stretches[count - 1] : NULL;
	const char *name = strpbrk(at, "/[");

	if (name && !strncmp(name, "[stack]", 7))
		__atomic_store_n(&first_stack_end, end, __ATOMIC_RELAXED);
	if (!readable || !stretches || count == MAX_STRETCHES || (name && is_odd(name)))
		return;
	if (last && last->end == start && last->writable == writable)
		last->end = end;
	else
		stretches[count++] = (struct stretch){ start, end, writable };
}

static void read_maps(void)
{
	char buffer[256], line[96];
	struct mt_lines lines;

	/* before reading: what is unmapped meanwhile makes it void */
	generation = __atomic_load_n(&mt_maps_generation, __ATOMIC_RELAXED);
	count = 0;
	lines = mt_lines_open("/proc/self/maps", buffer, sizeof(buffer));
	while (mt_lines_next(&lines, line, sizeof(line)))
		add(line);
	mt_lines_close(&lines);
	looked = mt_ticks();
}

static bool covers(uint64_t at, uint64_t end, bool to_write)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (stretches[mid].end <= at)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < count && stretches[low].start <= at && (stretches[low].writable || !to_write); low++) {
		if (stretches[low].end >= end)
			return true;
		at = stretches[low].end;
	}
	return false;
}

/* Never waited for: who interrupts or meets a look does without. */
static bool try_enter(void)
{
	/* acquire pairs with the release in leave() */
	return !__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE);
}

static void leave(void)
{
	__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
}

bool mt_maps_has(uint64_t at, size_t bytes, bool to_write)
{
	bool has, fresh;

	if (at + bytes < at || mt_sys_quiet() != MT_QUIET_USUAL || !try_enter())
		return false;
	fresh = mt_ticks() - looked < FRESH;
	has = fresh && generation == __atomic_load_n(&mt_maps_generation, __ATOMIC_RELAXED) &&
	      covers(at, at + bytes, to_write);
	if (!has && !fresh) {
		read_maps();
		has = covers(at, at + bytes, to_write);
	}
	leave();
	return has;
}

void mt_maps_look(void)
{
	if (try_enter()) {
		read_maps();
		leave();
	}
}

bool mt_maps_in_first_stack(uint64_t from, uint64_t to)
{
	uint64_t end = __atomic_load_n(&first_stack_end, __ATOMIC_RELAXED);

	return end && from <= to && to <= end && end - from < GAP;
}
