#include <string.h>

#include "format/fnv.h"
#include "shim/base/holders.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/state.h"
#include "shim/base/tables.h"
#include "shim/hooks/hooks.h"
#include "shim/trace/mark.h"
#include "shim/trace/record.h"

/* A word is a text that was recorded: the upper bits of its hash and its id. It is written and read whole, so who looks
 * a text up needs no lock. Together with the slot it is in, two texts are only taken for one if 61 bits agree. */
#define SLOTS     131072u
#define ID_BITS   20
#define MAX_NAMES (SLOTS / 2)
#define MAX_BYTES (16u << 20) /* of all texts: the log holds more important things */

static uint64_t *words;            /* SLOTS */
static uint32_t names, name_bytes; /* under the lock */

void mt_mark_tables(struct mt_tables *t)
{
	words = mt_tables_take(t, SLOTS * sizeof(*words));
}

static size_t text_bytes(const char *text)
{
	size_t n = strnlen(text, MT_MARK_MAX_TEXT + 1);

	if (n <= MT_MARK_MAX_TEXT)
		return n;
	for (n = MT_MARK_MAX_TEXT; n && ((uint8_t)text[n] & 0xc0) == 0x80;)
		n--; /* no half characters of UTF-8 */
	return n;
}

static uint64_t hash_text(const char *text, size_t bytes)
{
	return mt_fnv_stir(mt_fnv(MT_FNV_START, text, bytes));
}

/* Its id, or 0 and *free is where it would go. There is always a free slot. */
static uint32_t look_up(uint64_t hash, uint32_t *free)
{
	uint64_t tag = hash >> ID_BITS;

	for (uint32_t i = (uint32_t)hash % SLOTS;; i = (i + 1) % SLOTS) {
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
		if (!word) {
			*free = i;
			return 0;
		}
		if (word >> ID_BITS == tag)
			return (uint32_t)word & ((1u << ID_BITS) - 1);
	}
}

/* Under the lock. The record is published before the word, and the word before any event that refers to it. */
static uint32_t add(const char *text, size_t bytes, uint64_t hash)
{
	struct mt_rec_name rec = { 0, 0 };
	uint32_t slot = 0, id = look_up(hash, &slot);

	if (id)
		return id;
	if (names == MAX_NAMES || name_bytes + bytes > MAX_BYTES) {
		mt_count(&mt_process.info->unwritten_bytes, sizeof(struct mt_record) + sizeof(rec) + bytes + 1);
		return 0;
	}
	rec.id = id = ++names;
	name_bytes += (uint32_t)bytes;
	mt_log_write(MT_REC_NAME, (struct mt_part[]){ { &rec, sizeof(rec) }, { text, bytes }, { "", 1 } }, 3);
	__atomic_store_n(&words[slot], hash >> ID_BITS << ID_BITS | id, __ATOMIC_RELEASE);
	return id;
}

uint32_t mt_mark_name(const char *text)
{
	size_t bytes;
	uint64_t hash, signals;
	uint32_t id, unused;

	if (!text || !*text)
		return 0;
	bytes = text_bytes(text);
	hash = hash_text(text, bytes);
	if ((id = look_up(hash, &unused)) != 0)
		return id;
	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		id = add(text, bytes, hash);
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
	return id;
}

void mt_mark_reset(void)
{
	for (uint32_t i = 0; names && i < SLOTS; i++)
		if (words[i])
			words[i] = 0; /* no page is copied that holds nothing */
	names = name_bytes = 0;
}

/* A text must not get into the log of a parent: a forked child makes its own files first. */
static int is_recording(void)
{
	if (mt_process_state() == MT_STATE_NEW) {
		mt_record_mute(1);
		mt_process_enter();
		mt_record_mute(0);
	}
	return mt_process_state() == MT_STATE_ACTIVE;
}

static void mark(enum mt_mark what, uint64_t value, const char *text, uint64_t range, enum mt_mark_source source,
		 const void *caller)
{
	struct mt_ext_device ext = { .other = range, .class = what, .source = source };

	if (!is_recording())
		return;
	mt_record_device(MT_MARK, MT_HOOK_none, value, mt_mark_name(text), &ext, caller);
}

void mt_mark_point(const char *name, enum mt_mark_source source, const void *caller)
{
	mark(MT_MARK_POINT, 0, name, 0, source, caller);
	mt_holders_want(MT_HOLD_MARK, name);
}

void mt_mark_step(uint64_t number, enum mt_mark_source source, const void *caller)
{
	mark(MT_MARK_STEP, number, NULL, 0, source, caller);
}

void mt_mark_begin(const char *name, uint64_t range, enum mt_mark_source source, const void *caller)
{
	mark(MT_MARK_BEGIN, 0, name, range, source, caller);
}

void mt_mark_end(const char *name, uint64_t range, enum mt_mark_source source)
{
	mark(MT_MARK_END, 0, name, range, source, NULL);
}

void mt_mark_label(const void *p, const char *text, enum mt_mark_source source)
{
	if (p)
		mark(MT_MARK_LABEL, (uintptr_t)p, text, 0, source, NULL);
}

/* ---- memtrace.h ---- */

MT_EXPORT void memtrace_mark(const char *name);
MT_EXPORT void memtrace_step(unsigned long number);
MT_EXPORT void memtrace_phase_begin(const char *name);
MT_EXPORT void memtrace_phase_end(const char *name);
MT_EXPORT void memtrace_label(const void *p, const char *text);
MT_EXPORT void memtrace_holders(const char *name);

MT_EXPORT void memtrace_mark(const char *name)
{
	mt_mark_point(name, MT_MARK_PROGRAM, MT_CALLER);
}

MT_EXPORT void memtrace_step(unsigned long number)
{
	mt_mark_step(number, MT_MARK_PROGRAM, MT_CALLER);
}

MT_EXPORT void memtrace_phase_begin(const char *name)
{
	mt_mark_begin(name, 0, MT_MARK_PROGRAM, MT_CALLER);
}

MT_EXPORT void memtrace_phase_end(const char *name)
{
	mt_mark_end(name, 0, MT_MARK_PROGRAM);
}

MT_EXPORT void memtrace_label(const void *p, const char *text)
{
	mt_mark_label(p, text, MT_MARK_PROGRAM);
}

MT_EXPORT void memtrace_holders(const char *name)
{
	mark(MT_MARK_POINT, 0, name, 0, MT_MARK_PROGRAM, MT_CALLER);
	mt_holders_want(MT_HOLD_REQUEST, name);
}
