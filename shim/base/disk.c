#include <string.h>
#include <sys/statfs.h>

#include "format/output_name.h"
#include "shim/base/disk.h"
#include "shim/base/file.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"

#define LEAST_LIMIT (256u << 10) /* of the disk, whatever was asked for */

static uint64_t kept_bytes(void)
{
	return __atomic_load_n(&mt_process.tree_bytes, __ATOMIC_RELAXED) +
	       (mt_process.info ? mt_process.info->log_bytes : 0);
}

static uint64_t raw_bytes(const struct mt_session *s, uint64_t used)
{
	uint64_t blocks = (uint64_t)__atomic_load_n(&s->trace_mib, __ATOMIC_RELAXED) << 20;

	return used > blocks ? used - blocks : 0;
}

/* What is raw is for the recorder to read; it needs room for what it writes. */
static uint64_t raw_room(const struct mt_session *s)
{
	uint64_t beside = kept_bytes() + s->limit_bytes / 8;

	return beside > s->limit_bytes / 2 ? beside : s->limit_bytes / 2;
}

static int leaves_room(const struct mt_session *s, uint64_t used, enum mt_charge what)
{
	if (what == MT_CHARGE_KEPT)
		return used <= s->limit_bytes / 16 * 13;
	return raw_bytes(s, used) <= raw_room(s);
}

uint32_t mt_disk_behind(uint64_t free)
{
	const struct mt_session *s = mt_process.session;
	uint64_t raw = raw_bytes(s, __atomic_load_n(&s->used_bytes, __ATOMIC_RELAXED)), kept = kept_bytes();
	uint64_t rest = kept + free;

	return s->limit_bytes && raw > rest ? (uint32_t)((raw - rest) * 16 / (raw_room(s) - kept + 1)) : 0;
}

int mt_disk_charge(uint64_t bytes, enum mt_charge what)
{
	struct mt_session *s = mt_process.session;
	uint64_t used = __atomic_add_fetch(&s->used_bytes, bytes, __ATOMIC_RELAXED);
	struct statfs fs;

	if (mt_process.info)
		mt_count(&mt_process.info->disk_bytes, bytes);
	if (s->limit_bytes && used > s->limit_bytes && (what != MT_CHARGE_FIRST || used > LEAST_LIMIT))
		goto refuse;
	if (what == MT_CHARGE_FIRST || what == MT_CHARGE_REST)
		return 1;
	if (s->limit_bytes && !leaves_room(s, used, what))
		goto refuse;
	if (!mt_sys_failed(MT_SYS2(SYS_statfs, mt_process.directory, &fs)) &&
	    (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < s->keep_free_bytes + bytes)
		goto refuse;
	return 1;
refuse:
	__atomic_store_n(&mt_file_refused, MT_LOSS_DISK, __ATOMIC_RELAXED);
	mt_disk_refund(bytes);
	return 0;
}

void mt_disk_refund(uint64_t bytes)
{
	__atomic_fetch_sub(&mt_process.session->used_bytes, bytes, __ATOMIC_RELAXED);
	if (mt_process.info)
		__atomic_fetch_sub(&mt_process.info->disk_bytes, bytes, __ATOMIC_RELAXED);
}

#define PATH_ROOM (PATH_MAX / 4)

/* A thread's small stack is spared the room for it. */
const char *mt_disk_path(const char *ext)
{
	static char path[PATH_ROOM];
	size_t stem = (size_t)(mt_process.path_end - mt_process.path);

	if (stem + 8 > PATH_ROOM)
		return NULL;
	memcpy(path, mt_process.path, stem);
	mt_put(path + stem, path + PATH_ROOM, ext);
	return path;
}

void *mt_disk_map(const char *ext, uint64_t offset, size_t bytes, size_t reserved, enum mt_open how)
{
	const char *path = mt_disk_path(ext);

	return path ? mt_file_map(path, offset, bytes, reserved, how) : NULL;
}

int mt_disk_reserve(const char *ext, uint64_t offset, size_t bytes, void *mapped)
{
	const char *path = mt_disk_path(ext);

	if (mt_sys_quiet() == MT_QUIET_USUAL)
		return 1; /* see mt_file_first() */
	if (mt_process_sandboxed() || !mt_disk_charge(bytes, MT_CHARGE_REST))
		return 0;
	if ((path && mt_file_reserve(path, offset, bytes)) || (mt_process.fixed && mt_file_fill(mapped, bytes)))
		return 1;
	mt_disk_refund(bytes);
	return 0;
}
