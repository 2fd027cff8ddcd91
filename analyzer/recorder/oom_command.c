/*
 * What happened is told by counters in the info file (device requests, requests of the host that were refused), and by
 * the kernel's count of kills, if a process ended without a word or by SIGKILL when that rose.
 *
 * The command is `sh -c` in a session of its own, with /dev/null for its streams and none of our descriptors. At most
 * one runs at a time, of one cause one in PERIOD_NS, and OOM_MOST in a session, over all of its recorders.
 */
#include "analyzer/recorder/oom_command.h"

#include "analyzer/recorder/apart.h"
#include "analyzer/recorder/rings/file_io.h"
#include "analyzer/util/system/kernel_file.h"
#include "analyzer/util/ticks.h"
#include "format/output_name.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OOM_MOST  10u
#define PERIOD_NS 10000000000ull
#define KILLS_NS  1000000000ull /* between looks at the kernel's count while nobody dies */
#define LOG_BYTES 65536         /* of the log's beginning, where the environment is */

enum cause { DEVICE, HOST, KILLED, CAUSES };

struct oom_command {
	const char *command;
	struct mt_session *session;
	pid_t child; /* 0 = none runs */
	uint64_t told_ns[CAUSES];
	/* the kernel's, as of one and two looks ago: it counts before the end of the process is seen */
	uint64_t kills, kills_before, kills_ns;
};

/* ---- the command ------------------------------------------------------------------------------------------------ */

static void run(struct oom_command *c, const char *dir, uint32_t pid, const char *rank, const char *what)
{
	char texts[4][PATH_MAX + 32], path[PATH_MAX];
	ssize_t n = readlink(dir, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	snprintf(texts[0], sizeof(texts[0]), "MEMTRACE_OOM_DIR=%s", n > 0 ? path : dir);
	snprintf(texts[1], sizeof(texts[1]), "MEMTRACE_OOM_PID=%" PRIu32, pid);
	snprintf(texts[2], sizeof(texts[2]), "MEMTRACE_OOM_RANK=%s", rank);
	snprintf(texts[3], sizeof(texts[3]), "MEMTRACE_OOM_WHAT=%s", what);
	char **env = apart_environment((const char *const[]){ texts[0], texts[1], texts[2], texts[3], NULL });
	pid_t child = env ? fork() : -1;
	if (child == 0) {
		apart_set_up("/dev/null");
		execve("/bin/sh", (char *[]){ "sh", "-c", (char *)(uintptr_t)c->command, NULL }, env);
		_exit(127);
	}
	c->child = child > 0 ? child : 0;
	free(env);
}

/* ---- whose ------------------------------------------------------------------------------------------------ */

static void copy_value(const char *setting, const char *end, char *rank, size_t size)
{
	for (const char *const *name = mt_rank_variables; *name; name++) {
		size_t n = strlen(*name);
		if ((size_t)(end - setting) > n && !strncmp(setting, *name, n) && setting[n] == '=')
			snprintf(rank, size, "%.*s", (int)(end - setting - (ptrdiff_t)n - 1), setting + n + 1);
	}
}

/* The rank that its environment names, of several variables any; "" = none. */
static void find_rank(const struct recorder *r, const struct record_process *p, char *rank, size_t size)
{
	char path[4500], *log = malloc(LOG_BYTES);
	snprintf(path, sizeof(path), "%s%s.info", r->raw_stem, p->name);
	int fd = log ? record_open(path, O_RDONLY) : -1;
	ssize_t bytes = fd < 0 ? -1 : pread(fd, log, LOG_BYTES, MT_INFO_LOG);
	*rank = 0;
	for (ssize_t at = 0; bytes - at >= (ssize_t)sizeof(struct mt_record);) {
		struct mt_record head;
		memcpy(&head, log + at, sizeof(head));
		if (head.bytes < sizeof(head) || head.bytes > (size_t)(bytes - at))
			break;
		const char *s = log + at + sizeof(head), *end = log + at + head.bytes, *next;
		for (; head.type == MT_REC_ENV && s < end && (next = memchr(s, 0, (size_t)(end - s))); s = next + 1)
			copy_value(s, next, rank, size);
		at += head.bytes;
	}
	if (fd >= 0)
		close(fd);
	free(log);
}

/* ---- what happened ---------------------------------------------------------------------------------------- */

static uint64_t kernel_kills(void)
{
	char text[16384];
	unsigned long long kills = 0;
	const char *at = kernel_read("/proc/vmstat", text, sizeof(text)) > 0 ? strstr(text, "\noom_kill ") : NULL;
	return at && sscanf(at, " oom_kill %llu", &kills) == 1 ? kills : 0;
}

static void tell(struct oom_command *c, const struct recorder *r, const struct record_process *p, enum cause cause)
{
	static const char *const names[CAUSES] = { "device", "host", "killed" };
	uint64_t now = ticks_mono_ns();
	char rank[32];
	if (c->child || (c->told_ns[cause] && now - c->told_ns[cause] < PERIOD_NS) ||
	    __atomic_load_n(&c->session->oom_commands, __ATOMIC_RELAXED) >= OOM_MOST)
		return;
	c->told_ns[cause] = now;
	__atomic_add_fetch(&c->session->oom_commands, 1, __ATOMIC_RELAXED);
	find_rank(r, p, rank, sizeof(rank));
	run(c, r->dir, p->pid, rank, names[cause]);
}

static bool was_killed(struct oom_command *c, const struct record_process *p)
{
	bool silent = p->info->exit_kind == MT_EXIT_NONE ||
		      (p->info->exit_kind == MT_EXIT_SIGNAL && p->info->exit_code == SIGKILL);
	if (!silent || !p->over)
		return false;
	uint64_t before = c->kills_before;
	c->kills = c->kills_before = kernel_kills();
	return c->kills > before;
}

void oom_command_look(struct oom_command *c, const struct recorder *r, struct record_process *p)
{
	if (!c || p->info->bytes < offsetof(struct mt_info, refusals) + sizeof(p->info->refusals))
		return;
	uint32_t failed = __atomic_load_n(&p->info->device_failures, __ATOMIC_RELAXED);
	uint32_t refused = __atomic_load_n(&p->info->refusals, __ATOMIC_RELAXED);
	bool device = failed != p->device_failures, host = refused != p->refusals;
	bool killed = p->over && !p->mourned && was_killed(c, p);
	p->device_failures = failed;
	p->refusals = refused;
	p->mourned = p->over;
	if (killed)
		tell(c, r, p, KILLED);
	else if (device)
		tell(c, r, p, DEVICE);
	else if (host)
		tell(c, r, p, HOST);
}

void oom_command_round(struct oom_command *c)
{
	uint64_t now = ticks_mono_ns();
	if (!c)
		return;
	if (c->child && waitpid(c->child, NULL, WNOHANG))
		c->child = 0;
	if (now - c->kills_ns < KILLS_NS)
		return;
	c->kills_ns = now;
	c->kills_before = c->kills;
	c->kills = kernel_kills();
}

struct oom_command *oom_command_new(const struct recorder *r)
{
	const char *command = getenv("MEMTRACE_ON_OOM");
	struct oom_command *c = command && *command ? calloc(1, sizeof(*c)) : NULL;
	if (!c)
		return NULL;
	c->command = command;
	c->session = r->session;
	c->kills = c->kills_before = kernel_kills();
	return c;
}

void oom_command_free(struct oom_command *c)
{
	free(c);
}
