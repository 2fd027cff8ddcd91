#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/output_name.h"
#include "shim/base/environ.h"
#include "shim/base/libc.h"
#include "shim/base/lines.h"
#include "shim/base/quiet.h"
#include "shim/base/sys.h"

#define VARIABLE "MEMTRACE_FILTERS" /* how many, and '+': all is harmless, or '-' */

static struct status {
	uint32_t pid, parent;
	uint32_t filters; /* 0 = none; before Linux 5.9, which does not say how many, the mode */
} own;

/* ---- what there is ---- */

/* Of the namespaces that the process is in, the innermost one's number is the last. */
static uint32_t last_number(const char *text)
{
	const char *tab = strrchr(text, '\t');

	return (uint32_t)mt_number(tab ? tab : text, NULL, 10);
}

/* Nonzero if the file could be read. `process`: "self" or a number. */
static int read_status(const char *process, struct status *s)
{
	char path[48], buffer[1024], line[128], *end = path + sizeof(path);
	struct mt_lines lines;
	const char *value;
	int any = 0;

	mt_put(mt_put(mt_put(path, end, "/proc/"), end, process), end, "/status");
	lines = mt_lines_open(path, buffer, sizeof(buffer));
	for (*s = (struct status){ 0 }; mt_lines_next(&lines, line, sizeof(line)); any = 1)
		if ((value = mt_lines_value(line, "PPid:")))
			s->parent = (uint32_t)mt_number(value, NULL, 10);
		else if ((value = mt_lines_value(line, "Pid:")) || (value = mt_lines_value(line, "NSpid:")))
			s->pid = last_number(value);
		else if ((value = mt_lines_value(line, "Seccomp:")) ||
			 (value = mt_lines_value(line, "Seccomp_filters:")))
			s->filters = (uint32_t)mt_number(value, NULL, 10);
	/* Seccomp: comes first, so the number of filters replaces the mode */
	mt_lines_close(&lines);
	return any;
}

static int has_as_many(uint32_t pid)
{
	struct status other;
	char number[16];

	mt_put_number(number, number + sizeof(number), pid);
	return read_status(number, &other) && other.filters == own.filters;
}

/* What the shim and its recorder ever call beyond MT_QUIET_USUAL. With these arguments none does anything. */
static const short calls[] = {
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_msync,
	SYS_madvise,
	SYS_rt_sigprocmask,
	SYS_rt_sigaction,
	SYS_sigaltstack,
	SYS_futex,
	SYS_getpid,
	SYS_gettid,
	SYS_tgkill,
	SYS_getppid,
	SYS_getpgid,
	SYS_getsid,
	SYS_geteuid,
	SYS_uname,
	SYS_prctl,
	SYS_prlimit64,
	SYS_clock_gettime,
	SYS_fallocate,
	SYS_ftruncate,
	SYS_pwrite64,
	SYS_statfs,
	SYS_newfstatat,
	SYS_fstat,
	SYS_faccessat,
	SYS_readlinkat,
	SYS_getcwd,
	SYS_mkdirat,
	SYS_unlinkat,
	SYS_renameat,
	SYS_renameat2,
	SYS_dup3,
	SYS_fcntl,
	SYS_chdir,
	SYS_execve,
	SYS_wait4,
	SYS_shmctl,
	SYS_ppoll,
	SYS_rt_sigpending,
	SYS_rt_sigtimedwait,
#ifdef SYS_mkdir
	SYS_mkdir,
	SYS_readlink,
	SYS_stat,
	SYS_lstat,
#endif
};

/* In a child without exit signal, of which nobody but us learns. It has memory of its own: a process that dumps core
 * may take all with it that share its memory. */
static int calls_are_harmless(void)
{
	int status = -1;
	long pid = mt_arch_syscall(SYS_clone, 0, 0, 0, 0, 0, 0);

	if (pid == 0) {
		struct rlimit none = { 0, 0 };
		mt_arch_syscall(SYS_prlimit64, 0, RLIMIT_CORE, (long)&none, 0, 0, 0);
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			mt_arch_syscall(calls[i], -1, -1, -1, -1, -1, -1);
		mt_arch_syscall(SYS_setsid, 0, 0, 0, 0, 0, 0);
		mt_arch_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	}
	if (pid < 0)
		return 0;
	while (mt_arch_syscall(SYS_wait4, pid, (long)&status, __WALL, 0, 0, 0) == -EINTR)
		;
	return status == 0;
}

/* What an ancestor has found: +1, -1; 0 = nothing about so many filters. */
static int inherited(void)
{
	const char *value = mt_environ_get(VARIABLE);
	const char *end;

	if (!value || mt_number(value, &end, 10) != own.filters)
		return 0;
	return *end == '+' ? 1 : *end == '-' ? -1 : 0;
}

