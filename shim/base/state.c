#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "format/output_name.h"
#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/file.h"
#include "shim/base/holders.h"
#include "shim/base/lines.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

struct mt_process mt_process;

static uint32_t plain_state; /* until the wiped page exists, and where the kernel can't wipe */
uint32_t *mt_state = &plain_state;

int mt_process_is_owner(void)
{
	return mt_process.info && mt_process.pid == mt_quiet_pid();
}

int mt_process_wipe_on_fork(void)
{
	uint32_t *page;

	if (mt_state != &plain_state)
		return 1;
	page = mt_sys_pages(4096);
	if (!page)
		return 0;
	if (mt_sys_failed(MT_SYS3(SYS_madvise, page, 4096, MADV_WIPEONFORK)))
		mt_sys_unmap(page, 4096); /* old kernel: the fork handler resets the plain word */
	else
		mt_state = page;
	return 1;
}

void mt_process_set_state(enum mt_state state)
{
	/* release: who sees ACTIVE sees the files mapped */
	__atomic_store_n(mt_state, state, __ATOMIC_RELEASE);
}

void mt_process_off(void)
{
	if (mt_process_is_owner())
		__atomic_store_n(&mt_process.info->off, 1, __ATOMIC_RELAXED);
	mt_process_set_state(MT_STATE_OFF);
}

static void count_faults(uint64_t n)
{
	if (mt_process.info && __atomic_add_fetch(&mt_process.info->faults, n, __ATOMIC_RELAXED) >= MT_MAX_FAULTS)
		mt_process_off();
}

void mt_process_fault(void)
{
	count_faults(1);
}

void mt_process_stuck(void)
{
	count_faults(MT_MAX_FAULTS / 3);
}

void mt_process_lost_for(uint64_t events, uint32_t why)
{
	struct mt_info *info = mt_process.info;

	if (!info)
		return;
	mt_count(&info->lost_events, events);
	__atomic_fetch_or(&info->lost_why, why, __ATOMIC_RELAXED);
}

void mt_process_lost(uint64_t events)
{
	uint32_t why = __atomic_load_n(&mt_file_refused, __ATOMIC_RELAXED);

	mt_process_lost_for(events, mt_process_sandboxed() ? MT_LOSS_SECCOMP : why ? why : MT_LOSS_DISK);
}

/* ---- starting and stopping ---- */

int mt_process_enter(void)
{
	int active = 0;

	MT_SET_EACH (mt_process_life, life)
		active = (*life)->enter();
	return active;
}

void mt_process_switch(int on)
{
	uint32_t from = on ? MT_STATE_PAUSED : MT_STATE_ACTIVE, to = on ? MT_STATE_ACTIVE : MT_STATE_PAUSED;
	struct mt_info *info = mt_process.info;
	uint64_t now;

	__atomic_store_n(&mt_config.paused, !on, __ATOMIC_RELAXED);
	if (mt_process_state() != from || !mt_process_is_owner())
		return;
	if (on)
		MT_SET_EACH (mt_process_turn, turn)
			(*turn)->on();
	now = mt_ticks();
	if (!__atomic_compare_exchange_n(mt_state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	if (!on) {
		info->stopped_ticks = now;
		info->stops++;
		MT_SET_EACH (mt_process_turn, turn)
			(*turn)->off();
		return;
	}
	if (info->stops)
		info->gap_ticks += now - info->stopped_ticks;
	else
		info->recorded_ticks = now;
	info->stopped_ticks = 0;
}

static void obey(uint32_t asked, uint32_t changed)
{
	if (changed & ~MT_ASKED_HOLDERS)
		mt_process_switch(asked & 1);
	if (changed & MT_ASKED_HOLDERS)
		mt_holders_ask(MT_HOLD_REQUEST, NULL);
}

void mt_process_obey(void)
{
	uint32_t seen = __atomic_load_n(&mt_process.asked, __ATOMIC_RELAXED);
	uint32_t asked = __atomic_load_n(&mt_process.info->asked, __ATOMIC_RELAXED);

	if (asked != seen &&
	    __atomic_compare_exchange_n(&mt_process.asked, &seen, asked, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		obey(asked, asked ^ seen);
}

/* ---- what is known of it ---- */

void mt_process_pair_clocks(void)
{
	struct mt_info *info = mt_process.info;

	info->pair_mono_ns = mt_clock_ns(CLOCK_MONOTONIC);
	info->pair_ticks = mt_ticks();
}

/* Field 22. The name in field 2 may hold anything, so count from the last parenthesis. */
uint64_t mt_process_boot_start(uint32_t pid)
{
	char text[1024], *end = text + sizeof(text), *at;

	at = mt_put(text, end, "/proc/");
	mt_put(pid ? mt_put_number(at, end, pid) : mt_put(at, end, "self"), end, "/stat");
	if (mt_sys_read_file(text, text, sizeof(text)) <= 0 || !(at = strrchr(text, ')')))
		return 0;
	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	return at ? mt_number(at, NULL, 10) : 0;
}

static uint64_t limit_of(int resource)
{
	struct rlimit limit = { 0, 0 };

	if (mt_sys_failed(MT_SYS4(SYS_prlimit64, 0, resource, NULL, &limit)))
		return 0;
	return limit.rlim_cur == RLIM_INFINITY ? MT_NO_LIMIT : limit.rlim_cur ? limit.rlim_cur : 1;
}

void mt_process_note_limits(struct mt_info *info)
{
	__atomic_store_n(&info->address_limit, limit_of(RLIMIT_AS), __ATOMIC_RELAXED);
	__atomic_store_n(&info->data_limit, limit_of(RLIMIT_DATA), __ATOMIC_RELAXED);
}

/* The program may have set limits meanwhile. In pages: size, resident, shared, text, 0, data with stack. */
void mt_process_note_refusal(void)
{
	char text[128];
	const char *at = text;
	uint64_t pages[6];
	long n;

	if (mt_process_state() != MT_STATE_ACTIVE || !mt_process_is_owner())
		return;
	mt_process_note_limits(mt_process.info);
	__atomic_add_fetch(&mt_process.info->refusals, 1, __ATOMIC_RELAXED);
	n = mt_sys_read_file("/proc/self/statm", text, sizeof(text) - 1);
	text[n > 0 && n < (long)sizeof(text) ? n : 0] = 0;
	for (int i = 0; i < 6; i++)
		pages[i] = mt_number(at, &at, 10);
	__atomic_store_n(&mt_process.info->address_used, pages[0] * mt_process.session->page_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&mt_process.info->data_used, pages[5] * mt_process.session->page_bytes, __ATOMIC_RELAXED);
}
