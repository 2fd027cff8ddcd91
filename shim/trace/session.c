#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "format/settings.h"
#include "format/number.h"
#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/environ.h"
#include "shim/base/file.h"
#include "shim/base/libc.h"
#include "shim/base/lines.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/trace/session.h"
#include "shim/trace/unseen.h"

#define SESSION_BYTES 4096
#define MAX_NAMES     100000
#define LEADERLESS_NS 10000000000ull /* a group's number can't come again so soon */

/* Numbers from linux/magic.h and the file systems' own headers; names as in /proc/mounts. */
enum {
	/* a store to a mapped, reserved page may still fail (copy on write), or mapped files are slow or unsafe
	 * (network) */
	UNSUITED = 1,
	MAPPED = 2, /* what one makes may be another user's: of the mount, or of another machine */
};

static const struct {
	uint32_t magic;
	const char *name;
	int traits;
} systems[] = {
	{ 0x6969, "nfs", UNSUITED | MAPPED },      { 0x0BD00BD0, "lustre", UNSUITED | MAPPED },
	{ 0x65735546, "fuse", UNSUITED | MAPPED }, { 0x01021997, "9p", UNSUITED | MAPPED },
	{ 0xFF534D42, "cifs", UNSUITED | MAPPED }, { 0xFE534D42, "smb", UNSUITED | MAPPED },
	{ 0x00C36400, "ceph", UNSUITED | MAPPED }, { 0x47504653, "gpfs", UNSUITED | MAPPED },
	{ 0x9123683E, "btrfs", UNSUITED },         { 0x2FC12FC1, "zfs", UNSUITED },
	{ 0xCA451A4E, "bcachefs", UNSUITED },      { 0x4D44, "vfat", MAPPED },
	{ 0x2011BAB0, "exfat", MAPPED },           { 0x5346544E, "ntfs", MAPPED },
	{ 0x7366746E, "ntfs3", MAPPED },
};

/* Where statfs may not be called: the type of what is mounted closest above. */
static void mounted_at(const char *path, char *type, size_t size)
{
	static char buffer[1024], line[1024];
	struct mt_lines lines = mt_lines_open("/proc/self/mounts", buffer, sizeof(buffer));
	size_t best = 0;

	for (*type = 0; mt_lines_next(&lines, line, sizeof(line));) {
		char *place = strchr(line, ' '), *what = place ? strchr(place + 1, ' ') : NULL;
		size_t n = what ? (size_t)(what - ++place) : 0;
		if (n < best || !n || strncmp(place, path, n) || (n > 1 && path[n] && path[n] != '/'))
			continue;
		best = n;
		what[1 + strcspn(what + 1, " ")] = 0;
		mt_put(type, type + size, what + 1);
	}
	mt_lines_close(&lines);
}

static int traits_of(const char *path)
{
	char type[32] = "";
	struct statfs fs = { .f_type = 0 };

	if (mt_sys_quiet())
		mounted_at(path, type, sizeof(type));
	else if (mt_sys_failed(MT_SYS2(SYS_statfs, path, &fs)))
		return 0;
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		if ((uint32_t)fs.f_type == systems[i].magic || !strncmp(type, systems[i].name, strlen(systems[i].name)))
			return systems[i].traits;
	return 0;
}

/* ---- the directory of raw files ---- */

/* A directory that can be written to. Of shared memory nothing is taken: it belongs to DataLoader, and is 64 MiB in
 * containers. */
static int is_place(const char *path)
{
	struct stat st;

	return *path && strncmp(path, "/dev/shm", 8) != 0 &&
	       !mt_sys_failed(MT_SYS4(SYS_newfstatat, AT_FDCWD, path, &st, 0)) && S_ISDIR(st.st_mode) &&
	       !mt_sys_failed(MT_SYS3(SYS_faccessat, AT_FDCWD, path, W_OK | X_OK));
}

/* Where raw files of a session in `dir` go; "" = there. */
static const char *choose_place(const char *dir)
{
	const char *tmp = mt_environ_get("TMPDIR");

	if (is_place(mt_config.ring_dir))
		return mt_config.ring_dir;
	if (!(traits_of(dir) & UNSUITED))
		return "";
	return tmp && *tmp == '/' && is_place(tmp) && !(traits_of(tmp) & UNSUITED) ? tmp
	       : is_place("/tmp")                                                  ? "/tmp"
										   : "";
}

static int look_at_directory(const char *path, struct stat *st)
{
	if (mt_sys_quiet())
		return mt_quiet_stat(path, O_DIRECTORY | O_NOFOLLOW, st);
	return !mt_sys_failed(MT_SYS4(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW));
}

/* Others may be able to write to the directory that it is in, but not to itself. */
static int is_private(const char *path)
{
	struct stat st;

	return look_at_directory(path, &st) && S_ISDIR(st.st_mode) && !(st.st_mode & 022) &&
	       mt_file_is_owner(st.st_uid);
}

