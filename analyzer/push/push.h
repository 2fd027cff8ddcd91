/*
 * memtrace push: profiles of a program while it runs, for servers that keep profiles of many programs.
 *
 * The trace is followed from outside, so the program is not touched. Every `every_ns`, and once more just before a
 * control group is full, what is alive and what was allocated since the last time become profiles (push_profile.h),
 * these become requests in files of the trace directory (push_queue.h), and another process sends them.
 */
#ifndef MT_PUSH_PUSH_H
#define MT_PUSH_PUSH_H

#include "analyzer/util/options.h"

#include <signal.h>

/* What their requests look like. */
enum push_server { PUSH_PYROSCOPE, PUSH_PARCA, PUSH_SERVERS };
extern const char *const push_servers[PUSH_SERVERS];

struct push {
	const struct options *options;
	enum push_server server;
	const char *service; /* NULL: as the program, or the script that it runs, is called */
	const char *labels;  /* "team=a,cluster=b", or NULL */
	uint64_t every_ns;
	uint64_t most_samples, most_bytes; /* of one profile; these also of a request's profiles */
	char *const *sender;               /* the command that sends what is in the queue, until its stdin ends */
	const volatile sig_atomic_t *stopped;
};

/* Follows the program until it has ended and the last profile is sent, or given up. 0 or -MT_E*. */
int push_follow(const struct push *p, const char *dir);

#endif
