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

/* Whether no chunk may be had any more, or soon: then the recorder comes when half of those are full that no thread is at. */
static int is_tight(void)
{
	struct mt_session s;
	if (syscall(SYS_pread64, session, &s, sizeof(s), 0L) != sizeof(s) || !s.limit_bytes)
		return 0;
	uint64_t margin = s.limit_bytes / 4 < 16 * MT_CHUNK_BYTES ? s.limit_bytes / 4 : 16 * MT_CHUNK_BYTES;
	return s.used_bytes + margin >= s.limit_bytes;
}

/* Whether waiting helps: only the recorder makes full chunks free ones, see docs/FORMAT.md. */
static int recorder_is_behind(void)
{
	unsigned char states[1024] = { 0 };
	struct mt_info head;
	int of[3] = { 0 };
	if (syscall(SYS_pread64, info, &head, sizeof(head), 0L) != sizeof(head) || head.chunks > sizeof(states) ||
	    syscall(SYS_pread64, info, states, sizeof(states), (long)MT_INFO_STATES) != sizeof(states))
		return 0;
	for (uint32_t i = 0; i < head.chunks; i++)
		of[states[i] % 3]++;
	int full = of[MT_CHUNK_FULL], free = of[MT_CHUNK_FREE];
	return full > chunks || (full && full >= free && free + of[MT_CHUNK_FILLING] < 2 * threads && is_tight());
}

/* A recorder that does not come is an error, said once, and not waited for again. */
__attribute__((unused)) static void wait_for_recorder(void)
{
	for (int i = 0; info >= 0 && recorder_is_behind(); i++) {
		if (i == 60000) {
			fputs("the recorder has not come for a minute\n", stderr);
			info = -1;
			return;
		}
		usleep(1000);
	}
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
