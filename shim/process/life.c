/*
 * A process's life: it enters when it has its first event, it forks, it becomes another program, it ends. Whoever tells
 * of that (hooks, handlers, the constructor) calls from any thread, maybe in a signal handler, a vfork child, or before
 * our own constructor has run.
 *
 * There is one word, mt_state. NEW means that nothing is known: an image that has just begun, or the child of a fork,
 * where the kernel has wiped the word, or a fork handler of ours. The first event finds it so and enters: an image
 * reads its settings, joins the session and takes tables; a child drops what was its parent's. Both make files of their
 * own. Then the word is ACTIVE, PAUSED or OFF. OFF lasts as long as the process.
 *
 * What holds:
 * - One thread enters, by the pid in `entering`; what others do meanwhile, and what it allocates itself, is not
 *   recorded. The pid, rather than a flag: the child of a fork in the middle must not wait for a thread that it doesn't
 *   have.
 * - Nothing is written to a parent's files: a child forgets its parent's rings, log and devices before it makes its
 *   own, and has no event until then. A vfork child has its parent's memory and word: mt_process_is_owner() tells the
 *   two apart.
 * - Who sees ACTIVE sees the files mapped. An info file gets its magic last.
 * - What can't be had later is made before: chunks and nodes, before a seccomp filter comes into force or the rights to
 *   the directory go.
 *
 * What it does not do: it waits for nobody, and closes nothing at the end, since other libraries' destructors still
 * free. Nobody tells of a raw clone or of SIGKILL: the wiped word shows the first, and what is in the files is all that
 * is left of the second.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/output_name.h"
#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/libc.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"
#include "shim/base/tables.h"
#include "shim/device/acl.h"
#include "shim/device/device.h"
#include "shim/device/mstx.h"
#include "shim/device/pjrt.h"
#include "shim/host/map.h"
#include "shim/process/info.h"
#include "shim/process/life.h"
#include "shim/python/pycode.h"
#include "shim/stack/ehframe.h"
#include "shim/stack/maps.h"
#include "shim/stack/modules.h"
#include "shim/stack/stack.h"
#include "shim/stack/tree.h"
#include "shim/trace/mark.h"
#include "shim/trace/record.h"
#include "shim/trace/recorder.h"
#include "shim/trace/ring.h"
#include "shim/trace/sampled.h"
#include "shim/trace/session.h"
#include "shim/trace/unseen.h"
#include "shim/trace/young.h"

#define SANDBOX_RINGS 32  /* for threads that begin later */
#define FIXED_CHUNKS  256 /* 64 MiB of address space; of the disk 4 KiB each until they are used */
#define FIXED_TREE    4   /* segments: 16384 nodes */

static uint32_t entering; /* pid of the process in which a thread is in enter() */

/* ---- entering ---- */

static void take_tables(struct mt_tables *t)
{
	mt_ring_tables(t);
	mt_young_tables(t);
	mt_sampled_tables(t);
	mt_stack_tables(t);
	mt_ehframe_tables(t);
	mt_modules_tables(t);
	mt_map_tables(t);
	if (mt_sys_quiet())
		mt_maps_tables(t);
	mt_mark_tables(t);
	mt_pycode_tables(t);
	mt_acl_tables(t);
	mt_mstx_tables(t);
	mt_info_tables(t);
}

static int make_tables(void)
{
	struct mt_tables t = { NULL, 0 };

	take_tables(&t);
	t.base = mt_sys_pages(t.used);
	if (!t.base)
		return 0;
	MT_SYS3(SYS_madvise, t.base, t.used, MADV_NOHUGEPAGE); /* a small program touches few of its pages */
	t.used = 0;
	take_tables(&t);
	return 1;
}

static int enter_image(void)
{
	mt_config_read();
	if (mt_config.off || (mt_config.session[0] && !mt_config.children))
		return 0;
	if (!mt_session_open())
		return 0;
	mt_unseen_begins();
	if (mt_libc_is_sanitized()) {
		mt_unseen_count(0, MT_LOSS_SANITIZER, NULL);
		mt_say("a sanitizer's program: ", "not recorded");
		return 0;
	}
	if (!make_tables()) {
		mt_unseen_count(0, MT_LOSS_MEMORY, NULL);
		mt_say("no memory: ", "not recorded");
		return 0;
	}
	mt_stack_boot(); /* in every mode: mapped memory always has stacks */
	return mt_info_begin(MT_ORIGIN_EXEC, mt_sys_quiet() ? mt_quiet_parent() : (uint32_t)MT_SYS0(SYS_getppid),
			     MT_NO_PARENT, 0, 0);
}

