/*
 * When a snapshot is taken, and by whom.
 *
 * Whoever finds that one is wanted (a failed allocation, a mark, a request) asks the interpreter for a pending call:
 * Py_AddPendingCall() (Python/ceval_gil.c) takes the interpreter's lock of its queue for some instructions, allocates
 * nothing and runs nothing. The main thread runs the call between two instructions of Python code, with the GIL, in
 * the state in which the collector may run, too. Py_FinalizeEx() (Python/pylifecycle.c) runs what is pending before it
 * ends anything. So a failure that ends the program is seen: sys.last_traceback has its frames by then.
 *
 * The end of a program that nothing happened to is known by the first thread's being in C without a Python frame: when
 * the code of its main module dies, or something is allocated or freed there. A call that was asked for so is for
 * nothing where Python runs again by then, as it does in the middle of the start. os._exit() ends a process from within
 * Python, and the snapshot is taken there.
 *
 * The call forks. What forks is clone() without a signal at the child's end, so nobody but a wait that asks for such
 * children hears of it, and no handler of pthread_atfork() runs. The child has the same memory, where nothing moves;
 * it can't spoil anything of the program's, and ends with its parent. Fork handlers and threads are no matter to it:
 * it calls nothing that takes a lock. A fault ends it, and another one is made which leaves that type out.
 *
 * Builds without the GIL were not to be had for a test, and are left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "format/settings.h"
#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/environ.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"
#include "shim/python/holders_internal.h"
#include "shim/python/pycode.h"

#ifndef __WCLONE /* musl leaves it to <linux/wait.h> */
#define __WCLONE 0x80000000
#endif

#define MAX_FAULTS 16
#define EXIT_FAULT 77
#define EXIT_FILE  78
#define SPACING    20 /* failures and marks: the next one after so many times what the last one took */
#define MAX_POOLS  8  /* a program may try again and again */
#define SECOND     1000000000ull

static uint32_t asked; /* bits 1 << enum mt_hold_why; taken by the pending call */
static uint32_t under_way, over;
static uint32_t pools; /* snapshots that were taken as a pool failed */
static char name[64];
static uint64_t offset;     /* in the file: what is whole */
static uint64_t not_before; /* CLOCK_MONOTONIC, for failures and marks */
static uint32_t owner;      /* pid of the process that all of this is of */

/* ---- the interpreter ---- */

#define WORD_NAMES_313  41
#define WORD_LOCALS_313 32
#define WORD_NAMES_314  46
#define WORD_LOCALS_314 35

/* Where a frame's locals are, and their names. */
static int find_layout(struct mt_holders_python *p, const struct mt_pylayout *l)
{
	static const struct {
		uint32_t version, locals, names, keys;
	} rows[] = { { 0x308, 360, 0, 0 },
		     { 0x309, 360, 0, 0 },
		     { 0x30a, 352, 0, 0 },
		     { 0x30b, 72, 96, 872 },
		     { 0x30c, 72, 96, 880 } };
	const uint64_t *words = (const uint64_t *)p->runtime;

	p->head = l->object_type + 8u;
	if (p->head != 16)
		return 0; /* a build without the GIL */
	p->code_stack = p->version < 0x30b ? 32 : l->code_first_line - 4u;
	p->cached_keys = 880;
	if (p->version == 0x30d || p->version == 0x30e) {
		p->frame_locals = (uint32_t)words[p->version == 0x30d ? WORD_LOCALS_313 : WORD_LOCALS_314];
		p->code_names = (uint32_t)words[p->version == 0x30d ? WORD_NAMES_313 : WORD_NAMES_314];
		return 1;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].version == p->version) {
			p->frame_locals = rows[i].locals;
			p->code_names = rows[i].names;
			p->cached_keys = rows[i].keys;
			return 1;
		}
	return 0;
}

/* Made early, since there may be no room in the address space (RLIMIT_AS) when memory has run out: a page that parent
 * and child share, and what the child gives back to have room for its tables. */
static void *reserve;
#define RESERVE (4u << 20)

