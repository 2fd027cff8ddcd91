/* Mappings: mmap, mremap, munmap, with what is behind them; mprotect, which makes them usable or not, and madvise,
 * which gives their memory back; shmat and shmdt, for segments of System V. glibc's own arenas and the loader's
 * segments don't come through here; smaps tells their sum. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "format/fnv.h"
#include "shim/base/config.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/state.h"
#include "shim/base/tables.h"
#include "shim/hooks/hooks.h"
#include "shim/host/map.h"
#include "shim/stack/stack.h"
#include "shim/trace/record.h"

#define FILE_SLOTS 4096

/* Names already recorded: id by hash of the path. A collision of 64-bit hashes would confuse two names. */
static struct {
	uint64_t hash;
	uint32_t id;
} *files; /* FILE_SLOTS */
static uint32_t file_count;

void mt_map_tables(struct mt_tables *t)
{
	files = mt_tables_take(t, FILE_SLOTS * sizeof(*files));
}

static uint64_t hash_name(const char *s)
{
	return mt_fnv_text(MT_FNV_START, s) | 1;
}

/* Under the lock. */
static uint32_t file_id(const char *path)
{
	uint64_t hash = hash_name(path);
	struct mt_rec_file rec = { 0, 0 };

	for (uint32_t n = 0, i = hash % FILE_SLOTS; n < FILE_SLOTS; n++, i = (i + 1) % FILE_SLOTS) {
		if (files[i].hash == hash)
			return files[i].id;
		if (!files[i].hash) {
			rec.id = files[i].id = ++file_count;
			files[i].hash = hash;
			mt_log_write(MT_REC_FILE,
				     (struct mt_part[]){ { &rec, sizeof(rec) }, { path, strlen(path) + 1 } }, 2);
			return rec.id;
		}
	}
	return 0; /* more names than we keep: unknown */
}

void mt_map_reset(void)
{
	if (file_count)
		memset(files, 0, FILE_SLOTS * sizeof(*files));
	file_count = 0;
}

static const char *name_of(int fd)
{
	static char link[32], path[PATH_MAX]; /* under the lock */
	char *end = link + sizeof(link);
	long n;

	mt_put_number(mt_put(link, end, "/proc/self/fd/"), end, (unsigned)fd);
	n = MT_SYS4(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
	if (n <= 0)
		return NULL;
	path[n] = 0;
	return path;
}

/* Of what `name` says, or of the file. */
static uint32_t describe_file(const char *name, int fd, uint32_t *flags)
{
	uint64_t signals;
	uint32_t id = 0;

	if (mt_process_state() != MT_STATE_ACTIVE || mt_process_sandboxed())
		return 0;
	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		if (!name)
			name = name_of(fd);
		if (name) {
			if (!strncmp(name, "/memfd:", 7) || !strncmp(name, "/dev/shm/", 9))
				*flags |= MT_MAP_MEMFD;
			id = file_id(name);
		}
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
	return id;
}

static size_t whole_pages(size_t n)
{
	size_t page = mt_process.session ? mt_process.session->page_bytes : 4096;

	return (n + page - 1) & ~(page - 1);
}

/* Huge pages, a certain place, mere address space, growth in place: programs ask for these to see whether they get
 * them. And what is refused for another reason than memory was asked wrongly. */
static bool is_trial(int prot, int how, const void *at)
{
	if (errno != ENOMEM && errno != EAGAIN)
		return true;
	return how & (MAP_HUGETLB | 0x100000 /* MAP_FIXED_NOREPLACE */) || prot == PROT_NONE ||
	       (how & MAP_NORESERVE && at);
}

static void note_map(unsigned hook, void *p, const void *at, size_t n, int prot, int how, int fd, off_t offset,
		     const void *caller)
{
	struct mt_ext_map ext = { .offset = (uint64_t)offset, .prot = (uint8_t)prot };
	uint32_t flags = 0;

	if (p == MAP_FAILED) {
		mt_record_fail(hook, is_trial(prot, how, at) ? MT_MAP | MT_TRIAL : MT_MAP, n, caller);
		return;
	}
	flags |= how & MAP_ANONYMOUS ? MT_MAP_ANON : 0;
	flags |= (how & MAP_TYPE) == MAP_PRIVATE ? 0 : MT_MAP_SHARED;
	flags |= how & MAP_FIXED ? MT_MAP_FIXED : 0;
	flags |= mt_allocator_has(caller) ? MT_MAP_ARENA : 0;
	if (!(how & MAP_ANONYMOUS))
		ext.file = describe_file(NULL, fd, &flags);
	ext.flags = flags;
	mt_record_map(hook, p, whole_pages(n), &ext, caller);
}

/* Before the constructor has looked the real functions up, the kernel is asked directly. Looking up here could call
 * malloc (dlerror's message), and the caller may be an allocator of the program's own that is just starting up. */
static long result(long ret)
{
	if (!mt_sys_failed(ret))
		return ret;
	errno = (int)-ret;
	return -1;
}

static void *real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	if (mt_real.mmap)
		return mt_real.mmap(at, n, prot, flags, fd, offset);
	return (void *)result(mt_arch_syscall(SYS_mmap, (long)at, (long)n, prot, flags, fd, offset));
}