/*
 * When memory was copied. The handler that runs before the fork is early: after it fork() waits for the allocator's
 * lock, and runs handlers of the program where we came late. What other threads, or those handlers, free until the copy
 * is free in the child. So the newest event that was written by then is the last one of the inheritance. It is found in
 * the copy itself: an event of a free is written before the block is given back.
 */
static uint64_t copied_at(uint64_t before_fork)
{
	uint64_t newest = mt_ring_newest();

	return before_fork && newest >= before_fork ? newest + 1 : before_fork;
}

/* Nothing of the parent's files may be written from here on: they are still mapped. */
static int enter_child(void)
{
	struct mt_info *parent = mt_process.info;
	uint32_t base = (mt_tree_end() + MT_NODE_STEP - 1) & ~(MT_NODE_STEP - 1), image = mt_process.image;
	uint32_t parent_pid = parent->pid; /* not getppid(): the parent may be gone, or one between us without events */
	uint64_t fork_ticks = copied_at(mt_process.fork_ticks);

	mt_lock_reset(&mt_process.lock);
	mt_process.fork_ticks = 0;
	mt_process.fixed = 0;
	mt_process.info = NULL;
	mt_record_reset();
	mt_ring_reset();
	mt_young_reset();
	mt_sampled_reset();
	if (mt_config.children)
		mt_modules_keep();
	mt_log_reset();
	mt_device_reset();
	mt_pjrt_reset();
	mt_mark_reset();
	mt_map_reset();
	if (!mt_sampled_is_on()) /* else a hook that a signal interrupted may be about to count in it */
		mt_sys_unmap(parent, MT_INFO_LOG);
	if (!mt_config.children)
		return 0;
	return mt_info_begin(MT_ORIGIN_FORK, parent_pid, image, fork_ticks, base);
}

/* What was asked of the session since this process or its parent looked, holds for who begins. */
static void obey_session(void)
{
	uint32_t asked = __atomic_load_n(&mt_process.session->asked, __ATOMIC_RELAXED);

	if (asked != mt_process.session_asked)
		mt_config.paused = !(asked & 1);
	mt_process.session_asked = asked;
	mt_process.asked = 0;
	if (mt_config.paused)
		mt_process.info->stopped_ticks = mt_process.info->start_ticks;
}