void mt_quiet_meet(void)
{
	static uint8_t met;
	uint32_t usual = MT_QUIET_USUAL;
	int found = 1;

	if (met)
		return;
	met = 1;
	if (read_status("self", &own) && own.filters)
		found = inherited();
	if (!found)
		found = (has_as_many(own.parent) || has_as_many(1)) && calls_are_harmless() ? 1 : -1;
	if (found > 0)
		__atomic_compare_exchange_n(&mt_quiet, &usual, MT_QUIET_NOT, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void mt_quiet_export(void)
{
	char text[16], *end = text + sizeof(text);

	if (own.filters) {
		mt_put(mt_put_number(text, end, own.filters), end, mt_sys_quiet() ? "-" : "+");
		mt_environ_set(VARIABLE, text);
	}
}

void mt_quiet_whole(void)
{
	own.pid = mt_quiet_pid();
	__atomic_store_n(&mt_quiet, MT_QUIET_WHOLE, __ATOMIC_RELAXED);
}

void mt_quiet_forked(void)
{
	struct status now;

	if (mt_sys_quiet() == MT_QUIET_USUAL)
		own = read_status("self", &now) ? now : (struct status){ .filters = own.filters };
}

uint32_t mt_quiet_pid(void)
{
	return mt_sys_quiet() ? own.pid : (uint32_t)MT_SYS0(SYS_getpid);
}

uint32_t mt_quiet_parent(void)
{
	return own.parent;
}

/* ---- without the calls that would tell ---- */

/* /proc/thread-self/stat: the number, then the name in parentheses, which may hold some itself. */
static uint32_t thread_of_stat(char name[16])
{
	char text[128], *open, *close;
	size_t n;

	if (mt_sys_read_file("/proc/thread-self/stat", text, sizeof(text)) <= 0 || !(open = strchr(text, '(')) ||
	    !(close = strrchr(text, ')')) || close < open)
		return 0;
	n = (size_t)(close - open - 1);
	n = n < 15 ? n : 15;
	memcpy(name, open + 1, n);
	name[n] = 0;
	return (uint32_t)mt_number(text, NULL, 10);
}

uint32_t mt_quiet_thread(char name[16])
{
	name[0] = 0;
	if (mt_sys_quiet() == MT_QUIET_USUAL)
		return thread_of_stat(name);
	if (mt_sys_quiet() == MT_QUIET_WHOLE)
		return 0;
	MT_SYS2(SYS_prctl, PR_GET_NAME, name);
	return (uint32_t)MT_SYS0(SYS_gettid);
}

/* The file that is mapped where the kernel says that the program's headers are. */
static long program_of_maps(char *path, size_t size)
{
	static char buffer[1024], line[1024];
	unsigned long headers = mt_libc()->getauxval(AT_PHDR);
	struct mt_lines lines = mt_lines_open("/proc/self/maps", buffer, sizeof(buffer));
	long n = -ENOENT;

	while (n == -ENOENT && mt_lines_next(&lines, line, sizeof(line))) {
		const char *end;
		const uint64_t from = mt_number(line, &end, 16), to = *end == '-' ? mt_number(end + 1, NULL, 16) : 0;
		const char *file = strchr(line, '/');
		if (headers >= from && headers < to && file)
			n = mt_put(path, path + size, file) - path;
	}
	mt_lines_close(&lines);
	return n;
}

long mt_quiet_program(char *path, size_t size)
{
	long n = MT_SYS4(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, size);

	return n == -ENOSYS && mt_sys_quiet() == MT_QUIET_USUAL ? program_of_maps(path, size) : n;
}

int mt_quiet_exists(const char *path)
{
	long fd;

	if (!mt_sys_quiet())
		return !mt_sys_failed(MT_SYS4(SYS_faccessat, AT_FDCWD, path, F_OK, 0));
	fd = mt_sys_open(path, O_RDONLY | O_NONBLOCK);
	if (!mt_sys_failed(fd))
		MT_SYS1(SYS_close, fd);
	return fd != -ENOENT;
}

/* libc's own fstat is what the loader has used for each library: the number of the call differs by version. Those that
 * have no such function make the oldest. */
int mt_quiet_fstat(int fd, struct stat *st)
{
	int kept = errno, ok;

	if (mt_sys_quiet() == MT_QUIET_WHOLE)
		return 0;
	ok = mt_libc()->fstat ? mt_libc()->fstat(fd, st) == 0
			      : mt_arch_syscall(SYS_fstat, fd, (long)st, 0, 0, 0, 0) == 0;
	errno = kept;
	return ok;
}

int mt_quiet_stat(const char *path, int flags, struct stat *st)
{
	long fd = mt_sys_open(path, O_RDONLY | flags);
	int ok;

	if (mt_sys_failed(fd))
		return 0;
	ok = mt_quiet_fstat((int)fd, st);
	MT_SYS1(SYS_close, fd);
	return ok;
}

uint64_t mt_quiet_namespace(void)
{
	static const char path[] = "/proc/self/ns/pid";
	struct stat st;

	return mt_quiet_stat(path, 0, &st) ? st.st_ino : 0;
}

uint64_t mt_quiet_file_limit(void)
{
	char buffer[256], line[128];
	struct mt_lines lines;
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	const char *value = NULL;

	if (!mt_sys_quiet()) {
		MT_SYS4(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit);
		return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
	}
	lines = mt_lines_open("/proc/self/limits", buffer, sizeof(buffer));
	while (!value && mt_lines_next(&lines, line, sizeof(line)))
		value = mt_lines_value(line, "Max file size");
	mt_lines_close(&lines);
	return value && *value >= '0' && *value <= '9' ? mt_number(value, NULL, 10) : UINT64_MAX;
}

void mt_quiet_host(char *name, size_t size)
{
	struct utsname names;

	if (mt_sys_quiet()) {
		mt_sys_read_file("/proc/sys/kernel/hostname", name, size);
		name[strcspn(name, "\n")] = 0;
	} else if (uname(&names) == 0) {
		mt_put(name, name + size, names.nodename);
	}
}

int mt_quiet_clock_calls(void)
{
	static const char *const slow[] = { "hpet", "acpi_pm", "xen", "jiffies", "refined-jiffies" };
	char name[32];

	if (mt_sys_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof(name)) <=
	    0)
		return 0;
	name[strcspn(name, "\n")] = 0;
	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
		if (!strcmp(name, slow[i]))
			return 1;
	return 0;
}
