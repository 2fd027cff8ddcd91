#include "analyzer/attach/attach.h"
#include "analyzer/attach/inject.h"
#include "analyzer/util/error.h"
#include "format/attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libmemtrace.so"
#define TRIES   10

static int failed(const struct target *t, const char *why)
{
	char name[32];
	snprintf(name, sizeof(name), "%d", (int)t->pid);
	return error_set(MT_EATTACH, name, ERROR_NO_OFFSET, "%s", why);
}

bool attach_is_loaded(pid_t pid)
{
	char path[40], *line = NULL;
	size_t size = 0;
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && !found && getline(&line, &size, f) > 0)
		found = strstr(line, "/" LIBRARY) != NULL;
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* ---- the library where the target finds it ---- */

static bool copy(const char *from, const char *to, const struct target *t)
{
	char temporary[PATH_MAX + 96], buffer[65536];
	ssize_t n = -1;
	snprintf(temporary, sizeof(temporary), "%s.%d", to, (int)getpid());
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
	while (in >= 0 && out >= 0 && (n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)n) != n)
			break;
	bool ok = n == 0 && fchmod(out, 0755) == 0;
	(void)t;
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	ok = ok && rename(temporary, to) == 0;
	if (!ok && out >= 0)
		unlink(temporary);
	return ok;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* In its root, where libraries may be loaded from; it stays, for its children. */
