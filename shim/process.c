#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "format/output_name.h"
#include "shim/attach.h"
#include "shim/clock.h"
#include "shim/config.h"
#include "shim/device.h"
#include "shim/hooks.h"
#include "shim/libc.h"
#include "shim/lines.h"
#include "shim/log.h"
#include "shim/map.h"
#include "shim/mark.h"
#include "shim/modules.h"
#include "shim/process.h"
#include "shim/quiet.h"
#include "shim/record.h"
#include "shim/recorder.h"
#include "shim/ring.h"
#include "shim/session.h"
#include "shim/stack.h"
#include "shim/tables.h"
#include "shim/tree.h"
#include "shim/unseen.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

#define SANDBOX_RINGS 32           /* for threads that begin later */
#define FIXED_CHUNKS  256          /* 64 MiB of address space; of the disk 4 KiB each until they are used */
#define FIXED_TREE    4            /* segments: 16384 nodes */
#define LEAST_LIMIT   (256u << 10) /* of the disk, whatever was asked for */
#define HEAD_BYTES    8192         /* of the info file: the header and the first chunks' states */

struct mt_process mt_process;

static uint32_t plain_state; /* until the wiped page exists, and where the kernel can't wipe */
uint32_t *mt_state = &plain_state;
static uint32_t entering; /* pid of the process in which a thread is in mt_process_enter */

int mt_process_is_owner(void)
{
	return mt_process.info && mt_process.pid == mt_sys_pid();
}

static void set_state(enum mt_state state)
{
	/* release: who sees ACTIVE sees the files mapped */
	__atomic_store_n(mt_state, state, __ATOMIC_RELEASE);
}

void mt_process_off(void)
{
	if (mt_process_is_owner())
		__atomic_store_n(&mt_process.info->off, 1, __ATOMIC_RELAXED);
	set_state(MT_STATE_OFF);
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
	uint32_t why = __atomic_load_n(&mt_sys_refused, __ATOMIC_RELAXED);

	mt_process_lost_for(events, mt_process_sandboxed() ? MT_LOSS_SECCOMP : why ? why : MT_LOSS_DISK);
}

/* ---- disk ---- */

/* What is raw is for the recorder to read; it needs room for what it writes. */
static int leaves_room(const struct mt_session *s, uint64_t used, enum mt_charge what)
{
	uint64_t raw = used - ((uint64_t)__atomic_load_n(&s->trace_mib, __ATOMIC_RELAXED) << 20);
	uint64_t limit = s->limit_bytes, kept = mt_tree_bytes() + (mt_process.info ? mt_process.info->log_bytes : 0),
		 beside = kept + limit / 8;

	if (what == MT_CHARGE_KEPT)
		return used <= limit / 16 * 13;
	return raw <= (beside > limit / 2 ? beside : limit / 2);
}

