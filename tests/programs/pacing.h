/* Has a program wait while more than so many chunks wait for its recorder, so that no event is lost however small the limit. */
#ifndef PACING_H
#define PACING_H

#include "format/format.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int info = -1, session = -1, chunks, threads;

/* Chunks that wait for it: see docs/FORMAT.md. */
static int full_chunks(void)
{
	unsigned char states[1024] = { 0 };
	int full = 0;
	long n = syscall(SYS_pread64, info, states, sizeof(states), 4096L);
	for (long i = 0; i < n; i++)
		full += states[i] == 2;
	return full;
}

/* No chunk may be had where the limit is near: what is there must do, one for each thread. */
static int is_tight(int full)
{
	struct mt_session s;
	struct mt_info head;
	if (syscall(SYS_pread64, session, &s, sizeof(s), 0L) != sizeof(s) || !s.limit_bytes ||
	    s.used_bytes + 16 * MT_CHUNK_BYTES < s.limit_bytes || syscall(SYS_pread64, info, &head, sizeof(head), 0L) != sizeof(head))
		return 0;
	return (int)head.chunks - full < 2 * threads;
}

static void wait_for_recorder(void)
{
	for (int i = 0, full; info >= 0 && ((full = full_chunks()) > chunks || is_tight(full)) && i < 20000; i++)
		usleep(1000);
}

/* To be called first; THREADS of the program record anything. */
static void pace(int most_chunks, int most_threads)
{
	char path[4200];
	chunks = most_chunks;
	threads = most_threads;
	const char *dir = getenv("MEMTRACE_OUTPUT");
	snprintf(path, sizeof(path), "%s/%d-0.info", dir ? dir : "", (int)getpid());
	info = dir ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
	snprintf(path, sizeof(path), "%s/session", dir ? dir : "");
	session = dir ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
}

#endif
