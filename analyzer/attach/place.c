#include "analyzer/attach/place.h"
#include "analyzer/util/ticks.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAST_STACK (192u << 10) /* free: the structures that are passed, dlopen, the library's start */
#define REST_AFTER  2000000000u  /* ns */
#define MOST_STACK  (1ull << 30) /* of a thread */

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

struct place {
	struct target *target;
	Dwfl *dwfl;
	uint64_t since;
};

/* ---- libdw's view of the target: files as the target finds them ---- */

static int find_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
	(void)module, (void)user, (void)base, (void)elf;
	int fd = *name == '/' ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (fd >= 0)
		*file = strdup(name);
	return fd;
}

static int no_debug(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
		    const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
	return -1;
}

static const Dwfl_Callbacks callbacks = { .find_elf = find_elf, .find_debuginfo = no_debug };

/* Of another root a file has the target's name; of one that is a folder here (chroot), perhaps the name that it has
 * here. */
static const char *file_of(const struct target *t, const char *name, char *to, size_t size)
{
	snprintf(to, size, "/proc/%d/root%s", (int)t->pid, name);
	return t->other_root && access(to, R_OK) == 0 ? to : name;
}

/* The modules as they are now. */
static void report(struct place *p)
{
	dwfl_report_begin(p->dwfl);
	const struct target *t = p->target;
	char path[700];
	for (size_t i = 0; i < t->range_count; i++) {
		const struct target_range *r = &t->ranges[i];
		uint64_t end = r->end;
		if (*r->path != '/' || r->offset || !strncmp(r->path, "/dev/", 5))
			continue;
		while (i + 1 < t->range_count && !strcmp(t->ranges[i + 1].path, r->path) && t->ranges[i + 1].offset)
			end = t->ranges[++i].end;
		dwfl_report_module(p->dwfl, file_of(t, r->path, path, sizeof(path)), r->start, end);
	}
	dwfl_report_end(p->dwfl, NULL, NULL);
}

struct place *place_new(struct target *t)
{
	struct place *p = calloc(1, sizeof(*p));
	if (p && (p->dwfl = dwfl_begin(&callbacks)) != NULL) {
		p->target = t;
		p->since = ticks_mono_ns();
		report(p);
		if (dwfl_linux_proc_attach(p->dwfl, t->pid, true) == 0)
			return p;
	}
	place_free(p);
	return NULL;
}

void place_free(struct place *p)
{
	if (p && p->dwfl)
		dwfl_end(p->dwfl);
	free(p);
}

/* ---- the C library's functions ---- */

static const char *const unsafe[] = {
	"dl_iterate_phdr",
	"dlopen",
	"dlclose",
	"dlsym",
	"dlvsym",
	"dlmopen",
	"dladdr",
	"dladdr1",
	"dlinfo",
	"dlerror",
	"fork",
	"_Fork",
	"vfork",
	"clone",
	"posix_spawn",
	"posix_spawnp",
	"system",
	"popen",
	"pthread_create",
	"pthread_exit",
	"pthread_join",
	"pthread_timedjoin_np",
	"pthread_tryjoin_np",
	"pthread_clockjoin_np",
	"pthread_atfork",
	"__register_atfork",
	"pthread_getattr_np",
	"exit",
	"_exit",
	"abort",
	"quick_exit",
	"on_exit",
	"__cxa_atexit",
	"__cxa_finalize",
	"__cxa_at_quick_exit",
	"__cxa_thread_atexit_impl",
	"setenv",
	"putenv",
	"unsetenv",
	"clearenv",
	"setuid",
	"setgid",
	"seteuid",
	"setegid",
	"setreuid",
	"setregid",
	"setresuid",
	"setresgid",
	"setgroups",
	"initgroups",
	"execve",
	"execvp",
	"execv",
	"execvpe",
	"fexecve",
	"brk",
	"sbrk",
	NULL,
};

