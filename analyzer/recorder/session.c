#include "analyzer/recorder/session.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "analyzer/util/ticks.h"
#include "format/format.h"
#include "format/output_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int session_make(char *dir, const char *command)
{
	const char *pattern = getenv("MEMTRACE_OUTPUT");
	struct stat st;
	size_t length;
	int e;

	mt_output_name(dir, SESSION_PATH, pattern && *pattern ? pattern : MT_OUTPUT_DEFAULT, mt_base_name(command),
		       (uint32_t)getpid());
	length = strlen(dir);
	if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
		return error_set(MT_EUSAGE, dir, ERROR_NO_OFFSET, "is no directory, so the trace can't be there");
	e = mt_output_make(dir, SESSION_PATH);
	if (e) {
		errno = -e;
		return error_errno(MT_EOUTPUT, dir, ERROR_NO_OFFSET);
	}
	if (dir[length])
		print_error("memtrace: %.*s exists: recording to %s\n", (int)length, dir, dir);
	return 0;
}

static struct mt_session *map(const char *dir)
{
	char path[SESSION_PATH + 16];
	struct mt_session *s = NULL;
	int fd;

	snprintf(path, sizeof(path), "%s/session", dir);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	if (lseek(fd, 0, SEEK_END) >= (off_t)sizeof(*s)) {
		s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		s = s == MAP_FAILED ? NULL : s;
	}
	close(fd);
	return s;
}

/* The magic is written last. */
static int is_there(const char *dir)
{
	struct mt_session *s = map(dir);
	int there = s && *(volatile char *)s->magic;

	if (s)
		munmap(s, sizeof(*s));
	return there;
}

int session_wait(const char *dir, pid_t pid)
{
	struct timespec pause = { 0, 2000000 };
	siginfo_t info;

	while (!is_there(dir)) {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid)
			return is_there(dir);
		nanosleep(&pause, NULL);
	}
	return 1;
}

int session_end(const char *dir, pid_t pid, int status)
{
	struct mt_session *s = map(dir);

	if (!s)
		return error_errno(MT_EIO, dir, ERROR_NO_OFFSET);
	s->root_pid = (uint32_t)pid;
	s->root_exit_code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	s->root_exit_kind = WIFSIGNALED(status) ? MT_EXIT_SIGNAL : MT_EXIT_CODE;
	__atomic_fetch_and(&s->flags, ~(uint32_t)MT_SESSION_SUPERVISED, __ATOMIC_RELAXED);
	munmap(s, sizeof(*s));
	return 0;
}

uint64_t session_recorder_silence(const char *dir)
{
	struct mt_session *s = map(dir);
	uint64_t loop = s ? __atomic_load_n(&s->recorder_beat_ns, __ATOMIC_RELAXED) : 0, now = ticks_mono_ns();

	if (s)
		munmap(s, sizeof(*s));
	return loop && now > loop ? now - loop : 0;
}
