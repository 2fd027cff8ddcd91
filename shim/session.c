#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shim/clock.h"
#include "shim/config.h"
#include "shim/environ.h"
#include "shim/process.h"
#include "shim/session.h"

#define SESSION_BYTES 4096
#define MAX_NAMES 100000
#define LEADERLESS_NS 10000000000ull /* a group's number can't come again so soon */

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

/* Of a session in `dir`; "" = there. */
static const char *choose_ring_dir(const char *dir)
{
	const char *tmp = getenv("TMPDIR"), *chosen = "";

	if (mt_config.ring_dir[0])
		chosen = mt_config.ring_dir;
	else if (unsuited(dir))
		chosen = tmp && *tmp == '/' && !unsuited(tmp) ? tmp : "/tmp";
	return strncmp(chosen, "/dev/shm", 8) ? chosen : ""; /* belongs to DataLoader, and is 64 MiB in containers */
}

/* The id has 36 characters; 0 if it can't be read. */
static int read_boot_id(char id[64])
{
	if (mt_sys_read_file("/proc/sys/kernel/random/boot_id", id, 64) < 36)
		return 0;
	id[36] = 0;
	return 1;
}

static void fill(struct mt_session *s, const char *dir, uint32_t flags)
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
	if (read_boot_id(id))
		mt_put(s->boot_id, s->boot_id + sizeof(s->boot_id), id);
	if (uname(&names) == 0)
		mt_put(s->host, s->host + sizeof(s->host), names.nodename);
	MT_SYS2(SYS_prctl, PR_GET_CHILD_SUBREAPER, &reaper);
	if (reaper || mt_sys_pid() == 1)
		s->flags |= MT_SESSION_NO_RECORDER;
	mt_put(s->ring_dir, s->ring_dir + sizeof(s->ring_dir), choose_ring_dir(dir));
	/* last: a session without its magic is not complete */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(s->magic, MT_SESSION_MAGIC, 8);
}

#define FILE_NAME 1024

static void session_file(char path[FILE_NAME], const char *dir)
{
	mt_put(mt_put(path, path + FILE_NAME, dir), path + FILE_NAME, "/session");
}

static struct mt_session *map_session(const char *dir, enum mt_open how)
{
	char path[FILE_NAME];

	session_file(path, dir);
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
	s = map_session(mt_config.session, MT_OPEN);
	if (is_session(s)) {
		mt_clock = s->clock; /* one clock for all, whatever this process would have chosen */
		return s;
	}
	if (s)
		mt_sys_unmap(s, SESSION_BYTES);
	else if ((s = map_session(mt_config.session, MT_CREATE)) != NULL)
		fill(s, mt_config.session, MT_SESSION_SUPERVISED);
	return is_session(s) ? s : NULL;
}

/* ---- a root process: the trace of its job, or a new one ---- */

/* /proc may be that of an outer namespace. */
static int proc_is_ours(void)
{
	char text[24], *end = text + sizeof(text), own[24];
	long n = MT_SYS4(SYS_readlinkat, AT_FDCWD, "/proc/self", own, sizeof(own) - 1);

	if (mt_sys_failed(n))
		return 0;
	own[n] = 0;
	mt_put_number(text, end, mt_sys_pid());
	return !strcmp(own, text);
}

static struct mt_job own_job(void)
{
	struct mt_job job = { .pid_ns = mt_process_namespace(), .group = (uint32_t)MT_SYS1(SYS_getpgid, 0),
	                      .session = (uint32_t)MT_SYS1(SYS_getsid, 0) };

	if (proc_is_ours())
		job.leader_start = mt_process_boot_start(job.group ? job.group : 1);
	return job;
}

/* A group keeps its number as long as anybody is in it, but without its leader nothing tells for how long. */
static int same_job(const struct mt_session *s, const struct mt_job *job)
{
	char id[64];

	if (!job->pid_ns || s->job.pid_ns != job->pid_ns || s->job.group != job->group || s->job.session != job->session)
		return 0;
	if (job->leader_start ? s->job.leader_start != job->leader_start
	                      : mt_clock_ns(CLOCK_MONOTONIC) - s->start_mono_ns > LEADERLESS_NS)
		return 0;
	return read_boot_id(id) && !strcmp(id, s->boot_id);
}

