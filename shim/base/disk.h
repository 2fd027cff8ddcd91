/* This image's raw files, and how much of the disk the session may have. */
#ifndef MT_BASE_DISK_H
#define MT_BASE_DISK_H

#include <stddef.h>
#include <stdint.h>

#include "shim/base/file.h"

/* May the session grow by so many bytes? Counts them if so. Of what the bytes are:
 *   FIRST  the first piece of a file: granted whatever the file system has left, since a process without files could
 *          not even say that it lost everything
 *   REST   the rest of a piece that was begun: as far as the limit allows
 *   NEW    of rings, which the recorder empties: all raw files together may have half of the limit. They always may
 *          have an eighth of it beside KEPT
 *   KEPT   of the call tree and the log, which stay as long as the process lives, and without which the trace says
 *          nothing: as long as three sixteenths of the limit are free */
enum mt_charge { MT_CHARGE_NEW, MT_CHARGE_FIRST, MT_CHARGE_REST, MT_CHARGE_KEPT };
int mt_disk_charge(uint64_t bytes, enum mt_charge what);
void mt_disk_refund(uint64_t bytes);

/* How much of what rings may have is taken but for `free` bytes, in sixteenths. 0 without a limit. */
uint32_t mt_disk_behind(uint64_t free);

/* Maps part of this image's file with the extension `ext` ("ring", "nodes", "info"), the first `reserved` bytes of it
 * ready to be written to, and makes more of it so, which is `mapped`; see sys.h. The second one charges for it, too. */
void *mt_disk_map(const char *ext, uint64_t offset, size_t bytes, size_t reserved, enum mt_open how);
int mt_disk_reserve(const char *ext, uint64_t offset, size_t bytes, void *mapped);

/* So long after a refusal it is asked for again: the recorder may have made room, or the program. */
#define MT_DISK_RETRY_NS (20 * 1000 * 1000u)

/* The path of that file, or NULL if it is too long. Whoever asks has the lock, or is alone; the next one's is in the
 * same place. */
const char *mt_disk_path(const char *ext);

#endif
