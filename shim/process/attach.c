#include "shim/process/attach.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "format/attach.h"
#include "format/output_name.h"
#include "shim/base/config.h"
#include "shim/base/elfsearch.h"
#include "shim/base/environ.h"
#include "shim/base/libc.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"
#include "shim/hooks/hooks.h"
#include "shim/process/relocate.h"
#include "shim/trace/record.h"
#include "shim/trace/unseen.h"

#define LIBRARY "libmemtrace.so"

static void (*set_up)(void), (*set_forks)(void);
static char given[sizeof(((struct mt_attach *)0)->settings)];

MT_EXPORT int memtrace_attach(struct mt_attach *a);

int mt_attach_is_late(void)
{
	if (!mt_symbols_search(MT_BEFORE, NULL, "__libc_start_main", NULL))
		return 0;
	mt_symbols_late();
	return 1;
}

static uint32_t state_now(void)
{
	return __atomic_load_n(&mt_process.attached, __ATOMIC_RELAXED);
}

static void set_state(enum mt_attached state)
{
	__atomic_store_n(&mt_process.attached, state, __ATOMIC_RELAXED);
	if (mt_process_is_owner())
		__atomic_store_n(&mt_process.info->attached, state, __ATOMIC_RELEASE);
}

/* One thread at a time puts hooks in place or takes them away; another one waits, but not for ever. */
static uint32_t changing;