/* In what holds for the whole directory. */
static int as_configured(const struct mt_session *s, const char *dir)
{
	return s->limit_bytes == mt_config.limit_bytes && s->keep_free_bytes == mt_config.keep_free_bytes &&
	       !strcmp(s->ring_dir, choose_ring_dir(dir));
}

/* What it is, links not followed, or 0; *own: nobody else can exchange it. */
static mode_t type_of(const char *path, int *own)
{
	struct stat st;

	if (mt_sys_failed(MT_SYS4(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW)))
		return 0;
	*own = st.st_uid == (uid_t)MT_SYS0(SYS_geteuid);
	return st.st_mode & S_IFMT;
}

/* The session there if it is of this job. One whose recorder is not for all of its processes is left alone. */
static struct mt_session *join_job(const char *dir, const struct mt_job *job)
{
	char path[FILE_NAME];
	struct mt_session *s;
	int own = 0;

	session_file(path, dir);
	if (!mt_config.joins || type_of(dir, &own) != S_IFDIR || !own || type_of(path, &own) != S_IFREG || !own ||
	    !(s = map_session(dir, MT_OPEN)))
		return NULL;
	if (is_session(s) && s->bytes == sizeof(*s) && same_job(s, job) && as_configured(s, dir) &&
	    !(s->flags & (MT_SESSION_NO_RECORDER | MT_SESSION_SUPERVISED))) {
		mt_clock = s->clock;
		return s;
	}
	mt_sys_unmap(s, SESSION_BYTES);
	return NULL;
}

/* In a directory beside those that it may become, so that who meets one of them meets a whole session. */
static struct mt_session *make(char *dir, size_t size, const struct mt_job *job)
{
	char *end = dir + size, *at = mt_put(dir, end, mt_config.output);
	struct mt_session *s;

	at = mt_put_number(mt_put(at - strlen(mt_base_name(dir)), end, ".memtrace-"), end, mt_sys_pid());
	mt_put_number(mt_put(at, end, "-"), end, mt_ticks());
	if (mt_output_make(dir, size) != 0)
		return NULL;
	if ((s = map_session(dir, MT_CREATE)) != NULL) {
		s->job = *job;
		fill(s, dir, 0);
	} else {
		MT_SYS3(SYS_unlinkat, AT_FDCWD, dir, AT_REMOVEDIR);
	}
	return s;
}

static void unmake(struct mt_session *s, const char *dir)
{
	char path[FILE_NAME];

	session_file(path, dir);
	MT_SYS3(SYS_unlinkat, AT_FDCWD, path, 0);
	MT_SYS3(SYS_unlinkat, AT_FDCWD, dir, AT_REMOVEDIR);
	mt_sys_unmap(s, SESSION_BYTES);
}

/* Never over something but, where a file system has no such flag, over an empty directory that was not there a moment ago. */
static long rename_new(const char *from, const char *to)
{
	long ret = MT_SYS6(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE, 0);

	if (ret == -EINVAL || ret == -ENOSYS)
		ret = MT_SYS4(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
	return ret == -ENOTEMPTY ? -EEXIST : ret;
}

/* OUTPUT, OUTPUT.2 ...: the first that is of this job or free. */
static struct mt_session *begin(void)
{
	static char made[PATH_MAX];
	char *path = mt_process.session_path, *end = path + sizeof(mt_process.session_path);
	char *stem = mt_put(path, end, mt_config.output);
	struct mt_job job = own_job();
	struct mt_session *s = NULL, *mine = NULL;
	long ret = 0;
	int own;

	for (uint64_t n = 1; !s && n < MAX_NAMES && (!ret || ret == -EEXIST); ) {
		if (n > 1)
			mt_put_number(mt_put(stem, end, "."), end, n);
		if (type_of(path, &own)) {
			s = join_job(path, &job);
			n += !s;
		} else if (!mine && !(mine = make(made, sizeof(made), &job))) {
			break;
		} else if ((ret = rename_new(made, path)) == 0) {
			s = mine;
		}
	}
	if (mine && s != mine)
		unmake(mine, made);
	mt_say(!s ? "cannot make a trace directory: " : s == mine ? "recording to " : "recording, as others of this job, to ", path);
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