static int place_library(const struct target *t, const char *library, char *path, size_t size)
{
	static const char *const places[] = { "/tmp", "/var/tmp", "/run", "/dev/shm" };
	char outside[PATH_MAX + 64];
	struct statvfs fs;
	snprintf(outside, sizeof(outside), "/proc/%d/root%s", (int)t->pid, library);
	snprintf(path, size, "%s", library);
	if (!t->other_root || same_file(outside, library))
		return 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(outside, sizeof(outside), "/proc/%d/root%s", (int)t->pid, places[i]);
		if (statvfs(outside, &fs) || fs.f_flag & ST_NOEXEC)
			continue;
		snprintf(path, size, "%s/memtrace-%u", places[i], geteuid());
		snprintf(outside, sizeof(outside), "/proc/%d/root%s", (int)t->pid, path);
		struct stat st;
		if (mkdir(outside, 0755) && errno != EEXIST)
			continue;
		if (lstat(outside, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
			continue;
		snprintf(path, size, "%s/memtrace-%u/" LIBRARY, places[i], geteuid());
		snprintf(outside, sizeof(outside), "/proc/%d/root%s", (int)t->pid, path);
		if (copy(library, outside, t))
			return 0;
	}
	return failed(t, target_has_ended(t) ? "has ended"
					     : "has another root directory, in which libmemtrace.so can't be placed");
}

/* ---- where the trace goes ---- */

static bool may_write(const struct target *t, const char *dir)
{
	int status = 1;
	pid_t child = fork();
	if (child == 0) {
		if (geteuid() == 0 && (setgroups(0, NULL) || setgid(t->gid) || setuid(t->uid)))
			_exit(1);
		_exit(access(dir, W_OK | X_OK) != 0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* `output`, or here, or in the program's directory, or in /tmp. In another root it is another path. */
static void choose_output(const struct target *t, const char *output, char *to, size_t size)
{
	char name[128], dir[PATH_MAX - 160], proc[64];
	snprintf(name, sizeof(name), "memtrace-%.64s-%d", t->program, (int)t->pid);
	for (char *c = name; *c; c++)
		if (*c == '/' || *c == '%')
			*c = '_';
	snprintf(proc, sizeof(proc), "/proc/%d/cwd", (int)t->pid);
	ssize_t n = readlink(proc, dir, sizeof(dir) - 1);
	dir[n < 0 ? 0 : n] = '\0';
	if (output)
		snprintf(to, size, "%s", output);
	else if (!t->other_root && getcwd(to, size) && may_write(t, to))
		snprintf(to + strlen(to), size - strlen(to), "%s%s", strcmp(to, "/") ? "/" : "", name);
	else if (!t->other_root && *dir == '/' && may_write(t, dir))
		snprintf(to, size, "%s%s%s", dir, strcmp(dir, "/") ? "/" : "", name);
	else
		snprintf(to, size, "/tmp/%s", name);
}

static bool add(struct mt_attach *a, size_t *at, const char *text)
{
	size_t n = strlen(text) + 1;
	if (*at + n + 1 > sizeof(a->settings))
		return false;
	memcpy(a->settings + *at, text, n);
	*at += n;
	a->settings[*at] = '\0';
	return true;
}

static bool make_settings(const struct target *t, struct mt_attach *a, const char *output, const char *settings)
{
	char text[ATTACH_PATH + 32], dir[ATTACH_PATH];
	size_t at = 0;
	choose_output(t, output, dir, sizeof(dir));
	snprintf(text, sizeof(text), "MEMTRACE_OUTPUT=%s", dir);
	bool ok = add(a, &at, text);
	for (const char *s = settings; s && *s; s += strlen(s) + 1)
		ok = ok && add(a, &at, s);
	return ok;
}

/* ---- the steps ---- */

/* glibc has dlopen in libc since 2.34; before, libdl or what libc uses itself. */
static uint64_t find_dlopen(const struct target *t, uint64_t *flags)
{
	struct target_module dl;
	uint64_t at = target_function(&t->libc, "dlopen");
	*flags = RTLD_NOW | RTLD_GLOBAL;
	if (!at && target_module(t, &dl, "libdl", ".so")) {
		at = target_function(&dl, "dlopen");
		target_module_free(&dl);
	}
	if (!at) {
		at = target_function(&t->libc, "__libc_dlopen_mode");
		*flags |= 0x80000000u;
	}
	return at;
}

static int load(struct target *t, const char *library)
{
	char path[PATH_MAX], waits[PATH_MAX + 16];
	uint64_t flags, at = find_dlopen(t, &flags);
	if (!at)
		return failed(t, "has no dlopen");
	int e = place_library(t, library, path, sizeof(path));
	if (e)
		return e;
	const char *name = strrchr(path, '/');
	snprintf(waits, sizeof(waits), "%.*s" MT_ATTACH_WAITS "%s", (int)(name - path), path, name + 1);
	e = inject_call(t, at, waits, strlen(waits) + 1, flags, INJECT_WAITS_FOR_LOADER);
	if (!e)
		e = target_ranges(t);
	if (!e && !attach_is_loaded(t->pid))
		e = failed(t,
			   "its loader refused libmemtrace.so: its C library is older than the one that it was built "
			   "with, its memory is limited, or it may not read the file");
	return e;
}

static int call(struct target *t, struct mt_attach *a, enum mt_attach_step step)
{
	struct target_module m;
	uint64_t at = 0;
	for (int tries = 0; tries < TRIES && !at;
	     tries++) { /* the list is not of one moment where libraries come and go */
		if (tries && target_ranges(t))
			break;
		at = target_module(t, &m, LIBRARY, "") ? target_function(&m, MT_ATTACH_FUNCTION) : 0;
		target_module_free(&m);
	}
	if (!at)
		return failed(t, target_ranges(t) ? "has ended"
						  : "has libmemtrace.so of a version that can't be attached");
	a->bytes = sizeof(*a);
	a->step = step;
	a->result = MT_ATTACH_NONE;
	int e = inject_call(t, at, a, sizeof(*a), 0,
			    step == MT_ATTACH_FORKS ? INJECT_WAITS_FOR_FORK : INJECT_WAITS_FOR_NONE);
	if (e || a->result == MT_ATTACH_DONE || a->result == MT_ATTACH_READY)
		return e;
	return failed(t, a->result == MT_ATTACH_NO_TRACE ? "can't make a trace directory there: name another with -o"
			 : a->result == MT_ATTACH_OFF
				 ? "is not to be recorded (MEMTRACE_EXCLUDE, or it is memtrace itself)"
			 : a->result == MT_ATTACH_NOTHING ? "nothing in it calls what could be recorded"
							  : "the library did not answer");
}

int attach(pid_t pid, const char *library, const char *output, const char *settings, char *trace)
{
	static struct mt_attach a;
	struct target t;
	int e = target_open(&t, pid);
	memset(&a, 0, sizeof(a));
	if (!e && !make_settings(&t, &a, output, settings))
		e = failed(&t, "the settings are too long");
	if (!e && !attach_is_loaded(pid))
		e = load(&t, library);
	if (!e)
		e = call(&t, &a, MT_ATTACH_FORKS);
	if (!e)
		e = call(&t, &a, MT_ATTACH_HOOK);
	if (!e) {
		a.trace[sizeof(a.trace) - 1] = '\0';
		if (t.other_root)
			snprintf(trace, ATTACH_PATH, "/proc/%d/root%.4000s", (int)pid, a.trace);
		else
			snprintf(trace, ATTACH_PATH, "%s", a.trace);
		inject_settle(&t);
		e = call(&t, &a, MT_ATTACH_BEGIN);
	}
	target_close(&t);
	return e;
}