static const char *const allocators[] = {
	"malloc",
	"free",
	"calloc",
	"realloc",
	"memalign",
	"aligned_alloc",
	"posix_memalign",
	"valloc",
	"pvalloc",
	"malloc_usable_size",
	"malloc_trim",
	"mallinfo",
	"mallinfo2",
	"malloc_stats",
	"mallopt",
	"malloc_info",
	NULL,
};

static bool is_in(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

static bool has(const struct target_module *m, uint64_t pc)
{
	return m->base && pc >= m->base && pc < m->end;
}

/* What malloc calls has no names; it lies between its functions, and around them. */
static bool is_in_malloc(const struct target_module *libc, uint64_t pc)
{
	uint64_t first = UINT64_MAX, last = 0, before = 0, after = UINT64_MAX;
	for (size_t i = 0; i < libc->count; i++)
		if (is_in(allocators, libc->symbols[i].name)) {
			first = libc->symbols[i].start < first ? libc->symbols[i].start : first;
			last = libc->symbols[i].end > last ? libc->symbols[i].end : last;
		}
	for (size_t i = 0; i < libc->count; i++) {
		if (libc->symbols[i].end <= first && libc->symbols[i].end > before)
			before = libc->symbols[i].end;
		if (libc->symbols[i].start >= last && libc->symbols[i].start < after)
			after = libc->symbols[i].start;
	}
	return last && pc >= before && pc < after;
}

/* Of a library that brings malloc, everything. */
static bool is_allocator(const struct target_range *r)
{
	static const char *const names[] = { "/libjemalloc", "/libtcmalloc", "/libmimalloc", "/libtbbmalloc",
					     "/libsnmalloc" };
	for (size_t i = 0; r && i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(r->path, names[i]))
			return true;
	return r && strstr(r->path, "/libmemtrace.so");
}

/* In which a thread may wait: none of the C library's own locks is held there, but for those that frames tell. */
static bool may_wait_in(long call)
{
	static const short calls[] = {
		SYS_read,
		SYS_readv,
		SYS_pread64,
		SYS_write,
		SYS_writev,
		SYS_recvfrom,
		SYS_recvmsg,
		SYS_recvmmsg,
		SYS_sendto,
		SYS_sendmsg,
		SYS_ppoll,
		SYS_pselect6,
		SYS_epoll_pwait,
		SYS_nanosleep,
		SYS_clock_nanosleep,
		SYS_futex,
		SYS_accept,
		SYS_accept4,
		SYS_connect,
		SYS_wait4,
		SYS_waitid,
		SYS_rt_sigsuspend,
		SYS_rt_sigtimedwait,
		SYS_sched_yield,
		SYS_getpid,
		SYS_gettid,
		SYS_io_getevents,
		SYS_semop,
		SYS_semtimedop,
		SYS_msgrcv,
		SYS_msgsnd,
		SYS_flock,
		SYS_fsync,
		SYS_getppid,
		SYS_clock_gettime,
		SYS_openat,
		SYS_close,
		SYS_lseek,
		SYS_fstat,
		SYS_newfstatat,
		426 /* io_uring_enter */,
		441 /* epoll_pwait2 */,
		449 /* futex_waitv */,
#ifdef SYS_epoll_wait
		SYS_epoll_wait,
		SYS_poll,
		SYS_select,
		SYS_pause,
		SYS_open,
		SYS_stat,
#endif
	};
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i] == call)
			return true;
	return false;
}

/* ---- frames ---- */

struct walk {
	struct place *place;
	const struct arch_thread *thread;
	const char *why;
	int frames;
	bool leaf;   /* the innermost is a function of the C library without a name */
	bool inside; /* the last one was in the C library or the loader, which can always be unwound */
};

