/* An image (one program that a pid ran) as the recorder sees it. It reads raw files, PID-N.info, .ring and .nodes, and
 * appends to PID-N.trace. */
#ifndef MT_RECORDER_RINGS_RECORDER_PROCESS_H
#define MT_RECORDER_RINGS_RECORDER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyzer/recorder/rings/ring_cut.h"
#include "analyzer/recorder/rings/trace_writer.h"
#include "format/codec.h"

#define RECORD_BLOCK_SLOTS 262144u

/* What all processes share. */
struct recorder {
	const char *dir;            /* the trace directory */
	char raw_stem[80];          /* how paths of raw files begin: directory, slash and perhaps the session's name */
	struct mt_session *session; /* mapped */
	uid_t owner;                /* of the session */
	/* other users may write to the directory of raw files: each file's owner is checked */
	bool shared;
	uint64_t trace_bytes; /* on the disk, of the traces of all processes */
	struct codec *codec;
	struct cut *cut;
	struct mt_event *slots; /* RECORD_BLOCK_SLOTS */
	uint32_t *rings;
	struct codec_buf block;
	uint64_t horizon;    /* of this round, in ticks: see ring_cut.h */
	unsigned shift;      /* times are kept in units of 2^shift ticks */
	uint64_t lost_ns;    /* when events were last found to be lost; 0 = never */
	bool tight;          /* disk is short: rings can't grow much more */
	uint64_t kept_bytes; /* of live processes' call trees and logs, which stay until they end */
	bool counted;        /* there is a disk limit, and trace_bytes counts all traces, so they may be folded */
	uint64_t reserved;   /* bytes that only a folded file may take: meanwhile events wait in the rings */
	uint64_t settled;    /* ticks, some time before the horizon: all processes forked before are known */
};

struct record_process {
	struct record_process *next;
	struct record_process *next_of_pid; /* chain of a hash table by pid */
	char name[32];                      /* "PID-N" */
	uint32_t pid, image;
	struct mt_info *info; /* the first MT_INFO_LOG bytes, mapped; NULL = not open */
	int ring_fd;          /* -1 = none (yet) */
	struct ring_place *places;
	size_t place_room;
	struct record_trace trace;
	/* times (_ns) are of CLOCK_MONOTONIC */
	uint64_t met_ns;                    /* when its info file was first seen */
	uint64_t start;                     /* as mt_info.boot_start; 0 = unknown */
	uint32_t number;                    /* its pid in our /proc; 0 = not looked for yet, UINT32_MAX = not found */
	int pidfd;                          /* -1 = none */
	uint64_t lost;                      /* info->lost_events as of the last round */
	uint64_t wrote_ns;                  /* when it last got a block; 0 = never */
	uint64_t burst_ns;                  /* since when a whole block's worth of events waits; 0 = none does */
	uint64_t retry_ns;                  /* not tried again before this, as something failed */
	unsigned failures;                  /* in a row */
	uint32_t device_failures, refusals; /* as in info at the last round */
	bool mourned;                       /* oom_command.c has dealt with its end */
	bool fork_noted;                    /* fold.c has noted when it was forked */
	bool over;                          /* it has ended, or another image took its place */
	bool unknown;                       /* whether it has ended can't be told: served, but not waited for */
	bool finished;                      /* all of it is in the trace and the raw files are gone */
	bool given_up;                      /* it is over and can't be finished: the raw files stay */
};

/* For a process whose info file was seen: `name` is "PID-N". NULL = no memory. */
struct record_process *record_process_new(const char *name, uint32_t pid, uint32_t image);
void record_process_free(struct record_process *p);

/* Closes its files, which are opened again when they are needed. */
void record_process_close_files(struct record_process *p);

/* What a file of so many bytes takes on the disk, whose blocks are of 4 KiB: small traces take twice their
 * bytes. */
uint64_t recorder_disk(uint64_t bytes);

/* Counts into the session's use of disk that a trace's file has become larger, or smaller. */
void recorder_charge(struct recorder *r, uint64_t from, uint64_t to);

/* Whether room on disk is kept for folding, which is at work or about to be: events then wait in the rings. */
bool recorder_waits(const struct recorder *r);

/* Opens the files that are there. 0; 1 = there is nothing to record yet; or an error. */
int record_process_open(struct record_process *p, struct recorder *r);

/* Maps its call tree: *count nodes from info->node_base on, NULL if there are none; to be unmapped by the caller. 0; 1
 * = there is no such file; or an error. */
int record_process_nodes(const struct record_process *p, const struct recorder *r, struct mt_node **nodes,
			 size_t *count);

/* Writes blocks of the events in its rings, if there are enough of them; all events if the process is over, and then
 * finishes it. Returns the number of blocks written, or an error: the state then agrees with the files, and the round
 * can be tried again. */
int record_process_round(struct record_process *p, struct recorder *r);

#endif
