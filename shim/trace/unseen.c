#include "shim/base/elfsearch.h"
#include "shim/base/state.h"
#include "shim/trace/unseen.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/output_name.h"
#include "shim/base/elfsym.h"
#include "shim/base/libc.h"
#include "shim/base/quiet.h"
#include "shim/hooks/hooks.h"

#define HEAD      1024 /* bytes of a file that say what it is */
#define MAX_NOTES (sizeof(((struct mt_session *)0)->unseen) / sizeof(struct mt_unseen))

/* ---- counting ---- */

static void note(struct mt_unseen *n, uint32_t why, const char *path)
{
	size_t bytes = strlen(path), room = sizeof(n->path) - 1;

	memset(n->path, 0, sizeof(n->path));
	memcpy(n->path, bytes > room ? path + bytes - room : path, bytes > room ? room : bytes);
	/* release: who reads the reason finds the rest complete */
	__atomic_store_n(&n->why, why, __ATOMIC_RELEASE);
}

unsigned mt_unseen_count(uint32_t pid, uint32_t why, const char *path)
{
	struct mt_session *s = mt_process.session;

	why = why ? why : MT_LOSS_FILES;
	mt_count(&s->unrecorded, 1);
	__atomic_fetch_or(&s->unrecorded_why, why, __ATOMIC_RELAXED);
	for (unsigned i = 0; path && i < MAX_NOTES; i++) {
		uint32_t none = 0;
		if (__atomic_compare_exchange_n(&s->unseen[i].pid, &none, pid, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			note(&s->unseen[i], why, path);
			return i + 1;
		}
	}
	return 0;
}

/* The reason stays where others may have it as well. */
void mt_unseen_withdraw(unsigned number, uint32_t why)
{
	struct mt_session *s = mt_process.session;

	if (__atomic_sub_fetch(&s->unrecorded, 1, __ATOMIC_RELAXED) == 0)
		__atomic_fetch_and(&s->unrecorded_why, ~why, __ATOMIC_RELAXED);
	if (number) {
		__atomic_store_n(&s->unseen[number - 1].why, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&s->unseen[number - 1].pid, 0, __ATOMIC_RELEASE);
	}
}

/* ---- what comes next ---- */

static const char *variable(char *const envp[], const char *name)
{
	size_t n = strlen(name);

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static int names_us(const char *preload)
{
	return preload && strstr(preload, "memtrace");
}

static uint8_t preloaded; /* by LD_PRELOAD: else a child may find us in another way */

/* An empty list is somebody's wish. */
static int loses_us(char *const envp[])
{
	const char *preload = variable(envp, "LD_PRELOAD");

	return preloaded && !names_us(preload) && !(preload && !*preload);
}

static long open_program(const char *path, struct stat *st)
{
	long fd = MT_SYS3(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (mt_sys_failed(fd) || (mt_quiet_fstat((int)fd, st) && S_ISREG(st->st_mode)))
		return fd;
	MT_SYS1(SYS_close, fd);
	return -EACCES;
}

/* The first in PATH that there is. */
static long open_searched(const char *file, struct stat *st)
{
	static const char usual[] = "/bin:/usr/bin";
	const char *at = variable(environ, "PATH");
	char path[PATH_MAX], *end = path + sizeof(path);

	for (at = at ? at : usual; *at;) {
		size_t n = strcspn(at, ":");
		if (n && n < sizeof(path) - NAME_MAX - 2) {
			memcpy(path, at, n);
			path[n] = 0;
			mt_put(mt_put(path + n, end, "/"), end, file);
			long fd = open_program(path, st);
			if (!mt_sys_failed(fd))
				return fd;
		}
		at += n + (at[n] == ':');
	}
	return -ENOENT;
}

/* In secure mode the loader takes no library from LD_PRELOAD. */
static int gains_rights(long fd, const struct stat *st)
{
	uid_t uid = (uid_t)MT_SYS0(SYS_getuid), becomes = (uid_t)MT_SYS0(SYS_geteuid);
	gid_t gid = (gid_t)MT_SYS0(SYS_getgid), becomes_group = (gid_t)MT_SYS0(SYS_getegid);

	if (st->st_mode & S_ISUID)
		becomes = st->st_uid;
	if ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		becomes_group = st->st_gid;
	return becomes != uid || becomes_group != gid ||
	       (uid && MT_SYS4(SYS_fgetxattr, fd, "security.capability", NULL, 0) > 0);
}

static int is_named(const char *path, const char *prefix)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, prefix, strlen(prefix));
}

/* Programs of 32 bits can't load us either. The loader itself, started as a program, does; of memtrace's own nothing is
 * recorded anyhow. */
static int loads_nothing(const ElfW(Ehdr) * head, const char *bytes, size_t n, const char *path)
{
	ElfW(Phdr) ph;

	if (is_named(path, "ld-") || is_named(path, "ld.so") || is_named(path, "memtrace"))
		return 0;
	if (head->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
		return 1;
	if (head->e_phentsize != sizeof(ph) || head->e_phoff > n || head->e_phnum > (n - head->e_phoff) / sizeof(ph))
		return 0;
	for (unsigned i = 0; i < head->e_phnum; i++) {
		memcpy(&ph, bytes + head->e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_INTERP)
			return 0;
	}
	return 1;
}

/* What a script names behind "#!", in place; NULL = it is no script. */
static char *interpreter(char *text)
{
	if (text[0] != '#' || text[1] != '!')
		return NULL;
	text += 2 + strspn(text + 2, " \t");
	text[strcspn(text, " \t\n")] = 0;
	return *text == '/' ? text : NULL;
}

static uint32_t judge(const char *path, int searched, int depth)
{
	struct stat st;
	char bytes[HEAD + 1], *script;
	ElfW(Ehdr) head;
	long fd = searched && !strchr(path, '/') ? open_searched(path, &st) : open_program(path, &st);
	long n = mt_sys_failed(fd) ? fd : MT_SYS3(SYS_read, fd, bytes, HEAD);
	uint32_t why = 0;

	if (mt_sys_failed(n) || n < 4)
		goto done;
	bytes[n] = 0;
	if ((script = interpreter(bytes)) != NULL) {
		MT_SYS1(SYS_close, fd);
		return depth ? 0 : judge(script, 0, 1);
	}
	memcpy(&head, bytes, sizeof(head));
	if ((size_t)n < sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		goto done;
	if (loads_nothing(&head, bytes, (size_t)n, path))
		why = MT_LOSS_STATIC;
	else if (gains_rights(fd, &st))
		why = MT_LOSS_SECURE;
done:
	if (!mt_sys_failed(fd))
		MT_SYS1(SYS_close, fd);
	return why;
}

uint32_t mt_unseen_next(const char *file, int searched, char *const envp[])
{
	uint32_t why = file ? judge(file, searched, 0) : 0;

	return !why && file && loses_us(envp) ? MT_LOSS_ENVIRONMENT : why;
}

/* ---- this image ---- */

void mt_unseen_begins(void)
{
	struct mt_session *s = mt_process.session;

	preloaded = names_us(variable(environ, "LD_PRELOAD")) != 0;
	for (unsigned i = 0; i < MAX_NOTES; i++)
		if (__atomic_load_n(&s->unseen[i].pid, __ATOMIC_RELAXED) == mt_process.pid)
			mt_unseen_withdraw(i + 1, s->unseen[i].why);
}

struct owner {
	const void *function;
	const char *path; /* "" = the program itself */
};

static int find_owner(struct dl_phdr_info *info, size_t size, void *of)
{
	struct owner *o = of;

	(void)size;
	if (!mt_symbols_segment(info, o->function))
		return 0;
	o->path = info->dlpi_name;
	return 1;
}

/* A program that has a malloc of its own is another matter: it is meant so, and the report names it. */
void mt_unseen_boot(void)
{
	struct owner first = { mt_symbols_search(MT_BEFORE, NULL, "malloc", NULL), NULL };

	if (!first.function)
		return;
	mt_libc()->dl_iterate_phdr(find_owner, &first);
	if (!first.path || !*first.path)
		return;
	if (is_named(first.path, "libc.")) /* libc before us: we are a plug-in */
		mt_unseen_count(mt_process.pid, MT_LOSS_LATE, "libmemtrace.so");
	else
		mt_unseen_count(mt_process.pid, MT_LOSS_BEHIND, first.path);
}
