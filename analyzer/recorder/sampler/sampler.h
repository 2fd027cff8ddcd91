/*
 * The recorder's sampler reads figures of processes, machine, control groups and devices, and writes DIR/samples. It
 * does so every second, and at once when a device allocation failed or a process ended. It is a thread of its own,
 * because the kernel may keep it waiting (a process that dumps core, a driver that hangs) while rings must be emptied.
 *
 * Samples are more frequent while resident memory grows fast, and rarer where they are expensive or the disk limit is
 * near: together they take less than 1 % of a core. Reading smaps or smaps_rollup goes through all pages of a process,
 * which can't map memory meanwhile (measured: 45 us per MiB of 4 KiB pages, 0.2 s for 4 GiB). So a process is read
 * again only after 500 times the time that it took, 1000 times if that was more than 50 ms. Where much has changed it
 * may be earlier: up to half a second of such reading, and then half as much again as the regular one.
 */
#ifndef MT_RECORDER_SAMPLER_SAMPLER_H
#define MT_RECORDER_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

struct sampler;

/* A traced process. */
struct sampler_process {
	char info[4500];             /* path of its info file */
	uint32_t pid;                /* in its own pid namespace */
	uint64_t pid_ns, boot_start; /* as in struct mt_info: that namespace, its start */
};

/* Starts the thread; `dir` and `session` must outlive it. NULL = it can't be started, and there are no samples. */
struct sampler *sampler_start(const char *dir, struct mt_session *session);

/* The processes that live now; the list is copied. Called in each round: it is cheap if nothing has changed. */
void sampler_processes(struct sampler *s, const struct sampler_process *list, size_t count);

/* Takes a last sample and ends the thread. NULL is fine. False = it did not end within a second, as the kernel keeps it
 * waiting: `dir` and `session` must stay. */
bool sampler_stop(struct sampler *s);

#endif
