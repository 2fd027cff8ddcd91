#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shim/clock.h"
#include "shim/config.h"
#include "shim/environ.h"
#include "shim/process.h"
#include "shim/session.h"

#define SESSION_BYTES 4096

/* File systems on which a store to a mapped, reserved page may still fail (copy on write), or where mapped
 * files are slow or unsafe (network). Numbers from linux/magic.h and the file systems' own headers. */
static int unsuited(const char *path)
{
	static const uint32_t magics[] = {
		0x6969,     /* NFS */
		0x0BD00BD0, /* Lustre */
		0x65735546, /* FUSE */
		0x01021997, /* 9p */
		0xFF534D42, /* CIFS */
		0xFE534D42, /* SMB2 */
		0x00C36400, /* Ceph */
		0x47504653, /* GPFS */
		0x9123683E, /* btrfs */
		0x2FC12FC1, /* zfs */
		0xCA451A4E, /* bcachefs */
	};
	struct statfs fs;

	if (mt_sys_failed(MT_SYS2(SYS_statfs, path, &fs)))
		return 0;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if ((uint32_t)fs.f_type == magics[i])
			return 1;
	return 0;
}

static void choose_ring_dir(struct mt_session *s)
{
	const char *tmp = getenv("TMPDIR");
	char *end = s->ring_dir + sizeof(s->ring_dir);

	if (mt_config.ring_dir[0])
		mt_put(s->ring_dir, end, mt_config.ring_dir);
	else if (unsuited(mt_process.session_path))
		mt_put(s->ring_dir, end, tmp && *tmp == '/' && !unsuited(tmp) ? tmp : "/tmp");
	if (!strncmp(s->ring_dir, "/dev/shm", 8)) /* belongs to DataLoader, and is 64 MiB in containers */
		s->ring_dir[0] = 0;
}

static void fill(struct mt_session *s, uint32_t flags)
{
	struct utsname names;
	char id[64];
	int reaper = 0;

	mt_clock_choose();
	s->version = MT_VERSION;
	s->flags = flags;
	s->bytes = sizeof(*s);
	s->clock = mt_clock;
	s->page_bytes = (uint32_t)getauxval(AT_PAGESZ);
	s->limit_bytes = mt_config.limit_bytes;
	s->keep_free_bytes = mt_config.keep_free_bytes;
	s->start_real_ns = mt_clock_ns(CLOCK_REALTIME);
	s->start_mono_ns = mt_clock_ns(CLOCK_MONOTONIC);
	s->start_ticks = mt_ticks();
	if (mt_sys_read_file("/proc/sys/kernel/random/boot_id", id, sizeof(id)) >= 36) {
		id[36] = 0;
		mt_put(s->boot_id, s->boot_id + sizeof(s->boot_id), id);
	}
	if (uname(&names) == 0)
		mt_put(s->host, s->host + sizeof(s->host), names.nodename);
	MT_SYS2(SYS_prctl, PR_GET_CHILD_SUBREAPER, &reaper);
	if (reaper || mt_sys_pid() == 1)
		s->flags |= MT_SESSION_NO_RECORDER;
	choose_ring_dir(s);
	/* last: a session without its magic is not complete */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(s->magic, MT_SESSION_MAGIC, 8);
}

static struct mt_session *map_session(enum mt_open how)
{
	char path[1024];
	char *end = path + sizeof(path), *at = mt_put(path, end, mt_process.session_path);

	mt_put(at, end, "/session");
	return mt_sys_map_file(path, 0, SESSION_BYTES, SESSION_BYTES, how);
}

static int is_session(const struct mt_session *s)
{
	return s && !memcmp(s->magic, MT_SESSION_MAGIC, 8) && s->version == MT_VERSION;
}

/* Maps the session of MEMTRACE_SESSION. A directory that has no session file yet was made by `memtrace run`, which
 * also sees to the recorder. */
static struct mt_session *join(void)
{
	struct mt_session *s;

	mt_put(mt_process.session_path, mt_process.session_path + sizeof(mt_process.session_path), mt_config.session);
	s = map_session(MT_OPEN);
	if (is_session(s)) {
		mt_clock = s->clock; /* one clock for all, whatever this process would have chosen */
		return s;
	}
	if (s)
		mt_sys_unmap(s, SESSION_BYTES);
	else if ((s = map_session(MT_CREATE)) != NULL)
		fill(s, MT_SESSION_SUPERVISED);
	return is_session(s) ? s : NULL;
}

static struct mt_session *begin(void)
{
	char *path = mt_process.session_path;
	struct mt_session *s = NULL;

	mt_put(path, path + sizeof(mt_process.session_path), mt_config.output);
	if (mt_output_make(path, sizeof(mt_process.session_path)) == 0) {
		if ((s = map_session(MT_CREATE)) != NULL)
			fill(s, 0);
		else
			MT_SYS3(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
	}
	mt_say(s ? "recording to " : "cannot make a trace directory: ", path);
	return s;
}

int mt_session_open(void)
{
	struct mt_session *s = mt_config.session[0] ? join() : NULL;

	if (!s && !(s = begin()))
		return 0;
	mt_process.session = s;
	mt_put(mt_process.directory, mt_process.directory + sizeof(mt_process.directory),
	       s->ring_dir[0] ? s->ring_dir : mt_process.session_path);
	return 1;
}

void mt_session_export(void)
{
	if (mt_process.session)
		mt_environ_set("MEMTRACE_SESSION", mt_process.session_path);
}

int mt_session_has_trace(uint32_t pid, uint32_t image)
{
	char path[1024];
	char *end = path + sizeof(path), *at = mt_put(path, end, mt_process.session_path);

	at = mt_put_number(mt_put(at, end, "/"), end, pid);
	at = mt_put_number(mt_put(at, end, "-"), end, image);
	mt_put(at, end, ".trace");
	return !mt_sys_failed(MT_SYS4(SYS_faccessat, AT_FDCWD, path, F_OK, 0));
}
