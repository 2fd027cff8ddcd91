/*
 * Requests to a server, as files in the trace directory: push-NUMBER.json, the body of one each. A process beside us
 * (python/libmemtrace/push.py) sends them in their order, tries again what could not be sent, and removes what was; so
 * whoever is killed leaves them to the next one. They have 64 MiB at most: then the oldest go, and are counted.
 */
#ifndef MT_PUSH_PUSH_QUEUE_H
#define MT_PUSH_PUSH_QUEUE_H

#include "analyzer/push/push.h"
#include "analyzer/reader/reader.h"

#include <jansson.h>
#include <sys/types.h>

struct push_queue {
	const struct push *push;
	const char *dir;
	int lock; /* the directory: nobody else pushes it */
	unsigned number;
	json_t *series; /* of the request that is being made */
	size_t bytes;
	uint64_t dropped; /* requests */
	pid_t sender;     /* 0 = none runs */
	int sender_pipe;
};

/* 0, or -MT_EUSAGE: the trace is pushed already; push_queue_close() in any case. */
int push_queue_open(struct push_queue *q, const struct push *push, const char *dir);

/* Puts a profile into the request, which is written when it is full. `kind` is the profile's name, `device` as the
 * label has it. */
int push_queue_add(struct push_queue *q, const struct process *p, const char *kind, const char *device,
		   const char *profile, size_t bytes);

/* Writes what is left, and wakes the sender, which is started if none runs. */
int push_queue_flush(struct push_queue *q);

/* Waits until the sender has sent all, or has given up. */
void push_queue_close(struct push_queue *q);

#endif
