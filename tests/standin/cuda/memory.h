/* The stand-in driver's books: addresses, blocks, and what each device is charged.
 *
 * All device addresses come from one large range of lazily backed private memory, lowest gap first, so that a freed address is
 * soon given out again, and so that stray copies land in memory. Kernels never run; copies and memsets are real.
 * Blocks of at least the granularity (2 MiB) are charged rounded up to it; smaller ones share: their sum is rounded up. */
#ifndef STANDIN_MEMORY_H
#define STANDIN_MEMORY_H

#include "abi.h"
#include "shared.h"

enum kind { LINEAR, MANAGED, ASYNC, PINNED, REGISTERED, RESERVATION, ALIAS, GRAPH };
enum { DEVICE_KINDS = 1 << LINEAR | 1 << MANAGED | 1 << ASYNC | 1 << GRAPH };
extern const char *const kind_names[];

struct CUctx_st {
	int device, ordinal; /* the machine's number, the process's number */
	int references;
	bool alive;
};

struct block {
	uint64_t base, size, bytes; /* size is what it takes of the address range */
	int device;
	enum kind kind;
	CUcontext context;
	CUmemoryPool pool; /* ASYNC */
	uint64_t origin;   /* ALIAS: the exporter's pid and address, mixed */
	int opened;        /* ALIAS: how often; GRAPH: whether it has memory */
};

/* Everything below is called with the driver's lock held. */

struct block *block_add(uint64_t base, uint64_t size, uint64_t bytes, int device, enum kind kind);
struct block *read_block_header(uint64_t base, int kinds); /* a set 1 << KIND */
struct block *block_around(uint64_t address);
void block_remove(struct block *block);
struct block *block_first(void);
struct block *block_end(void);

uint64_t space_find(uint64_t size, uint64_t alignment); /* 0: none left */
void space_clear(uint64_t start, uint64_t size);	/* its contents are gone */

bool charge_at_once(int device, uint64_t bytes);
bool charge(int device, uint64_t bytes); /* empties unused pool memory before it gives up */
void refund(int device, uint64_t bytes);
bool charge_context(int device, int64_t bytes);

bool pools_trim(int device); /* whether any memory came back */
void pools_synchronize(int device);
void pools_reset(int device);

/* The driver's. */
CUresult ready(void); /* 0, or the status that every call gets before cuInit, after fork and after the end */
void driver_lock(void);
void driver_unlock(void);
CUcontext current(void); /* NULL: none */
int physical(CUdevice ordinal); /* -1: no such device */
int ordinal_of(int device);
void note(const char *op, const char *function, const char *kind, int device, uint64_t address, uint64_t bytes, uint64_t handle,
	  CUresult status);
CUstream stream_or_null(CUstream stream); /* NULL also for the default streams */
int stream_device(CUstream stream);	  /* -1: no context */

void context_release_memory(const char *function, CUcontext context);
void arrays_release(const char *function, CUcontext context);
int mapped_device(uint64_t address); /* of the handle behind an address of a reservation */
void linear_free(const char *function, struct block *block);

static inline uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

#define ALIVE() \
	do { \
		CUresult state = ready(); \
		if (state != CUDA_SUCCESS) \
			return state; \
	} while (0)

#endif
