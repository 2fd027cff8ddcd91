/* Constructor, fork handlers and exit handlers: the only places where the shim does anything on its own. */
#include <errno.h>
#include <stdlib.h>

#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/environ.h"
#include "shim/base/libc.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/device/mstx.h"
#include "shim/device/nvtx.h"
#include "shim/hooks/hooks.h"
#include "shim/process/attach.h"
#include "shim/process/life.h"
#include "shim/process/weak.h"
#include "shim/stack/modules.h"
#include "shim/stack/stack.h"
#include "shim/stack/verify.h"
#include "shim/trace/record.h"
#include "shim/trace/recorder.h"
#include "shim/trace/session.h"
#include "shim/trace/unseen.h"

/* Our handler is registered before anybody's and so runs last, closest to the fork. */
static void before_fork(void)
{
	if (!mt_process.pid) /* attached to, and nothing more has come */
		return;
	if (mt_process_state() == MT_STATE_ACTIVE && mt_process_is_owner())
		mt_modules_check();
	mt_life_before_fork();
}

/* Registered first, so it runs after the program's own exit handlers; later frees are still recorded. */
static void at_exit(int status, void *unused)
{
	(void)unused;
	mt_life_ends(MT_EXIT_CODE, status & 0xff);
}

static void after_fork(void)
{
	if (mt_process.pid)
		mt_life_after_fork();
}

static void forked(void)
{
	if (mt_process.pid)
		mt_life_forked();
}

/* Once. musl has no __register_atfork, but pthread_atfork as a function of its own. */
static void set_fork_handlers(void)
{
	static int done;
	const struct mt_libc *libc = mt_libc();

	if (done)
		return;
	if (libc->__register_atfork)
		libc->__register_atfork(before_fork, after_fork, forked, NULL);
	else if (libc->pthread_atfork)
		libc->pthread_atfork(before_fork, after_fork, forked);
	done = 1; /* the call may be undone while it waits */
}

/* musl has no on_exit: it tells no handler the status. */
static void set_handlers(void)
{
	set_fork_handlers();
	if (mt_libc()->on_exit)
		mt_libc()->on_exit(at_exit, NULL);
}

static void set_up_rest(void)
{
	set_handlers();
	mt_session_export();
	mt_quiet_export();
	if (mt_config.python_allocators)
		mt_environ_set("PYTHONMALLOC", "malloc");
	mt_mstx_boot();
	mt_recorder_boot();
	mt_stack_load();
	mt_verify_boot();
	mt_modules_check();
}

static void set_up(void)
{
	mt_boot_allocator();
	mt_unseen_boot();
	set_up_rest();
}

/* Whose malloc comes first says nothing then. */
static void set_up_late(void)
{
	mt_boot_allocator();
	set_up_rest();
}

__attribute__((constructor)) static void init(void)
{
	int kept = errno; /* 0: a program may count on it */

	if (mt_attach_is_late()) {
		mt_attach_boot(set_up_late, set_fork_handlers);
		errno = kept;
		return;
	}
	mt_boot();
	mt_weak_boot();
	mt_nvtx_boot();
	mt_record_mute(1);
	mt_process_enter();
	if (mt_process_state() != MT_STATE_OFF)
		set_up();
	mt_record_mute(0);
	errno = kept;
}

/* Nothing is closed: other libraries' destructors still free. */
__attribute__((destructor)) static void fini(void)
{
	if (mt_process_state() == MT_STATE_ACTIVE && mt_process_is_owner()) {
		mt_process.info->end_ticks = mt_ticks();
		mt_process_pair_clocks();
	}
}

MT_EXPORT void memtrace_start(void);
MT_EXPORT void memtrace_stop(void);

MT_EXPORT void memtrace_start(void)
{
	mt_process_switch(1);
}

MT_EXPORT void memtrace_stop(void)
{
	mt_process_switch(0);
}
