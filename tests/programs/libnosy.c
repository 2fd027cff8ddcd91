/* A library before the shim that defines what the shim may ask for, and says so when it is asked by it. */
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

extern struct r_debug _r_debug;

static int ends_with_shim(const char *name)
{
	static const char shim[] = "/libmemtrace.so";
	int n = 0, m = sizeof(shim) - 1;

	while (name[n])
		n++;
	for (int i = 1; i <= m; i++)
		if (i > n || name[n - i] != shim[m - i])
			return 0;
	return 1;
}

static void tell(const char *name, const void *caller)
{
	for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
		const ElfW(Ehdr) *head = (const void *)m->l_addr;
		const ElfW(Phdr) *ph = (const void *)(m->l_addr + (ends_with_shim(m->l_name) ? head->e_phoff : 0));
		for (int i = 0; ends_with_shim(m->l_name) && i < head->e_phnum; i++)
			if (ph[i].p_type == PT_LOAD && (ElfW(Addr))caller - m->l_addr - ph[i].p_vaddr < ph[i].p_memsz) {
				int n = 0;
				while (name[n])
					n++;
				syscall(SYS_write, 2, name, n);
				syscall(SYS_write, 2, " is asked\n", 10);
			}
	}
}

#define NOSY(type, name, params, args) \
	type name params; \
	type name params \
	{ \
		static type(*next) params; \
		tell(#name, __builtin_return_address(0)); \
		if (!next) \
			next = (type(*) params)(size_t)dlsym(RTLD_NEXT, #name); \
		return next args; \
	}

typedef int visitor(struct dl_phdr_info *, size_t, void *);

NOSY(int, dl_iterate_phdr, (visitor * visit, void *data), (visit, data))
NOSY(int, dladdr, (const void *p, Dl_info *info), (p, info))
NOSY(void *, dlopen, (const char *path, int flags), (path, flags))
NOSY(char *, dlerror, (void), ())
NOSY(int, clock_gettime, (clockid_t id, struct timespec *now), (id, now))
NOSY(int, fstat, (int fd, struct stat *st), (fd, st))
NOSY(int, stat, (const char *path, struct stat *st), (path, st))
NOSY(int, access, (const char *path, int mode), (path, mode))
NOSY(int, mkdir, (const char *path, mode_t mode), (path, mode))
NOSY(int, uname, (struct utsname * names), (names))
NOSY(char *, realpath, (const char *path, char *to), (path, to))
NOSY(char *, getcwd, (char *to, size_t n), (to, n))
NOSY(char *, getenv, (const char *name), (name))
NOSY(long, sysconf, (int name), (name))
NOSY(unsigned long, getauxval, (unsigned long type), (type))
NOSY(int, on_exit, (void (*end)(int, void *), void *arg), (end, arg))
NOSY(int, __register_atfork, (void (*a)(void), void (*b)(void), void (*c)(void), void *dso), (a, b, c, dso))

/* These are asked while others are looked up. */
size_t strlen(const char *s)
{
	size_t n = 0;

	tell("strlen", __builtin_return_address(0));
	while (s[n])
		n++;
	return n;
}

int strcmp(const char *s, const char *t)
{
	tell("strcmp", __builtin_return_address(0));
	while (*s && *s == *t) {
		s++;
		t++;
	}
	return (unsigned char)*s - (unsigned char)*t;
}
