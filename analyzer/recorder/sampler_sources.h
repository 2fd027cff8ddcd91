/*
 * What the parts of the recorder's sampler share:
 *
 *   sampler_internal.h         the sampler itself, with parts of its own: sampler.c, sampler_look.c, sampler_devices.c
 *   sampler_file.c    DIR/samples: subjects, figures, blocks
 *   sampler_proc.c    /proc: the machine, processes, mappings
 *   sampler_cgroup.c  /sys/fs/cgroup
 *   sampler_nvml.c    NVIDIA's management library
 *
 * Nobody else includes this. All of it runs in the sampler's thread.
 */
#ifndef MT_RECORDER_SAMPLER_SOURCES_H
#define MT_RECORDER_SAMPLER_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "format/samples.h"

/* Figures of one subject at one moment, in units of the format. */
struct figures {
	uint64_t fields;
	uint64_t value[MT_SAMPLES_MAX_FIELDS];
};

static inline void figure(struct figures *f, unsigned field, uint64_t value)
{
	f->fields |= 1ull << field;
	f->value[field] = value;
}

/* ---- reading small files of the kernel's --------------------------------------------------------------- */

/* Lines "KEY: value" or "KEY value"; the value of K fields is divided by `unit` bytes (1024 for lines in bytes, 1 for
 * kB). */
struct kernel_line {
	const char *key;
	unsigned field;
};
void kernel_figures(const char *text, const struct kernel_line *lines, size_t count, uint64_t divisor,
		    struct figures *f);

/* The number behind "some" or "full": microseconds of waiting for memory. */
void kernel_pressure(const char *path, unsigned some, unsigned full, struct figures *f);

/* ---- DIR/samples ---------------------------------------------------------------------------------------- */

struct subject_key {
	enum mt_subject kind;
	uint64_t key[3];
	const char *text, *text2; /* NULL = "" */
};

struct samples_file;

struct samples_file *samples_file_new(const char *dir, struct mt_session *session);
void samples_file_free(struct samples_file *f); /* what isn't written is lost */

/* Everything that is added until the next call is of this moment. */
void samples_file_time(struct samples_file *f, uint64_t mono_ns);
void samples_file_add(struct samples_file *f, const struct subject_key *subject, const struct figures *figures);

/* Subjects of that kind that have had no figures since `mono_ns`, and whose first keys are these (key 0 = any), are
 * gone. */
void samples_file_end_stale(struct samples_file *f, enum mt_subject kind, uint64_t key, uint64_t mono_ns);

/* Writes the block if it is old or large, or `now` is set. */
void samples_file_flush(struct samples_file *f, bool now);

/* How many times rarer things are to be looked at, so that disk and limit last. */
unsigned samples_file_slowdown(const struct samples_file *f);

/* ---- /proc ---------------------------------------------------------------------------------------------- */

void sample_machine(struct figures *f);

struct proc_who {
	uint64_t start;
	bool kernel;
	char name[64];
	uint64_t rss_kib;
};

/* What /proc/PID/stat says; false if there is no such process. `f` may be NULL. */
bool sample_process_stat(uint32_t pid, struct proc_who *who, struct figures *f);
bool sample_process_status(uint32_t pid, struct figures *f);
bool sample_process_rollup(uint32_t pid, struct figures *f);

/* All mappings of at least `least` KiB, to `found`. */
bool sample_mappings(uint32_t pid, uint64_t least,
		     void (*found)(void *arg, uint64_t start, const char *path, const struct figures *f), void *arg);

/* ---- control groups ------------------------------------------------------------------------------------- */

struct cgroups; /* analyzer/util/cgroup.h */
void sample_cgroup(const struct cgroups *c, unsigned version, const char *own, const char *limiting, struct figures *f);

/* ---- NVML ------------------------------------------------------------------------------------------------ */

struct nvml;

/* Loads the library: that of MEMTRACE_NVML, else the one beside `beside` (a path of libcuda; may be empty), else the
 * system's. NULL if there is none, or no device. */
struct nvml *nvml_open(const char *beside);
void nvml_close(struct nvml *n);

/* Adds devices and their processes; pid_of says what the trace calls a process, `name` gets its name. */
void sample_nvml(struct nvml *n, struct samples_file *file, uint32_t (*pid_of)(void *arg, uint32_t pid, char name[64]),
		 void *arg);

#endif
