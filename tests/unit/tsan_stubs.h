/* What the shim's rings and call tree stand on, for tests under ThreadSanitizer: a process whose files are plain
 * memory. The sources are included, not linked: a shim that is linked in would replace malloc. */
#ifndef TSAN_STUBS_H
#define TSAN_STUBS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/base/clock.c"
#include "shim/base/file.c"
#include "shim/base/lock.c"
#include "shim/base/disk.h"
#include "shim/base/state.h"
#include "shim/base/sys.c"

struct mt_process mt_process;
static struct mt_session stub_session; /* without a limit */
static struct mt_info stub_info;
static uint8_t stub_states[MT_MAX_CHUNKS];
static uint64_t stub_bytes_left; /* what the disk holds */
static int stub_shared;          /* files are seen by forked children, too */

struct mt_libc mt_libc_found = { .clock_gettime = clock_gettime };
uint8_t mt_libc_known = 1;
void mt_libc_find(void)
{
}

uint32_t mt_quiet_pid(void)
{
	return (uint32_t)getpid();
}
uint64_t mt_quiet_file_limit(void)
{
	return UINT64_MAX;
}
int mt_quiet_fstat(int fd, struct stat *st)
{
	return fstat(fd, st) == 0;
}
uint32_t mt_quiet_thread(char name[16])
{
	strcpy(name, "t");
	return (uint32_t)MT_SYS0(SYS_gettid);
}
int mt_quiet_exists(const char *path)
{
	(void)path;
	return 0;
}
int mt_process_is_owner(void)
{
	return 1;
}
void mt_process_fault(void)
{
	abort();
}
void mt_process_stuck(void)
{
	abort();
}
void mt_process_pair_clocks(void)
{
}
void mt_process_lost(uint64_t events)
{
	mt_count(&stub_info.lost_events, events);
}
void mt_disk_refund(uint64_t bytes)
{
	(void)bytes;
}

uint32_t mt_disk_behind(uint64_t free)
{
	(void)free;
	return 0;
}
int mt_disk_charge(uint64_t bytes, enum mt_charge what)
{
	(void)what;
	if (bytes > stub_bytes_left)
		return 0;
	stub_bytes_left -= bytes;
	return 1;
}

int mt_disk_reserve(const char *ext, uint64_t offset, size_t bytes, void *mapped)
{
	(void)mapped;
	(void)ext;
	(void)offset;
	return mt_disk_charge(bytes, MT_CHARGE_REST);
}

void *mt_disk_map(const char *ext, uint64_t offset, size_t bytes, size_t reserved, enum mt_open how)
{
	(void)ext;
	(void)offset;
	(void)reserved;
	(void)how;
	if (stub_shared)
		return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return mt_sys_pages(bytes);
}

/* With room on the disk for so many bytes. */
static void stub_start(uint64_t bytes)
{
	mt_quiet = MT_QUIET_NOT;
	mt_process.info = &stub_info;
	mt_process.session = &stub_session;
	mt_process.pid = mt_quiet_pid();
	mt_process.states = stub_states;
	stub_bytes_left = bytes;
}

/* Prints the line that tests/run counts; a race ends the program before. */
static int stub_result(const char *name, const char *wrong)
{
	printf(wrong ? "not ok - %s: %s\n" : "ok - %s\n", name, wrong);
	return wrong ? 1 : 0;
}

#endif