static int set_aside(void)
{
	long page;

	if (mt_holders_shared && owner == mt_process.pid)
		return 1;
	/* what a fork has brought along is the other process's, which uses it, too */
	owner = mt_process.pid;
	offset = not_before = pools = 0;
	mt_holders_shared = NULL;
	page = MT_SYS6(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mt_sys_failed(page))
		return 0;
	mt_holders_shared = (struct mt_holders_shared *)page;
	if (reserve)
		return 1;
	page = MT_SYS6(SYS_mmap, 0, RESERVE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	reserve = mt_sys_failed(page) ? NULL : (void *)page;
	return 1;
}

/* Of the interpreter that was met. */
static struct mt_symbols symbols;
static uint32_t met; /* its version, 0 = none */

static void look_up(const struct mt_symbols *s, uint32_t version, const struct mt_pylayout *layout)
{
	struct mt_holders_python p = { .version = version };

#define FIND(field, symbol) p.field = (__typeof__(p.field))(uintptr_t)mt_symbols_find(s, symbol)
	FIND(add_pending, "Py_AddPendingCall");
	FIND(visit_objects, "PyUnstable_GC_VisitObjects");
	FIND(interp_head, "PyInterpreterState_Head");
	FIND(interp_next, "PyInterpreterState_Next");
	FIND(thread_head, "PyInterpreterState_ThreadHead");
	FIND(thread_next, "PyThreadState_Next");
	FIND(dict_next, "PyDict_Next");
	FIND(line_of, "PyCode_Addr2Line");
	FIND(gc_is_enabled, "PyGC_IsEnabled");
	FIND(is_initialized, "Py_IsInitialized");
	FIND(runtime, "_PyRuntime");
	FIND(dict, "PyDict_Type");
	FIND(tuple, "PyTuple_Type");
	FIND(list, "PyList_Type");
	FIND(module, "PyModule_Type");
	FIND(function, "PyFunction_Type");
	FIND(type, "PyType_Type");
	FIND(frame, "PyFrame_Type");
	FIND(text, "PyUnicode_Type");
	FIND(integer, "PyLong_Type");
	FIND(boolean, "PyBool_Type");
	FIND(cell, "PyCell_Type");
#undef FIND
	if (!p.add_pending || !p.interp_head || !p.interp_next || !p.thread_head || !p.thread_next || !p.dict_next ||
	    !p.type || !p.runtime || !p.is_initialized || !find_layout(&p, layout) ||
	    (version >= 0x30c && !p.visit_objects)) {
		mt_say("no holders: ", "this Python is not known");
		return;
	}
	mt_holders_python = p;
}

/* Where nobody wants a snapshot nothing is looked up. */
static void meet(const struct mt_symbols *s, uint32_t version, const struct mt_pylayout *layout)
{
	symbols = *s;
	met = version;
	if (!mt_config.holders)
		return;
	look_up(s, version, layout);
	mt_holders_on = mt_holders_python.version != 0;
	if (mt_holders_on)
		set_aside();
}

/* The first request from outside, where MEMTRACE_HOLDERS is not set. */
static void meet_late(void)
{
	uint32_t version = __atomic_exchange_n(&met, 0, __ATOMIC_ACQ_REL);

	if (version && !mt_holders_python.version)
		look_up(&symbols, version, &mt_pyruntime->at);
}

static void forget_python(void)
{
	mt_holders_on = met = 0;
	mt_holders_python.version = 0;
}

/* The beginning of a name of a code object that lives: ASCII, or it is none that is looked for. No lock, no scratch. */
static int copy_name(uintptr_t code, uint16_t field, char text[32])
{
	const struct mt_pylayout *l = &mt_pyruntime->at;
	uintptr_t name = code ? mt_word(code + field) : 0;
	uint64_t length;

	if (!name || mt_word(name + l->object_type) != mt_pyruntime->text_type)
		return 0;
	length = mt_word(name + l->text_length);
	length = length < 31 ? length : 31;
	memcpy(text, (const void *)(name + l->text_ascii), length);
	text[length] = 0;
	return 1;
}

/* ---- the child ---- */

static void on_fault(int signal)
{
	(void)signal;
	MT_SYS1(SYS_exit_group, EXIT_FAULT);
}

/* As the kernel has it, which on x86 insists on a restorer; there is no return from this handler. */
static void catch_faults(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = { on_fault, 0x04000000 /* SA_RESTORER */, (void (*)(void))(uintptr_t)on_fault, 0 };

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		MT_SYS4(SYS_rt_sigaction, faults[i], &action, NULL, 8);
}

/* Of all processes the kernel should rather end this one. */
static void offer_self(void)
{
	long fd = mt_sys_open("/proc/self/oom_score_adj", O_WRONLY);

	if (!mt_sys_failed(fd)) {
		MT_SYS3(SYS_write, fd, "1000", 4);
		MT_SYS1(SYS_close, fd);
	}
}

static uint64_t all_signals_but_faults(void)
{
	uint64_t mask = ~0ull;

	mask &= ~(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGILL - 1) |
		  1ull << (SIGABRT - 1) | 1ull << (SIGTRAP - 1));
	return mask;
}

