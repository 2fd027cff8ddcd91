/*
 * Seccomp filters may kill the program for a system call. Which calls one forbids can't be asked, so it is guessed from
 * where the filter comes from:
 *
 * - There is none: every call is harmless.
 * - It was there before exec (a service of systemd with SystemCallFilter=). /proc/self/status says so, and reading that
 *   takes only calls that the loader has just made. If the parent or the first process of the pid namespace has as many
 *   filters, they are those of a container or of a shell, which allow all sorts of programs: then a forked child tries
 *   our calls, and we see whether it lives. Else the filter is made for this program, and only calls that libc has made
 *   by now, and write, are taken for harmless.
 * - The program installs it while we run (exit.c): it is not known what the filter allows, so no call is harmless.
 *
 * What was found is left in the environment for the program's children, whose filters are the same if they are as many.
 */
#ifndef MT_BASE_QUIET_H
#define MT_BASE_QUIET_H

#include <stddef.h>
#include <stdint.h>

struct stat;

/* In each image before any other call. Needs the environment. */
void mt_quiet_meet(void);

/* The constructor: tells children what was found. */
void mt_quiet_export(void);

/* A filter is about to come into force. */
void mt_quiet_whole(void);

/* In a forked child: with MT_QUIET_USUAL it needs to know its own number. */
void mt_quiet_forked(void);

/* Our pid; where getpid() may not be called, as of the last call above. The parent's pid, as of the last call above. */
uint32_t mt_quiet_pid(void);
uint32_t mt_quiet_parent(void);

/* The functions below use the usual system call where that is harmless, and /proc where only that is. */

/* The calling thread's id, 0 = unknown, and its name, "" = unknown. */
uint32_t mt_quiet_thread(char name[16]);

/* Path of the executable, not terminated; its bytes or -errno. */
long mt_quiet_program(char *path, size_t size);

int mt_quiet_exists(const char *path);

/* fstat() and, where stat() may not be called, the same of a path that is opened with these flags. 1, or 0 if it can't
 * be had. */
int mt_quiet_fstat(int fd, struct stat *st);
int mt_quiet_stat(const char *path, int flags, struct stat *st);

/* Inode of the pid namespace; 0 = unknown. */
uint64_t mt_quiet_namespace(void);

/* Bytes that a file may have: RLIMIT_FSIZE. */
uint64_t mt_quiet_file_limit(void);

void mt_quiet_host(char *name, size_t size);

/* Nonzero if telling the time needs a system call here. */
int mt_quiet_clock_calls(void);

#endif
