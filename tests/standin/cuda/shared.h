/* What the stand-in driver and the stand-in NVML share: the machine's devices, who uses how much of them, and the log.
 *
 * Use is kept in one file of MEMTRACE_STANDIN_DIR, mapped by every process: an entry per process with the bytes it is charged
 * for on each device. A process's entry is void once the process is dead, so nothing has to be cleaned up after a SIGKILL.
 * Sizes are each process's own business (its environment); give all the same. */
#ifndef STANDIN_SHARED_H
#define STANDIN_SHARED_H

#include <stdbool.h>
#include <stdint.h>

enum { SD_DEVICES = 16, SD_UUID_TEXT = 41 };

int sd_count(void);
uint64_t sd_size(int device);
uint64_t sd_context(void);     /* bytes a context costs */
uint64_t sd_granularity(void); /* what the driver rounds to, 1 = exact */
unsigned sd_late(void);        /* queries until an event is ready */
int sd_pid_shift(void);        /* added to every pid that NVML lists, as if they were another namespace's */
void sd_uuid(int device, uint8_t uuid[16]);
void sd_uuid_text(int device, char text[SD_UUID_TEXT]);

/* This process now has TOTAL bytes of DEVICE; false (and no change) if they don't fit beside the other processes'. */
bool sd_charge(int device, uint64_t total);
uint64_t sd_used(int device); /* by all living processes */
void sd_leave(void);

struct sd_user { int pid; uint64_t bytes; };
/* Processes with a context or memory on DEVICE; returns how many there are, of which at most MAX are stored. */
int sd_users(int device, struct sd_user *users, int max);

/* One line of MEMTRACE_STANDIN_LOG. Device -1: none. */
struct sd_event {
	const char *op, *function, *kind;
	int device, status;
	uint64_t address, bytes, handle;
};
void sd_log(const struct sd_event *event);

/* mmap and munmap that no preloaded library sees: device memory is no host memory. */
void *sd_map(void *hint, uint64_t bytes, int flags);
void sd_unmap(void *start, uint64_t bytes);

#endif
