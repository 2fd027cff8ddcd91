/* What the stand-in's layers share: who called first, what there is, and the process's account. Lives in the lowest layer.
 *
 * Environment, besides that of ../cuda/shared.h:
 *   MEMTRACE_STANDIN_FAIL   NAME:N:STATUS,...: the Nth call of NAME (from 1) fails with STATUS
 *   MEMTRACE_STANDIN_HUGE   so many attempts to allocate in huge pages fail in the driver */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stdint.h>

#include "acl.h"

#define EXPORT __attribute__((visibility("default")))

enum kind { DEVICE, MANAGED, ASYNC, PINNED, REGISTERED, RESERVED, PHYSICAL, ALIAS, MAPPING };
#define ANY_DEVICE (1 << DEVICE | 1 << MANAGED)

struct block {
	uint64_t key; /* address or handle */
	uint64_t bytes;
	uint64_t handle; /* of a mapping */
	enum kind kind;
	int device;      /* -1: the host */
	int references;
};

/* Every function of the API lies between the two. begin returns the status that the environment wants it to fail with. end
 * logs the outermost call and returns its status. */
int standin_begin(const char *name);
int standin_end(const char *op, struct block what, int status);

/* Blocks by kinds (a bit each) and key; held by value, as other threads come and go. */
bool standin_add(struct block block);
bool standin_find(int kinds, uint64_t key, struct block *out);
bool standin_take(int kinds, uint64_t key, struct block *out);
int standin_refer(uint64_t handle, int change); /* the handle's references afterwards, -1: no such handle */
void standin_drop_device(int device);

/* Memory of a device (-1: of the host), charged to it. */
void *standin_memory(int device, uint64_t bytes);
void standin_release(void *p, uint64_t bytes, int device);
bool standin_charge(int device, int64_t change);

/* The thread's current device; -1: none. */
int standin_device(void);
void standin_set_device(int device);

#endif
