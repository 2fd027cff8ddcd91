/*
 * Files that are mapped shared and written to, as raw files and the session are. What is mapped has its blocks on disk
 * before anything is stored.
 */
#ifndef MT_BASE_FILE_H
#define MT_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "shim/base/sys.h"

/* Maps `bytes` of `path` from `offset` shared and writable, after making sure that the blocks of the first `reserved`
 * exist on disk. NULL if anything is refused, or the file is not ours: nothing may be stored behind these before
 * mt_file_reserve(), because a store into a hole of a full disk is SIGBUS in the target. What is new is written with
 * zeros: the page cache then gets large folios in one go (measured on ext4: 61 us for a chunk of 256 KiB until every
 * page is writable, 275 by faulting). With MT_QUIET_USUAL a file grows by being appended to, so all of a range is made
 * sure of at once, and there is nothing left to reserve: mt_file_first(). */
enum mt_open {
	MT_OPEN,   /* the range is there; its content stays */
	MT_CREATE, /* make the file with mode 0600; fails if it is there */
	MT_EXTEND, /* the range is new */
};
static inline size_t mt_file_first(size_t part, size_t whole)
{
	return mt_sys_quiet() == MT_QUIET_USUAL ? whole : part;
}

void *mt_file_map(const char *path, uint64_t offset, size_t bytes, size_t reserved, enum mt_open how);

/* Makes sure that the blocks of a new range exist on disk, as above. Nonzero if it worked. */
int mt_file_reserve(const char *path, uint64_t offset, size_t bytes);

/* The same for a part that is mapped, where the file can't be opened any more. Fails on kernels before 5.14. */
int mt_file_fill(void *p, size_t bytes);

/* Why the last file could not be mapped or extended: enum mt_loss. */
extern uint32_t mt_file_refused;

/* The user who owns files that we make. mt_file_is_owner(): nonzero for that user, for root, and for the current
 * user. */
extern uint32_t mt_file_owner;
int mt_file_is_owner(uint32_t uid);

/* Makes pages of such a mapping writable now, at 1 us each instead of 7 for a fault on the first store. */
void mt_file_populate(void *p, size_t bytes);

#endif
