/*
 * Samples: figures of the system that the recorder read now and then, of processes, mappings, the machine, control
 * groups and devices. They belong to a reader, whose times and processes they use. Like the reader's, everything that
 * is handed out has been validated.
 *
 *   struct samples *s;
 *   int e = samples_open(&s, reader);                          a trace without samples has none: no error
 *   for (i = 0; i < samples_subjects(s); i++) {
 *           const struct sample_subject *d = samples_subject(s, i);
 *           if (d->kind == MT_SUBJECT_DEVICE && !strcmp(d->text, uuid))
 *                   e = samples_at(s, ns, i, &state);           state.value[MT_DEVICE_used], if state.known says so
 *   }
 *   samples_close(s);
 *
 * Glossary
 *   subject  what figures are about; its fields are those of format/samples.h, MT_MACHINE_*, MT_PROCESS_* ...
 *   value    of a field; K and B fields are bytes here, U fields nanoseconds, N fields counts
 *   sample   the figures of one subject at one moment: the fields that were looked at then
 *
 * Memory: the subjects, and one block of the file at a time. A pass over a week of 16 processes takes seconds.
 */
#ifndef MT_READER_SAMPLES_H
#define MT_READER_SAMPLES_H

#include "analyzer/reader/reader.h"
#include "format/samples.h"

struct samples;

/* A value, and when it was sampled. */
struct sample_extreme {
	uint64_t value, ns;
};

/* Strings are borrowed from the struct samples. */
struct sample_subject {
	unsigned index; /* in samples_subject() */
	enum mt_subject kind;
	const struct reader_host *host;
	/* PROCESS, MAPPING, DEVICE_PROCESS: the pid as in struct process; 0 = unknown */
	uint32_t pid;
	uint32_t other_pid; /* DEVICE_PROCESS: the pid that the driver gives, of its own pid namespace */
	bool traced;        /* PROCESS, DEVICE_PROCESS: some image of that pid is in the trace */
	uint32_t backend;   /* DEVICE, DEVICE_PROCESS: enum mt_backend */
	uint32_t number;    /* DEVICE: the driver's index; CGROUP: version 1 or 2 */
	uint64_t address;   /* MAPPING: where it starts */
	/* PROCESS: name; MAPPING: path; DEVICE, DEVICE_PROCESS: uuid; CGROUP: path. Never NULL */
	const char *text;
	const char *text2;          /* PROCESS: path of its cgroup subject; DEVICE, DEVICE_PROCESS: name */
	uint64_t first_ns, last_ns; /* of its samples */
	uint64_t gone_ns;           /* when it was seen to have ended; UINT64_MAX = it was not */
	uint64_t samples;           /* how many there are of it */
	uint64_t known;             /* fields that were ever looked at: bit i is field i */
	struct sample_extreme first[MT_SAMPLES_MAX_FIELDS], least[MT_SAMPLES_MAX_FIELDS], most[MT_SAMPLES_MAX_FIELDS],
		last[MT_SAMPLES_MAX_FIELDS]; /* of known fields */
};

struct sample {
	const struct sample_subject *subject;
	uint64_t ns;
	uint64_t mono_ns;      /* the same moment on its machine's CLOCK_MONOTONIC */
	uint64_t fields;       /* bits of the fields that were looked at in this sample ... */
	uint64_t known;        /* ... or in an earlier one of this pass */
	const uint64_t *value; /* by field, of the known ones; borrowed until f returns */
	bool gone;             /* the subject has ended: this is its last one */
};

/* The latest figures of a subject up to a moment. */
struct sample_state {
	uint64_t known; /* bits of the fields with a value */
	uint64_t value[MT_SAMPLES_MAX_FIELDS];
	uint64_t ns[MT_SAMPLES_MAX_FIELDS]; /* when each was looked at */
	uint64_t last_ns;                   /* of the latest sample; 0 = none */
	bool gone;                          /* it had ended by then */
};

/* Reads DIR/samples of each directory of the reader, which must live longer. Damage is an error; with READER_FORCE, and
 * where a file merely ends in the middle of a block, it is a note of the reader's and the rest is used. */
int samples_open(struct samples **out, struct reader *r);
void samples_close(struct samples *s); /* NULL is fine */

/* Of a kept analysis (analysis/index.h): opens the files anew, in another process. 0 or an error. */
int samples_resume(struct samples *s);

/* Reads what has been written since. Call reader_refresh() before, as subjects may be processes that are new. */
int samples_refresh(struct samples *s);

unsigned samples_subjects(const struct samples *s);
const struct sample_subject *samples_subject(const struct samples *s, unsigned i);

/* The index of the next subject, from i on, of that kind and (unless NULL) host; samples_subjects() if there is
 * none. */
unsigned samples_find(const struct samples *s, enum mt_subject kind, const struct reader_host *host, unsigned i);

/* The subject PROCESS of an image (images of one pid share it); NULL if it was never sampled. */
const struct sample_subject *samples_of_process(const struct samples *s, const struct process *p);

/* Which image a PROCESS, MAPPING or traced DEVICE_PROCESS subject was at a moment; NULL if unknown. */
const struct process *samples_process(const struct samples *s, const struct sample_subject *d, uint64_t ns);

/* Calls f for each sample in [from_ns, to_ns], in order of time, as long as it returns 0. Returns what f returned last,
 * or a negative error. */
int samples_each(const struct samples *s, uint64_t from_ns, uint64_t to_ns, int (*f)(void *arg, const struct sample *),
		 void *arg);

/* All subjects as of a moment: state[i] is that of subject i, and has room for samples_subjects(). A field that was
 * looked at more than `back_ns` (0: 5 minutes) before `ns` is unknown, unless `ns` lies behind the subject's last
 * sample. 0 or an error. samples_at(): the same of one subject, with 5 minutes. */
int samples_states(const struct samples *s, uint64_t ns, uint64_t back_ns, struct sample_state *state);
int samples_at(const struct samples *s, uint64_t ns, unsigned subject, struct sample_state *state);

/* A field over time: `values` gets the highest value in each of `count` equal stretches of [from_ns, to_ns). A stretch
 * without a sample has the value before; before the first sample and after the subject's end it is 0. 0 or an error. */
int samples_series(const struct samples *s, unsigned subject, unsigned field, uint64_t from_ns, uint64_t to_ns,
		   uint64_t *values, size_t count);

/* "rss"; NULL if there is no such field. */
const char *samples_field_name(enum mt_subject kind, unsigned field);

#endif
