/*
 * The file `samples` of a trace directory: what the recorder saw of the system, now and then. It alone writes it.
 *
 * struct mt_samples_header, then blocks back to back: struct mt_samples_block and `stored_bytes` of a zstd stream. A
 * block with part 0 begins a stream; those with part 1, 2, ... behind it go on with it, and each ends with a flush, so
 * that it can be decoded once it is there. Blocks are `plain_bytes` of varints (format/varint.h), which are items:
 *
 *   1 SUBJECT  kind, key, key2, key3, bytes, text, bytes, text2    something that figures are about; numbered 0, 1, ...
 *   2 TIME     microseconds since the stream's latest TIME, or since its first_ns
 *   3 FIGURES  subject, mask of fields, zigzag difference of each     since the subject's latest in this stream, or 0
 *   4 GONE     subject                                                it ended, or is not looked at until more figures
 *              come
 *
 * Figures belong to the latest TIME. A field that isn't in the mask was not looked at. Subjects are numbered anew in
 * each stream, and every stream decodes alone. A block that is cut off ends the file. What an earlier stream said of a
 * subject stays true.
 *
 * The block that is not full yet is in the file `samples.open`, so that it survives the recorder: struct
 * mt_samples_open and the items as they are. It counts if no whole block begins at `offset` of `samples`. A recorder
 * that ends by itself leaves none.
 *
 * The tables: X(name, unit). A field's number is its place. Units: K = 1024 bytes, B = bytes, N = a count, U =
 * microseconds.
 */
#ifndef MT_SAMPLES_FORMAT_H
#define MT_SAMPLES_FORMAT_H

#include <stdint.h>

#define MT_SAMPLES_MAGIC       "MTSAMP1\n"
#define MT_SAMPLES_BLOCK_MAGIC 0x4253544du /* "MTSB" */

struct mt_samples_header {
	char magic[8];
	uint32_t version;
	uint32_t bytes; /* sizeof(struct mt_samples_header) */
	uint64_t reserved[2];
};

/* crc is CRC-32 (zlib) of the header with crc = 0 and what follows. Times are CLOCK_MONOTONIC. */
struct mt_samples_block {
	uint32_t magic;
	uint32_t crc;
	uint32_t stored_bytes;
	uint32_t plain_bytes;
	uint64_t first_ns, last_ns;
	uint32_t part; /* of its stream */
	uint32_t reserved;
};

#define MT_SAMPLES_OPEN_MAGIC "MTSOPEN1"

/* crc is CRC-32 of the items and then of this header with crc = 0. */
struct mt_samples_open {
	char magic[8];
	uint32_t crc;
	uint32_t plain_bytes;
	uint64_t offset;
	uint64_t first_ns, last_ns;
	uint32_t part;
	uint32_t reserved;
};

#define MT_SAMPLES_MAX_PLAIN    (16u << 20) /* bytes of a block */
#define MT_SAMPLES_MAX_SUBJECTS 65536u      /* in a stream */
#define MT_SAMPLES_MAX_WINDOW   20          /* log2 of the zstd streams' */

enum mt_samples_item { MT_SAMPLES_SUBJECT = 1, MT_SAMPLES_TIME = 2, MT_SAMPLES_FIGURES = 3, MT_SAMPLES_GONE = 4 };

/* kind: key, key2, key3, text, text2 */
enum mt_subject {
	MT_SUBJECT_MACHINE = 1, /* */
	/* version 1 or 2; text: path of the one whose limit is met first, text2: of the processes' */
	MT_SUBJECT_CGROUP = 2,
	/* pid, boot_start (of its pid namespace), 1 = traced; name; path of its cgroup subject */
	MT_SUBJECT_PROCESS = 3,
	MT_SUBJECT_MAPPING = 4,        /* pid, boot_start, start address; path or "[anon]" */
	MT_SUBJECT_DEVICE = 5,         /* enum mt_backend, index; uuid; name */
	MT_SUBJECT_DEVICE_PROCESS = 6, /* enum mt_backend, pid or 0 = unknown, the pid the driver says; uuid; name */
	MT_SUBJECTS
};