static int real_munmap(void *p, size_t n)
{
	return mt_real.munmap ? mt_real.munmap(p, n)
			      : (int)result(mt_arch_syscall(SYS_munmap, (long)p, (long)n, 0, 0, 0, 0));
}

static void *real_mremap(void *p, size_t old_n, size_t n, int flags, void *target)
{
	if (mt_real.mremap)
		return mt_real.mremap(p, old_n, n, flags, target);
	return (void *)result(mt_arch_syscall(SYS_mremap, (long)p, (long)old_n, (long)n, flags, (long)target, 0));
}

/* ---- what is usable already ---- */

/* Programs that generate code make the same pages writable and executable in turn, thousands of times. Only whether
 * they can be used at all matters here: a range that mprotect has left usable is known by this word until something
 * else may have happened to it. */
static struct {
	uint64_t usable[64];
	uint32_t layout;
} known;

/* Before and after the call, so that a word which was made in between is void. */
static void layout_changes(void)
{
	__atomic_fetch_add(&known.layout, 1, __ATOMIC_SEQ_CST);
}

/* `layout` is what it was before mprotect was called. */
static bool was_usable(const void *p, size_t n, uint32_t layout)
{
	uint64_t *slot = &known.usable[((uintptr_t)p >> 12 ^ (uintptr_t)p >> 18) % 64];
	uint64_t word = ((uintptr_t)p ^ (uint64_t)layout << 48 ^ layout >> 16) * 0x9e3779b97f4a7c15ull;

	if (mt_process_state() != MT_STATE_ACTIVE)
		return false;
	word = (word ^ word >> 32 ^ n) * 0xd6e8feb86659fd93ull | 1;
	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == word)
		return true;
	__atomic_store_n(slot, word, __ATOMIC_RELAXED);
	return false;
}

static void *map_anew(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	bool may_replace = flags & MAP_FIXED || prot == PROT_NONE;
	void *p;

	if (may_replace)
		layout_changes();
	p = real_mmap(at, n, prot, flags, fd, offset);
	if (may_replace)
		layout_changes();
	return p;
}

/* ---- the hooks ---- */

MT_EXPORT void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	void *p = map_anew(at, n, prot, flags, fd, offset);
	int kept = errno;

	note_map(MT_HOOK_mmap, p, at, n, prot, flags, fd, offset, MT_CALLER);
	errno = kept;
	return p;
}

MT_EXPORT void *mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	void *p = map_anew(at, n, prot, flags, fd, offset);
	int kept = errno;

	note_map(MT_HOOK_mmap64, p, at, n, prot, flags, fd, offset, MT_CALLER);
	errno = kept;
	return p;
}

MT_EXPORT int munmap(void *p, size_t n)
{
	int ret;

	mt_record_unmap(MT_HOOK_munmap, p, whole_pages(n));
	layout_changes();
	ret = real_munmap(p, n);
	layout_changes();
	if (ret)
		mt_record_undo(MT_HOOK_munmap, p);
	mt_stack_unmapped();
	return ret;
}

/* An unmapping of the old range, then a mapping of the new one that keeps what it is a mapping of. */
MT_EXPORT void *mremap(void *p, size_t old_n, size_t n, int flags, ...)
{
	struct mt_ext_map ext = { .old = (uintptr_t)p, .flags = MT_MAP_MOVED };
	int keeps = old_n == 0 || (flags & 4 /* MREMAP_DONTUNMAP */);
	void *target, *q;
	va_list args;

	va_start(args, flags);
	target = flags & MREMAP_FIXED || keeps ? va_arg(args, void *) : NULL;
	va_end(args);
	if (keeps)
		ext.flags |= MT_MAP_KEPT;
	else
		mt_record_unmap(MT_HOOK_mremap, p, whole_pages(old_n));
	if (flags & MREMAP_FIXED)
		ext.flags |= MT_MAP_FIXED;
	layout_changes();
	q = real_mremap(p, old_n, n, flags, target);
	layout_changes();
	if (q == MAP_FAILED) {
		unsigned trial = flags & MREMAP_MAYMOVE && errno == ENOMEM ? 0 : MT_TRIAL;
		if (!keeps)
			mt_record_undo(MT_HOOK_mremap, p);
		mt_record_fail(MT_HOOK_mremap, MT_MAP | trial, n, MT_CALLER);
		return q;
	}
	mt_stack_unmapped();
	mt_record_map(MT_HOOK_mremap, q, whole_pages(n), &ext, MT_CALLER);
	return q;
}

/* A mapping that stays, but for its protection or its contents. A reader that does not know the flag takes it for a new
 * one in its place. */
static void note_change(unsigned hook, void *p, size_t n, int prot, uint32_t flag, const void *caller)
{
	struct mt_ext_map ext = { .prot = (uint8_t)prot, .flags = MT_MAP_ANON | MT_MAP_FIXED | flag };

	mt_record_map(hook, p, whole_pages(n), &ext, caller);
}

