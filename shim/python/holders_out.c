/* The file of a snapshot, and what its tables are made of. The child's alone: no locks, memory from mmap, which is
 * never given back, as the child exits. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "format/output_name.h"
#include "format/varint.h"
#include "shim/base/clock.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"
#include "shim/python/holders_internal.h"

#define BUFFER (1u << 18)
#define START  (1u << 10)

static uint8_t *buffer;
static size_t used;
static long file;
static uint64_t begin, done; /* offset of the snapshot, bytes of it that are written */
static uintptr_t last;
static int cut;

struct mt_holders_shared *mt_holders_shared;

static const char *path_of(char *path, size_t room)
{
	char *end = path + room, *at = mt_put(path, end, mt_process.session_path);

	at = mt_put_number(mt_put(at, end, "/"), end, mt_process.pid);
	mt_put(mt_put_number(mt_put(at, end, "-"), end, mt_process.image), end, ".holders");
	return path;
}

int mt_hold_open(uint64_t offset, struct mt_hold_head *head)
{
	static char path[PATH_MAX + 64];

	buffer = mt_sys_pages(BUFFER + 4096);
	file = buffer ? mt_sys_open(path_of(path, sizeof(path)), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (mt_sys_failed(file) || mt_sys_failed(MT_SYS2(SYS_ftruncate, file, offset)) ||
	    MT_SYS4(SYS_pwrite64, file, head, sizeof(*head), offset) != (long)sizeof(*head))
		return 0;
	begin = offset;
	done = sizeof(*head);
	return 1;
}

void mt_hold_cut(void)
{
	cut = 1;
	mt_holders_shared->cut = 1;
}

int mt_hold_is_cut(void)
{
	return cut;
}

/* The limit counts it; what is written stays as long as the trace. */
static int may_grow(uint64_t bytes)
{
	struct mt_session *s = mt_process.session;
	uint64_t all = __atomic_add_fetch(&s->used_bytes, bytes, __ATOMIC_RELAXED);

	if (!s->limit_bytes || all <= s->limit_bytes / 16 * 13)
		return 1;
	__atomic_fetch_sub(&s->used_bytes, bytes, __ATOMIC_RELAXED);
	return 0;
}

static void flush(void)
{
	size_t at = 0;

	if (!cut && used && !may_grow(used))
		mt_hold_cut();
	while (!cut && at < used) {
		long n = MT_SYS4(SYS_pwrite64, file, buffer + at, used - at, begin + done);
		if (n <= 0)
			mt_hold_cut();
		else {
			at += (size_t)n;
			done += (uint64_t)n;
		}
	}
	used = 0;
}

void mt_hold_number(uint64_t value)
{
	if (used + VARINT_MAX > BUFFER)
		flush();
	used = (size_t)(varint_put(buffer + used, value) - buffer);
}

void mt_hold_address(uintptr_t at)
{
	mt_hold_number(zigzag((uint64_t)((int64_t)(at - last) >> 3)));
	last = at & ~(uintptr_t)7;
}

void mt_hold_bytes(const void *data, size_t bytes)
{
	if (used + bytes > BUFFER)
		flush();
	memcpy(buffer + used, data, bytes);
	used += bytes;
}

/* An item that was cut is behind what counts. */
void mt_hold_close(struct mt_hold_head *head)
{
	flush();
	head->body_bytes = done - sizeof(*head);
	head->flags |= cut ? MT_HOLD_CUT : 0;
	head->end_ticks = mt_ticks();
	if (MT_SYS4(SYS_pwrite64, file, head, sizeof(*head), begin) == (long)sizeof(*head))
		mt_holders_shared->bytes = done;
}

/* ---- tables ---- */

static void *grown(void *old, size_t bytes, size_t more)
{
	void *new;

	if (!old)
		return mt_sys_pages(more);
	new = (void *)MT_SYS6(SYS_mremap, old, bytes, more, MREMAP_MAYMOVE, 0, 0);
	return mt_sys_failed((long)new) ? NULL : new;
}

int mt_hold_push(struct mt_hold_words *w, uintptr_t word)
{
	if (w->count == w->room) {
		size_t room = w->room ? w->room * 2 : START;
		void *new = grown(w->at, w->room * sizeof(*w->at), room * sizeof(*w->at));
		if (!new) {
			mt_hold_cut();
			return 0;
		}
		w->at = new;
		w->room = room;
	}
	w->at[w->count++] = word;
	return 1;
}

static struct mt_hold_entry *slot_of(const struct mt_hold_map *m, uintptr_t key)
{
	uint64_t i = (key >> 3) * 0x9E3779B97F4A7C15ull >> 20;

	while (m->entry[i & m->mask].key && m->entry[i & m->mask].key != key)
		i++;
	return &m->entry[i & m->mask];
}

static int make_room(struct mt_hold_map *m)
{
	struct mt_hold_map old = *m;
	uint64_t slots = m->entry ? (m->mask + 1) * 2 : START;

	if (m->entry && m->used * 2 <= m->mask)
		return 1;
	m->entry = mt_sys_pages(slots * sizeof(*m->entry));
	if (!m->entry) {
		*m = old;
		mt_hold_cut();
		return 0;
	}
	m->mask = slots - 1;
	for (uint64_t i = 0; old.entry && i <= old.mask; i++)
		if (old.entry[i].key)
			*slot_of(m, old.entry[i].key) = old.entry[i];
	if (old.entry)
		mt_sys_unmap(old.entry, (old.mask + 1) * sizeof(*old.entry));
	return 1;
}

uint32_t mt_hold_map_add(struct mt_hold_map *m, uintptr_t key, uint32_t value, int *added)
{
	struct mt_hold_entry *e;

	*added = 0;
	if (!make_room(m))
		return UINT32_MAX;
	e = slot_of(m, key);
	if (!e->key) {
		*e = (struct mt_hold_entry){ key, value };
		m->used++;
		*added = 1;
	}
	return e->value;
}

int mt_hold_map_has(const struct mt_hold_map *m, uintptr_t key)
{
	return key && m->entry && slot_of(m, key)->key == key;
}
