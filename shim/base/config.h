/* The settings MEMTRACE_*, read from the environment once in each image. docs/VARIABLES.md says what they mean. */
#ifndef MT_BASE_CONFIG_H
#define MT_BASE_CONFIG_H

#include <limits.h>
#include <stdint.h>

#include "format/output_name.h"

struct mt_config {
	char session[PATH_MAX]; /* the parent's trace directory; empty in the first process */
	char output[PATH_MAX];  /* MEMTRACE_OUTPUT, its pattern expanded; absolute */
	char ring_dir[1024];    /* absolute; empty = the output */
	char program[256];      /* name as the user typed it: of the script rather than of its interpreter */
	uint64_t limit_bytes;   /* on the trace's disk space; 0 = none */
	uint64_t keep_free_bytes;
	uint64_t sample_bytes;
	uint64_t sample_seed; /* 0 = a different one in each run */
	uint32_t stacks;      /* enum mt_stacks */
	uint32_t record;      /* enum mt_record_mode */
	uint32_t depth;
	uint8_t off; /* this program is not recorded: secure execution, or excluded */
	uint8_t children;
	/* an existing trace of the same job is joined, as the output's name is the same for all processes */
	uint8_t joins;
	uint8_t paused;
	uint8_t python_allocators; /* sets PYTHONMALLOC=malloc, here and for children */
	uint8_t python;            /* 0: only native frames are recorded */
	uint8_t verbose;
	uint8_t holders;     /* snapshots of what keeps the memory */
	uint8_t ascend_pool; /* blocks of the pools of Ascend's frameworks */
	uint64_t unreadable; /* settings whose value could not be read: bits 1 << enum mt_setting */
};

extern struct mt_config mt_config;

void mt_config_read(void);

/* Says on stderr which values could not be read, so that defaults hold. Called by the process that makes the session,
 * for all of its processes. */
void mt_config_complain(void);

/* Writes one line to stderr, of parts that end with NULL: only for something that the user asked for and does not get.
 * It never waits for the reader of stderr. */
void mt_tell(const char *const *parts);

/* The same if MEMTRACE_VERBOSE is set; never anything otherwise. */
void mt_say(const char *what, const char *detail);

#endif