static int real_protect(unsigned hook, void *p, size_t n, int prot, int key)
{
	if (hook == MT_HOOK_mprotect)
		return mt_real.mprotect ? mt_real.mprotect(p, n, prot)
					: (int)result(mt_arch_syscall(SYS_mprotect, (long)p, (long)n, prot, 0, 0, 0));
	if (mt_real.pkey_mprotect)
		return mt_real.pkey_mprotect(p, n, prot, key);
	return (int)result(mt_arch_syscall(SYS_pkey_mprotect, (long)p, (long)n, prot, key, 0, 0));
}

/* Tells want of memory from want of a mapping: msync with this flag does nothing, but for where nothing is mapped. */
static bool is_mapped(const void *p, size_t n)
{
	return !mt_sys_failed(MT_SYS3(SYS_msync, p, n, MS_ASYNC));
}

static int protect(unsigned hook, void *p, size_t n, int prot, int key, const void *caller)
{
	bool usable = prot & (PROT_READ | PROT_WRITE | PROT_EXEC);
	uint32_t layout;
	int ret, kept;

	if (!usable)
		layout_changes();
	layout = __atomic_load_n(&known.layout, __ATOMIC_SEQ_CST);
	ret = real_protect(hook, p, n, prot, key);
	kept = errno;
	if (!usable) {
		layout_changes();
		mt_stack_unmapped();
	}
	if (ret && usable && kept == ENOMEM && is_mapped(p, n))
		mt_record_fail(hook, MT_MAP, n, caller);
	else if (!ret && !(usable && was_usable(p, n, layout)))
		note_change(hook, p, n, prot, MT_MAP_PROTECT, caller);
	errno = kept;
	return ret;
}

MT_EXPORT int mprotect(void *p, size_t n, int prot)
{
	return protect(MT_HOOK_mprotect, p, n, prot, -1, MT_CALLER);
}

MT_EXPORT int pkey_mprotect(void *p, size_t n, int prot, int key)
{
	return protect(MT_HOOK_pkey_mprotect, p, n, prot, key, MT_CALLER);
}

/* What is given back may be used again without a word, so it stays mapped; that it was given back is worth knowing. */
MT_EXPORT int madvise(void *p, size_t n, int advice)
{
	bool gives = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
		     advice == 24 /* MADV_DONTNEED_LOCKED */;
	int ret = mt_real.madvise ? mt_real.madvise(p, n, advice)
				  : (int)result(mt_arch_syscall(SYS_madvise, (long)p, (long)n, advice, 0, 0, 0));
	int kept = errno;

	if (gives && !ret)
		note_change(MT_HOOK_madvise, p, n, PROT_READ | PROT_WRITE, MT_MAP_GIVEN, MT_CALLER);
	errno = kept;
	return ret;
}

/* As the kernel names it in /proc/PID/maps. The key is what a program knows it by; 0: a private one. */
static void note_segment(void *p, int id, int how, const void *caller)
{
	static const char digits[] = "0123456789abcdef";
	char name[] = "/SYSV00000000";
	uint32_t flags = MT_MAP_SHARED | MT_MAP_MEMFD | (how & SHM_REMAP ? MT_MAP_FIXED : 0);
	struct mt_ext_map ext = { .prot = how & SHM_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE };
	struct shmid_ds of;

	if (mt_sys_failed(MT_SYS3(SYS_shmctl, id, IPC_STAT, &of)))
		return;
	for (uint32_t i = 0, key = (uint32_t)of.shm_perm.__key; i < 8; i++, key >>= 4)
		name[sizeof(name) - 2 - i] = digits[key & 15];
	ext.file = describe_file(name, -1, &flags);
	ext.flags = flags;
	mt_record_map(MT_HOOK_shmat, p, whole_pages(of.shm_segsz), &ext, caller);
}

MT_EXPORT void *shmat(int id, const void *at, int flags)
{
	void *p;
	int kept;

	if (flags & SHM_REMAP)
		layout_changes();
	p = mt_real.shmat ? mt_real.shmat(id, at, flags)
			  : (void *)result(mt_arch_syscall(SYS_shmat, id, (long)at, flags, 0, 0, 0));
	kept = errno;
	if (flags & SHM_REMAP)
		layout_changes();
	if (p != MAP_FAILED && !mt_record_is_off())
		note_segment(p, id, flags, MT_CALLER);
	else if (p == MAP_FAILED && kept == ENOMEM)
		mt_record_fail(MT_HOOK_shmat, MT_MAP, 0, MT_CALLER);
	errno = kept;
	return p;
}

/* Its size is that of what was attached there. */
MT_EXPORT int shmdt(const void *p)
{
	int ret;

	mt_record_unmap(MT_HOOK_shmdt, (void *)(uintptr_t)p, 0);
	layout_changes();
	ret = mt_real.shmdt ? mt_real.shmdt(p) : (int)result(mt_arch_syscall(SYS_shmdt, (long)p, 0, 0, 0, 0, 0));
	layout_changes();
	if (ret)
		mt_record_undo(MT_HOOK_shmdt, p);
	mt_stack_unmapped();
	return ret;
}