static int begin_change(uint64_t *signals)
{
	uint32_t no = 0;

	mt_sys_block_signals(signals);
	for (int tries = 0; tries < 100000; tries++, no = 0) {
		if (__atomic_compare_exchange_n(&changing, &no, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return 1;
		MT_SYS0(SYS_sched_yield);
	}
	mt_sys_restore_signals(signals);
	return 0;
}

static void end_change(const uint64_t *signals)
{
	__atomic_store_n(&changing, 0, __ATOMIC_RELEASE);
	mt_sys_restore_signals(signals);
}

/* As this library was opened, and whether it is to wait for its call. */
static int is_to_wait(void)
{
	Dl_info self;
	size_t n;

	if (!mt_libc()->dladdr((const void *)(uintptr_t)mt_attach_boot, &self))
		return 0;
	n = strlen(self.dli_fname);
	return n >= sizeof(MT_ATTACH_WAITS LIBRARY) - 1 &&
	       !strcmp(self.dli_fname + n - (sizeof(MT_ATTACH_WAITS LIBRARY) - 1), MT_ATTACH_WAITS LIBRARY);
}

/* Children are preloaded, where the file is there for them. */
static void preload_children(void)
{
	static char path[PATH_MAX], list[2 * PATH_MAX];
	char *end = list + sizeof(list), *at;
	const char *others = mt_environ_get("LD_PRELOAD");
	Dl_info self;

	if (!mt_config.children || (others && strstr(others, "memtrace")) ||
	    !mt_libc()->dladdr((const void *)(uintptr_t)mt_attach_boot, &self) ||
	    !mt_libc()->realpath(self.dli_fname, path) || strpbrk(path, " :"))
		return;
	at = mt_put(list, end, path);
	if (others && *others)
		mt_put(mt_put(at, end, ":"), end, others);
	mt_environ_set("LD_PRELOAD", list);
}

static void export_given(void)
{
	char name[64];

	for (const char *s = given; *s; s += strlen(s) + 1) {
		size_t n = strcspn(s, "=");
		if (n >= sizeof(name) || !s[n])
			continue;
		memcpy(name, s, n);
		name[n] = 0;
		mt_environ_set(name, s + n + 1);
	}
}

static int enter(void)
{
	int ok;

	mt_boot();
	mt_first = (struct mt_first){ NULL, NULL }; /* the program's calls will come to us first */
	mt_process.held = 1;
	mt_record_mute(1);
	mt_process_enter();
	ok = mt_process_state() != MT_STATE_OFF && mt_process_is_owner();
	if (ok)
		set_up();
	mt_record_mute(0);
	return ok;
}

static void export_all(void)
{
	export_given();
	preload_children();
}

static uint32_t hook(void)
{
	uint32_t words = mt_relocate();

	set_state(words ? MT_ATTACHED_HOOKED : MT_ATTACHED_NOTHING);
	if (!words)
		mt_unseen_count(mt_process.pid, MT_LOSS_LATE, LIBRARY);
	return words;
}

static void begin(void)
{
	mt_process.held = 0;
	if (state_now() == MT_ATTACHED_HOOKED) {
		mt_relocate(); /* what a thread was just binding */
		if (!mt_config.paused)
			mt_process_switch(1);
	}
}

void mt_attach_boot(void (*how)(void), void (*forks)(void))
{
	set_up = how;
	set_forks = forks;
	if (is_to_wait() || !enter())
		return;
	export_all();
	hook();
	begin();
}

static void turn_on(void)
{
	uint64_t signals;

	if (state_now() != MT_ATTACHED_UNDONE || !mt_process_is_owner() || !begin_change(&signals))
		return;
	if (state_now() == MT_ATTACHED_UNDONE) {
		mt_environ_redo();
		hook();
	}
	end_change(&signals);
}

static void turn_off(void)
{
	uint64_t signals;

	if (state_now() != MT_ATTACHED_HOOKED || !mt_process_is_owner() || !begin_change(&signals))
		return;
	mt_relocate_undo();
	mt_environ_undo();
	if (!mt_relocated)
		set_state(MT_ATTACHED_UNDONE);
	end_change(&signals);
}

static const struct mt_process_turn turn = { turn_on, turn_off };
MT_SET_ADD(mt_process_turn, turn);

/* ---- what memtrace start calls ---- */

static void take_settings(const struct mt_attach *a)
{
	memcpy(given, a->settings, sizeof(given) - 2);
	given[sizeof(given) - 2] = given[sizeof(given) - 1] = 0;
	mt_environ_give(given);
}

static void say(struct mt_attach *a, enum mt_attach_result result)
{
	if (result == MT_ATTACH_DONE)
		mt_put(a->trace, a->trace + sizeof(a->trace), mt_process.session_path);
	__atomic_store_n(&a->result, result, __ATOMIC_RELEASE);
}

static enum mt_attach_result first_hook(struct mt_attach *a)
{
	take_settings(a);
	if (!enter())
		return mt_process.session ? MT_ATTACH_OFF : mt_config.off ? MT_ATTACH_OFF : MT_ATTACH_NO_TRACE;
	export_all();
	a->words = hook();
	return a->words ? MT_ATTACH_DONE : MT_ATTACH_NOTHING;
}

/* Nothing is recorded before MT_ATTACH_BEGIN. */
static enum mt_attach_result hook_again(struct mt_attach *a)
{
	turn_on();
	a->words = mt_relocated;
	return a->words ? MT_ATTACH_DONE : MT_ATTACH_NOTHING;
}

int memtrace_attach(struct mt_attach *a)
{
	int kept = errno;
	uint32_t state = mt_process_state();

	if (a->bytes < sizeof(*a))
		return -1;
	if (state == MT_STATE_OFF)
		say(a, MT_ATTACH_OFF);
	else if (a->step == MT_ATTACH_FORKS) {
		if (set_forks)
			set_forks();
		say(a, MT_ATTACH_READY);
	} else if (state == MT_STATE_NEW && !set_up) /* preloaded: its first event is to begin, not we */
		say(a, MT_ATTACH_NOTHING);
	else if (a->step == MT_ATTACH_HOOK && state == MT_STATE_NEW)
		say(a, first_hook(a));
	else if (a->step == MT_ATTACH_HOOK)
		say(a, hook_again(a));
	else if (a->step == MT_ATTACH_BEGIN) {
		mt_config.paused = 0;
		begin();
		a->words = mt_relocated;
		say(a, mt_relocated ? MT_ATTACH_DONE : MT_ATTACH_NOTHING);
	}
	errno = kept;
	return 0;
}