int mt_process_charge(uint64_t bytes, enum mt_charge what)
{
	struct mt_session *s = mt_process.session;
	uint64_t used = __atomic_add_fetch(&s->used_bytes, bytes, __ATOMIC_RELAXED);
	struct statfs fs;

	if (mt_process.info)
		mt_count(&mt_process.info->disk_bytes, bytes);
	if (s->limit_bytes && used > s->limit_bytes && (what != MT_CHARGE_FIRST || used > LEAST_LIMIT))
		goto refuse;
	if (what == MT_CHARGE_FIRST || what == MT_CHARGE_REST)
		return 1;
	if (s->limit_bytes && !leaves_room(s, used, what))
		goto refuse;
	if (!mt_sys_failed(MT_SYS2(SYS_statfs, mt_process.directory, &fs)) &&
	    (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < s->keep_free_bytes + bytes)
		goto refuse;
	return 1;
refuse:
	__atomic_store_n(&mt_sys_refused, MT_LOSS_DISK, __ATOMIC_RELAXED);
	mt_process_refund(bytes);
	return 0;
}

void mt_process_refund(uint64_t bytes)
{
	__atomic_fetch_sub(&mt_process.session->used_bytes, bytes, __ATOMIC_RELAXED);
	if (mt_process.info)
		__atomic_fetch_sub(&mt_process.info->disk_bytes, bytes, __ATOMIC_RELAXED);
}

#define PATH_ROOM (PATH_MAX / 4)

/* Of the file with this extension, or NULL. Whoever asks has the lock, or is alone: a thread's small stack is spared
 * the room for it. */
static const char *path_of(const char *ext)
{
	static char path[PATH_ROOM];
	size_t stem = (size_t)(mt_process.path_end - mt_process.path);

	if (stem + 8 > PATH_ROOM)
		return NULL;
	memcpy(path, mt_process.path, stem);
	mt_put(path + stem, path + PATH_ROOM, ext);
	return path;
}

void *mt_process_map(const char *ext, uint64_t offset, size_t bytes, size_t reserved, enum mt_open how)
{
	const char *path = path_of(ext);

	return path ? mt_sys_map_file(path, offset, bytes, reserved, how) : NULL;
}

int mt_process_reserve(const char *ext, uint64_t offset, size_t bytes, void *mapped)
{
	const char *path = path_of(ext);

	if (mt_sys_quiet() == MT_QUIET_USUAL)
		return 1; /* see mt_sys_first() */
	if (mt_process_sandboxed() || !mt_process_charge(bytes, MT_CHARGE_REST))
		return 0;
	if ((path && mt_sys_reserve(path, offset, bytes)) || (mt_process.fixed && mt_sys_fill(mapped, bytes)))
		return 1;
	mt_process_refund(bytes);
	return 0;
}

/* ---- the info file ---- */

static void set_stem(uint32_t image)
{
	struct mt_process *p = &mt_process;
	char *end = p->path + sizeof(p->path), *at = mt_put(p->path, end, p->directory);
	char prefix[MT_RAW_PREFIX];

	at = mt_put(at, end, "/");
	if (p->session->ring_dir[0]) {
		mt_raw_prefix(prefix, p->session->start_real_ns);
		at = mt_put(at, end, prefix);
	}
	at = mt_put_number(at, end, p->pid);
	at = mt_put(at, end, "-");
	at = mt_put_number(at, end, image);
	p->path_end = mt_put(at, end, ".");
}

static int file_exists(const char *ext)
{
	int there;

	mt_put(mt_process.path_end, mt_process.path + sizeof(mt_process.path), ext);
	there = mt_quiet_exists(mt_process.path);
	*mt_process.path_end = 0;
	return there;
}

/* PID-N with the first N that no earlier image or process of this number has. A finished one has only its
 * .trace left, which may be in the session's directory rather than here. */
static struct mt_info *find_image(void)
{
	for (uint32_t image = 0; image < 100000; image++) {
		struct mt_info *info;

		set_stem(image);
		if (file_exists("info") || mt_session_has_trace(mt_process.pid, image))
			continue;
		info = mt_process_map("info", 0, MT_INFO_LOG + MT_LOG_STEP,
				      mt_sys_first(HEAD_BYTES, MT_INFO_LOG + MT_LOG_STEP), MT_CREATE);
		if (info || !file_exists("info")) {
			mt_process.image = image;
			return info;
		}
	}
	return NULL;
}

static struct mt_info *make_info_file(void)
{
	struct mt_info *info;
	int tries = 0;

	do
		info = find_image();
	while (!info && tries++ < 3 && mt_session_make_ring_dir());
	return info;
}

static int reserve_log(void)
{
	const char *path = path_of("info");

	return path && mt_sys_reserve(path, MT_INFO_LOG, MT_LOG_START);
}

/* The head of the file and the first of its log: the rest is reserved when it is needed. */
static struct mt_info *start_info_file(void)
{
	uint64_t bytes = mt_sys_first(HEAD_BYTES + MT_LOG_START, MT_INFO_LOG + MT_LOG_STEP);
	struct mt_info *info;

	if (!mt_process_charge(bytes, MT_CHARGE_FIRST))
		return NULL;
	info = make_info_file();
	if (info) {
		if (reserve_log()) {
			mt_sys_populate(info, HEAD_BYTES);
			mt_log_start((uint8_t *)info + MT_INFO_LOG);
			info->disk_bytes = bytes;
			return info;
		}
		mt_sys_unmap(info, MT_INFO_LOG + MT_LOG_STEP);
		mt_put(mt_process.path_end, mt_process.path + sizeof(mt_process.path), "info");
		MT_SYS3(SYS_unlinkat, AT_FDCWD, mt_process.path, 0);
		*mt_process.path_end = 0;
	}
	mt_process_refund(bytes);
	return NULL;
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

static void note_limits(struct mt_info *info)
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
	note_limits(mt_process.info);
	__atomic_add_fetch(&mt_process.info->refusals, 1, __ATOMIC_RELAXED);
	n = mt_sys_read_file("/proc/self/statm", text, sizeof(text) - 1);
	text[n > 0 && n < (long)sizeof(text) ? n : 0] = 0;
	for (int i = 0; i < 6; i++)
		pages[i] = mt_number(at, &at, 10);
	__atomic_store_n(&mt_process.info->address_used, pages[0] * mt_process.session->page_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&mt_process.info->data_used, pages[5] * mt_process.session->page_bytes, __ATOMIC_RELAXED);
}

static void note_shm(struct mt_info *info)
{
	struct statfs fs;

	if (!mt_sys_failed(MT_SYS2(SYS_statfs, "/dev/shm", &fs)) && fs.f_type == 0x01021994 /* TMPFS_MAGIC */)
		info->shm_used = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize + 1;
}

static void fill_info(struct mt_info *info, enum mt_origin origin, uint32_t parent_pid, uint32_t parent_image,
		      uint64_t fork_ticks)
{
	info->version = MT_VERSION;
	info->bytes = sizeof(*info);
	info->pid = mt_process.pid;
	info->image = mt_process.image;
	info->parent_pid = parent_pid;
	info->parent_image = parent_image;
	info->origin = origin;
	info->clock = mt_clock;
	info->boot_start = mt_process_boot_start(0);
	info->pid_ns = mt_quiet_namespace();
	info->fork_ticks = fork_ticks;
	info->fork_node = mt_process.fork_node;
	info->fork_node2 = mt_process.fork_node2;
	mt_process.fork_node = mt_process.fork_node2 = 0; /* who it forks without a handler has none */
	info->attached = mt_attach_state();
	info->stacks = mt_config.stacks;
	info->depth = mt_config.depth;
	info->sample_bytes = mt_config.sample_bytes;
	info->start_real_ns = mt_clock_ns(CLOCK_REALTIME);
	info->start_mono_ns = mt_clock_ns(CLOCK_MONOTONIC);
	info->start_ticks = mt_ticks();
	note_shm(info);
}

void mt_process_pair_clocks(void)
{
	struct mt_info *info = mt_process.info;

	info->pair_mono_ns = mt_clock_ns(CLOCK_MONOTONIC);
	info->pair_ticks = mt_ticks();
}

/* ---- what is said once ---- */

#define TEXT_BYTES 32768
static char *program_text; /* first the path of the executable, then the arguments */

static void log_program(void)
{
	char *text = program_text;
	long exe = mt_quiet_program(text, PATH_MAX);
	size_t used = exe > 0 ? (size_t)exe : 0;

	text[used++] = 0;
	used += (size_t)(exe = mt_sys_read_file("/proc/self/cmdline", text + used, TEXT_BYTES - used)) < TEXT_BYTES
			? (size_t)exe
			: 0;
	if (text[used - 1])
		text[used++] = 0;
	mt_log_add(MT_REC_PROGRAM, (struct mt_part[]){ { text, used } }, 1);
}

static int is_variable(const char *setting, const char *const *names)
{
	size_t n = strcspn(setting, "=");

	for (; *names; names++)
		if (!strncmp(setting, *names, n) && !(*names)[n])
			return 1;
	return 0;
}

/* The end of the prefix in `text`, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
	for (; *prefix; text++, prefix++)
		if (*text != *prefix)
			return NULL;
	return text;
}

static int is_listed(const char *setting)
{
	static const struct {
		const char *prefix, *within;
	} listed[] = {
		{ "PYTORCH_", "ALLOC_CONF=" },
		{ "ASCEND_", "_VISIBLE_DEVICES=" },
		{ "CUDA_VISIBLE_DEVICES=", "" },
		{ "MALLOC_", "" },
		{ "GLIBC_TUNABLES=", "" },
		{ "TCMALLOC_", "" },
		{ "MIMALLOC_", "" },
		{ "OMP_", "" },
		{ "LD_PRELOAD=", "" },
		{ "PYTHONMALLOC=", "" },
		{ "LOCAL_RANK=", "" },
		{ "GROUP_RANK=", "" },
		{ "WORLD_SIZE=", "" },
		{ "OMPI_COMM_WORLD_", "" },
		{ "MPI_LOCALRANKID=", "" },
		{ "PMI_SIZE=", "" },
		{ "SLURM_LOCALID=", "" },
		{ "SLURM_NODEID=", "" },
		{ "SLURM_NTASKS=", "" },
		{ "RANK_SIZE=", "" },
		{ "MEMTRACE_TAGS=", "" },
	};

	for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++)
		if (behind(setting, listed[i].prefix) && strstr(setting, listed[i].within))
			return 1;
	return is_variable(setting, mt_rank_variables) || is_variable(setting, mt_job_variables);
}

static void log_environment(void)
{
	struct mt_part parts[48];
	int n = 0;

	for (char **e = environ; e && *e && n < 48; e++)
		if (is_listed(*e))
			parts[n++] = (struct mt_part){ *e, strlen(*e) + 1 };
	if (n)
		mt_log_add(MT_REC_ENV, parts, n);
}

/* Under one lock: there are more than a hundred. */
static void log_hooks(void)
{
	uint64_t signals;

	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		for (uint32_t i = 1; i < MT_HOOKS; i++) {
			struct mt_rec_hook rec = { i, 0 };
			mt_log_write(MT_REC_HOOK,
				     (struct mt_part[]){ { &rec, sizeof(rec) },
							 { mt_hook_names[i], strlen(mt_hook_names[i]) + 1 } },
				     2);
		}
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
}

/* ---- entering ---- */

static int make_state_page(void)
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

static int start_files(enum mt_origin origin, uint32_t parent_pid, uint32_t parent_image, uint64_t fork_ticks,
		       uint32_t node_base)
{
	struct mt_info *info;

	info = start_info_file();
	if (!info) {
		mt_unseen_count(0, mt_sys_refused, NULL);
		return 0;
	}
	mt_process.info = info;
	mt_process.states = (uint8_t *)info + MT_INFO_STATES;
	fill_info(info, origin, parent_pid, parent_image, fork_ticks);
	note_limits(info);
	info->fork_exact = fork_ticks != 0;
	if (origin == MT_ORIGIN_FORK && !fork_ticks)
		info->fork_ticks = info->start_ticks;
	info->node_base = node_base;
	if (!mt_tree_start(node_base))
		mt_say("no call tree: ", mt_process.path);
	log_program();
	log_environment();
	log_hooks();
	if (origin == MT_ORIGIN_FORK)
		mt_modules_inherit();
	else
		mt_modules_start();
	mt_ring_reserve(1, 0);
	mt_process_pair_clocks();
	/* last: an info file without its magic belongs to a process that never began */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(info->magic, MT_INFO_MAGIC, 8);
	return 1;
}

static void take_tables(struct mt_tables *t)
{
	mt_ring_tables(t);
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
	program_text = mt_tables_take(t, TEXT_BYTES);
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
	return start_files(MT_ORIGIN_EXEC, mt_sys_quiet() ? mt_quiet_parent() : (uint32_t)MT_SYS0(SYS_getppid),
			   MT_NO_PARENT, 0, 0);
}

/* Nothing of the parent's files may be written from here on: they are still mapped. */
static int enter_child(void)
{
	struct mt_info *parent = mt_process.info;
	uint32_t base = (mt_tree_end() + MT_NODE_STEP - 1) & ~(MT_NODE_STEP - 1), image = mt_process.image;
	uint32_t parent_pid = parent->pid; /* not getppid(): the parent may be gone, or one between us without events */
	uint64_t fork_ticks = mt_process.fork_ticks;

	mt_lock_reset(&mt_process.lock);
	mt_process.fork_ticks = 0;
	mt_process.fixed = 0;
	mt_process.info = NULL;
	mt_record_reset();
	mt_ring_reset();
	if (mt_config.children)
		mt_modules_keep();
	mt_log_reset();
	mt_device_reset();
	mt_mark_reset();
	mt_map_reset();
	mt_sys_unmap(parent, MT_INFO_LOG);
	if (!mt_config.children)
		return 0;
	return start_files(MT_ORIGIN_FORK, parent_pid, image, fork_ticks, base);
}

/* ---- starting and stopping ---- */

void mt_process_switch(int on)
{
	uint32_t from = on ? MT_STATE_PAUSED : MT_STATE_ACTIVE, to = on ? MT_STATE_ACTIVE : MT_STATE_PAUSED;
	struct mt_info *info = mt_process.info;
	uint64_t now;

	__atomic_store_n(&mt_config.paused, !on, __ATOMIC_RELAXED);
	if (mt_process_state() != from || !mt_process_is_owner())
		return;
	if (on)
		mt_attach_hook();
	now = mt_ticks();
	if (!__atomic_compare_exchange_n(mt_state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	if (!on) {
		info->stopped_ticks = now;
		info->stops++;
		mt_attach_unhook();
		return;
	}
	if (info->stops)
		info->gap_ticks += now - info->stopped_ticks;
	else
		info->recorded_ticks = now;
	info->stopped_ticks = 0;
}

void mt_process_obey(void)
{
	uint32_t seen = __atomic_load_n(&mt_process.asked, __ATOMIC_RELAXED);
	uint32_t asked = __atomic_load_n(&mt_process.info->asked, __ATOMIC_RELAXED);

	if (asked != seen &&
	    __atomic_compare_exchange_n(&mt_process.asked, &seen, asked, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		mt_process_switch(asked & 1);
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

int mt_process_enter(void)
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
		set_state(MT_STATE_OFF);
		return 0;
	}
	pid = mt_sys_pid();
	if (other == pid || !__atomic_compare_exchange_n(&entering, &other, pid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	if (mt_process_state() == MT_STATE_NEW) {
		int forked = mt_process.pid != 0 && mt_process.pid != pid, was_recorded = mt_process.info != NULL;
		mt_process.pid = pid;
		make_state_page();
		ok = !forked ? enter_image() : mt_process.info ? enter_child() : 0;
		if (forked && !ok && !was_recorded && mt_process.session && mt_config.children)
			mt_unseen_count(pid, mt_process.session->unrecorded_why,
					NULL); /* its parent could not be either */
		if (ok)
			obey_session();
		set_state(!ok ? MT_STATE_OFF : mt_config.paused || mt_process.held ? MT_STATE_PAUSED : MT_STATE_ACTIVE);
		if (ok)
			mt_recorder_start_timer();
	}
	__atomic_store_n(&entering, 0, __ATOMIC_RELEASE);
	return mt_process_state() == MT_STATE_ACTIVE;
}

void mt_process_before_fork(void)
{
	if (mt_process_state() == MT_STATE_NEW && mt_process.pid)
		mt_record_enter();
	if (mt_process_state() == MT_STATE_OFF) /* then there may be no clock */
		return;
	if (!mt_record_stacks(&mt_process.fork_node, &mt_process.fork_node2))
		mt_process.fork_node = mt_process.fork_node2 = 0;
	mt_process.fork_ticks = mt_ticks();
}

void mt_process_after_fork(void)
{
	mt_process.fork_ticks = 0;
	mt_process.fork_node = mt_process.fork_node2 = 0;
}

/* With a wiped page there is nothing left to do. */
void mt_process_forked(void)
{
	mt_quiet_forked();
	if ((mt_sys_quiet() || mt_process.pid != mt_sys_pid()) && mt_process_state() != MT_STATE_OFF) {
		__atomic_store_n(mt_state, MT_STATE_NEW, __ATOMIC_RELAXED);
		mt_record_reset();
	}
}

/* ---- leaving ---- */

void mt_process_ends(enum mt_exit kind, int code)
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

void mt_process_before_sandbox(void)
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
void mt_process_before_drop(void)
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

struct mt_leaving mt_process_execs(const char *path, int searched, char *const envp[])
{
	mt_process_ends(MT_EXIT_EXEC, 0);
	return count_next(mt_sys_pid(), path, searched, envp);
}

void mt_process_started(uint32_t pid, const char *path, int searched, char *const envp[])
{
	count_next(pid, path, searched, envp);
}

void mt_process_goes_on(struct mt_leaving l)
{
	mt_process_ends(MT_EXIT_NONE, 0);
	if (mt_process_state() == MT_STATE_ACTIVE && mt_process_is_owner())
		mt_process.info->end_ticks = 0;
	if (l.why)
		mt_unseen_withdraw(l.note, l.why);
}
