/*
 * What the shim and format/ call by name, hidden, so that the calls stay within the shim (libc.h). Of <string.h>
 * libc's own are found by no table: which one is taken depends on the processor. These are simple, since lengths here
 * are those of names, stacks and records.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shim/base/sys.h"

/* Macros in <string.h> since glibc 2.43: const in, const out. */
#undef strchr
#undef strpbrk
#undef strrchr
#undef strstr

/* gcc makes calls of memcpy and memset out of loops, these too. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

struct words {
	uint64_t a, b;
};

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	char *t = to;
	const char *f = from;
	struct words w;

	for (; n >= sizeof(w); n -= sizeof(w), t += sizeof(w), f += sizeof(w)) {
		__builtin_memcpy(&w, f, sizeof(w));
		__builtin_memcpy(t, &w, sizeof(w));
	}
	while (n--)
		*t++ = *f++;
	return to;
}

/* From the front what goes down, as memcpy does; else from the end. */
void *memmove(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;
	struct words w;

	if ((uintptr_t)t - (uintptr_t)f >= n)
		return memcpy(to, from, n);
	for (; n >= sizeof(w); n -= sizeof(w)) {
		__builtin_memcpy(&w, f + n - sizeof(w), sizeof(w));
		__builtin_memcpy(t + n - sizeof(w), &w, sizeof(w));
	}
	while (n--)
		t[n] = f[n];
	return to;
}

void *memset(void *p, int c, size_t n)
{
	const uint64_t byte = (unsigned char)c, word = byte * 0x0101010101010101u;
	const struct words w = { word, word };
	char *at = p;

	for (; n >= sizeof(w); n -= sizeof(w), at += sizeof(w))
		__builtin_memcpy(at, &w, sizeof(w));
	while (n--)
		*at++ = (char)c;
	return p;
}

int memcmp(const void *p, const void *q, size_t n)
{
	const unsigned char *a = p, *b = q;

	for (; n; n--, a++, b++)
		if (*a != *b)
			return *a - *b;
	return 0;
}

size_t strnlen(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i])
		i++;
	return i;
}

/* Word by word: an aligned one that begins within the text is in its page. */
size_t strlen(const char *s)
{
	const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
	const char *at = s;
	uint64_t word;

	for (; (uintptr_t)at % sizeof(word); at++)
		if (!*at)
			return (size_t)(at - s);
	do {
		__builtin_memcpy(&word, at, sizeof(word));
		at += sizeof(word);
	} while (!((word - ones) & ~word & tops));
	for (at -= sizeof(word); *at; at++)
		;
	return (size_t)(at - s);
}

int strncmp(const char *s, const char *t, size_t n)
{
	for (; n; n--, s++, t++)
		if (*s != *t || !*s)
			return (unsigned char)*s - (unsigned char)*t;
	return 0;
}

int strcmp(const char *s, const char *t)
{
	return strncmp(s, t, SIZE_MAX);
}

char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
	size_t bytes = strnlen(from, n);

	memcpy(to, from, bytes);
	memset(to + bytes, 0, n - bytes);
	return to;
}

char *strcpy(char *restrict to, const char *restrict from)
{
	return memcpy(to, from, strlen(from) + 1);
}

char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

char *strrchr(const char *s, int c)
{
	const char *last = NULL;

	do
		if (*s == (char)c)
			last = s;
	while (*s++);
	return (char *)(uintptr_t)last;
}

size_t strspn(const char *s, const char *accept)
{
	size_t n = 0;

	while (s[n] && strchr(accept, s[n]))
		n++;
	return n;
}

size_t strcspn(const char *s, const char *reject)
{
	size_t n = 0;

	while (s[n] && !strchr(reject, s[n]))
		n++;
	return n;
}

char *strpbrk(const char *s, const char *accept)
{
	s += strcspn(s, accept);
	return *s ? (char *)(uintptr_t)s : NULL;
}

char *strstr(const char *s, const char *word)
{
	size_t n = strlen(word);

	for (; strncmp(s, word, n) != 0; s++)
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

/* ---- system calls ---- */

static long result(long ret)
{
	if (mt_sys_failed(ret))
		errno = (int)-ret;
	return mt_sys_failed(ret) ? -1 : ret;
}

int mkdir(const char *path, mode_t mode)
{
	return (int)result(MT_SYS3(SYS_mkdirat, AT_FDCWD, path, mode));
}

int uname(struct utsname *names)
{
	return (int)result(MT_SYS1(SYS_uname, names));
}

char *getcwd(char *path, size_t size)
{
	return result(MT_SYS2(SYS_getcwd, path, size)) < 0 ? NULL : path;
}