static long make_directory(const char *path)
{
	return MT_SYS3(SYS_mkdirat, AT_FDCWD, path, 0700);
}

static void remove_directory(const char *path)
{
	if (*path)
		MT_SYS3(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

/* A new one there, which only this session has; "" if that is impossible. */
static void make_ring_dir(char *dir, size_t size, const char *place)
{
	char *end = dir + size, *stem = mt_put(mt_put(dir, end, place), end, "/memtrace-"), *at;
	long ret = -EEXIST;

	for (int tries = 0; ret == -EEXIST && tries < 100; tries++) {
		at = mt_put(mt_put_number(stem, end, mt_quiet_pid()), end, "-");
		at = mt_put_number(at, end, mt_ticks());
		ret = at + 1 < end ? make_directory(dir) : -ENAMETOOLONG;
	}
	if (!ret && is_private(dir))
		return;
	if (!ret)
		remove_directory(dir);
	*dir = 0;
}

/* Whether it is one that make_ring_dir() makes at that place. */
static int is_ring_dir_at(const char *dir, const char *place)
{
	size_t n = strlen(place);

	return n ? !strncmp(dir, place, n) && mt_base_name(dir) == dir + n + 1 : !*dir;
}

/* What was asked for and can't be had. */
static void complain_of_ring_dir(const struct mt_session *s)
{
	if (mt_config.ring_dir[0] && !is_ring_dir_at(s->ring_dir, mt_config.ring_dir))
		mt_tell((const char *[]){ mt_settings[MT_SET_RING_DIR].name, ": '", mt_config.ring_dir,
					  "' is no directory that can be written to; the rings are in ",
					  *s->ring_dir ? s->ring_dir : "the trace", " now", NULL });
}

/* The id has 36 characters; 0 if it can't be read. */
static int read_boot_id(char id[64])
{
	if (mt_sys_read_file("/proc/sys/kernel/random/boot_id", id, 64) < 36)
		return 0;
	id[36] = 0;
	return 1;
}

/* As the recorder reads it, which may come when a short process is over. */
static uint64_t machine_memory(void)
{
	char buffer[256], line[64];
	struct mt_lines lines = mt_lines_open("/proc/meminfo", buffer, sizeof(buffer));
	const char *kib = mt_lines_next(&lines, line, sizeof(line)) ? mt_lines_value(line, "MemTotal:") : NULL;

	mt_lines_close(&lines);
	return kib ? mt_number(kib, NULL, 10) << 10 : 0;
}

/* In a session's flags, above those of enum mt_session_flag: the rank of who made it, plus 1. */
#define RANK_SHIFT 8
#define MAX_RANK   0xfffffeu

/* Plus 1; 0 = none is known. */
static uint32_t own_rank(void)
{
	for (const char *const *name = mt_rank_variables; *name; name++) {
		const char *value = mt_environ_get(*name);
		uint64_t rank;
		if (value && *value)
			return mt_read_count(value, &rank) || rank > MAX_RANK ? 0 : (uint32_t)rank + 1;
	}
	return 0;
}

static void fill(struct mt_session *s, const char *dir, uint32_t flags)
{
	const char *place;
	char id[64];
	int reaper = 0;
	uint32_t rank = own_rank();

	mt_clock_choose();
	s->version = MT_VERSION;
	s->flags = flags | (rank ? rank : 1) << RANK_SHIFT;
	s->bytes = sizeof(*s);
	s->clock = mt_clock;
	s->page_bytes = (uint32_t)mt_libc()->getauxval(AT_PAGESZ);
	s->memory_bytes = machine_memory();
	s->limit_bytes = mt_config.limit_bytes;
	s->keep_free_bytes = mt_config.keep_free_bytes;
	s->start_real_ns = mt_clock_ns(CLOCK_REALTIME);
	s->start_mono_ns = mt_clock_ns(CLOCK_MONOTONIC);
	s->start_ticks = mt_ticks();
	if (read_boot_id(id))
		mt_put(s->boot_id, s->boot_id + sizeof(s->boot_id), id);
	mt_quiet_host(s->host, sizeof(s->host));
	MT_SYS2(SYS_prctl, PR_GET_CHILD_SUBREAPER, &reaper);
	if (reaper || mt_quiet_pid() == 1)
		s->flags |= MT_SESSION_NO_RECORDER;
	place = choose_place(dir);
	if (*place)
		make_ring_dir(s->ring_dir, sizeof(s->ring_dir), place);
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
	return mt_file_map(path, 0, SESSION_BYTES, SESSION_BYTES, how);
}

static int is_session(const struct mt_session *s)
{
	return s && !memcmp(s->magic, MT_SESSION_MAGIC, 8) && s->version == MT_VERSION;
}

/* With %r in MEMTRACE_OUTPUT each rank has a trace of its own: a launcher, who has none and is 0 there, starts them. */
static int is_of_other_rank(const struct mt_session *s)
{
	const char *output = mt_environ_get("MEMTRACE_OUTPUT");
	uint32_t rank = own_rank();

	return rank && s->flags >> RANK_SHIFT && s->flags >> RANK_SHIFT != rank && output && strstr(output, "%r") &&
	       !mt_sys_quiet();
}

/* Maps the session of MEMTRACE_SESSION. A directory that has no session file yet was made by `memtrace run`, which
 * also sees to the recorder. */
static struct mt_session *join(void)
{
	struct mt_session *s;
	struct stat st;

	mt_put(mt_process.session_path, mt_process.session_path + sizeof(mt_process.session_path), mt_config.session);
	if (traits_of(mt_config.session) & MAPPED &&
	    !mt_sys_failed(MT_SYS4(SYS_newfstatat, AT_FDCWD, mt_config.session, &st, 0)))
		mt_file_owner = st.st_uid;
	s = map_session(mt_config.session, MT_OPEN);
	if (is_session(s) && is_of_other_rank(s)) {
		mt_sys_unmap(s, SESSION_BYTES);
		mt_file_owner = 0;
		return NULL;
	}
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
	mt_put_number(text, end, mt_quiet_pid());
	return !strcmp(own, text);
}

static struct mt_job own_job(void)
{
	struct mt_job job = { .pid_ns = mt_quiet_namespace(),
			      .group = (uint32_t)MT_SYS1(SYS_getpgid, 0),
			      .session = (uint32_t)MT_SYS1(SYS_getsid, 0) };

	if (proc_is_ours())
		job.leader_start = mt_process_boot_start(job.group ? job.group : 1);
	return job;
}

/* A group keeps its number as long as anybody is in it, but without its leader nothing tells for how long. */
static int same_job(const struct mt_session *s, const struct mt_job *job)
{
	char id[64];

	if (!job->pid_ns || s->job.pid_ns != job->pid_ns || s->job.group != job->group ||
	    s->job.session != job->session)
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
	       is_ring_dir_at(s->ring_dir, choose_place(dir));
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

	at = mt_put_number(mt_put(at - strlen(mt_base_name(dir)), end, ".memtrace-"), end, mt_quiet_pid());
	mt_put_number(mt_put(at, end, "-"), end, mt_ticks());
	if (mt_output_make(dir, size) != 0)
		return NULL;
	if ((s = map_session(dir, MT_CREATE)) != NULL) {
		s->job = *job;
		fill(s, dir, 0);
	} else {
		remove_directory(dir);
	}
	return s;
}

static void unmake(struct mt_session *s, const char *dir)
{
	char path[FILE_NAME];

	remove_directory(s->ring_dir);
	session_file(path, dir);
	MT_SYS3(SYS_unlinkat, AT_FDCWD, path, 0);
	remove_directory(dir);
	mt_sys_unmap(s, SESSION_BYTES);
}

/* Never over something but, where a file system has no such flag, over an empty directory that was not there a moment
 * ago. */
static long rename_new(const char *from, const char *to)
{
	long ret = MT_SYS6(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1 /* RENAME_NOREPLACE */, 0);

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

	for (uint64_t n = 1; !s && n < MAX_NAMES && (!ret || ret == -EEXIST);) {
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
	if (s && s == mine) {
		mt_config_complain();
		complain_of_ring_dir(s);
	}
	mt_say(!s          ? "cannot make a trace directory: "
	       : s == mine ? "recording to "
			   : "recording, as others of this job, to ",
	       path);
	return s;
}

/* The recorder removes it when nobody is left. Somebody else's in its place is no better than none. */
int mt_session_make_ring_dir(void)
{
	const char *dir = mt_process.session->ring_dir;

	return *dir && make_directory(dir) == 0 && is_private(dir);
}

/* It is ours still, or again. */
static int has_ring_dir(struct mt_session *s)
{
	if (!s->ring_dir[0] || is_private(s->ring_dir) || mt_session_make_ring_dir())
		return 1;
	mt_unseen_count(0, MT_LOSS_RIGHTS, NULL);
	mt_say("somebody else's directory, or none can be made: ", s->ring_dir);
	return 0;
}

int mt_session_open(void)
{
	struct mt_session *s = mt_config.session[0] ? join() : NULL;

	if (!s && mt_sys_quiet())
		mt_say("not recorded: a system call filter leaves no way to make a trace directory", "");
	if (!s && (mt_sys_quiet() || !(s = begin())))
		return 0;
	mt_process.session = s;
	mt_put(mt_process.directory, mt_process.directory + sizeof(mt_process.directory),
	       s->ring_dir[0] ? s->ring_dir : mt_process.session_path);
	return has_ring_dir(s);
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
	return mt_quiet_exists(path);
}