struct job {
	struct mt_hold_head head;
	uintptr_t skip[MAX_FAULTS];
	unsigned skips;
	struct mt_hold_words tracked;
	int child;
	int is_child;
};

/* What is called may have something to say before it gives up. */
static void fall_silent(void)
{
	long fd = mt_sys_open("/dev/null", O_RDWR);

	for (int i = 0; !mt_sys_failed(fd) && i < 3; i++)
		MT_SYS3(SYS_dup3, fd, i, 0);
}

static _Noreturn void end_child(int status)
{
	for (;;)
		mt_arch_syscall(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

static _Noreturn void walk(struct job *j)
{
	uint64_t mask = all_signals_but_faults();
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	catch_faults();
	if (reserve)
		mt_sys_unmap(reserve, RESERVE);
	MT_SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	MT_SYS2(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	offer_self();
	fall_silent();
	if (!mt_sys_failed(MT_SYS4(SYS_prlimit64, 0, RLIMIT_AS, NULL, &unlimited))) {
		unlimited.rlim_cur = unlimited.rlim_max;
		MT_SYS4(SYS_prlimit64, 0, RLIMIT_AS, &unlimited, NULL);
	}
	if (!mt_hold_maps() || !mt_hold_open(offset, &j->head))
		end_child(EXIT_FILE);
	mt_hold_collect(&j->tracked, &j->head);
	j->head.tracked = j->tracked.count;
	mt_hold_walk(&j->head, j->skip, j->skips, j->tracked.at, j->tracked.count);
	mt_hold_close(&j->head);
	end_child(0);
}

/* ---- the parent ---- */

static void wait_for(struct job *j, int *status)
{
	uint64_t until = mt_clock_ns(CLOCK_MONOTONIC) + MT_HOLDERS_SECONDS * SECOND;
	struct timespec pause = { 0, 100000 };
	long got;

	*status = -1;
	while ((got = MT_SYS4(SYS_wait4, j->child, status, WNOHANG | (int)__WCLONE, NULL)) == 0) {
		if (mt_clock_ns(CLOCK_MONOTONIC) > until) {
			MT_SYS2(SYS_kill, j->child, SIGKILL);
			MT_SYS4(SYS_wait4, j->child, status, (int)__WCLONE, NULL);
			return;
		}
		MT_SYS2(SYS_nanosleep, &pause, NULL);
		if (pause.tv_nsec < 2000000)
			pause.tv_nsec += pause.tv_nsec / 2;
	}
}

/* Flags 0: no signal at its end, nothing shared. */
static void fork_child(struct job *j)
{
	j->child = (int)MT_SYS6(SYS_clone, 0, 0, 0, 0, 0, 0);
	j->is_child = j->child == 0;
}

static void start_child(struct job *j)
{
	j->is_child = 0;
	j->child = -1;
	fork_child(j);
	if (j->is_child)
		walk(j);
}

/* Where the stack had overflowed there is no room for the handler either, and the kernel ends it. */
static int is_fault(int status)
{
	return (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAULT) ||
	       (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static int keep_fault(struct job *j)
{
	uintptr_t type = (uintptr_t)mt_holders_shared->type;

	if (!type || j->skips == MAX_FAULTS)
		return 0;
	for (unsigned i = 0; i < j->skips; i++)
		if (j->skip[i] == type)
			return 0;
	j->skip[j->skips++] = type;
	return 1;
}

static int has_own_small_blocks(void)
{
	const char *value = mt_environ_get("PYTHONMALLOC");

	return mt_config.python_allocators || (value && !strncmp(value, "malloc", 6));
}

static void take(enum mt_hold_why why)
{
	struct job j = { .head = { .magic = MT_HOLDERS_MAGIC,
				   .bytes = sizeof(j.head),
				   .ticks = mt_ticks(),
				   .why = why,
				   .python = mt_holders_python.version } };
	uint64_t signals, begun = mt_clock_ns(CLOCK_MONOTONIC);
	int status, again = 1;

	mt_put(j.head.name, j.head.name + sizeof(j.head.name),
	       why == MT_HOLD_MARK || why == MT_HOLD_REQUEST ? name : "");
	name[0] = 0;
	j.head.flags = has_own_small_blocks() ? MT_HOLD_SMALL_TOO : 0;
	if (mt_holders_python.gc_is_enabled && !mt_holders_python.gc_is_enabled())
		j.head.flags |= MT_HOLD_GC_OFF;
	mt_sys_block_signals(&signals);
	while (again) {
		mt_holders_shared->type = mt_holders_shared->bytes = mt_holders_shared->cut = 0;
		j.head.faults = j.skips;
		start_child(&j);
		if (j.child < 0)
			break;
		wait_for(&j, &status);
		again = is_fault(status) && keep_fault(&j);
	}
	mt_sys_restore_signals(&signals);
	offset += mt_holders_shared->bytes;
	if (!mt_holders_shared->bytes)
		mt_say("no holders: ", j.child < 0 ? "the process can't fork" : "the walk did not end");
	pools += why == MT_HOLD_POOL;
	not_before = mt_clock_ns(CLOCK_MONOTONIC);
	not_before += (not_before - begun) * SPACING;
}

/* This frame, or the next one outwards that is no mark; 0 = none. */
static uintptr_t skip_marks(uintptr_t frame)
{
	const struct mt_pylayout *l = &mt_pyruntime->at;

	while (frame && l->frame_owner != MT_PY_NONE && *(const uint8_t *)(frame + l->frame_owner) > 2)
		frame = mt_word(frame + l->frame_previous);
	return frame;
}

/* The innermost frame of this thread, or 0. */
static uintptr_t innermost(void)
{
	const struct mt_pylayout *l = &mt_pyruntime->at;
	uintptr_t state = (uintptr_t)mt_pyruntime->this_state(), frame = state ? mt_word(state + l->state_frame) : 0;

	if (frame && l->cframe_frame != MT_PY_NONE)
		frame = mt_word(frame + l->cframe_frame);
	return skip_marks(frame);
}

static uintptr_t caller_of(uintptr_t frame)
{
	return skip_marks(mt_word(frame + mt_pyruntime->at.frame_previous));
}

/* Whether Python has no frame in this thread, or is joining its threads before it ends. */
static int is_ending(void)
{
	const struct mt_pylayout *l = &mt_pyruntime->at;
	uintptr_t frame = innermost(), code;
	char function[32];

	if (!frame)
		return 1;
	code = mt_word(frame + l->frame_code) & ~(uintptr_t)7;
	/* threading._shutdown(), which Py_FinalizeEx() calls: nobody called it from Python */
	return copy_name(code, l->code_name, function) && !strcmp(function, "_shutdown") && !caller_of(frame);
}

static int may_take(void)
{
	return mt_process_state() == MT_STATE_ACTIVE && mt_process_is_owner() && !mt_process_sandboxed() &&
	       mt_pyruntime && mt_pyruntime->this_state();
}

/* Of what was asked for; 0 = nothing any more. */
static uint32_t most_telling(uint32_t asked_for)
{
	static const uint8_t order[] = { MT_HOLD_REQUEST, MT_HOLD_POOL, MT_HOLD_DEVICE, MT_HOLD_HOST, MT_HOLD_MARK };

	for (size_t i = 0; i < sizeof(order); i++)
		if (asked_for & 1u << order[i])
			return order[i];
	return asked_for & 1u << MT_HOLD_END && is_ending() ? MT_HOLD_END : 0;
}

static int on_pending(void *unused)
{
	uint32_t why = __atomic_exchange_n(&asked, 0, __ATOMIC_ACQ_REL);
	int kept = errno;
	(void)unused;

	if (!may_take() || __atomic_exchange_n(&under_way, 1, __ATOMIC_ACQUIRE))
		return 0;
	if (!set_aside())
		mt_say("no holders: ", "no memory");
	else if ((why = most_telling(why)) != 0)
		take((enum mt_hold_why)why);
	over = over || is_ending();
	__atomic_store_n(&under_way, 0, __ATOMIC_RELEASE);
	errno = kept;
	return 0;
}

/* Nothing is pending any more, and in 3.8 who asks is told so on stderr: _PyRuntimeState.ceval.pending.finishing of
 * Include/internal/pycore_pystate.h, which 3.8 sets before it runs what is pending for the last time. */
#define FINISH_308 600

/* The program itself has begun: before that Python runs its own start, with functions of importlib outermost. */
static void note_main(uintptr_t code)
{
	char text[32];

	if (!copy_name(code, mt_pyruntime->at.code_name, text))
		return;
	if (!strcmp(text, "_run_module_as_main") ||
	    (!strcmp(text, "<module>") && copy_name(code, mt_pyruntime->at.code_filename, text) &&
	     strncmp(text, "<frozen", 7)))
		mt_holders_ready = 1;
}

static int is_over(void)
{
	return over || mt_pyruntime->is_finalizing() ||
	       (mt_holders_python.version == 0x308 && *(const int *)(mt_holders_python.runtime + FINISH_308));
}

/* Who asks from outside needs no MEMTRACE_HOLDERS, without which it isn't known whether the program itself has begun.
 */
static int is_begun(enum mt_hold_why why)
{
	return why == MT_HOLD_REQUEST && mt_holders_python.is_initialized();
}

static void ask(enum mt_hold_why why, const char *mark)
{
	int kept = errno;

	if (why == MT_HOLD_REQUEST && mt_pyruntime && !mt_holders_python.version)
		meet_late();
	if (!mt_pyruntime || !mt_holders_python.version || !(mt_holders_ready || is_begun(why)) ||
	    mt_process_state() != MT_STATE_ACTIVE || __atomic_load_n(&under_way, __ATOMIC_RELAXED))
		return;
	if (is_over() || (why == MT_HOLD_END && (!mt_pyruntime->this_state() || innermost())))
		return;
	if (why != MT_HOLD_REQUEST && why != MT_HOLD_END && (why != MT_HOLD_POOL || pools >= MAX_POOLS) &&
	    mt_clock_ns(CLOCK_MONOTONIC) < not_before)
		return;
	if (mark)
		mt_put(name, name + sizeof(name), mark);
	/* the call is in the queue already where nobody has taken what was asked for */
	if (!__atomic_fetch_or(&asked, 1u << why, __ATOMIC_ACQ_REL) &&
	    mt_holders_python.add_pending(on_pending, NULL) != 0)
		__atomic_store_n(&asked, 0, __ATOMIC_RELEASE); /* the queue is full */
	errno = kept;
}

/* The GIL is this thread's, and os._exit() does nothing but this. How it ends is settled: who waits for it may lose
 * patience meanwhile and send a signal. */
static void leave(void)
{
	uint64_t signals;

	if (!mt_pyruntime || !mt_holders_python.version || !mt_holders_ready || !may_take() || is_over() ||
	    __atomic_exchange_n(&under_way, 1, __ATOMIC_ACQUIRE))
		return;
	mt_sys_block_signals(&signals);
	if (set_aside())
		take(MT_HOLD_END);
	over = 1;
	__atomic_store_n(&under_way, 0, __ATOMIC_RELEASE);
}

static const struct mt_holders_taker taker = {
	.meet = meet, .forget = forget_python, .ask = ask, .note_main = note_main, .leave = leave
};
MT_SET_ADD(mt_holders_taker, taker);