static int enter(void)
{
	uint32_t pid, other = __atomic_load_n(&entering, __ATOMIC_RELAXED);
	int ok;

	if (!mt_process.pid) {
		if (!environ) /* the loader is still at work; libc knows nothing yet */
			return 0;
		mt_quiet_meet();
	} else if (mt_process_sandboxed()) { /* forked */
		if (mt_process_state() == MT_STATE_NEW && mt_process.info && mt_config.children)
			mt_unseen_count(0, MT_LOSS_SECCOMP, NULL);
		mt_process_set_state(MT_STATE_OFF);
		return 0;
	}
	pid = mt_quiet_pid();
	if (other == pid || !__atomic_compare_exchange_n(&entering, &other, pid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	if (mt_process_state() == MT_STATE_NEW) {
		int forked = mt_process.pid != 0 && mt_process.pid != pid, was_recorded = mt_process.info != NULL;
		mt_process.pid = pid;
		mt_process_wipe_on_fork();
		ok = !forked ? enter_image() : mt_process.info ? enter_child() : 0;
		if (forked && !ok && !was_recorded && mt_process.session && mt_config.children)
			mt_unseen_count(pid, mt_process.session->unrecorded_why,
					NULL); /* its parent could not be either */
		if (ok)
			obey_session();
		mt_process_set_state(!ok                                   ? MT_STATE_OFF
				     : mt_config.paused || mt_process.held ? MT_STATE_PAUSED
									   : MT_STATE_ACTIVE);
		if (ok)
			mt_recorder_start_timer();
	}
	__atomic_store_n(&entering, 0, __ATOMIC_RELEASE);
	return mt_process_state() == MT_STATE_ACTIVE;
}

static const struct mt_process_life life = { enter };
MT_SET_ADD(mt_process_life, life);

/* ---- forks ---- */

void mt_life_before_fork(void)
{
	if (mt_process_state() == MT_STATE_NEW && mt_process.pid)
		mt_record_enter();
	if (mt_process_state() == MT_STATE_OFF) /* then there may be no clock */
		return;
	if (!mt_record_stacks(&mt_process.fork_node, &mt_process.fork_node2))
		mt_process.fork_node = mt_process.fork_node2 = 0;
	mt_record_before_fork();
	mt_process.fork_ticks = mt_ticks();
}

void mt_life_after_fork(void)
{
	mt_young_after_fork();
	mt_process.fork_ticks = 0;
	mt_process.fork_node = mt_process.fork_node2 = 0;
}

/* With a wiped page there is nothing left to do. */
void mt_life_forked(void)
{
	mt_quiet_forked();
	if ((mt_sys_quiet() || mt_process.pid != mt_quiet_pid()) && mt_process_state() != MT_STATE_OFF) {
		__atomic_store_n(mt_state, MT_STATE_NEW, __ATOMIC_RELAXED);
		mt_record_reset();
	}
}

/* ---- leaving ---- */

void mt_life_ends(enum mt_exit kind, int code)
{
	uint32_t state = mt_process_state();

	if ((state != MT_STATE_ACTIVE && state != MT_STATE_PAUSED) || !mt_process_is_owner())
		return;
	mt_process.info->exit_code = code;
	mt_process.info->end_ticks = mt_ticks();
	mt_process_pair_clocks();
	__atomic_store_n(&mt_process.info->exit_kind, kind, __ATOMIC_RELEASE);
}

static void stock_up(void)
{
	mt_recorder_want();
	mt_ring_reserve(16, 1);
	mt_ring_stock(SANDBOX_RINGS);
	mt_tree_reserve();
	mt_log_reserve(MT_LOG_STEP / 2);
	mt_process.info->seccomp = 1;
}

void mt_life_before_sandbox(void)
{
	if (mt_process_state() == MT_STATE_NEW && mt_process.pid)
		mt_record_enter();
	if (mt_process_sandboxed() || (mt_process.info && !mt_process_is_owner()))
		return;
	if (mt_process_state() == MT_STATE_ACTIVE || mt_process_state() == MT_STATE_PAUSED)
		stock_up();
	if (mt_quiet_clock_calls())
		mt_process_off();
	mt_stack_sandboxed();
	mt_quiet_whole();
}

/* The rest of this image's life it has what it has now: files can't be opened any more, but what is mapped can be
 * filled. */
void mt_life_before_drop(void)
{
	if (mt_process_state() == MT_STATE_NEW && mt_process.pid)
		mt_record_enter();
	if (mt_process_state() != MT_STATE_ACTIVE || !mt_process_is_owner() || mt_process_sandboxed() ||
	    mt_process.fixed)
		return;
	mt_recorder_want();
	mt_ring_reserve(mt_sys_quiet() ? FIXED_CHUNKS / 16 : FIXED_CHUNKS, 0);
	for (int i = 0; i < FIXED_TREE; i++)
		mt_tree_reserve();
	mt_log_reserve(MT_LOG_STEP / 2);
	mt_process.info->fixed = 1;
	mt_process.fixed = 1;
}

/* The next image could not open the session. Capabilities that this one has kept go with exec. */
static int is_shut_out(void)
{
	char path[PATH_MAX + 16];
	uid_t user = (uid_t)MT_SYS0(SYS_geteuid);
	struct stat st;
	int out;
	long fd;

	mt_put(mt_put(path, path + sizeof(path), mt_process.session_path), path + sizeof(path), "/session");
	fd = mt_sys_open(path, O_RDWR);
	if (mt_sys_failed(fd))
		return fd == -EACCES || fd == -EPERM || fd == -ENOENT;
	out = user && mt_quiet_fstat((int)fd, &st) && st.st_uid != user && !(st.st_mode & (S_IWGRP | S_IWOTH));
	MT_SYS1(SYS_close, fd);
	return out;
}

static struct mt_leaving count_next(uint32_t pid, const char *path, int searched, char *const envp[])
{
	struct mt_leaving l = { 0, 0 };
	uint32_t state = mt_process_state();

	if (!mt_process.session || state == MT_STATE_OFF || !mt_config.children)
		return l;
	l.why = mt_process.fixed && state == MT_STATE_ACTIVE && mt_process_is_owner() && is_shut_out()
			? MT_LOSS_RIGHTS
			: mt_unseen_next(path, searched, envp);
	if (l.why)
		l.note = mt_unseen_count(pid, l.why, path);
	return l;
}

struct mt_leaving mt_life_execs(const char *path, int searched, char *const envp[])
{
	mt_life_ends(MT_EXIT_EXEC, 0);
	return count_next(mt_quiet_pid(), path, searched, envp);
}

void mt_life_started(uint32_t pid, const char *path, int searched, char *const envp[])
{
	count_next(pid, path, searched, envp);
}

void mt_life_goes_on(struct mt_leaving l)
{
	mt_life_ends(MT_EXIT_NONE, 0);
	if (mt_process_state() == MT_STATE_ACTIVE && mt_process_is_owner())
		mt_process.info->end_ticks = 0;
	if (l.why)
		mt_unseen_withdraw(l.note, l.why);
}
