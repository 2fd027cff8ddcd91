#include "analyzer/recorder/preload_check.h"
#include "analyzer/util/error.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

static int no(const char *path, const char *why)
{
	return error_set(MT_ERUN, path, ERROR_NO_OFFSET, "%s", why);
}

/* Fails as a shell does: 127 where there is no such file, 126 where it may not be run. */
static int find(const char *command, char *path, size_t size)
{
	const char *dirs = getenv("PATH");

	if (strchr(command, '/')) {
		struct stat st;
		snprintf(path, size, "%s", command);
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			return error_set(MT_EDENIED, command, ERROR_NO_OFFSET, "is a directory");
		if (!access(path, X_OK))
			return 0;
		return error_errno(errno == ENOENT || errno == ENOTDIR ? MT_ENOPROGRAM : MT_EDENIED, command,
				   ERROR_NO_OFFSET);
	}
	for (dirs = dirs ? dirs : "/usr/bin:/bin"; *dirs; dirs += strcspn(dirs, ":"), dirs += *dirs == ':') {
		struct stat st;
		snprintf(path, size, "%.*s/%s", (int)strcspn(dirs, ":"), dirs, command);
		if (access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
			return 0;
	}
	return error_set(MT_ENOPROGRAM, command, ERROR_NO_OFFSET, "no such command");
}

static int check_elf(const char *path, int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr ph;

	if (head->e_ident[EI_CLASS] != ELFCLASS64 || (OWN_MACHINE != EM_NONE && head->e_machine != OWN_MACHINE))
		return no(path, "is for another kind of machine than libmemtrace.so: the loader would not preload it");
	for (int i = 0; i < head->e_phnum; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(head->e_phoff + (size_t)i * head->e_phentsize)) != sizeof(ph))
			break;
		if (ph.p_type == PT_INTERP)
			return 0;
	}
	return no(path, "is statically linked: LD_PRELOAD has no effect on it");
}

/* The kernel sets AT_SECURE where the program gets other ids or more rights than who starts it. */
static int is_privileged(const char *path, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return 0;
	return ((st.st_mode & S_ISUID) && st.st_uid != getuid()) || ((st.st_mode & S_ISGID) && st.st_gid != getgid()) ||
	       (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

static int check_file(const char *path, int depth)
{
	union {
		Elf64_Ehdr elf;
		char text[256];
	} head = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC), e = 0;
	ssize_t n;

	if (fd < 0) /* executable but not readable: let it run */
		return 0;
	n = read(fd, head.text, sizeof(head.text) - 1);
	if (is_privileged(path, fd)) {
		e = no(path, "is setuid, setgid or has capabilities: the loader would ignore LD_PRELOAD");
	} else if (n > (ssize_t)sizeof(head.elf) && !memcmp(head.text, ELFMAG, SELFMAG)) {
		e = check_elf(path, fd, &head.elf);
	} else if (n > 2 && !memcmp(head.text, "#!", 2) && depth < 4) {
		char *interpreter = head.text + 2 + strspn(head.text + 2, " \t");
		interpreter[strcspn(interpreter, " \t\r\n")] = 0;
		e = check_file(interpreter, depth + 1);
	}
	close(fd);
	return e;
}

int preloadable(const char *command)
{
	char path[PATH_MAX];
	int e = find(command, path, sizeof(path));

	return e ? e : check_file(path, 0);
}
