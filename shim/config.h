/* What MEMTRACE_* asks for. Read once per image from the environment; docs/VARIABLES.md says what they mean. */
#ifndef MT_CONFIG_H
#define MT_CONFIG_H

#include <limits.h>
#include <stdint.h>

#include "format/output_name.h"

struct mt_config {
	char session[PATH_MAX]; /* of the parent; empty in the first process */
	char output[PATH_MAX];  /* pattern expanded, absolute */
	char ring_dir[1024];    /* absolute; empty = the output */
	char program[256];      /* what the user typed: the script rather than its interpreter */
	uint64_t limit_bytes;   /* 0 = none */
	uint64_t keep_free_bytes;
	uint64_t sample_bytes;
	uint64_t sample_seed; /* 0 = another choice each time */
	uint32_t stacks;      /* enum mt_stacks */
	uint32_t depth;
	uint8_t off; /* this program is not recorded: secure execution, or excluded */
	uint8_t children;
	uint8_t joins; /* a trace of the same job is joined: the name isn't one for each process */
	uint8_t paused;
	uint8_t python_allocators; /* PYTHONMALLOC=malloc for children and ourselves */
	uint8_t python;            /* 0: native frames alone */
	uint8_t verbose;
	uint8_t ascend_pool; /* blocks of the pools of Ascend's frameworks */
	uint32_t unreadable; /* 1 << enum mt_setting */
};

extern struct mt_config mt_config;

void mt_config_read(void);

/* Says on stderr which values could not be read and have their default. Who makes a session does, once for all of its
 * processes. */
void mt_config_complain(void);

/* One line on stderr of parts that end with NULL. For what somebody asked for and does not get; who reads stderr is
 * never waited for. */
void mt_tell(const char *const *parts);

/* The same if MEMTRACE_VERBOSE is set; never anything otherwise. */
void mt_say(const char *what, const char *detail);

#endif
