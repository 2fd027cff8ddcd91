#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "format/format.h"
#include "shim/base/libc.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/base/tables.h"
#include "shim/stack/ehframe.h"
#include "shim/stack/modules.h"
#include "shim/stack/tree.h"

#define MAX_KNOWN 16384

struct module {
	uint64_t start, end;
	uint64_t record; /* its place in the log, or MT_LOG_NONE */
	uint32_t seen;   /* the scan that last found it */
};

/* Sorted by start. Changed under mt_process.lock between two increments of `version`; readers look, and look
 * again if it was odd or has changed. */
static struct module *known; /* MAX_KNOWN */
static uint32_t count, version, scan_number;
static unsigned long long adds, subs; /* of the loader, at the last scan */

void mt_modules_tables(struct mt_tables *t)
{
	known = mt_tables_take(t, MAX_KNOWN * sizeof(*known));
}

/* Index of the first module that ends above pc. */
static uint32_t lower_bound(uint64_t pc, uint32_t n)
{
	uint32_t low = 0;

	while (low < n) {
		uint32_t mid = low + (n - low) / 2;
		if (known[mid].end <= pc)
			low = mid + 1;
		else
			n = mid;
	}
	return low;
}

static int is_known(uint64_t pc)
{
	for (int tries = 0; tries < 4; tries++) {
		uint32_t before = __atomic_load_n(&version, __ATOMIC_ACQUIRE);
		uint32_t n = __atomic_load_n(&count, __ATOMIC_RELAXED), i = lower_bound(pc, n);
		int found = i < n && known[i].start <= pc;

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && __atomic_load_n(&version, __ATOMIC_RELAXED) == before)
			return found;
	}
	return 1; /* somebody is scanning right now */
}

static void change_begin(void)
{
	__atomic_fetch_add(&version, 1, __ATOMIC_ACQ_REL);
}

static void change_end(void)
{
	__atomic_fetch_add(&version, 1, __ATOMIC_RELEASE);
}

static size_t note_build_id(const uint8_t *note, size_t bytes, const uint8_t **id)
{
	while (bytes >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *head = (const void *)note;
		size_t name = (head->n_namesz + 3u) & ~3u, desc = (head->n_descsz + 3u) & ~3u;

		if (sizeof(*head) + name + desc > bytes)
			return 0;
		if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 && !memcmp(head + 1, "GNU", 4)) {
			*id = (const uint8_t *)(head + 1) + name;
			return head->n_descsz;
		}
		note += sizeof(*head) + name + desc;
		bytes -= sizeof(*head) + name + desc;
	}
	return 0;
}

static size_t build_id_of(const struct dl_phdr_info *info, const uint8_t **id)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		size_t n;
		if (ph->p_type == PT_NOTE &&
		    (n = note_build_id((const uint8_t *)info->dlpi_addr + ph->p_vaddr, ph->p_filesz, id)) != 0)
			return n;
	}
	return 0;
}

static void extent_of(const struct dl_phdr_info *info, uint64_t *start, uint64_t *end)
{
	*start = UINT64_MAX;
	*end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t low = info->dlpi_addr + ph->p_vaddr;
		if (ph->p_type != PT_LOAD)
			continue;
		*start = low < *start ? low : *start;
		*end = low + ph->p_memsz > *end ? low + ph->p_memsz : *end;
	}
}

/* The path as others can open it: absolute, the main program by its real name. Its place in the log. */
static uint64_t write_module(const struct dl_phdr_info *info, uint64_t start, uint64_t end)
{
	static char path[2 * PATH_MAX]; /* under the lock */
	const uint8_t *id = NULL;
	const char *name = info->dlpi_name;
	size_t id_bytes = build_id_of(info, &id), used = 0;
	struct mt_rec_module rec = { info->dlpi_addr, start, end, mt_tree_end(), (uint32_t)id_bytes };
	long n;

	if (!*name) {
		n = mt_quiet_program(path, PATH_MAX - 1);
		path[n > 0 ? n : 0] = 0;
		name = path;
	} else if (*name != '/' && strchr(name, '/') && (n = MT_SYS2(SYS_getcwd, path, PATH_MAX)) > 0) {
		used = (size_t)n;
		path[used - 1] = '/';
		strncpy(path + used, name, PATH_MAX - 1);
		name = path;
	}
	return mt_log_write(MT_REC_MODULE,
			    (struct mt_part[]){ { &rec, sizeof(rec) }, { id, id_bytes }, { name, strlen(name) + 1 } },
			    3);
}

static void insert(uint32_t at, struct module m)
{
	change_begin();
	memmove(&known[at + 1], &known[at], (count - at) * sizeof(known[0]));
	known[at] = m;
	__atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
	change_end();
}

/* ---- who watches ---- */

static void tell_met(const struct dl_phdr_info *info)
{
	MT_SET_EACH (mt_modules_watch, watch)
		if ((*watch)->met)
			(*watch)->met(info);
}

static void tell_gone(uint64_t start, uint64_t end)
{
	MT_SET_EACH (mt_modules_watch, watch)
		if ((*watch)->gone)
			(*watch)->gone(start, end);
}

static void tell_have_gone(void)
{
	MT_SET_EACH (mt_modules_watch, watch)
		if ((*watch)->have_gone)
			(*watch)->have_gone();
}

/* ---- looking at all that is loaded ---- */

