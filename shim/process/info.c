#include <fcntl.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/disk.h"
#include "shim/base/file.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"
#include "shim/base/tables.h"
#include "shim/hooks/hooks.h"
#include "shim/process/info.h"
#include "shim/stack/modules.h"
#include "shim/stack/tree.h"
#include "shim/trace/ring.h"
#include "shim/trace/session.h"
#include "shim/trace/settings.h"
#include "shim/trace/unseen.h"

#define HEAD_BYTES 8192 /* of the info file: the header and the first chunks' states */

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
		info = mt_disk_map("info", 0, MT_INFO_LOG + MT_LOG_STEP,
				   mt_file_first(HEAD_BYTES, MT_INFO_LOG + MT_LOG_STEP), MT_CREATE);
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
	const char *path = mt_disk_path("info");

	return path && mt_file_reserve(path, MT_INFO_LOG, MT_LOG_START);
}

/* The head of the file and the first of its log: the rest is reserved when it is needed. */
static struct mt_info *start_info_file(void)
{
	uint64_t bytes = mt_file_first(HEAD_BYTES + MT_LOG_START, MT_INFO_LOG + MT_LOG_STEP);
	struct mt_info *info;

	if (!mt_disk_charge(bytes, MT_CHARGE_FIRST))
		return NULL;
	info = make_info_file();
	if (info) {
		if (reserve_log()) {
			mt_file_populate(info, HEAD_BYTES);
			mt_log_start((uint8_t *)info + MT_INFO_LOG);
			info->disk_bytes = bytes;
			return info;
		}
		mt_sys_unmap(info, MT_INFO_LOG + MT_LOG_STEP);
		mt_put(mt_process.path_end, mt_process.path + sizeof(mt_process.path), "info");
		MT_SYS3(SYS_unlinkat, AT_FDCWD, mt_process.path, 0);
		*mt_process.path_end = 0;
	}
	mt_disk_refund(bytes);
	return NULL;
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
	info->attached = mt_process.attached;
	info->stacks = mt_config.stacks;
	info->record = mt_config.record;
	info->depth = mt_config.depth;
	info->sample_bytes = mt_config.sample_bytes;
	info->start_real_ns = mt_clock_ns(CLOCK_REALTIME);
	info->start_mono_ns = mt_clock_ns(CLOCK_MONOTONIC);
	info->start_ticks = mt_ticks();
	note_shm(info);
}

/* ---- what is said once ---- */

#define TEXT_BYTES 32768
static char *program_text; /* first the path of the executable, then the arguments */

void mt_info_tables(struct mt_tables *t)
{
	program_text = mt_tables_take(t, TEXT_BYTES);
}

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

int mt_info_begin(enum mt_origin origin, uint32_t parent_pid, uint32_t parent_image, uint64_t fork_ticks,
		  uint32_t node_base)
{
	struct mt_info *info = start_info_file();

	if (!info) {
		mt_unseen_count(0, mt_file_refused, NULL);
		return 0;
	}
	mt_process.info = info;
	mt_process.states = (uint8_t *)info + MT_INFO_STATES;
	fill_info(info, origin, parent_pid, parent_image, fork_ticks);
	mt_process_note_limits(info);
	info->fork_exact = fork_ticks != 0;
	if (origin == MT_ORIGIN_FORK && !fork_ticks)
		info->fork_ticks = info->start_ticks;
	info->node_base = node_base;
	if (!mt_tree_start(node_base))
		mt_say("no call tree: ", mt_process.path);
	log_program();
	mt_settings_log();
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