/* Everything but swap_in .. psi_full, which only grow, is as of that moment. */
/* clang-format off */
#define MT_MACHINE_FIELDS(X) \
	X(total, K) X(free, K) X(available, K) X(buffers, K) X(cached, K) X(shmem, K) X(dirty, K) X(writeback, K) \
	X(anon, K) X(mapped, K) X(slab_reclaimable, K) X(slab_unreclaimable, K) X(kernel_stacks, K) X(page_tables, K) \
	X(locked, K) X(swap_total, K) X(swap_free, K) X(swap_cached, K) X(huge_pages, K) X(committed, K) X(per_cpu, K) \
	X(shm_total, K) X(shm_used, K) \
	X(swapped_in, K) X(swapped_out, K) X(oom_kills, N) X(psi_some, U) X(psi_full, U)
/* clang-format on */

/* limit: the lowest of its own and its ancestors', of which the others are; 0 = none. file without shmem. */
/* clang-format off */
#define MT_CGROUP_FIELDS(X) \
	X(limit, K) X(current, K) X(peak, K) X(anon, K) X(file, K) X(shmem, K) X(kernel, K) X(file_mapped, K) \
	X(file_dirty, K) X(file_inactive, K) X(swap_limit, K) X(swap, K) X(high, K) \
	X(limit_hits, N) X(ooms, N) X(oom_kills, N) X(psi_some, U) X(psi_full, U)
/* clang-format on */

/* From `pss` to `swap_pss` from smaps_rollup, which is looked at less often and only of traced processes. data: what
 * RLIMIT_DATA limits. */
/* clang-format off */
#define MT_PROCESS_FIELDS(X) \
	X(rss, K) X(rss_anon, K) X(rss_file, K) X(rss_shmem, K) X(rss_peak, K) X(swap, K) X(size, K) X(locked, K) \
	X(page_tables, K) X(huge_pages, K) X(threads, N) X(minor_faults, N) X(major_faults, N) \
	X(pss, K) X(pss_anon, K) X(pss_file, K) X(pss_shmem, K) X(shared_clean, K) X(shared_dirty, K) \
	X(private_clean, K) X(private_dirty, K) X(anonymous, K) X(swap_pss, K) X(data, K)
/* clang-format on */

#define MT_MAPPING_FIELDS(X) X(size, K) X(rss, K) X(pss, K) X(anonymous, K) X(swap, K) X(locked, K)

#define MT_DEVICE_FIELDS(X) X(total, B) X(used, B) X(free, B) X(reserved, B)

/* known: 0 = the driver only tells that it is there. */
#define MT_DEVICE_PROCESS_FIELDS(X) X(bytes, B) X(known, N)

/* clang-format off */
#define MT_FIELD_LISTS(L)                                                                          \
	L(MT_SUBJECT_MACHINE, MACHINE) L(MT_SUBJECT_CGROUP, CGROUP) L(MT_SUBJECT_PROCESS, PROCESS) \
	L(MT_SUBJECT_MAPPING, MAPPING) L(MT_SUBJECT_DEVICE, DEVICE) L(MT_SUBJECT_DEVICE_PROCESS, DEVICE_PROCESS)
/* clang-format on */

#define X(name, unit) MT_MACHINE_##name,
enum mt_machine_field { MT_MACHINE_FIELDS(X) MT_MACHINE_COUNT };
#undef X
#define X(name, unit) MT_CGROUP_##name,
enum mt_cgroup_field { MT_CGROUP_FIELDS(X) MT_CGROUP_COUNT };
#undef X
#define X(name, unit) MT_PROCESS_##name,
enum mt_process_field { MT_PROCESS_FIELDS(X) MT_PROCESS_COUNT };
#undef X
#define X(name, unit) MT_MAPPING_##name,
enum mt_mapping_field { MT_MAPPING_FIELDS(X) MT_MAPPING_COUNT };
#undef X
#define X(name, unit) MT_DEVICE_##name,
enum mt_device_field { MT_DEVICE_FIELDS(X) MT_DEVICE_COUNT };
#undef X
#define X(name, unit) MT_DEVICE_PROCESS_##name,
enum mt_device_process_field { MT_DEVICE_PROCESS_FIELDS(X) MT_DEVICE_PROCESS_COUNT };
#undef X

#define MT_SAMPLES_MAX_FIELDS 64u /* of a kind: a mask has so many bits */

_Static_assert(MT_MACHINE_COUNT <= MT_SAMPLES_MAX_FIELDS, "fields");
_Static_assert(sizeof(struct mt_samples_header) == 32, "samples header");
_Static_assert(sizeof(struct mt_samples_block) == 40, "samples block header");
_Static_assert(sizeof(struct mt_samples_open) == 48, "samples open header");

#endif