static void judge(struct walk *w, uint64_t pc)
{
	const struct target *t = w->place->target;
	const struct target_symbol *s = has(&t->libc, pc) ? target_symbol(&t->libc, pc) : NULL;
	bool innermost = w->frames == 0;
	if (has(&t->loader, pc))
		w->why = "in the loader";
	else if (is_in_malloc(&t->libc, pc))
		w->why = "in malloc";
	else if (s && is_in(unsafe, s->name))
		w->why = "in fork, the loader or another function with a lock";
	else if (is_allocator(target_range(t, pc)))
		w->why = "in the allocator";
	else if (w->leaf && has(&t->libc, pc))
		w->why = "in the C library";
	w->leaf = innermost && has(&t->libc, pc) && !s && w->thread->call < 0;
	w->inside = has(&t->libc, pc);
}

static int frame(Dwfl_Frame *f, void *data)
{
	struct walk *w = data;
	Dwarf_Addr pc;
	bool activation;
	if (!dwfl_frame_pc(f, &pc, &activation))
		return DWARF_CB_ABORT;
	judge(w, activation ? pc : pc - 1);
	w->frames++;
	return w->why || w->frames > 1000 ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/* The thread's own stack: that of the first thread, or the one with its control block at the end. A coroutine's may end
 * anywhere. */
static const char *stack_is_unsafe(const struct target *t, const struct arch_thread *thread)
{
	const struct target_range *r = target_range(t, thread->sp);
	if (!r)
		return "on a stack that is not known";
	uint64_t room = thread->sp - r->start;
	if (!strcmp(r->path, "[stack]"))
		room = t->stack_limit - (r->end - thread->sp) < t->stack_limit ? t->stack_limit - (r->end - thread->sp)
									       : 0;
	else if (thread->thread < thread->sp || thread->thread >= r->end || thread->thread - thread->sp > MOST_STACK)
		return "on a stack of its own making";
	if (thread->sp - r->start < (32u << 10))
		return "deep in its stack";
	return room < LEAST_STACK ? "with too little stack left" : NULL;
}

/* A restartable sequence is code that the kernel begins anew where its thread was disturbed: it would not see that. */
static bool is_in_sequence(const struct target *t, pid_t tid, uint64_t pc)
{
	struct {
		uint64_t area;
		uint32_t size, signature, flags, pad;
	} registered = { 0 };
	struct {
		uint32_t version, flags;
		uint64_t start, bytes, abort;
	} sequence;
	uint64_t at = 0;
	return ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(registered), &registered) > 0 && registered.area &&
	       target_read(t, registered.area + 8, &at, sizeof(at)) && at &&
	       target_read(t, at, &sequence, sizeof(sequence)) && pc - sequence.start < sequence.bytes;
}

const char *place_is_unsafe(struct place *p, pid_t tid, const struct arch_thread *thread)
{
	const struct target *t = p->target;
	struct walk w = { .place = p, .thread = thread };
	const char *why = stack_is_unsafe(t, thread);
	if (thread->unsafe)
		return thread->unsafe;
	if (why)
		return why;
	if ((thread->mask >> 31 & 3) == 3) /* only the C library blocks its own signals */
		return "in fork, or where a thread begins or ends";
	/* The rest of a wait that a look interrupted: if we were killed, it would end with EINTR. Others come first. */
	if (thread->call == SYS_restart_syscall ? ticks_mono_ns() - p->since < REST_AFTER
						: thread->call >= 0 && !may_wait_in(thread->call))
		return "in a system call";
	if (!target_range(t, thread->pc)) {
		target_ranges(p->target); /* a library came since */
		report(p);
	}
	if (is_in_sequence(t, tid, thread->pc))
		return "in a restartable sequence";
	if (t->own_malloc && thread->call < 0)
		return "in a program that has its own malloc";
	int ended = dwfl_getthread_frames(p->dwfl, tid, frame, &w);
	if (w.why)
		return w.why;
	if (!w.frames)
		return "on a stack that can't be read";
	if (ended < 0 && w.inside)
		return "in the C library, from where its stack can't be read";
	return target_loader_is_busy(t) ? PLACE_LOADER_IS_BUSY : NULL;
}
