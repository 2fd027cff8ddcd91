/*
 * The recorder's sampler: looks at processes, machine, control groups and devices every second, and at once when a
 * device allocation failed or a process ended, and writes DIR/samples. A thread of its own, because the kernel may keep
 * it waiting (a process that dumps core, a driver that hangs) and the rings must be emptied meanwhile.
 *
 * It gets more frequent while resident memory grows fast and rarer where looking is expensive or the disk limit near:
 * less than 1 % of a core. smaps and smaps_rollup go through all pages of a process and keep it from mapping memory
 * meanwhile (45 us per MiB of 4 KiB pages were measured, 0.2 s for 4 GiB), so they are repeated after 500 times the
 * time that they took at the earliest, and after 1000 times if that was more than 50 ms; half a second's worth of them,
 * and then half as many again, may come earlier where much has changed.
 */
#ifndef MT_RECORDER_SAMPLER_H
#define MT_RECORDER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

struct sampler;

struct sampler_process {
	char info[4500]; /* path of its info file */
	uint32_t pid;    /* in its own pid namespace */
	uint64_t pid_ns, boot_start;
};

/* Starts the thread; `dir` and `session` must outlive it. NULL if it can't be: then there are no samples. */
struct sampler *sampler_start(const char *dir, struct mt_session *session);

/* Who lives now; copied. Call it in each round: cheap if nothing changed. */
void sampler_processes(struct sampler *s, const struct sampler_process *list, size_t count);

/* A last look, then the end of the thread. NULL is fine. False: it did not end within a second (the kernel keeps it
 * waiting) and goes on to use `session`. */
bool sampler_stop(struct sampler *s);

#endif
