/* Which memory of the process may hold what, by /proc/self/maps, read once by the child: its memory stands still. */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "format/number.h"
#include "shim/base/lines.h"
#include "shim/base/sys.h"
#include "shim/python/holders_internal.h"

/* Here since this is the lowest of the parts that use it. */
struct mt_holders_python mt_holders_python;

static struct range {
	uintptr_t start, end;
	enum mt_hold_place place;
} *ranges;
static size_t count, room;

static int make_room(void)
{
	size_t more = room ? room * 2 : 512;
	struct range *new;

	if (count < room)
		return 1;
	new = mt_sys_pages(more * sizeof(*new));
	if (!new)
		return 0;
	memcpy(new, ranges, count * sizeof(*new));
	if (room)
		mt_sys_unmap(ranges, room * sizeof(*new));
	ranges = new;
	room = more;
	return 1;
}

/* start-end rwxp offset device inode path */
static void add(const char *line)
{
	struct range r = { .start = mt_number(line, &line, 16) };
	const char *rights, *name;
	int anonymous, special;

	if (*line)
		r.end = mt_number(line + 1, &line, 16);
	if (!*line)
		return;
	rights = ++line;
	for (name = line, anonymous = 0; anonymous < 4 && *name; name++)
		anonymous += *name == ' ';
	while (*name == ' ')
		name++;
	anonymous = name[0] == 0 || !strncmp(name, "[heap]", 6) || !strncmp(name, "[anon", 5);
	special = name[0] == '[' && !anonymous; /* stacks, vdso */
	if (special || rights[2] == 'x')
		r.place = rights[0] == 'r' && !special ? MT_PLACE_CODE : MT_PLACE_NONE;
	else if (anonymous && rights[3] == 'p' && rights[0] == 'r' && rights[1] == 'w')
		r.place = MT_PLACE_HEAP;
	else if (anonymous || rights[3] == 's' || !strncmp(name, "/dev/", 5))
		r.place = MT_PLACE_OTHER;
	else
		r.place = rights[0] == 'r' ? MT_PLACE_FILE : MT_PLACE_NONE;
	if (count && ranges[count - 1].end == r.start && ranges[count - 1].place == r.place)
		ranges[count - 1].end = r.end;
	else if (make_room())
		ranges[count++] = r;
}

int mt_hold_maps(void)
{
	char buffer[4096], line[128]; /* of a path the beginning is enough */
	struct mt_lines lines = mt_lines_open("/proc/self/maps", buffer, sizeof(buffer));

	while (mt_lines_next(&lines, line, sizeof(line)))
		add(line);
	mt_lines_close(&lines);
	return count > 0;
}

static const struct range *range_of(uintptr_t at)
{
	static const struct range *latest;
	size_t low = 0, high = count;

	if (latest && at >= latest->start && at < latest->end)
		return latest;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (ranges[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count || at < ranges[low].start)
		return NULL;
	return latest = &ranges[low];
}

/* Addresses of devices need not be mapped at all. Drivers hand out what is a multiple of 256. */
enum mt_hold_place mt_hold_place(uintptr_t at)
{
	const struct range *r = at < 65536 || at >> MT_ADDRESS_BITS ? NULL : range_of(at);

	if (r)
		return r->place;
	return at >> 32 && !(at >> MT_ADDRESS_BITS) && !(at & 255) ? MT_PLACE_OTHER : MT_PLACE_NONE;
}

int mt_hold_readable(uintptr_t at, size_t bytes)
{
	const struct range *r = at < 65536 ? NULL : range_of(at);

	return r && (r->place == MT_PLACE_HEAP || r->place == MT_PLACE_FILE || r->place == MT_PLACE_CODE) &&
	       r->end - at >= bytes;
}