/* The loader's lock on its list comes before ours: a callback of the program's, called under it, may allocate. */
static int begin_scan(int *locked, const struct dl_phdr_info *info)
{
	*locked = mt_lock_take(&mt_process.lock);
	if (*locked) {
		scan_number++;
		adds = info->dlpi_adds;
		subs = info->dlpi_subs;
	}
	return *locked;
}

static int visit(struct dl_phdr_info *info, size_t size, void *locked)
{
	uint64_t start, end;
	uint32_t i;

	(void)size;
	if (!*(int *)locked && !begin_scan(locked, info))
		return 1;
	extent_of(info, &start, &end);
	if (start >= end)
		return 0;
	i = lower_bound(start, count);
	if (i < count && known[i].start == start && known[i].end == end) {
		known[i].seen = scan_number;
	} else if (count < MAX_KNOWN) {
		uint64_t record = write_module(info, start, end);
		tell_met(info);
		insert(i, (struct module){ start, end, record, scan_number });
	}
	return 0;
}

static int drop_unseen(void)
{
	int dropped = 0;

	for (uint32_t i = count; i-- > 0;) {
		struct mt_rec_unmodule rec = { known[i].start, mt_tree_end(), 0 };
		uint64_t end = known[i].end;

		if (known[i].seen == scan_number)
			continue;
		change_begin();
		memmove(&known[i], &known[i + 1], (count - i - 1) * sizeof(known[0]));
		__atomic_store_n(&count, count - 1, __ATOMIC_RELAXED);
		change_end();
		mt_log_write(MT_REC_UNMODULE, (struct mt_part[]){ { &rec, sizeof(rec) } }, 1);
		tell_gone(rec.start, end);
		dropped = 1;
	}
	return dropped;
}

static void scan(void)
{
	uint64_t signals;
	int locked = 0, dropped = 0;

	mt_sys_block_signals(&signals);
	mt_libc()->dl_iterate_phdr(visit, &locked);
	if (locked) {
		dropped = drop_unseen();
		mt_lock_drop(&mt_process.lock);
	}
	if (dropped)
		tell_have_gone(); /* may look at the loader's list: not under our lock */
	mt_sys_restore_signals(&signals);
}

/* ---- start ---- */

void mt_modules_start(void)
{
	count = 0;
	scan();
}

/* What a forked child's parent has recorded: another thread of the parent may have held the loader's lock on its list
 * at the fork, and whoever asks for it in the child would wait for ever. */
static char *kept;
static size_t kept_bytes;

static size_t record_bytes(const struct module *m)
{
	struct mt_record head = { .bytes = 0 };

	if (m->record != MT_LOG_NONE)
		mt_log_read(m->record, &head, sizeof(head));
	return head.bytes;
}

void mt_modules_keep(void)
{
	char *at;

	kept_bytes = 0;
	for (uint32_t i = 0; i < count; i++)
		kept_bytes += record_bytes(&known[i]);
	at = kept = mt_sys_pages(kept_bytes);
	for (uint32_t i = 0; kept && i < count; at += record_bytes(&known[i++]))
		if (known[i].record != MT_LOG_NONE)
			mt_log_read(known[i].record, at, record_bytes(&known[i]));
}

/* Under the lock. */
static uint64_t write_again(const char *record, uint32_t bytes)
{
	const char *rest = record + sizeof(struct mt_record) + sizeof(struct mt_rec_module);
	struct mt_rec_module rec;

	memcpy(&rec, record + sizeof(struct mt_record), sizeof(rec));
	rec.node_from = mt_tree_end();
	return mt_log_write(MT_REC_MODULE,
			    (struct mt_part[]){ { &rec, sizeof(rec) }, { rest, bytes - (size_t)(rest - record) } }, 2);
}

static void write_kept(void)
{
	const char *at = kept;

	for (uint32_t i = 0; i < count; i++)
		if (known[i].record != MT_LOG_NONE) {
			uint32_t bytes;
			memcpy(&bytes, at + offsetof(struct mt_record, bytes), sizeof(bytes));
			known[i].record = write_again(at, bytes);
			at += bytes;
		}
}

void mt_modules_inherit(void)
{
	uint64_t signals;

	version &= ~1u; /* whoever was changing the list is not here */
	mt_sys_block_signals(&signals);
	if (kept && mt_lock_take(&mt_process.lock)) {
		write_kept();
		mt_lock_drop(&mt_process.lock);
	} else {
		count = 0; /* they are met again */
		adds = 0;
	}
	mt_sys_restore_signals(&signals);
	if (kept)
		mt_sys_unmap(kept, kept_bytes);
}

static int loader_counts(struct dl_phdr_info *info, size_t size, void *out)
{
	unsigned long long *counts = out;

	(void)size;
	counts[0] = info->dlpi_adds;
	counts[1] = info->dlpi_subs;
	return 1;
}

static int loader_changed(void)
{
	unsigned long long counts[2] = { adds, subs };

	mt_libc()->dl_iterate_phdr(loader_counts, counts);
	return counts[0] != adds || counts[1] != subs;
}

void mt_modules_meet(uint64_t pc)
{
	if (!is_known(pc) && mt_ehframe_may_be_module(pc) && loader_changed())
		scan();
}

void mt_modules_check(void)
{
	if (loader_changed())
		scan();
}
