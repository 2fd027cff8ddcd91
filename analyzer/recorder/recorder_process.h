/* One recorded process (an image of it) as the recorder sees it: its raw files on one side, PID-N.trace on the other.
 * */
#ifndef MT_RECORDER_RECORDER_PROCESS_H
#define MT_RECORDER_RECORDER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyzer/recorder/ring_cut.h"
#include "analyzer/recorder/trace_writer.h"
#include "format/codec.h"

#define RECORD_BLOCK_SLOTS 262144u

/* What all processes share. */
struct recorder {
	const char *dir;            /* the trace directory */
	char raw_stem[80];          /* of raw files: directory, slash and perhaps the session's name */
	struct mt_session *session; /* mapped */
	uid_t owner;                /* of the session */
	bool shared;                /* others may write to the directory of raw files: each is asked whose it is */
	uint64_t trace_bytes;       /* in blocks, of all processes so far */
	struct codec *codec;
	struct cut *cut;
	struct mt_event *slots; /* RECORD_BLOCK_SLOTS */
	uint32_t *rings;
	struct codec_buf block;
	uint64_t horizon;    /* of this round */
	unsigned shift;      /* times are kept in units of 2^shift ticks */
	uint64_t lost_ns;    /* when events were last found to be lost; 0 = never */
	bool tight;          /* disk is short: rings may not grow much longer */
	uint64_t kept_bytes; /* of live processes' raw files what stays until they end: call trees and logs */
	bool counted;        /* there is a limit, and trace_bytes is what is there: traces may be folded */
	uint64_t reserved;   /* bytes that only a folded file may take: blocks wait in the rings meanwhile */
	uint64_t settled;    /* some time before the horizon: whoever was forked before is known */
};

struct record_process {
	struct record_process *next;
	struct record_process *next_of_pid; /* or of another pid with the same remainder */
	char name[32];                      /* "PID-N" */
	uint32_t pid, image;
	struct mt_info *info; /* mapped, MT_INFO_LOG bytes; NULL = not open */
	int ring_fd;          /* -1 = none (yet) */
	struct ring_place *places;
	size_t place_room;
	struct record_trace trace;
	uint64_t met_ns;   /* when its info file was first seen */
	uint64_t start;    /* as boot_start; 0 = unknown */
	uint32_t number;   /* its pid in our /proc; 0 = not looked for yet, UINT32_MAX = not found */
	int pidfd;         /* -1 = none */
	uint64_t lost;     /* info->lost_events as of the last round */
	uint64_t wrote_ns; /* when it last got a block; 0 = never */
	uint64_t burst_ns; /* since when there is a block's worth that is left to wait; 0 = there is none */
	uint64_t retry_ns; /* nothing is tried before: something failed */
	unsigned failures; /* in a row */
	uint32_t device_failures, refusals; /* of info, as of the last round */
	bool mourned;                       /* oom_command.c has seen that it is over */
	bool fork_noted;                    /* fold.c knows when it was forked */
	bool over;                          /* it has ended, or another image took its place */
	bool unknown;                       /* nobody can tell: served, but not waited for */
	bool finished;                      /* all of it is in the trace and the raw files are gone */
	bool given_up;                      /* it is over and can't be finished: the raw files stay */
};

/* A process whose info file was seen. NULL without memory. */
struct record_process *record_process_new(const char *name, uint32_t pid, uint32_t image);
void record_process_free(struct record_process *p);

/* They are opened again when they are needed. */
void record_process_close_files(struct record_process *p);

/* The files of blocks take so many bytes more, or less. */
void recorder_charge(struct recorder *r, int64_t bytes);

/* Whether folding is about to make room, or is at it: then it gets what room there is, and blocks wait. */
bool recorder_waits(const struct recorder *r);

/* Opens what is there. 0; 1 = there is nothing to record yet; or an error. */
int record_process_open(struct record_process *p, struct recorder *r);

/* Maps its call tree, from node info->node_base on; NULL if it is empty. 0, 1 = there is no such file, or an error. */
int record_process_nodes(const struct record_process *p, const struct recorder *r, struct mt_node **nodes,
			 size_t *count);

/* Encodes what is worth it; everything if the process is over, and then finishes it. Returns the number of blocks
 * written or an error, after which all is as the files say, and it can be tried again. */
int record_process_round(struct record_process *p, struct recorder *r);

#endif
