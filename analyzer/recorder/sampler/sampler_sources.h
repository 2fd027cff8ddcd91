/*
 * What the sampler (sampler_internal.h) reads, and the file that it writes:
 *
 *   sampler_file.c    DIR/samples: subjects, figures, blocks
 *   sampler_proc.c    /proc: the machine, processes, mappings
 *   sampler_cgroup.c  /sys/fs/cgroup
 *   sampler_nvml.c    NVIDIA's management library
 *   sampler_kfd.c     AMD's devices, in /sys
 *
 * Nobody else includes this. All of it runs in the sampler's thread.
 */
#ifndef MT_RECORDER_SAMPLER_SAMPLER_SOURCES_H
#define MT_RECORDER_SAMPLER_SAMPLER_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "format/format.h"
#include "format/samples.h"

/* Figures of one subject at one moment, in the units of format/samples.h. */
struct figures {
	uint64_t fields; /* bits of the fields that have a value */
	uint64_t value[MT_SAMPLES_MAX_FIELDS];
};

static inline void figure(struct figures *f, unsigned field, uint64_t value)
{
	f->fields |= 1ull << field;
	f->value[field] = value;
}

/* The time that a look takes is the processor's, not what the scheduler adds on a busy machine. */
static inline uint64_t worked_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- reading small files of the kernel's --------------------------------------------------------------- */

/* Takes values from lines "KEY: value" or "KEY value" of `text`. Each is divided by `divisor`, as K fields are KiB:
 * 1024 where lines are in bytes, 1 where they are in kB. */
struct kernel_line {
	const char *key;
	unsigned field;
};
void kernel_figures(const char *text, const struct kernel_line *lines, size_t count, uint64_t divisor,
		    struct figures *f);

/* Takes the microseconds spent waiting for memory from the lines "some" and "full" of a memory.pressure file, into the
 * fields `some` and `full`. */
void kernel_pressure(const char *path, unsigned some, unsigned full, struct figures *f);

/* ---- DIR/samples ---------------------------------------------------------------------------------------- */

/* Which subject figures are about, as format/samples.h says for its kind. */
struct subject_key {
	enum mt_subject kind;
	uint64_t key[3];
	const char *text, *text2; /* NULL = "" */
};

struct samples_file;

struct samples_file *samples_file_new(const char *dir, struct mt_session *session);
void samples_file_free(struct samples_file *f); /* figures that were not flushed are lost */

/* Sets the moment of all figures that are added until the next call. */
void samples_file_time(struct samples_file *f, uint64_t mono_ns);
void samples_file_add(struct samples_file *f, const struct subject_key *subject, const struct figures *figures);

/* Notes as gone the subjects of that kind that have had no figures since `mono_ns`; unless `key` is 0 only those whose
 * first key it is. */
void samples_file_end_stale(struct samples_file *f, enum mt_subject kind, uint64_t key, uint64_t mono_ns);

/* Writes the current block to the file, if it is old or large, or `now` is set. */
void samples_file_flush(struct samples_file *f, bool now);

/* By how much samples are to be rarer (1 = as usual), so that the disk, and the trace's limit on it, last. */
unsigned samples_file_slowdown(const struct samples_file *f);

/* ---- /proc ---------------------------------------------------------------------------------------------- */

/* Functions that return bool: false = there is no such process, or it can't be read. */

void sample_machine(struct figures *f);

struct proc_who {
	uint64_t start; /* in clock ticks since boot */
	bool kernel;    /* a thread of the kernel's */
	char name[64];
	uint64_t rss_kib;
};

/* From /proc/PID/stat, status and smaps_rollup. `f` of the first may be NULL. */
bool sample_process_stat(uint32_t pid, struct proc_who *who, struct figures *f);
bool sample_process_status(uint32_t pid, struct figures *f);
bool sample_process_rollup(uint32_t pid, struct figures *f);

/* Calls `found` for each mapping of at least `least` KiB. */
bool sample_mappings(uint32_t pid, uint64_t least,
		     void (*found)(void *arg, uint64_t start, const char *path, const struct figures *f), void *arg);

/* ---- control groups ------------------------------------------------------------------------------------- */

struct cgroups; /* analyzer/util/system/cgroup.h */
/* `own` is the path of the process's group, `limiting` that of the group above it with the tightest limit. */
void sample_cgroup(const struct cgroups *c, unsigned version, const char *own, const char *limiting, struct figures *f);

/* ---- devices --------------------------------------------------------------------------------------------- */

/* Turns a pid that a driver gives into the trace's (0 = unknown), and fills in the process's name. */
typedef uint32_t pid_of(void *arg, uint32_t pid, char name[64]);

/* Whoever knows what the devices of a backend have. */
struct device_source {
	enum mt_backend backend;

	/* What follows the folder in the path of a library that programs load, if the source's own lies beside it. */
	const char *library;

	/* NULL = there is none, or no device. `beside`: the path of such a library, or empty. */
	void *(*open)(const char *beside);
	void (*close)(void *source);

	/* Adds figures of all devices and of processes on them. False = processes were left out this time, as to read
	 * them takes long. */
	bool (*sample)(void *source, struct samples_file *file, uint64_t now, pid_of *pid_of, void *arg);
};

/* NVML: the library is the file that MEMTRACE_NVML names, else the one beside the program's libcuda, else the system's.
 */
extern const struct device_source nvml_source;

/* AMD's devices, where the kernel has a compute driver for them. */
extern const struct device_source kfd_source;

#endif
